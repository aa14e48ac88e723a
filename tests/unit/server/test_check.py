"""Judging without asking, and why something was asked, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.server.world import COMMAND, TOKEN, Client, World

RM = {"kind": "command", "command": "rm -rf build"}


async def check(client: Client, action: dict[str, Any] = RM, **facts: Any) -> dict[str, Any]:
    answer = await client("POST", "/v1/check", {"action": action, **facts})
    assert answer.status == 200, answer
    return dict(answer.body)


async def test_a_check_asks_nobody_and_stores_nothing(world: World) -> None:
    agent, approver = await world.pair()
    events = await world.core.store.last_seq("default")
    found = await check(agent, session_id="s1")
    assert (found["object"], found["verdict"], found["rung"]) == ("signoff.check", "ask", "person")
    assert found["rule_keys"] == ["delete.recursive"]
    assert found["severity"] == "high"
    assert (found["grant_ids"], found["denied_id"], found["explanation"]) == ([], None, None)
    assert await world.core.store.last_seq("default") == events
    assert (await approver("GET", "/v1/approvals")).body["data"] == []


async def test_a_check_is_what_asking_would_be(world: World) -> None:
    agent, _ = await world.pair()
    for command in ("ls", "rm -rf build", "rm -rf /", "git push --force"):
        action = {"kind": "command", "command": command}
        found = await check(agent, action, session_id="s1")
        row = await agent.ask(action=action)
        expected = {"approved": "allow", "blocked": "block", None: "ask"}[row["outcome"]]
        assert (found["verdict"], found["rule_keys"]) == (expected, row["rule_keys"])


async def test_a_standing_approval_would_answer(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask(action=RM)
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "session"})
    [grant] = (await approver("GET", "/v1/grants")).body["data"]
    found = await check(agent, {"kind": "command", "command": "rm -rf dist"}, session_id="s1", explain=True)
    assert (found["verdict"], found["rung"], found["grant_ids"]) == ("allow", "grants", [grant["grant_id"]])
    rungs = {rung["rung"]: rung["reached"] for rung in found["explanation"]["rungs"]}
    assert (rungs["grants"], rungs["denied"], rungs["person"]) == ("decided", "not reached", "not reached")
    assert (await check(agent))["verdict"] == "ask"  # outside of the session it does not count
    assert (grant["uses"], grant["used_at"]) == (0, None)
    used = await agent.ask(action=RM)
    [grant] = (await approver("GET", "/v1/grants")).body["data"]
    assert (grant["uses"], grant["used_at"]) == (1, used["decided_at"])
    await approver("DELETE", f"/v1/grants/{grant['grant_id']}")
    assert (await check(agent, session_id="s1"))["verdict"] == "ask"


async def test_a_denial_that_holds_is_told(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask(action=RM)
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "deny"})
    found = await check(agent, session_id="s1")
    assert (found["verdict"], found["rung"], found["denied_id"]) == ("block", "denied", row["request_id"])
    assert row["short_id"] in found["why"][0]
    other = await check(agent, {"kind": "command", "command": "rm -rf other"}, session_id="s1")
    assert other["verdict"] == "ask"


async def test_a_denial_holds_for_the_machine_it_was_about(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask(action=RM, host="build-1")
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "deny"})
    found = await check(agent, session_id="s1", host="build-1")
    assert (found["verdict"], found["denied_id"]) == ("block", row["request_id"])
    assert (await check(agent, session_id="s1", host="build-2"))["verdict"] == "ask"
    assert (await check(agent, session_id="s1"))["verdict"] == "ask"


async def test_the_explanation_has_commands_rules_and_rungs(quick: World) -> None:
    agent, _ = await quick.pair()
    found = await check(agent, {"kind": "command", "command": "sudo rm -rf build"}, explain=True)
    commands = found["explanation"]["commands"]
    assert [command["words"] for command in commands] == [["sudo"], ["rm", "-rf", "build"]]
    assert commands[1]["wrappers"] == ["sudo"]
    assert commands[1]["rules"][0]["key"] == "delete.recursive"
    assert found["explanation"]["rungs"][-1]["reached"] == "decided"


async def test_a_foreign_session_is_not_there(quick: World) -> None:
    await quick.pair()
    other = await quick.client("agent", agent="other")
    answer = await other("POST", "/v1/check", {"action": RM, "session_id": "s1"})
    assert (answer.status, answer.code) == (404, "session_not_found")
    assert (await check(other))["verdict"] == "ask"


@pytest.mark.parametrize("scope", ["approver", "ops", "admin"])
async def test_who_may_read_may_check(quick: World, scope: Any) -> None:
    await quick.pair()
    reader = await quick.client(scope)
    assert (await check(reader, session_id="s1"))["verdict"] == "ask"


async def test_a_check_that_nests_too_deep_is_refused(quick: World) -> None:
    agent, _ = await quick.pair()
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    answer = await agent("POST", "/v1/check", {"action": {"kind": "tool", "name": "t", "arguments": {"x": deep}}})
    assert (answer.status, answer.code) == (422, "invalid_request")


# --- why -------------------------------------------------------------------------------------------


async def test_why_tells_the_tree_and_what_decided(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask(action={"kind": "command", "command": f"sudo rm -rf build # {TOKEN}"})
    told = (await approver("GET", f"/v1/approvals/{row['short_id']}/why")).body
    assert (told["object"], told["request_id"], told["rung"]) == ("signoff.why", row["request_id"], "person")
    assert [(line["number"], line["verdict"]) for line in told["tree"]] == [("1", "ask"), ("1.1", "ask")]
    assert told["tree"][1]["rules"] == ["delete.recursive"]
    assert told["rules_now"] is None
    assert TOKEN not in str(told)


async def test_why_of_what_was_let_run(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask(action={"kind": "command", "command": "ls"})
    told = (await approver("GET", f"/v1/approvals/{row['request_id']}/why")).body
    assert (told["rung"], told["tree"][0]["verdict"]) == ("rules", "allow")


async def test_why_is_not_for_other_agents(quick: World) -> None:
    agent, _ = await quick.pair()
    row = await agent.ask(action=COMMAND)
    other = await quick.client("agent", agent="other")
    answer = await other("GET", f"/v1/approvals/{row['request_id']}/why")
    assert (answer.status, answer.code) == (404, "approval_not_found")

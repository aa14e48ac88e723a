"""Who may do what: another tenant's or agent's object does not exist, and a scope that is too small is named."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.server.world import COMMAND, World, until

from signoff.model import Scope
from signoff.server.table import ROUTES

SCOPES: tuple[Scope, ...] = ("agent", "approver", "ops", "admin")


@pytest.mark.parametrize("scope", SCOPES)
async def test_every_route_obeys_its_scopes(quick: World, scope: Scope) -> None:
    client = await quick.client(scope)
    for route in (r for r in ROUTES if r.scopes):
        path = route.path.replace("{", "").replace("}", "")
        query = "?after=-1" if route.name == "events" else ""
        answer = await client(route.method, path + query)
        if scope in route.scopes:
            assert answer.status not in (401, 403), (route.name, answer)
        else:
            assert (answer.status, answer.code) == (403, "insufficient_scope"), (route.name, answer)
            assert all(needed in answer.body["error"]["message"] for needed in route.scopes)


async def test_no_key_reads_nothing(quick: World) -> None:
    client = await quick.client("agent")
    client.key = None
    for route in ROUTES:
        path = route.path.replace("{", "").replace("}", "")
        answer = await client(route.method, path)
        assert (answer.status == 401) == bool(route.scopes), (route.name, answer)


@pytest.mark.parametrize(("scope", "profile", "agent"), [("agent", "default", "other"), ("agent", "second", "builder")])
async def test_the_objects_of_others_do_not_exist_for_an_agent(
    world: World, scope: Scope, profile: str, agent: str
) -> None:
    mine, _ = await world.pair()
    turn = (await mine("POST", "/v1/sessions/s1/turns", {"turn_id": "t1"})).body["turn_id"]
    row = await mine.ask(turn_id=turn, request_id="r1")
    theirs = await world.client(scope, profile=profile, agent=agent)
    calls = [
        ("GET", "/v1/sessions/s1", None, "session_not_found"),
        ("DELETE", "/v1/sessions/s1", None, "session_not_found"),
        ("POST", "/v1/sessions/s1/stop", None, "session_not_found"),
        ("POST", "/v1/sessions/s1/turns", {}, "session_not_found"),
        ("POST", "/v1/turns/t1/heartbeat", None, "turn_not_found"),
        ("DELETE", "/v1/turns/t1", None, "turn_not_found"),
        ("POST", "/v1/approvals", {"session_id": "s1", "action": COMMAND}, "session_not_found"),
        ("GET", "/v1/approvals/r1", None, "approval_not_found"),
        ("GET", f"/v1/approvals/{row['short_id']}", None, "approval_not_found"),
        ("POST", "/v1/approvals/r1/cancel", None, "approval_not_found"),
        ("POST", "/v1/approvals/r1/claim", {"digest": row["digest"], "claim_id": "c"}, "approval_not_found"),
        ("POST", "/v1/approvals/r1/result", {"status": "failed"}, "approval_not_found"),
        ("GET", "/v1/events?session_id=s1", None, "session_not_found"),
    ]
    for method, path, body, code in calls:
        answer = await theirs(method, path, body)
        assert (answer.status, answer.code) == (404, code), (method, path, answer)
        assert "approval" not in answer.body
    assert (await theirs("GET", "/v1/approvals")).body["data"] == []
    assert (await theirs("GET", "/v1/approvals?session_id=s1")).body["data"] == []
    assert (await mine("GET", "/v1/approvals/r1")).body["status"] == "pending"


async def test_the_objects_of_another_profile_do_not_exist_for_people(world: World) -> None:
    mine, approver = await world.pair()
    row = await mine.ask(request_id="r1")
    for scope in ("approver", "admin"):
        theirs = await world.client(scope, profile="second")
        decision = await theirs("POST", "/v1/approvals/r1/decision", {"choice": "once"})
        assert (decision.status, decision.code) == (404, "approval_not_found")
        assert (await theirs("POST", f"/v1/approvals/{row['short_id']}/undo")).status == 404
        assert (await theirs("POST", "/v1/sessions/s1/stop")).status == 404
        assert (await theirs("PUT", "/v1/sessions/s1/notifiers/desk")).status == 404
        assert (await theirs("GET", "/v1/approvals")).body["data"] == []
    await approver("POST", "/v1/approvals/r1/decision", {"choice": "always"})
    grant = (await approver("GET", "/v1/grants")).body["data"][0]["grant_id"]
    foreign = await world.client("admin", profile="second")
    assert (await foreign("DELETE", f"/v1/grants/{grant}")).code == "grant_not_found"
    assert (await foreign("GET", "/v1/grants")).body["data"] == []


async def test_agents_without_a_name_do_not_share_their_sessions(quick: World) -> None:
    one, two = await quick.client("agent"), await quick.client("agent")
    assert (await one("PUT", "/v1/sessions/s9")).body["agent"].startswith("key-")
    assert (await two("GET", "/v1/sessions/s9")).status == 404
    assert (await two("PUT", "/v1/sessions/s9")).status == 404


async def test_keys_are_made_listed_and_revoked_over_http(world: World) -> None:
    admin = await world.client("admin")
    made = await admin("POST", "/v1/keys", {"scope": "agent", "agent": "builder"})
    assert made.status == 201
    assert made.body["key"].startswith(f"sk_{made.body['id']}_")
    agent = await world.client("agent")
    agent.key = made.body["key"]
    assert (await agent("PUT", "/v1/sessions/s1")).body["agent"] == "builder"
    listed = (await admin("GET", "/v1/keys")).body["data"]
    assert made.body["id"] in [key["id"] for key in listed]
    assert made.body["key"].rpartition("_")[2] not in str(listed)
    assert (await admin("DELETE", f"/v1/keys/{made.body['id']}")).body["revoked_at"]
    refused = await agent("GET", "/v1/sessions/s1")
    assert (refused.status, refused.code) == (401, "invalid_api_key")
    other = await world.client("admin", profile="second")
    assert (await other("DELETE", f"/v1/keys/{made.body['id']}")).code == "key_not_found"
    nobody = await admin("POST", "/v1/keys", {"scope": "approver"})
    assert (nobody.status, nobody.body["error"]["param"]) == (422, "principal")


async def test_a_revoked_keys_stream_is_cut(quick: World) -> None:
    ops, admin = await quick.client("ops"), await quick.client("admin")
    async with ops.events() as reader:
        key_id = str(ops.key).split("_")[1]
        await admin("DELETE", f"/v1/keys/{key_id}")
        with pytest.raises(EOFError):
            while True:
                await reader.next()


async def test_a_masked_record_stands_in_anothers_error(quick: World) -> None:
    agent, approver = await quick.pair()
    row = await agent.ask(action={"kind": "code", "language": "python", "code": "password = 'hunter2swordfish'"})
    path = f"/v1/approvals/{row['request_id']}/decision"
    await approver("POST", path, {"choice": "deny"})
    late = await approver("POST", path, {"choice": "once"})
    assert "hunter2swordfish" not in str(late.body)
    assert late.body["approval"]["action"]["kind"] == "code"


async def test_waits_of_a_revoked_session_end_with_stop(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask()
    waiters = world.core.broker.waiters
    waiting = asyncio.create_task(agent("GET", f"/v1/approvals/{row['request_id']}?wait=30"))
    await until(lambda: len(waiters) == 1)
    stopped = await approver("POST", "/v1/sessions/s1/stop")
    assert stopped.body["cancelled"] == [row["request_id"]]
    ended = (await waiting).body
    assert (ended["outcome"], ended["cause"], ended["ended_by"]["principal"]) == ("cancelled", "stop_requested", "ann")


async def test_turns_over_http(world: World) -> None:
    agent, _ = await world.pair()
    turn = await agent("POST", "/v1/sessions/s1/turns", {"turn_id": "t1", "lease_s": 5})
    assert (turn.status, turn.body["lease_s"]) == (201, 5)
    assert (await agent("POST", "/v1/turns/t1/heartbeat")).status == 200
    row = await agent.ask(turn_id="t1")
    ended = await agent("DELETE", "/v1/turns/t1?cause=turn_interrupted")
    assert (ended.status, ended.body["cause"]) == (200, "turn_interrupted")
    assert (await agent("GET", f"/v1/approvals/{row['request_id']}")).body["cause"] == "turn_interrupted"
    late = await agent("POST", "/v1/turns/t1/heartbeat")
    assert (late.status, late.code, late.body["cause"]) == (409, "turn_ended", "turn_interrupted")
    born = await agent.ask(turn_id="t1")
    assert (born["outcome"], born["cause"]) == ("cancelled", "turn_interrupted")
    reopened = await agent("POST", "/v1/sessions/s1/turns", {"turn_id": "t1"})
    assert (reopened.status, reopened.code) == (409, "turn_ended")


async def test_a_cleared_session_is_forgotten(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask()
    cleared = await agent("DELETE", "/v1/sessions/s1")
    assert (cleared.status, cleared.body["object"]) == (200, "signoff.stopped")
    assert (await agent("GET", f"/v1/approvals/{row['request_id']}")).body["cause"] == "session_ended"
    assert (await agent("GET", "/v1/sessions/s1")).code == "session_not_found"
    assert (await approver("POST", "/v1/sessions/s1/stop")).code == "session_not_found"


async def test_a_detached_answer_client_frees_its_waits(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask()
    assert (await approver("DELETE", "/v1/sessions/s1/notifiers/desk")).status == 200
    assert (await agent("GET", f"/v1/approvals/{row['request_id']}")).body["cause"] == "notifier_gone"
    assert (await approver("DELETE", "/v1/sessions/s1/notifiers/desk")).status == 200
    assert (await agent.ask())["outcome"] == "blocked"


async def test_unattended_kinds_are_refused_or_blocked(quick: World) -> None:
    agent = await quick.client("agent", agent="night.bot")
    refused = await agent("PUT", "/v1/sessions/s2", {"kind": "cli"})
    assert (refused.status, refused.code) == (403, "kind_not_allowed")
    assert refused.body["error"]["message"] == (
        "This agent may not declare cli sessions. To let it, write "
        'kinds = ["api", "chat", "cli"] under [agents."night.bot"] in signoff.toml.'
    )
    assert (await agent("PUT", "/v1/sessions/s2", {"kind": "cron"})).status == 200
    assert (await agent.ask("s2"))["outcome"] == "blocked"

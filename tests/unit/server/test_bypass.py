"""Asking nothing for a while, over HTTP, by both clients and from the command line."""

from __future__ import annotations

import asyncio
import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import msgspec
import pytest
from tests.unit.cli.test_cli import Shell, one_line
from tests.unit.server.world import World, world_on

from signoff.client import BlockingClient, Client
from signoff.errors import InsufficientScope, InvalidInput, NotPermitted, SessionNotFound
from signoff.ids import one_question_session
from signoff.model import Scope
from signoff.settings import Profile


def minutes_left(told: str) -> float:
    """How many minutes from now."""
    return (datetime.fromisoformat(told) - datetime.now(UTC)).total_seconds() / 60


async def test_an_approver_switches_it_on_and_off(world: World) -> None:
    agent, approver = await world.pair()
    waiting = await agent.ask(action={"kind": "command", "command": "git push --force origin one"})
    on = await approver("POST", "/v1/sessions/s1/bypass")
    assert (on.status, on.body["object"], on.body["bypass_by"]["principal"]) == (200, "signoff.session", "ann")
    assert 29 < minutes_left(on.body["bypass_until"]) <= 30
    assert (await agent("GET", "/v1/sessions/s1")).body["bypass_until"] == on.body["bypass_until"]

    record = await agent.ask(action={"kind": "command", "command": "git push --force origin two"})
    assert (record["outcome"], record["choice"]) == ("approved", "once")
    (by,) = record["decided_by"]
    assert (by["type"], by["rule"]) == ("policy", "bypass")
    assert by["setting"].endswith(" by ann")
    assert record["user_summary"] == f"Approved unasked, {by['setting']}."
    assert "ann" not in record["message"]
    assert record["message"].startswith("Approved: nothing is asked in this session")
    assert (await agent("GET", f"/v1/approvals/{waiting['request_id']}")).body["status"] == "pending"
    checked = await agent("POST", "/v1/check", {"action": record["action"], "session_id": "s1"})
    assert (checked.body["verdict"], checked.body["rung"]) == ("allow", "bypass")

    for _ in range(2):
        off = await approver("DELETE", "/v1/sessions/s1/bypass")
        assert (off.status, off.body["bypass_until"], off.body["bypass_by"]) == (200, None, None)
    record = await agent.ask(action={"kind": "command", "command": "git push --force origin three"})
    assert record["status"] == "pending"
    metrics = (await approver("GET", "/metrics")).body.decode()
    assert 'signoff_session_bypasses_total{what="started"} 1.0' in metrics
    assert 'signoff_session_bypasses_total{what="ended"} 1.0' in metrics


@pytest.mark.parametrize(
    "body", [{"minutes": 0}, {"minutes": 1441}, {"minutes": "30"}, {"minutes": None}, {"hours": 1}]
)
async def test_what_is_no_time_changes_nothing(world: World, body: dict[str, object]) -> None:
    _, approver = await world.pair()
    answer = await approver("POST", "/v1/sessions/s1/bypass", body)
    assert (answer.status, answer.code) == (422, "invalid_request")
    assert (await approver("GET", "/v1/sessions/s1")).body["bypass_until"] is None


@pytest.mark.parametrize(("scope", "status"), [("agent", 403), ("ops", 403), ("admin", 200), ("approver", 200)])
async def test_who_may(world: World, scope: Scope, status: int) -> None:
    await world.pair()
    client = await world.client(scope, agent="builder" if scope == "agent" else None)
    for method in ("POST", "DELETE"):
        assert (await client(method, "/v1/sessions/s1/bypass")).status == status


async def test_where_it_may_not_be(world: World) -> None:
    agent, approver = await world.pair()
    assert (await agent("PUT", "/v1/sessions/job", {"kind": "cron"})).status == 200
    refused = await approver("POST", "/v1/sessions/job/bypass")
    assert (refused.status, refused.code) == (403, "not_permitted")
    assert refused.body["error"]["message"] == "Asking may not be switched off here (policy). Nothing changed."
    stranger = await world.client("approver", profile="second")
    for name, client in (("none", approver), ("s1", stranger)):
        assert (await client("POST", f"/v1/sessions/{name}/bypass")).code == "session_not_found"
        assert (await client("DELETE", f"/v1/sessions/{name}/bypass")).code == "session_not_found"


async def test_the_clients_have_the_verb(world: World) -> None:
    await world.pair()
    approver, agent = await world.client("approver"), await world.client("agent", agent="builder")
    async with Client(world.bound.api, approver.key) as client:
        record = await client.bypass("s1", minutes=5)
        assert record.bypass_until is not None
        assert record.bypass_until - datetime.now(UTC) <= timedelta(minutes=5)
        assert record.bypass_by is not None
        assert record.bypass_by.principal == "ann"
        assert (await client.end_bypass("s1")).bypass_until is None
        with pytest.raises(InvalidInput):
            await client.bypass("s1", minutes=0)
        with pytest.raises(SessionNotFound):
            await client.bypass("none")
    async with Client(world.bound.api, agent.key) as client:
        with pytest.raises(InsufficientScope):
            await client.bypass("s1")
        await client.session("job", kind="cron")

    def blocking() -> None:
        with BlockingClient(world.bound.api, approver.key) as twin:
            assert twin.bypass("s1", minutes=1440).bypass_until is not None
            assert twin.end_bypass("s1").bypass_until is None
            with pytest.raises(NotPermitted):
                twin.bypass("job")

    await asyncio.to_thread(blocking)


@pytest.mark.skipif(os.name != "posix", reason="the gateway's socket")
async def test_the_command_line(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    async with world_on("memory://", state_dir=tmp_path) as world:
        await world.pair()
        done = await shell("yolo", "--session", "s1")
        assert done.code == 0
        assert done.out.startswith("Nothing is asked in s1 until ")
        told = json.loads((await shell("yolo", "2h", "--session", "s1", "--json")).out)
        assert 119 < minutes_left(told["bypass_until"]) <= 120
        assert told["bypass_by"]["platform"] == "local"
        assert (await shell("yolo", "off", "--session", "s1")).out == "Questions are asked in s1.\n"
        for wrong in ("0", "1441", "soon", "5 off"):
            done = await shell("yolo", wrong, "--session", "s1")
            assert (done.code, "1 to 1440" in one_line(done)) == (2, True)
        done = await shell("yolo", "--session", "none")
        assert (done.code, "session" in one_line(done)) == (1, True)


@pytest.mark.skipif(os.name != "posix", reason="the gateway's socket")
async def test_without_a_session_the_open_ones_are_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    async with world_on("memory://", state_dir=tmp_path) as world:
        assert one_line(await shell("yolo", "5")).startswith("Name the session with --session; none is open now. See ")
        agent, _ = await world.pair()
        for name, kind in (("job", "cron"), (one_question_session("ana"), "api"), ("chat-1", "api")):
            assert (await agent("PUT", f"/v1/sessions/{name}", {"kind": kind})).status == 200
        assert (await agent("DELETE", "/v1/sessions/chat-1")).status == 200
        done = await shell("yolo", "5")
        assert done.code == 2
        told = "Name the session with --session; open now: s1 (api of builder). See `signoff yolo --help`."
        assert one_line(done) == told
        assert "questions are asked in all of them." in one_line(await shell("yolo", "off"))
        assert (await shell("yolo", "5", "--session", "s1")).code == 0
        assert "; nothing is asked in: s1 (api of builder)." in one_line(await shell("yolo", "off"))


async def test_what_is_allowed_in_advance_is_listed_whole(tmp_path: Path) -> None:
    """Not the grants alone: to say that nothing is in force, while a bypass is, would be a lie."""
    shell = Shell(tmp_path)
    async with world_on("memory://", state_dir=tmp_path) as world:
        _, approver = await world.pair()
        nothing = await shell("grants")
        assert nothing.out == (
            "No grant is in force.\n\nNo session has its questions switched off.\n\n"
            f"The allowlist, {tmp_path / 'allowlist.toml'}, has no line.\n"
        )
        (tmp_path / "allowlist.toml").write_text('commands = ["make *"]\nunattended_commands = ["git pull"]\n')
        assert (await shell("yolo", "5", "--session", "s1")).code == 0
        out = (await shell("grants")).out
        assert re.search(
            r"`signoff yolo off --session SESSION` ends it:\nSESSION .*\ns1 +the operator .* [45] min\n", out
        )
        assert re.search(r"stands there too:\nLIST .*\ncommands +make \*\nunattended_commands +git pull\n", out)
        told = json.loads((await shell("grants", "--json")).out)
        assert (told["data"], [each["session_id"] for each in told["bypasses"]]) == ([], ["s1"])
        assert [(line["list"], line["text"]) for line in told["allowlist"]] == [
            ("commands", "make *"), ("unattended_commands", "git pull"),
        ]  # fmt: skip
        shell.environ |= {"SIGNOFF_URL": world.bound.api, "SIGNOFF_KEY": approver.key or ""}
        out = (await shell("grants")).out
        assert "\ns1 " in out
        assert "The allowlist is not listed here: this key is no operator's." in out
        assert json.loads((await shell("grants", "--json")).out)["allowlist"] is None


async def test_the_open_sessions_are_listed(world: World) -> None:
    agent, approver = await world.pair()
    for number in range(5):
        await agent("PUT", f"/v1/sessions/more-{number}", {"kind": "api"})
    await agent("DELETE", "/v1/sessions/more-1")
    await agent("PUT", "/v1/sessions/below", {"kind": "child", "parent": "s1"})
    for name in ("s1", "below"):
        assert (await approver("POST", f"/v1/sessions/{name}/bypass")).status == 200
    found: list[dict[str, object]] = []
    after = ""
    while True:
        page = (await approver("GET", f"/v1/sessions?limit=2{after}")).body
        assert len(page["data"]) <= 2
        found += page["data"]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert [row["session_id"] for row in found] == ["s1", "more-0", "more-2", "more-3", "more-4", "below"]
    assert {str(row["session_id"]) for row in found if row["bypass_until"]} == {"s1", "below"}
    default = world.core.profiles["default"]
    off = msgspec.structs.replace(default.approvals, mode="off")
    cast("dict[str, Profile]", world.core.profiles)["default"] = msgspec.structs.replace(default, approvals=off)
    rows = (await approver("GET", "/v1/sessions")).body["data"]
    assert [row["bypass_until"] for row in rows] == [None] * 6, "settings forbid it now"
    assert (await agent("GET", "/v1/sessions")).status == 403
    stranger = await world.client("approver", profile="second")
    assert (await stranger("GET", "/v1/sessions")).body["data"] == []

    def blocking() -> None:
        with BlockingClient(world.bound.api, approver.key) as twin:
            assert [each.session_id for each in twin.open_sessions()][-1] == "below"

    await asyncio.to_thread(blocking)

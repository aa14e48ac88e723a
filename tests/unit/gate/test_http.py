"""Kept actions over HTTP, with the client and on the command line: who sees them, who answers, what is refused how."""

from __future__ import annotations

import asyncio
import importlib
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import front
from tests.unit.cli.front import Front
from tests.unit.server.world import Client as Http
from tests.unit.server.world import FakeCore, World, world_on

from signoff.changes import staging
from signoff.client import BlockingClient, Client
from signoff.errors import ActionRefused, GatePassRefused, RequestNotFound
from signoff.executors import Call
from signoff.model import replace
from signoff.server.bounds import Bounds
from signoff.sessions import Declaration
from signoff.settings import AgentSettings, ApprovalSettings, ExecutorSettings, ToolGateSettings

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
MAIL = {"kind": "tool", "name": "send_email", "arguments": {"to": "ana", "token": TOKEN}}
GATE = ToolGateSettings(require_approval=("send_*",), default_mode="deferred")

__all__ = ["front"]


class Kept:
    """A server whose profiles keep mails, an executor that writes down what it ran, and callers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.core: FakeCore = world.core
        self.ran: list[str] = []
        profiles: Any = self.core.profiles
        for name, profile in list(profiles.items()):
            profiles[name] = replace(
                profile,
                agents={each: AgentSettings(kinds=("api", "cron")) for each in ("builder", "other")},
                approvals=ApprovalSettings(tool_gate=GATE),
                executors={"mailer": ExecutorSettings(tools=("send_*",))},
            )
            world.core.executing._executors.register(name, "mailer", self._run)

    async def _run(self, call: Call) -> None:
        self.ran.append(call.id)

    async def callers(self) -> tuple[Http, Http]:
        """An agent with a cron session `job`, and an approver."""
        agent = await self.world.client("agent", agent="builder")
        assert (await agent("PUT", "/v1/sessions/job", {"kind": "cron"})).status == 200
        return agent, await self.world.client("approver")

    async def keep(self, agent: Http, **facts: Any) -> dict[str, Any]:
        """Ask for a mail, which is kept; the agent's record."""
        body = {"session_id": "job", "action": MAIL, **facts}
        answer = await agent("POST", "/v1/approvals?wait=5", body)
        assert (answer.status, answer.body["outcome"]) == (201, "staged"), answer
        return dict(answer.body)

    async def lost(self, agent: Http, approver: Http) -> str:
        """The id of a kept action whose claimant stopped while it ran."""
        kept = (await self.keep(agent))["kept_as"]
        await approver("POST", f"/v1/actions/{kept}/approve")

        def change(tx: Any) -> None:
            row = staging.start(tx, "default", kept, "dead")
            staging.settle(tx, "default", row.request_id, "dead", staging.Ran(state="unknown"))

        await self.core.store.transact(change)
        return str(kept)


@pytest.fixture(params=["memory", "sqlite"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    """Over each engine."""
    url = "memory://" if request.param == "memory" else f"sqlite://{tmp_path}/store.db"
    async with world_on(url) as world:
        made = Kept(world)
        yield made
        await world.core.executing.aclose(5.0)


async def test_the_agent_is_told_at_once_and_not_as_an_error(kept: Kept) -> None:  # 1.4.3
    agent, _ = await kept.callers()
    record = await kept.keep(agent, request_id="mine")
    assert record["message"].startswith("STAGED: kept as ")
    assert record["status"] == "resolved"
    assert record["executor"] == "mailer"
    assert record["action"] == MAIL
    again = await agent("POST", "/v1/approvals", {"session_id": "job", "action": MAIL, "request_id": "mine"})
    assert (again.status, again.body["kept_as"]) == (200, record["kept_as"])
    claim = {"digest": record["digest"], "claim_id": "c"}
    refused = await agent("POST", "/v1/approvals/mine/claim", claim)
    assert (refused.status, refused.code) == (409, "not_approved")


async def test_the_life_of_a_kept_action(kept: Kept) -> None:  # 1.4.10
    agent, approver = await kept.callers()
    record = await kept.keep(agent)
    listed = (await approver("GET", "/v1/actions")).body
    assert (listed["object"], listed["next"], len(listed["data"])) == ("list", None, 1)
    (row,) = listed["data"]
    assert (row["object"], row["state"], row["id"]) == ("signoff.action", "waits", record["kept_as"])
    assert row["approval"]["stages"] == record["request_id"]
    approved = await approver("POST", f"/v1/actions/{row['short_id'].lower()}/approve", {"reason": "fine"})
    assert (approved.status, approved.body["state"]) == (200, "approved")
    assert approved.body["approval"]["decided_by"][0]["principal"] == "ann"
    done = await approver("POST", f"/v1/actions/{row['id']}/replay?wait=20")
    assert (done.status, done.body["state"]) == (200, "succeeded")
    assert kept.ran == [row["id"]]
    for path in ("approve", "reject", "replay"):
        refused = await approver("POST", f"/v1/actions/{row['id']}/{path}")
        assert (refused.status, refused.body["error"]["code"]) == (409, "already_run")
        assert refused.body["error"]["type"] == "conflict_error"


async def test_an_id_spelt_like_a_short_one_draws_no_answer_to_itself(kept: Kept) -> None:
    agent, approver = await kept.callers()
    record = await kept.keep(agent)
    short = str((await approver("GET", "/v1/actions")).body["data"][0]["short_id"])
    other = {"kind": "tool", "name": "send_email", "arguments": {"to": "everybody"}}
    for spelt in (short, short.lower()):
        await kept.keep(agent, request_id=spelt, action=other)
        assert (await approver("GET", f"/v1/approvals/{spelt}")).body["request_id"] == record["kept_as"]
        answered = await approver("POST", f"/v1/actions/{spelt}/{'approve' if spelt == short else 'replay'}")
        assert answered.body.get("id", record["kept_as"]) == record["kept_as"]
    assert set(kept.ran) <= {record["kept_as"]}


async def test_rejected_with_a_reason(kept: Kept) -> None:
    agent, approver = await kept.callers()
    record = await kept.keep(agent)
    denied = await approver("POST", f"/v1/actions/{record['request_id']}/reject", {"reason": "wrong list"})
    assert denied.body["state"] == "denied"
    assert denied.body["approval"]["reason"] == "wrong list"
    refused = await approver("POST", f"/v1/actions/{record['kept_as']}/replay")
    assert refused.body["error"]["code"] == "denied"


async def test_replay_of_what_waits_is_refused(kept: Kept) -> None:
    agent, approver = await kept.callers()
    record = await kept.keep(agent)
    refused = await approver("POST", f"/v1/actions/{record['kept_as']}/replay")
    assert (refused.status, refused.body["error"]["code"]) == (409, "not_approved")
    assert kept.ran == []


@pytest.mark.parametrize(("chars", "aside"), [(100, False), (200_000, True)])
@pytest.mark.parametrize(
    ("path", "shows"),
    [("/v1/actions", "on_actions.kept_action"), ("/v1/approvals?status=pending", "on_approvals.approval_of")],
)
async def test_long_texts_are_masked_beside_the_loop(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, path: str, shows: str, chars: int, aside: bool
) -> None:
    """A few that are as long as a body may be would stop the gateway for seconds, whoever looks at the list."""
    agent, approver = await kept.callers()
    await kept.keep(agent, action={**MAIL, "arguments": {"text": "password=x " * (chars // 11)}})
    module, _, name = shows.partition(".")
    threads: list[int] = []
    made = getattr(importlib.import_module(f"signoff.server.{module}"), name)

    def noted(*args: Any, **facts: Any) -> Any:
        threads.append(threading.get_ident())
        return made(*args, **facts)

    monkeypatch.setattr(f"signoff.server.{shows}", noted)
    assert len((await approver("GET", path)).body["data"]) == 1
    assert [thread != threading.get_ident() for thread in threads] == [aside]


async def test_an_agent_sees_its_own_and_answers_none(kept: Kept) -> None:  # 1.4.7
    agent, _ = await kept.callers()
    other = await kept.world.client("agent", agent="other")
    record = await kept.keep(agent)
    (own,) = (await agent("GET", "/v1/actions")).body["data"]
    assert own["approval"]["action"] == MAIL
    assert (await other("GET", "/v1/actions")).body["data"] == []
    for path in ("approve", "reject", "replay"):
        for caller in (agent, other):
            answer = await caller("POST", f"/v1/actions/{record['kept_as']}/{path}")
            assert (answer.status, answer.code) == (403, "insufficient_scope")
    decided = await agent("POST", f"/v1/approvals/{record['kept_as']}/decision", {"choice": "once"})
    assert decided.status == 403
    claim = await agent(
        "POST", f"/v1/approvals/{record['kept_as']}/claim", {"digest": record["digest"], "claim_id": "c"}
    )
    assert (claim.status, claim.body["error"]["code"]) == (409, "not_approved")


async def test_people_see_it_masked(kept: Kept) -> None:
    agent, approver = await kept.callers()
    await kept.keep(agent)
    ops = await kept.world.client("ops")
    for reader in (approver, ops):
        assert TOKEN not in str((await reader("GET", "/v1/actions")).body)
    assert (await ops("POST", "/v1/actions/x/approve")).status == 403


async def test_another_profile_has_no_such_action(kept: Kept) -> None:
    agent, _ = await kept.callers()
    record = await kept.keep(agent)
    stranger = await kept.world.client("approver", profile="second")
    assert (await stranger("GET", "/v1/actions")).body["data"] == []
    for path in ("approve", "reject", "replay"):
        answer = await stranger("POST", f"/v1/actions/{record['kept_as']}/{path}")
        assert (answer.status, answer.code) == (404, "approval_not_found")


async def test_pages(kept: Kept) -> None:
    agent, approver = await kept.callers()
    ids = [(await kept.keep(agent))["kept_as"] for _ in range(5)]
    found: list[str] = []
    path = "/v1/actions?limit=2"
    for _ in range(5):
        page = (await approver("GET", path)).body
        found += [row["id"] for row in page["data"]]
        if page["next"] is None:
            break
        path = f"/v1/actions?limit=2&after={page['next']}"
    assert sorted(found) == sorted(ids)
    assert (await approver("GET", "/v1/actions?after=nothing")).status == 422


async def test_it_did_run_or_is_run_again(kept: Kept) -> None:
    agent, approver = await kept.callers()
    one, other = await kept.lost(agent, approver), await kept.lost(agent, approver)
    refused = await approver("POST", f"/v1/actions/{one}/replay")
    assert (refused.status, refused.body["error"]["code"]) == (409, "unknown")
    both = await approver("POST", f"/v1/actions/{one}/replay", {"again": True, "did_run": True})
    assert both.status == 422
    assert (await approver("POST", f"/v1/actions/{one}/replay", {"did_run": True})).body["state"] == "succeeded"
    again = await approver("POST", f"/v1/actions/{other}/replay", {"again": True})
    assert again.body["state"] == "approved"
    assert again.body["id"] != other
    assert kept.ran == []  # nothing runs by itself here
    done = await approver("POST", f"/v1/actions/{again.body['id']}/replay?wait=20")
    assert done.body["state"] == "succeeded"
    assert kept.ran == [again.body["id"]]


async def test_the_second_gates_token_over_http(kept: Kept) -> None:  # 1.4.8
    profiles: Any = kept.core.profiles
    inline = replace(GATE, default_mode="inline")
    profiles["default"] = replace(profiles["default"], approvals=ApprovalSettings(tool_gate=inline))
    agent, approver = await kept.callers()
    assert (await agent("PUT", "/v1/sessions/s1", {"kind": "api"})).status == 200
    assert (await approver("PUT", "/v1/sessions/s1/notifiers/desk")).status == 200
    first = await agent.ask(action=MAIL)
    await approver("POST", f"/v1/approvals/{first['request_id']}/decision", {"choice": "once"})
    claim = {"digest": first["digest"], "claim_id": "c", "want_gate_token": True}
    claimed = (await agent("POST", f"/v1/approvals/{first['request_id']}/claim", claim)).body
    token = claimed["gate_token"]
    assert token.startswith(f"sgt_{first['request_id']}.")
    assert "gate_token" not in (await agent("GET", f"/v1/approvals/{first['request_id']}")).body or (
        (await agent("GET", f"/v1/approvals/{first['request_id']}")).body["gate_token"] is None
    )
    second = await agent.ask(action=MAIL, gate_token=token)
    assert second["outcome"] == "approved"
    assert second["decided_by"][0]["rule"] == f"tool_gate:{first['request_id']}"
    refused = await agent("POST", "/v1/approvals", {"session_id": "s1", "action": MAIL, "gate_token": token})
    assert (refused.status, refused.code) == (403, "gate_token_refused")
    # A lost answer is asked for again; a token that was used is not given a second time.
    repeated = (await agent("POST", f"/v1/approvals/{first['request_id']}/claim", claim)).body
    assert repeated["gate_token"] is None


async def test_a_body_can_never_just_claim_it(kept: Kept) -> None:  # 1.4.8
    agent, _ = await kept.callers()
    body = {"session_id": "job", "action": MAIL}
    for claim in ({"already_gated": True}, {"skip_tool_approval_gate": True}, {"gated": "yes"}):
        assert (await agent("POST", "/v1/approvals", {**body, **claim})).status == 422
    forged = await agent("POST", "/v1/approvals", {**body, "gate_token": "sgt_mine.AAAAAAAAAAAAAAAAAAAAAA"})
    assert (forged.status, forged.code) == (403, "gate_token_refused")


# --- with the client -------------------------------------------------------------------------------


@pytest.fixture
async def clients(kept: Kept) -> AsyncIterator[tuple[Client, Client]]:
    """An agent with a cron session `job`, and an approver."""
    agent_key = (await kept.core.keys.create("default", "agent", agent="builder")).text
    approver_key = (await kept.core.keys.create("default", "approver", principal="ann")).text
    async with (
        Client(kept.world.bound.api, agent_key, environ={}) as agent,
        Client(kept.world.bound.api, approver_key, environ={}) as approver,
    ):
        await agent.session("job", kind="cron")
        yield agent, approver


async def test_the_clients_verbs(kept: Kept, clients: tuple[Client, Client]) -> None:
    agent, approver = clients
    record = await agent.request(MAIL, session_id="job")
    assert (record.outcome, record.may_run) == ("staged", False)
    assert record.message.startswith("STAGED:")
    (row,) = await agent.actions()
    assert (row.id, row.state, row.executor) == (record.kept_as, "waits", "mailer")
    with pytest.raises(TypeError):
        bool(row)
    await approver.approve_action(row.short_id)
    assert (await approver.replay_action(row.id)).state == "succeeded"
    with pytest.raises(ActionRefused) as error:
        await approver.replay_action(row.id)
    assert error.value.code == "already_run"
    with pytest.raises(RequestNotFound):
        await approver.reject_action("nothing")
    other = await agent.request(MAIL, session_id="job")
    assert (await approver.reject_action(other.kept_as or "", "no")).state == "denied"


async def test_the_client_carries_tokens(kept: Kept, clients: tuple[Client, Client]) -> None:
    profiles: Any = kept.core.profiles
    profiles["default"] = replace(profiles["default"], approvals=ApprovalSettings(mode="off", tool_gate=GATE))
    agent, _ = clients
    record = await agent.request(MAIL, session_id="job", want_gate_token=True)
    assert record.may_run
    assert record.gate_token is not None
    profiles["default"] = replace(profiles["default"], approvals=ApprovalSettings(tool_gate=GATE))
    second = await agent.request(MAIL, session_id="job", gate_token=record.gate_token)
    assert second.may_run
    with pytest.raises(GatePassRefused):
        await agent.request(MAIL, session_id="job", gate_token=record.gate_token)


async def test_a_client_reads_on_behind_rows_of_others(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.server.paging.SCAN", 1)
    monkeypatch.setattr("signoff.server.paging.MOST_SCANNED", 1)
    agent, _ = await kept.callers()
    for _ in range(3):
        await kept.keep(agent)
    other = await kept.world.client("agent", agent="other")
    assert (await other("PUT", "/v1/sessions/mine", {"kind": "cron"})).status == 200
    await kept.keep(other, session_id="mine")
    async with Client(kept.world.bound.api, other.key, environ={}) as client:
        assert [each.approval.session_id for each in await client.actions()] == ["mine"]


async def test_the_blocking_clients_verbs(kept: Kept) -> None:
    agent, approver = await kept.callers()
    row, other = await kept.keep(agent), await kept.keep(agent)
    unknown, lost = await kept.lost(agent, approver), await kept.lost(agent, approver)

    def work() -> list[str]:
        with BlockingClient(kept.world.bound.api, approver.key, environ={}) as client:
            client.approve_action(row["kept_as"])
            client.replay_action(row["kept_as"])
            client.reject_action(other["kept_as"])
            client.action_did_run(unknown)
            client.run_action_again(lost)
            return [each.state for each in client.actions()]

    states = await asyncio.to_thread(work)
    assert sorted(states) == ["approved", "denied", "succeeded", "succeeded", "unknown"]


# --- on the command line ---------------------------------------------------------------------------


@pytest.fixture
async def local(front: Front) -> AsyncIterator[Kept]:  # the fixture of that name
    """A gateway on the local socket of the configuration, whose path must be short."""
    with tempfile.TemporaryDirectory(prefix="so-") as folder:
        state = Path(folder) / "state"
        front.write("signoff.toml", f'[gateway]\nstate_dir = "{state}"\n')
        async with world_on("memory://", state_dir=state) as world:
            made = Kept(world)
            yield made
            await world.core.executing.aclose(5.0)


async def told(front: Front, *arguments: str, code: int = 0) -> str:  # as above
    """A command, run while the gateway's loop goes on."""
    return await asyncio.to_thread(lambda: front(*arguments, code=code))


async def as_json(front: Front, *arguments: str) -> Any:  # as above
    """A command's JSON."""
    return await asyncio.to_thread(lambda: front.json(*arguments))


async def test_the_commands(front: Front, local: Kept) -> None:  # as above
    assert "No action is kept." in await told(front, "actions")
    agent, _ = await local.callers()
    row, other = await local.keep(agent), await local.keep(agent)
    listed = await told(front, "actions", "list")
    assert "send_email" in listed
    assert listed.count("waits for an answer") == 2
    found = await as_json(front, "actions", "list")
    short = found["data"][0]["short_id"]
    assert [each["id"] for each in found["data"]] == [row["kept_as"], other["kept_as"]]
    assert await told(front, "actions", "approve", short) == f"{short}: approved, waits for its executor.\n"
    assert await told(front, "actions", "replay", short) == f"{short}: succeeded.\n"
    assert "run already" in await told(front, "actions", "replay", short, code=1)
    denied = await as_json(front, "actions", "reject", other["kept_as"], "not", "today")
    assert (denied["state"], denied["approval"]["reason"]) == ("denied", "not today")
    assert local.ran == [row["kept_as"]]
    assert "`signoff actions` lists them" in await told(front, "actions", "approve", "nothing", code=1)
    await told(front, "actions", "replay", short, "--again", "--did-run", code=2)
    await told(front, "actions", "--json", "list", code=2)


async def test_the_commands_for_what_nobody_knows(front: Front, local: Kept) -> None:  # as above
    agent, approver = await local.callers()
    one, other = await local.lost(agent, approver), await local.lost(agent, approver)
    assert "it may have run" in await told(front, "actions")
    assert (await told(front, "actions", "replay", "--did-run", one)).endswith(": succeeded.\n")
    assert (await told(front, "actions", "replay", "--again", other)).endswith(": approved, waits for its executor.\n")
    again = (await local.core.staged.actions("default"))[-1]
    assert f"unknown: it may have run; to be run again as {again.short_id}" in await told(front, "actions")
    assert f"as {again.short_id}; look at that one" in await told(front, "actions", "replay", "--again", other, code=1)


async def test_run_says_by_its_exit_code_that_it_is_kept(front: Front, local: Kept) -> None:  # as above
    profiles: Any = local.core.profiles
    profiles["default"] = replace(
        profiles["default"],
        approvals=ApprovalSettings(cron_mode="defer"),
        executors={"shell": ExecutorSettings(kinds=("command",), command=("true",))},
    )
    await local.callers()
    await local.core.sessions.declare("default", declaration("cli-job"), None)
    words = ("run", "--session", "cli-job", "--", "git", "push", "--force")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "signoff", *words, cwd=front.folder, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    (row,) = await local.core.staged.actions("default")
    assert (process.returncode, row.short_id in errors.decode()) == (79, True), errors


def declaration(session_id: str) -> Any:
    """A cron session of the operator's own."""
    return Declaration(session_id=session_id, kind="cron")


async def test_what_is_kept_takes_no_place_of_a_live_question(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/store.db"
    few = Bounds(pending_per_agent=2, kept_per_agent=2)
    async with world_on(url, bounds=few) as world:
        kept = Kept(world)
        agent, approver = await kept.callers()
        ids = [await kept.keep(agent, request_id=name) for name in ("one", "two")]
        refused = await agent("POST", "/v1/approvals", {"session_id": "job", "action": MAIL, "request_id": "three"})
        assert (refused.status, refused.code) == (409, "too_many_kept")
        assert (await agent("GET", "/v1/approvals/three")).status == 404
        again = await agent("POST", "/v1/approvals", {"session_id": "job", "action": MAIL, "request_id": "one"})
        assert (again.status, again.body["kept_as"]) == (200, ids[0]["kept_as"])  # the same again is no more
        assert (await agent("PUT", "/v1/sessions/s1")).status == 200
        await approver("PUT", "/v1/sessions/s1/notifiers/desk")
        await agent.ask()
    async with world_on(url, bounds=few) as world:  # it counts after a restart, too
        kept = Kept(world)
        agent, approver = await kept.callers()
        body = {"session_id": "job", "action": MAIL}
        assert (await agent("POST", "/v1/approvals", body)).code == "too_many_kept"
        await approver("POST", f"/v1/actions/{ids[0]['kept_as']}/reject")
        await kept.keep(agent)

"""The client over a gateway that fails in every way that a network and a restart can make it fail."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.leaping import leap
from tests.unit.client.fake_gateway import FakeGateway

from signoff.client import Client, operands_of
from signoff.client.records import ApprovalRecord
from signoff.errors import (
    AlreadyResolved,
    ClaimRefused,
    GatewayUnreachable,
    GrantNotFound,
    InvalidInput,
    RequestNotFound,
    SessionNotFound,
    SignoffError,
)
from signoff.model import Command

ACTION = Command(command="rm -rf build")


@pytest.fixture
async def gateway() -> AsyncIterator[FakeGateway]:
    fake = FakeGateway()
    await fake.up()
    fake.sessions["s"] = {}
    yield fake
    await fake.down()


@pytest.fixture
async def client(gateway: FakeGateway) -> AsyncIterator[Client]:
    async with Client(gateway.url, "sk_id_secret", session_id="s", unreachable_after_s=5, environ={}) as made:
        yield made


async def ask(client: Client, gateway: FakeGateway, **facts: Any) -> tuple[asyncio.Task[ApprovalRecord], str]:
    task = asyncio.create_task(client.request(ACTION, **facts))
    return task, await gateway.asked()


# --- the straight way ------------------------------------------------------------------------------


async def test_an_approval_is_claimed_inside(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway, reason="old files")
    await gateway.decide(request_id, "approved", choice="once")
    record = await task
    assert record.may_run
    assert record.outcome == "approved"
    assert record.execution.state == "claimed"
    body = gateway.approvals[request_id]["body"]
    assert body["host"] == socket.gethostname()
    assert body["reason"] == "old files"
    assert "timeout_s" not in body
    assert gateway.headers["Authorization"] == "Bearer sk_id_secret"


async def test_the_own_turn_lives_until_the_result(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway)
    await gateway.decide(request_id, "approved")
    record = await task
    assert list(gateway.turns.values()) == [None]
    assert record.turn_id in gateway.turns
    done = await client.result(request_id, "succeeded", 0)
    assert not done.may_run
    assert list(gateway.turns.values()) == ["turn_ended"]


async def test_a_client_that_closes_ends_what_it_did_not_report(gateway: FakeGateway) -> None:
    gateway.outcome = "approved"
    async with Client(gateway.url, session_id="s", environ={}) as client:
        assert (await client.request(ACTION)).may_run
    assert list(gateway.turns.values()) == ["turn_ended"]


@pytest.mark.parametrize("outcome", ["denied", "timeout", "cancelled", "notify_failed", "blocked", "staged"])
async def test_nothing_else_may_run_and_the_turn_ends(client: Client, gateway: FakeGateway, outcome: str) -> None:
    gateway.outcome = outcome
    record = await client.request(ACTION)
    assert not record.may_run
    assert gateway.count("POST /v1/approvals/" + record.request_id + "/claim") == 0
    assert list(gateway.turns.values()) == ["turn_ended"]


async def test_a_record_has_no_truth_value(client: Client, gateway: FakeGateway) -> None:
    gateway.outcome = "approved"
    with pytest.raises(TypeError, match="may_run"):
        bool(await client.request(ACTION))


async def test_a_given_turn_is_neither_opened_nor_ended(client: Client, gateway: FakeGateway) -> None:
    gateway.outcome = "denied"
    async with client.turn() as turn:
        record = await client.request(ACTION, turn_id=turn.turn_id)
        assert record.turn_id == turn.turn_id
        assert gateway.turns == {turn.turn_id: None}
    assert gateway.turns == {turn.turn_id: "turn_ended"}


async def test_an_interrupted_turn_says_so(client: Client, gateway: FakeGateway) -> None:
    async def work() -> None:
        async with client.turn():
            await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(work())
    await gateway.until(lambda: bool(gateway.turns))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(gateway.turns.values()) == ["turn_interrupted"]


async def test_a_turn_is_renewed_and_learns_its_end(client: Client, gateway: FakeGateway) -> None:
    async with client.turn(lease_s=0.06) as turn:
        await gateway.until(lambda: gateway.count(f"POST /v1/turns/{turn.turn_id}/heartbeat") >= 2)
        assert turn.ended_cause is None
        gateway.turns[turn.turn_id] = "stop_requested"
        while turn.ended_cause is None:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.01)
        assert turn.ended_cause == "stop_requested"


async def test_the_environment_names_session_and_turn(gateway: FakeGateway) -> None:
    gateway.outcome = "denied"
    gateway.turns["t"] = None
    environ = {"SIGNOFF_URL": gateway.url + "/", "SIGNOFF_SESSION_ID": "s", "SIGNOFF_TURN_ID": "t"}
    environ |= {"SIGNOFF_KEY": "sk_a_b", "SIGNOFF_PROFILE": "team"}
    async with Client(environ=environ) as client:
        record = await client.request(ACTION)
    assert (record.session_id, record.turn_id) == ("s", "t")
    assert gateway.headers["Authorization"] == "Bearer sk_a_b"
    assert gateway.headers["X-Signoff-Profile"] == "team"


# --- what goes wrong -------------------------------------------------------------------------------


async def test_lost_answers_are_asked_for_again_with_the_same_ids(client: Client, gateway: FakeGateway) -> None:
    gateway.lose = ["POST /v1/sessions", "POST /v1/approvals", "GET /v1/approvals"]
    task, request_id = await ask(client, gateway)
    await gateway.until(lambda: gateway.count("POST /v1/approvals") == 2)
    gateway.lose += ["POST /v1/approvals/" + request_id + "/claim"]
    await gateway.decide(request_id, "approved")
    assert (await task).may_run
    assert len(gateway.approvals) == 1
    assert len(gateway.turns) == 1
    assert gateway.count(f"POST /v1/approvals/{request_id}/claim") == 2


async def test_a_gateway_that_is_not_ready_is_waited_for(client: Client, gateway: FakeGateway) -> None:
    gateway.fail = [("POST /v1/approvals", 503), ("GET /v1/approvals", 502), ("GET /v1/approvals", 500)]
    task, request_id = await ask(client, gateway)
    await gateway.until(lambda: not gateway.fail)
    await gateway.decide(request_id, "approved")
    assert (await task).may_run


async def test_a_defect_is_not_waited_out_as_an_outage(gateway: FakeGateway) -> None:
    gateway.fail = [("POST /v1/approvals", 500)] * 100
    async with Client(gateway.url, session_id="s", unreachable_after_s=0.5, environ={}) as client:
        with pytest.raises(Exception, match="HTTP 500") as caught:
            await client.request(ACTION)
    assert not isinstance(caught.value, GatewayUnreachable)


async def tried_in_vain(caplog: pytest.LogCaptureFixture, times: int) -> None:
    """Return once a client has found nobody so many times."""
    async with asyncio.timeout(60):
        while caplog.text.count("trying again") < times:  # noqa: ASYNC110  # a log line wakes nobody
            await asyncio.sleep(0.01)


@pytest.fixture
def tries(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log in which a client writes down each try that found nobody."""
    caplog.set_level(logging.DEBUG, "signoff.client")
    return caplog


async def test_the_question_survives_a_restart(
    client: Client, gateway: FakeGateway, tries: pytest.LogCaptureFixture
) -> None:
    task, request_id = await ask(client, gateway)
    await gateway.down()
    gateway.end(request_id, "approved")
    await tried_in_vain(tries, 1)
    assert not task.done()
    await gateway.up()
    record = await task
    assert record.may_run


async def test_a_restart_longer_than_the_first_patience_is_survived(
    gateway: FakeGateway, tries: pytest.LogCaptureFixture
) -> None:
    async with Client(gateway.url, session_id="s", unreachable_after_s=5, environ={}) as client:
        task, request_id = await ask(client, gateway)
        await gateway.down()
        await tried_in_vain(tries, 1)
        leap(6)
        await tried_in_vain(tries, 2)
        gateway.end(request_id, "approved")
        await gateway.up()
        assert (await task).may_run


async def test_a_gateway_that_never_answered_is_unreachable(gateway: FakeGateway) -> None:
    await gateway.down()
    async with Client(gateway.url, session_id="s", unreachable_after_s=0.3, environ={}) as client:
        with pytest.raises(GatewayUnreachable, match=f"No gateway answers at {gateway.url}"):
            await client.request(ACTION)


async def test_in_a_given_turn_too(gateway: FakeGateway) -> None:
    await gateway.down()
    async with Client(gateway.url, session_id="s", unreachable_after_s=0.3, environ={}) as client, asyncio.timeout(60):
        with pytest.raises(GatewayUnreachable):
            await client.request(ACTION, turn_id="t")


async def test_a_gateway_that_comes_up_late_is_found(gateway: FakeGateway, tries: pytest.LogCaptureFixture) -> None:
    await gateway.down()
    async with Client(gateway.url, session_id="s", unreachable_after_s=60, environ={}) as client:
        task = asyncio.create_task(client.request(ACTION))
        await tried_in_vain(tries, 1)
        gateway.outcome = "approved"
        await gateway.up()
        assert (await task).may_run


async def test_an_outage_that_no_turn_outlives_is_told(
    client: Client, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.client.asking.HELD_S", -59.5)
    task, _ = await ask(client, gateway)
    await gateway.down()
    with pytest.raises(GatewayUnreachable):
        await task


# --- cancellation ----------------------------------------------------------------------------------


async def test_a_cancelled_question_is_withdrawn_and_its_turn_interrupted(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    row = gateway.approvals[request_id]
    assert (row["outcome"], row["cause"]) == ("cancelled", "withdrawn")
    assert list(gateway.turns.values()) == ["turn_interrupted"]


async def test_a_cancelled_question_is_withdrawn_over_a_lost_answer(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway)
    gateway.lose = [f"POST /v1/approvals/{request_id}/cancel"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gateway.approvals[request_id]["cause"] == "withdrawn"


async def test_what_was_claimed_and_then_cancelled_is_reported_as_not_run(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway)
    gateway.lose = [f"POST /v1/approvals/{request_id}/claim"]
    claim = f"POST /v1/approvals/{request_id}/claim"
    gateway.fail = []
    await gateway.decide(request_id, "approved")
    await gateway.until(lambda: gateway.count(claim) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gateway.approvals[request_id]["execution"]["state"] == "not_run"


async def test_a_question_that_arrives_after_its_cancellation_is_withdrawn(
    client: Client, gateway: FakeGateway
) -> None:
    gateway.late = asyncio.Event()
    gateway.turns["t"] = None
    task = asyncio.create_task(client.request(ACTION, turn_id="t", request_id="late"))
    await gateway.until(lambda: "Content-Length" in gateway.headers)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gateway.approvals["late"]["cause"] == "withdrawn"


async def test_cancelling_without_a_gateway_ends_soon(
    client: Client, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.client.asking.TAKE_BACK_S", 0.2)
    monkeypatch.setattr("signoff.client.turns.ENDING_S", 0.2)
    task, _ = await ask(client, gateway)
    await gateway.down()
    task.cancel()
    async with asyncio.timeout(15):
        with pytest.raises(asyncio.CancelledError):
            await task


# --- the claim -------------------------------------------------------------------------------------


async def test_an_approval_of_something_else_is_refused_before_the_claim(client: Client, gateway: FakeGateway) -> None:
    gateway.digest, gateway.outcome = "0" * 64, "approved"
    with pytest.raises(ClaimRefused) as caught:
        await client.request(ACTION)
    assert caught.value.claim_code == "digest_mismatch"
    row = next(iter(gateway.approvals.values()))
    assert row["execution"] == {"state": "not_run", "cause": "withdrawn"}


async def test_an_approval_that_somebody_else_claimed_does_not_run_twice(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway, request_id="mine")
    gateway.approvals[request_id]["execution"] = {"state": "claimed", "claim_id": "another"}
    gateway.approvals[request_id]["message"] = "Approved once. Run exactly this action, once, now."
    await gateway.decide(request_id, "approved")
    record = await task
    assert record.execution.state == "claimed"
    assert not record.may_run
    assert record.message == "BLOCKED: already_claimed. This approval was used once."
    assert gateway.approvals[request_id]["execution"]["claim_id"] == "another"


async def test_an_approval_taken_back_before_the_claim_does_not_run(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway)
    gateway.approvals[request_id]["execution"] = {"state": "not_run", "cause": "undone"}
    await gateway.decide(request_id, "approved", message="BLOCKED: not_run (undone).")
    record = await task
    assert not record.may_run
    assert record.message == "BLOCKED: not_run (undone)."


async def test_files_are_read_again_at_the_claim(client: Client, gateway: FakeGateway, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("echo 1\n")
    action = Command(command="sh run.sh", cwd=str(tmp_path), operands=tuple(operands_of(["run.sh"], tmp_path)))
    for changed in (False, True):
        gateway.approvals.clear()
        task = asyncio.create_task(client.request(action))
        request_id = await gateway.asked()
        if changed:
            script.write_text("rm -rf /\n")
        await gateway.decide(request_id, "approved")
        record = await task
        assert record.may_run is not changed
    assert record.execution.cause == "changed_since_review"
    assert record.message.startswith("BLOCKED: changed_since_review. ")


async def test_may_run_is_never_read_from_the_wire(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway)
    gateway.approvals[request_id]["execution"] = {"state": "claimed"}
    gateway.end(request_id, "approved")
    assert not (await client.get(request_id)).may_run
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# --- the other verbs -------------------------------------------------------------------------------


async def test_errors_keep_their_class_and_facts(client: Client, gateway: FakeGateway) -> None:
    with pytest.raises(SessionNotFound):
        await client.request(ACTION, session_id="other")
    with pytest.raises(RequestNotFound):
        await client.get("nothing")
    with pytest.raises(GrantNotFound):
        await client.revoke("G9")
    gateway.outcome = "denied"
    record = await client.request(ACTION)
    with pytest.raises(AlreadyResolved) as caught:
        await client.decide(record.request_id, "once")
    assert caught.value.facts["approval"]["outcome"] == "denied"
    with pytest.raises(ClaimRefused) as refused:
        await client.claim(record.request_id, record.digest)
    assert refused.value.claim_code == "not_approved"


async def test_deciding_is_not_repeated_when_its_answer_is_lost(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway)
    gateway.lose = [f"POST /v1/approvals/{request_id}/decision"]
    with pytest.raises(GatewayUnreachable):
        await client.decide(request_id, "once")
    assert (await task).may_run
    assert gateway.count(f"POST /v1/approvals/{request_id}/decision") == 1


async def test_lists_are_read_to_their_end(client: Client, gateway: FakeGateway) -> None:
    tasks = [asyncio.create_task(client.request(ACTION)) for _ in range(5)]
    await gateway.until(lambda: len(gateway.approvals) == 5)
    assert {row.request_id for row in await client.pending()} == set(gateway.approvals)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_sessions_and_grants(client: Client, gateway: FakeGateway) -> None:
    await client.session("chat 1/ä", kind="chat", destination="telegram:5/7", user_id="9")
    assert gateway.sessions["chat 1/ä"] == {
        "kind": "chat", "platform": "telegram", "chat_id": "5", "thread_id": "7", "user_id": "9",
    }  # fmt: skip
    assert (await client.stop("s"))["cancelled"] == ["a"]
    assert [grant.grant_id for grant in await client.grants()] == ["G1"]
    assert (await client.revoke("G1")).grant_id == "G1"
    assert (await client.undo((await approved(client, gateway)).request_id)).execution.cause == "undone"


async def approved(client: Client, gateway: FakeGateway) -> ApprovalRecord:
    gateway.outcome = "approved"
    return await client.request(ACTION)


async def test_wait_returns_the_end_or_the_state_at_the_limit(client: Client, gateway: FakeGateway) -> None:
    task, request_id = await ask(client, gateway)
    assert (await client.wait(request_id, 0)).pending
    await gateway.decide(request_id, "denied")
    assert (await client.wait(request_id, 30)).outcome == "denied"
    await task


async def test_events_resume_where_the_connection_broke(client: Client, gateway: FakeGateway) -> None:
    gateway.events = ["approval.requested", "cut", "approval.resolved"]
    gateway.cut_streams = 2
    seen = []
    async for event in client.events():
        seen.append(event.type)
        if len(seen) == 3:
            break
    assert seen == ["approval.requested", "cut", "approval.resolved"]
    assert gateway.last_event_ids == ["", "2", "2", "2"], "a connection without an event keeps the place"


async def test_events_give_up_when_nobody_answers(gateway: FakeGateway) -> None:
    await gateway.down()
    async with Client(gateway.url, unreachable_after_s=0.2, environ={}) as client:
        with pytest.raises(GatewayUnreachable):
            async for _ in client.events():
                pass


async def test_the_local_socket_needs_no_key(tmp_path: Path) -> None:
    fake = FakeGateway()
    await fake.up(tmp_path / "a.sock")
    async with Client(socket=tmp_path / "a.sock", key="sk_a_b", profile="team", environ={}) as client:
        assert await client.health() == {"status": "ok"}
    assert "Authorization" not in fake.headers
    assert fake.headers["X-Signoff-Profile"] == "team"
    await fake.down()


async def test_an_answer_of_something_else_is_told(gateway: FakeGateway) -> None:
    gateway.fail = [("GET /health", 404)]
    async with Client(gateway.url, environ={}) as client:
        with pytest.raises(Exception, match="HTTP 404"):
            await client.health()


async def test_wrong_arguments_are_refused_at_once(client: Client) -> None:
    with pytest.raises(InvalidInput, match="cannot be understood"):
        await client.request({"kind": "command", "comand": "x"})
    with pytest.raises(InvalidInput, match="above 0"):
        await client.request(ACTION, timeout_s=0)
    with pytest.raises(InvalidInput, match="http://HOST:PORT"):
        Client("localhost:8787", environ={})
    with pytest.raises(InvalidInput, match="Which session"):
        await Client("http://127.0.0.1:1", environ={}).request(ACTION)
    with pytest.raises(InvalidInput, match="not an id"):
        await client.get("..")


async def test_a_gateway_that_is_asked_too_much_is_named_as_such(gateway: FakeGateway) -> None:
    gateway.fail = [("GET /health", 429)] * 100
    async with Client(gateway.url, environ={}, unreachable_after_s=2.0) as client:
        with pytest.raises(SignoffError) as refused:
            await client.health()
    assert not isinstance(refused.value, GatewayUnreachable)
    assert len(gateway.fail) < 99


async def test_a_closed_client_says_so(gateway: FakeGateway) -> None:
    client = Client(gateway.url, session_id="s", environ={})
    await client.aclose()
    await client.aclose()
    with pytest.raises(GatewayUnreachable, match="closed"):
        await client.health()

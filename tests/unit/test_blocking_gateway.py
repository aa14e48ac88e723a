"""`BlockingGateway`: threads of the gateway's own process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from signoff.authorize import local_actor
from signoff.blocking import BlockingGateway
from signoff.config import load_config
from signoff.door import DoorClosed
from signoff.drafting import Ask
from signoff.errors import RequestNotFound
from signoff.gateway import Gateway
from signoff.model import ApprovalRequest, Command
from signoff.ports import Tx
from signoff.testing.fake_adapter import FakeAdapter
from signoff.testing.rows import make_request

PUSH = Command(command="git push origin main")
ANN = local_actor(1000)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}
    async with Gateway(load_config(None, environ), adapters={("default", "fake"): FakeAdapter()}) as made:
        await made.session("s")
        await made.sessions.attach("default", "s", "desk", None)
        yield made


async def waiting(gateway: Gateway) -> ApprovalRequest:
    """The question that waits, once there is one."""
    async with asyncio.timeout(30):
        while not (rows := await gateway.broker.pending("default")):  # noqa: ASYNC110  # the asker is a thread
            await asyncio.sleep(0.01)
    return rows[-1]


async def test_a_thread_asks_and_may_run(gateway: Gateway) -> None:
    blocking = BlockingGateway(gateway)

    def work() -> tuple[bool, str]:
        with blocking.turn("s") as turn:
            row = blocking.request(PUSH, session_id="s", turn_id=turn.turn_id)
            return row.may_run, blocking.result(row.request_id, "succeeded", 0).execution.state

    task = asyncio.create_task(asyncio.to_thread(work))
    row = await waiting(gateway)
    await gateway.broker.decide("default", row.request_id, "once", ANN)
    assert await task == (True, "succeeded")


async def test_only_the_answer_to_its_own_claim_says_to_run_it(gateway: Gateway) -> None:
    task = asyncio.create_task(gateway.request(PUSH, session_id="s"))
    await gateway.decide((await waiting(gateway)).request_id, "once", ANN)
    asked = await task
    by_hand = (await gateway.broker.submit("default", Ask(action=PUSH, session_id="s"))).row
    await gateway.decide(by_hand.request_id, "once", ANN)
    for record in (asked, await gateway.claim(by_hand.request_id, by_hand.digest)):
        assert record.message == "Approved once. Run exactly this action, once, now."
        assert (await gateway.get(record.request_id)).message.startswith("BLOCKED: already_claimed. ")


async def test_all_that_waits_is_listed(gateway: Gateway) -> None:
    names = [f"r{number:03}" for number in range(201)]

    def change(tx: Tx) -> None:
        for name in names:
            tx.put(make_request(name))

    await gateway.store.transact(change)
    assert [record.request_id for record in await gateway.pending()] == names


async def test_a_thread_decides_and_administers(gateway: Gateway) -> None:
    blocking = BlockingGateway(gateway)
    task = asyncio.create_task(gateway.request(PUSH, session_id="s"))
    row = await waiting(gateway)

    def work() -> None:
        assert blocking.get(row.short_id).request_id == row.request_id
        assert [each.request_id for each in blocking.pending()] == [row.request_id]
        assert blocking.wait(row.request_id, 0.01).status == "pending"
        assert blocking.decide(row.request_id, "session", ANN).outcome == "approved"
        [grant] = blocking.grants()
        assert blocking.revoke(grant.grant_id, ANN).revoked_at is not None
        assert blocking.session("t").session_id == "t"
        assert blocking.stop("s").sessions == ("s",)
        with pytest.raises(RequestNotFound):
            blocking.cancel("nothing")

    await asyncio.to_thread(work)
    await task


async def test_the_loops_own_thread_is_refused(gateway: Gateway) -> None:
    with pytest.raises(RuntimeError, match="would wait for itself for ever"):
        BlockingGateway(gateway).pending()


async def test_after_close_it_says_so(gateway: Gateway) -> None:
    blocking = BlockingGateway(gateway)
    blocking.close()
    with pytest.raises(DoorClosed, match="BlockingGateway was stopped"):
        await asyncio.to_thread(blocking.pending)


def test_threads_left_behind_are_let_go_when_the_loop_stops(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}

    def ask(blocking: BlockingGateway) -> None:
        try:
            blocking.request(PUSH, session_id="s")
        except BaseException as error:
            errors.append(error)

    async def main() -> threading.Thread:
        async with Gateway(load_config(None, environ), adapters={("default", "fake"): FakeAdapter()}) as gateway:
            await gateway.session("s")
            await gateway.sessions.attach("default", "s", "desk", None)
            thread = threading.Thread(target=ask, args=(BlockingGateway(gateway),))
            thread.start()
            await waiting(gateway)
        return thread

    thread = asyncio.run(main())
    thread.join(60)
    assert not thread.is_alive()
    assert len(errors) == 1

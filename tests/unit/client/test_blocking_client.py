"""The blocking client: threads, Ctrl-C, its own loop's thread."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.unit.client.fake_gateway import FakeGateway

from signoff.client import BlockingClient
from signoff.client.records import ApprovalRecord
from signoff.door import DoorClosed, LoopDoor
from signoff.errors import GatewayUnreachable, RequestNotFound
from signoff.model import Command

ACTION = Command(command="rm -rf build")


class Served:
    """A fake gateway on a loop of its own."""

    def __init__(self) -> None:
        self.fake = FakeGateway()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.run(self.fake.up)
        self.fake.sessions["s"] = {}

    def run(self, make: Callable[..., object], *args: object) -> object:
        """Await something of the fake's."""
        return asyncio.run_coroutine_threadsafe(make(*args), self.loop).result(10)  # type: ignore[arg-type]

    def close(self) -> None:
        """Stop."""
        self.run(self.fake.down)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.close()


@pytest.fixture
def client(served: Served) -> Iterator[BlockingClient]:
    with BlockingClient(served.fake.url, session_id="s", unreachable_after_s=5, environ={}) as made:
        yield made


def test_many_threads_share_one(served: Served, client: BlockingClient) -> None:
    served.fake.outcome = "approved"
    with ThreadPoolExecutor(16) as pool:
        records = list(pool.map(lambda _: client.request(ACTION), range(16)))
    assert all(record.may_run for record in records)
    assert len({record.request_id for record in records}) == 16
    client.result(records[0].request_id, "succeeded", 0)
    assert list(served.fake.turns.values()).count("turn_ended") == 1
    client.close()
    assert set(served.fake.turns.values()) == {"turn_ended"}


def test_errors_are_raised_in_the_calling_thread(client: BlockingClient) -> None:
    with pytest.raises(RequestNotFound):
        client.get("nothing")


def test_a_turn_in_a_with_statement(served: Served, client: BlockingClient) -> None:
    served.fake.outcome = "denied"
    with client.turn() as turn:
        assert client.request(ACTION, turn_id=turn.turn_id).outcome == "denied"
        assert turn.ended_cause is None
    with pytest.raises(KeyboardInterrupt), client.turn():
        raise KeyboardInterrupt
    assert list(served.fake.turns.values()) == ["turn_ended", "turn_interrupted"]


def test_its_own_loop_thread_is_refused(served: Served, client: BlockingClient) -> None:
    refused: list[str] = []

    def seen(record: ApprovalRecord) -> None:
        try:
            client.get(record.request_id)
        except RuntimeError as error:
            refused.append(str(error))

    served.fake.outcome = "denied"
    client.request(ACTION, seen=seen)
    assert len(refused) == 1
    assert "would wait for itself for ever" in refused[0]


def test_a_closed_client_says_so(served: Served) -> None:
    client = BlockingClient(served.fake.url, environ={})
    client.close()
    client.close()
    with pytest.raises(DoorClosed, match="was stopped"):
        client.health()


def test_events_are_an_iterator(served: Served, client: BlockingClient) -> None:
    served.fake.events = ["approval.requested", "approval.resolved"]
    for event in client.events():
        if event.type == "approval.resolved":
            break
    assert event.seq == 2


def test_a_door_to_a_loop_that_stops_lets_its_callers_go() -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    door = LoopDoor(loop, "The gateway")
    entered = threading.Event()

    async def forever() -> None:
        entered.set()
        await asyncio.get_running_loop().create_future()

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(door.call, forever)
        assert entered.wait(60)
        loop.call_soon_threadsafe(loop.stop)
        with pytest.raises(DoorClosed, match="The gateway was stopped"):
            call.result(5)
    thread.join()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()
    with pytest.raises(DoorClosed):
        door.call(forever)


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent left, such as a shell in the background
from signoff.client import BlockingClient
from signoff.model import Command
with BlockingClient(sys.argv[1], session_id="s", environ={}) as client:
    try:
        client.request(Command(command="rm -rf build"))
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_withdraws_the_question(served: Served) -> None:
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, served.fake.url], stdout=subprocess.PIPE, text=True)
    request_id = served.run(served.fake.asked)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted\n"
    row = served.fake.approvals[str(request_id)]
    assert (row["outcome"], row["cause"]) == ("cancelled", "withdrawn")
    assert list(served.fake.turns.values()) == ["turn_interrupted"]


def test_without_a_gateway_it_gives_up(served: Served) -> None:
    served.run(served.fake.down)
    with (
        BlockingClient(served.fake.url, session_id="s", unreachable_after_s=0.2, environ={}) as client,
        pytest.raises(GatewayUnreachable),
    ):
        client.request(ACTION)


@pytest.mark.parametrize("how_far", ["not handed over", "not begun", "begun"])
def test_an_interrupt_before_the_wait_has_begun_cancels_too(how_far: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is raised at whatever line the main thread is: here right around the handing over."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    door, began, ended = LoopDoor(loop, "Test"), threading.Event(), threading.Event()
    hand_over = door._hand_over

    def interrupted(start: Callable[[], None]) -> None:
        if how_far != "not handed over":
            hand_over(start)
        if how_far == "begun":
            assert began.wait(60)
        raise KeyboardInterrupt

    async def forever() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(door, "_hand_over", interrupted)
    since = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        door.call(forever)
    assert ended.is_set() == began.is_set()
    assert time.monotonic() - since < 5, "it did not wait for what never began"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()

"""Who waits for which request, in this process. Waking goes only through the store's change feed."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from datetime import datetime

from signoff.errors import GatewayUnreachable
from signoff.model import ApprovalRequest, Change
from signoff.ports import Clock, Store
from signoff.rows import key_of, turn_key
from signoff.waited import Meter

REMEMBERED_TURNS = 20_000
"""Turns whose last wait ended are remembered up to this many, so that one that ended otherwise costs nothing for ever;
a forgotten one counts from its last heartbeat."""


WOKEN_AT_ONCE = 128
"""Waiters that go on in one step of the loop: with some 30 µs each, others wait 4 ms for them. An approve all or a stop
may end thousands at once."""

STOPPED = "The gateway stopped; the question still waits. Ask again with the same request_id once it is back."

_NOBODY = nullcontext()


class Waiters:
    """Futures by request key, and which turns have an open wait (an open wait keeps a turn's lease alive)."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._clock = clock
        self._futures: dict[str, tuple[asyncio.Future[ApprovalRequest], ...]] = {}
        self._open: Counter[str] = Counter()
        self._ended: OrderedDict[str, datetime] = OrderedDict()
        self._over: set[str] = set()
        """Turns that ended while they were being waited for: their waits' ends keep nothing alive."""
        self._meters: dict[str, Meter] = {}
        self._ending: deque[tuple[asyncio.Future[ApprovalRequest], ApprovalRequest]] = deque()
        """Whose request has ended, still to be woken."""
        self._waking = False
        self._unsubscribe = store.subscribe(self._on_changes)

    def register(self, key: str) -> asyncio.Future[ApprovalRequest]:
        """A future that the feed resolves with the ended row; register before reading the row."""
        future: asyncio.Future[ApprovalRequest] = asyncio.get_running_loop().create_future()
        self._futures[key] = (*self._futures.get(key, ()), future)
        return future

    def forget(self, key: str, future: asyncio.Future[ApprovalRequest]) -> None:
        """Stop waiting; cancels the future. A future that the feed resolved is gone already."""
        futures = self._futures.get(key, ())
        if future in futures:
            self._futures[key] = tuple(each for each in futures if each is not future)
            if not self._futures[key]:
                del self._futures[key]
        future.cancel()

    def __len__(self) -> int:
        return sum(len(futures) for futures in self._futures.values())

    @asynccontextmanager
    async def keeping(self, turn: str | None) -> AsyncIterator[None]:
        """While inside, the turn with this key is being waited for."""
        if turn is None:
            yield
            return
        self.begin(turn)
        try:
            yield
        finally:
            self.end(turn)

    def begin(self, turn: str) -> None:
        """The turn with this key has one more open wait."""
        self._open[turn] += 1

    def end(self, turn: str) -> None:
        """One of its open waits is over."""
        self._open[turn] -= 1
        if turn not in self._over:
            self._remember(turn)
        if self._open[turn] <= 0:
            del self._open[turn]
            self._over.discard(turn)

    def _remember(self, turn: str) -> None:
        self._ended[turn] = self._clock.now()
        self._ended.move_to_end(turn)
        if len(self._ended) > REMEMBERED_TURNS:
            self._ended.popitem(last=False)

    def waiting(self, turn: str | None) -> AbstractContextManager[None]:
        """While inside, somebody waits for a person in the turn with this key: as `keeping`, and its meter runs."""
        if turn is None:
            return _NOBODY
        meter = self._meters.get(turn)
        return _Wait(self, turn, _NOBODY if meter is None else meter.waiting())

    @contextmanager
    def metered(self, turn: str) -> Iterator[Meter]:
        """While inside, the returned meter counts the time in which that turn waits in this process."""
        meter = self._meters[turn] = Meter(lambda: self._clock.now().timestamp())
        try:
            yield meter
        finally:
            del self._meters[turn]

    def seen(self, turns: Sequence[str]) -> dict[str, datetime]:
        """When each of these turns was last waited for; now for those that are."""
        now = self._clock.now()
        found = {}
        for turn in turns:
            if self._open.get(turn):
                found[turn] = now
            elif turn in self._ended:
                found[turn] = self._ended.pop(turn)
        return found

    def keeps(self, turn: str, lease_s: float) -> bool:
        """Whether what was waited for in this process keeps that turn alive now."""
        now = self._clock.now()
        last = now if self._open.get(turn) else self._ended.get(turn)
        return last is not None and (now - last).total_seconds() < lease_s

    def now(self) -> datetime:
        """The clock's present instant."""
        return self._clock.now()

    def close(self) -> None:
        """End every wait in this process with `GatewayUnreachable`; the requests go on in the store."""
        self._unsubscribe()
        while self._ending:
            self._wake_some()
        for futures in self._futures.values():
            for future in futures:
                if not future.done():
                    future.set_exception(GatewayUnreachable(STOPPED))
        self._futures.clear()

    def _on_changes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.event.type == "turn.ended":
                turn = turn_key(change.event.profile, str(change.event.data.get("turn_id")))
                self._ended.pop(turn, None)
                if turn in self._open:
                    self._over.add(turn)
            row = change.request
            if row is None or row.outcome is None:
                continue
            self._ending.extend((future, row) for future in self._futures.pop(key_of(row), ()))
        if self._ending and not self._waking:
            self._wake_some()

    def _wake_some(self) -> None:
        """Let the next ones go on, the others in later steps of the loop."""
        for _ in range(min(WOKEN_AT_ONCE, len(self._ending))):
            future, row = self._ending.popleft()
            if not future.done():
                future.set_result(row)
        self._waking = bool(self._ending)
        if self._waking:
            asyncio.get_running_loop().call_soon(self._wake_some)


class _Wait:
    """An open wait of a turn. One for each pending request: a generator with its frame is ten times as large."""

    __slots__ = ("_meter", "_turn", "_waiters")

    def __init__(self, waiters: Waiters, turn: str, meter: AbstractContextManager[None]) -> None:
        self._waiters = waiters
        self._turn = turn
        self._meter = meter

    def __enter__(self) -> None:
        self._waiters.begin(self._turn)
        self._meter.__enter__()

    def __exit__(self, *error: object) -> None:
        self._meter.__exit__(None, None, None)
        self._waiters.end(self._turn)

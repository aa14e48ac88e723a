"""A turn held open: its lease is renewed while the work goes on, and its end says why it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

from signoff.client import _wire
from signoff.client._link import Link
from signoff.client.records import TurnRecord
from signoff.errors import GatewayUnreachable, SignoffError, TurnEnded, TurnNotFound
from signoff.ids import new_id
from signoff.waited import Meter

log = logging.getLogger("signoff.client")

DEFAULT_LEASE_S = 60.0
ENDING_S = 3.0
"""How long the end of a turn may take; after that its lease lapses by itself."""


class Turn:
    """An open turn: `async with client.turn("s") as turn`. Leaving it ends it; an interruption is told as one."""

    def __init__(
        self,
        link: Link,
        session_id: str,
        *,
        turn_id: str | None = None,
        lease_s: float,
        meters: dict[str, Meter] | None = None,
    ) -> None:
        """`meters` is where questions of an open turn find its meter, by its id."""
        self._link = link
        self._meters = {} if meters is None else meters
        self._meter = Meter()
        self._lease_s = lease_s
        self._renewing: asyncio.Task[None] | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._ended = False
        self.session_id = session_id
        self.turn_id = turn_id or new_id("turn")
        self.ended_cause: str | None = None
        """Why the gateway ended it, once it said so; None while it lives."""

    @property
    def waited_s(self) -> float:
        """How many seconds this client's questions in it have waited for people so far; waits that overlap count once.
        Add it to every limit that the agent's work in this turn has."""
        return self._meter.waited_s

    async def __aenter__(self) -> Turn:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end("turn_ended" if kind is None else "turn_interrupted")

    async def open(self) -> None:
        """Open it and begin to renew. Raises `SessionNotFound`, `TurnEnded`, `GatewayUnreachable`."""
        try:
            body = await self._link.call(_wire.open_turn(self.session_id, self.turn_id, self._lease_s))
        except asyncio.CancelledError:
            # It may be open there although the answer was not awaited.
            await self.end("turn_interrupted")
            raise
        self._lease_s = _wire.parsed(body, TurnRecord).lease_s
        self._meters[self.turn_id] = self._meter
        self._renewing = asyncio.create_task(self._renew(), name=f"renew {self.turn_id}")

    def renew_for(self, limit_s: float, lapsed: Callable[[], object]) -> None:
        """Stop renewing after `limit_s` from now, so that it lapses, and call `lapsed`."""

        def stop() -> None:
            if not self._ended and self._renewing is not None:
                self._renewing.cancel()
                lapsed()

        self._limit = asyncio.get_running_loop().call_later(limit_s, stop)

    async def end(self, cause: str) -> None:
        """End it; what it still asks is withdrawn. A gateway that cannot be reached lets it lapse. Idempotent."""
        if self._ended:
            return
        self._ended = True
        self._meters.pop(self.turn_id, None)
        if self._limit is not None:
            self._limit.cancel()
        if self._renewing is not None:
            self._renewing.cancel()
        await to_the_end(self._tell_end(cause), ENDING_S)

    async def _tell_end(self, cause: str) -> None:
        try:
            await self._link.call(_wire.end_turn(self.turn_id, cause), patience_s=ENDING_S)
        except SignoffError as error:
            log.info("turn %s is left to lapse: %s", self.turn_id, error.message)

    async def _renew(self) -> None:
        """Three heartbeats a lease, so that two may be lost."""
        while True:
            await asyncio.sleep(self._lease_s / 3)
            try:
                await self._link.call(_wire.heartbeat(self.turn_id), patience_s=self._lease_s / 3)
            except GatewayUnreachable as error:
                log.info("turn %s cannot be renewed now: %s", self.turn_id, error.message)
            except (TurnEnded, TurnNotFound) as error:
                self.ended_cause = str(error.facts.get("cause", "requester_gone"))
                return
            except SignoffError as error:
                log.warning("turn %s cannot be renewed: %s", self.turn_id, error.message)


async def to_the_end(work: Coroutine[Any, Any, object], limit_s: float) -> None:
    """Do `work`, also where the caller was cancelled, for at most `limit_s`; what it raises is only logged. It goes on
    alone when the caller is cancelled once more."""
    task = asyncio.create_task(work)
    _cleaning.add(task)
    task.add_done_callback(_cleaned)
    done, _ = await asyncio.wait({task}, timeout=limit_s)
    if not done:
        task.cancel()


_cleaning: set[asyncio.Task[object]] = set()
"""What is under way; the loop alone would not keep it alive."""


def _cleaned(task: asyncio.Task[object]) -> None:
    _cleaning.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("cleaning up failed: %s", error)

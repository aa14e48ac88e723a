"""The change feed over a database that other processes write to as well.

The log is told by its `pos`. Changes follow each other under one lock, held until the commit is visible, so whoever
sees an event sees all before it. A notification only says that there is something to read; the log is read once a
second without one, and that read is also how a connection is found out that died without a word.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from signoff.errors import StoreError
from signoff.model import ApprovalRequest, Change
from signoff.outages import OVER
from signoff.stores.feed import Feed, Listener
from signoff.stores.packing import decode_event
from signoff.stores.postgres_errors import explain
from signoff.stores.postgres_lines import Connection, Lines, ask, connect
from signoff.stores.postgres_place import Place
from signoff.stores.postgres_shapes import SHAPES
from signoff.stores.postgres_write import CHANNEL

log = logging.getLogger("signoff.store")

POLL_S = 1.0
"""How often the log is read without a notification."""
ALIVE_S = 3.0
"""An answer that takes longer means that the connection is dead. Without this limit it would look alive for ever."""
RETRY_S = 0.5
"""Between two attempts to listen again."""
_PAGE = 256
_LOG = (
    "SELECT e.pos, e.event, r.row FROM signoff.events e LEFT JOIN signoff.requests r ON r.key = e.request"
    " WHERE e.pos > %s::int8 AND e.pos < %s::int8 ORDER BY e.pos LIMIT %s::int8"
)
_END = 2**63 - 1


class PostgresFeed:
    """Tells listeners each commit once, in order. Whoever commits holds `telling` from before its commit on, so that
    its own changes are told by itself and not out of the log."""

    def __init__(self, place: Place, lines: Lines, pos: int) -> None:
        self.telling = asyncio.Lock()
        self.live = False
        """Notifications arrive."""
        self._place = place
        self._lines = lines
        self._feed = Feed()
        self._heard = pos
        """The `pos` up to which everything was told, or was before anybody listened."""
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned call removes it."""
        unsubscribe = self._feed.subscribe(listener)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())
        return unsubscribe

    async def committed(self, changes: Sequence[Change], first_pos: int, last_pos: int) -> None:
        """A group of ours is durable; `telling` is held. What others committed before it is told before it."""
        if self._feed and self._heard + 1 < first_pos:
            try:
                while await self._tell(lambda *values: self._lines.ask([(_LOG, values)]), first_pos):
                    pass
            except StoreError:
                # Ours is not told out of order: it stands in the log, from where all is told once that can be read.
                log.exception("store.feed_late: told up to %d, and %d is committed", self._heard, first_pos)
                return
        self._heard = last_pos
        self._feed.publish(changes)

    async def close(self) -> None:
        """Stop listening and forget every listener."""
        self._ended = True
        while self._task is not None and not self._task.done():
            # More than once: the driver may make an error of its own of a cancellation in the middle of a query.
            self._task.cancel()
            await asyncio.wait([self._task], timeout=0.1)
        self._feed.clear()

    async def _listen(self) -> None:
        """Tell of other processes' commits until cancelled."""
        told = False
        while not self._ended:
            try:
                connection = await connect(self._place)
                try:
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    if told:
                        log.info("store.listening_again: notifications of %s arrive", self._place.shown, extra=OVER)
                    told = False
                    self.live = True
                    await self._follow(connection)
                finally:
                    self.live = False
                    await connection.close()
            except (psycopg.Error, TimeoutError, StoreError) as error:
                if not told and not self._ended:
                    log.warning("store.listener_lost: %s", explain(error, self._place.shown))
                told = True
                await asyncio.sleep(RETRY_S)

    async def _follow(self, connection: Connection) -> None:
        while True:
            more = True
            while more:  # between two pages a commit of ours may come first: it holds the lock that every gateway needs
                async with self.telling:
                    more = await self._tell(lambda *values: ask(connection, [(_LOG, values)], ALIVE_S), _END)
            async for _ in connection.notifies(timeout=POLL_S, stop_after=1):
                pass

    async def _tell(self, read: Callable[..., Any], before: int) -> bool:
        """Tell a page of the log from what was heard up to `before`, each event with its request as it is now.

        Whether there may be more.
        """
        (rows,) = await read(self._heard, before, _PAGE)
        if rows:
            requests = SHAPES[ApprovalRequest]
            changes = [
                Change(decode_event(event), None if request is None else requests.read(request))
                for _, event, request in rows
            ]
            self._heard = rows[-1][0]
            self._feed.publish(changes)
        return len(rows) == _PAGE

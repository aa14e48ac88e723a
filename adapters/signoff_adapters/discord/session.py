"""The gateway's session over a restart: kept with the last thing that is done with, and resumed from there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from signoff.errors import SignoffError
from signoff.ports import Inbox

from .link import Resumable

SAVE_AFTER_S = 0.5
"""A burst of presses is kept as one; what a crash catches in between is delivered again, and was decided already."""
NAME = "session"
"""The name of the kept value."""
_log = logging.getLogger(__name__)


class KeptSession:
    """Saves where to resume, one write at a time and soon after each change."""

    def __init__(self, inbox: Inbox, where: Callable[[], Resumable | None]) -> None:
        """`where`: the session, and the last dispatch behind which everything is settled; None without a session."""
        self._inbox = inbox
        self._where = where
        self._saved: Resumable | None = None
        self._task: asyncio.Task[None] | None = None

    async def load(self) -> Resumable | None:
        """What an earlier process kept; None without anything of use."""
        kept = await self._inbox.load(NAME)
        try:
            self._saved = msgspec.json.decode(kept, type=Resumable) if kept else None
        except msgspec.DecodeError:
            _log.warning("discord: the kept session could not be read; a new one begins")
        return self._saved

    def changed(self) -> None:
        """There may be something new to keep."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._save_soon())

    async def close(self) -> None:
        """Keep the last state now."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._save()

    async def _save_soon(self) -> None:
        await asyncio.sleep(SAVE_AFTER_S)
        await self._save()

    async def _save(self) -> None:
        now = self._where()
        if now is None or now == self._saved:
            return
        try:
            await self._inbox.save(NAME, msgspec.json.encode(now).decode())
        except SignoffError as error:
            _log.warning("discord: the session was not kept: %s", error)
        else:
            self._saved = now

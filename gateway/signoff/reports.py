"""How claimed actions of this process went, told to the store until it takes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from signoff.errors import SignoffError, StoreError

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""Between two tries to tell a store that fails how an action went."""
UNKEPT = "how %s went is not kept: %s"


class Row(Protocol):
    """What was claimed: a row, or its record."""

    @property
    def request_id(self) -> str:
        """Which."""


R = TypeVar("R", bound=Row)


class Reports:
    """Those that a store has not taken yet."""

    def __init__(self) -> None:
        self._unsaved: set[asyncio.Task[None]] = set()
        self._closed = False

    async def saved(self, row: R, report: Callable[[], Awaitable[R]]) -> R:
        """Keep how it went, which `report` tells the store; the row then. It has run, so whoever asked gets what it
        gave or raised: a store that fails is told again until it takes it, and until then the row is the one that was
        claimed."""
        try:
            return await report()
        except StoreError as error:
            if self._closed:
                log.error(UNKEPT, row.request_id, error)
                return row
            log.error("how %s went could not be saved yet: %s", row.request_id, error)
            again = asyncio.create_task(_again(row.request_id, report), name=f"report-{row.request_id}")
            self._unsaved.add(again)
            again.add_done_callback(self._unsaved.discard)
        except SignoffError as error:
            log.warning(UNKEPT, row.request_id, error)
        return row

    async def aclose(self) -> None:
        """Tell the store no more; what it did not take counts as unknown. Idempotent."""
        self._closed = True
        unsaved = list(self._unsaved)
        for task in unsaved:
            task.cancel()
        await asyncio.gather(*unsaved, return_exceptions=True)


async def _again(request_id: str, report: Callable[[], Awaitable[object]]) -> None:
    """Tell the store until it takes it."""
    while True:
        await asyncio.sleep(AGAIN_S)
        try:
            await report()
        except StoreError:
            continue
        except SignoffError as error:
            log.warning(UNKEPT, request_id, error)
        return

"""Telling an operator where gateways of one store sign their buttons with keys of their own.

A button that one gateway signed is refused at another that does not have its key, though both are sound.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial

from signoff.changes import token_keys
from signoff.errors import StoreError
from signoff.keyring import Marks
from signoff.ports import Clock, Store

log = logging.getLogger(__name__)

STORE_RETRY = timedelta(seconds=30)
MEND = "Give every gateway the same key file and start them again"


class KeyMarks:
    """Tells the store which key this gateway signs with, and the log which others it does not accept. `run` is one
    task of the gateway."""

    def __init__(self, store: Store, clock: Clock, marks: Marks) -> None:
        self._store, self._clock, self._marks = store, clock, marks
        self._told: tuple[str, ...] = ()

    async def run(self) -> None:
        """Tell until cancelled; nothing where no other gateway can serve this store."""
        while self._store.shared:
            try:
                await self.tell()
                pause = token_keys.TELL_EVERY
            except StoreError as error:
                log.warning("the mark of the key that signs buttons is not in the store: %s", error)
                pause = STORE_RETRY
            await self._clock.sleep_until(self._clock.now() + pause)

    async def tell(self) -> None:
        """Tell once. What was found last time is not told again. Raises `StoreError`."""
        change = partial(token_keys.tell, signs=self._marks.signs, accepts=self._marks.accepts)
        found = await self._store.transact(change)
        if found and found != self._told:
            log.error(
                "another gateway of this store signs buttons with a key (mark %s) that gateway.token_key_file does not "
                "hold; ours signs with %s. What is pressed on its cards is refused here. %s.",
                ", ".join(found),
                self._marks.signs,
                MEND,
            )
        self._told = found

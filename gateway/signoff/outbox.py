"""Changes over many copies at once. One of which no change can be made must not hold up the others: it is found, told
to the log and counted, and ends for itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from signoff.changes import digests, sending
from signoff.changes.common import plus
from signoff.changes.digests import Gathered, Listed
from signoff.changes.sending import Work
from signoff.errors import StoreError
from signoff.model import Card, Copy, replace
from signoff.ports import Store, Tx

log = logging.getLogger(__name__)

AGAIN_S = 30.0
"""A copy that could not even be given up is looked at again after this long."""


class DrawsDigest(Protocol):
    """Draws a digest of these, as the dispatcher does."""

    async def __call__(self, copy: Copy, listed: Sequence[Listed], *, attach: bool, file: bool) -> Card: ...


class Outbox:
    """The due copies of a store."""

    def __init__(self, store: Store, on_defect: Callable[[], None]) -> None:
        """`on_defect` is called for each copy of which a change could not be made."""
        self._store = store
        self._on_defect = on_defect

    async def lease(self, copy_ids: Sequence[str], *, lease_s: float, resend: frozenset[str]) -> list[Work]:
        """As `sending.lease`; what fails alone is given up, which is told as a defect. Raises `StoreError`."""
        try:
            return await self._store.transact(partial(sending.lease, copy_ids=copy_ids, lease_s=lease_s, resend=resend))
        except StoreError:
            raise
        except Exception as error:  # a row's outer edge
            if len(copy_ids) == 1:
                await self._give_up(copy_ids[0], error)
                return []
        work: list[Work] = []
        for copy_id in copy_ids:
            try:
                work += await self.lease([copy_id], lease_s=lease_s, resend=resend)
            except StoreError:
                if not work:
                    raise
                break  # what is leased already is sent; the rest stays due
        return work

    async def _give_up(self, copy_id: str, error: Exception) -> None:
        self.tell(copy_id, error)
        end = partial(sending.refused, copy_id=copy_id, error=told(error), by_platform=False)
        try:
            await self._store.transact(end)
        except StoreError:
            raise
        except Exception as worse:  # a row's outer edge: its question cannot be read, and ends by its own deadline
            self.tell(copy_id, worse)
            await self._store.transact(partial(_later, copy_id=copy_id))

    async def gather(self, change: Callable[..., Gathered], copy_ids: Sequence[str]) -> Gathered:
        """What `digests.gather` made of these; one that makes it fail is unfit. Raises `StoreError`."""
        try:
            return await self._store.transact(partial(change, copy_ids=copy_ids))
        except StoreError:
            raise
        except Exception as error:  # a row's outer edge
            first = error
        unfit = set()
        for copy_id in copy_ids:
            try:
                await self._store.transact(partial(digests.fits, copy_id=copy_id))
            except StoreError:
                raise
            except Exception as error:  # a row's outer edge: it goes by itself
                self.tell(copy_id, error)
                unfit.add(copy_id)
        if not unfit:
            self.tell(copy_ids[0], first)
        return Gathered("", unfit=frozenset(unfit or copy_ids))

    async def drawn(self, work: Work, draw: DrawsDigest, *, attach: bool) -> Card:
        """The digest. An edit leaves out what has ended and cannot be drawn, so that it shows what became of the
        others. What still waits is never left out: a button for all would answer what nobody sees."""
        post = work.op == "post"
        try:
            return await draw(work.copy, work.listed, attach=attach, file=post)
        except StoreError:
            raise
        except Exception:  # a row's outer edge
            bad = frozenset() if post else await self._undrawable(work, draw)
            left = [each for each in work.listed if each.copy.copy_id not in bad]
            if not left or len(left) == len(work.listed):
                raise
            if any(each.row.outcome is None for each in work.listed if each.copy.copy_id in bad):
                raise
        return await draw(work.copy, left, attach=attach, file=post)

    async def release(self, work: Work, draw: DrawsDigest) -> frozenset[str]:
        """Take off a digest that could not be drawn what cannot be drawn; the rest is sent without. Those taken off."""
        unfit = await self._undrawable(work, draw) if work.op == "post" else frozenset()
        if unfit:
            await self._store.transact(partial(sending.without, copy_id=work.copy.copy_id, unfit=unfit))
        return unfit

    async def _undrawable(self, work: Work, draw: DrawsDigest) -> frozenset[str]:
        found: set[str] = set()
        for each in work.listed:
            try:
                await draw(work.copy, [each], attach=True, file=work.op == "post")
            except StoreError:
                raise
            except Exception as error:  # a row's outer edge: it goes by itself, and fails by itself
                self.tell(each.copy.copy_id, error)
                found.add(each.copy.copy_id)
        return frozenset(found)

    def tell(self, copy_id: str, error: Exception) -> None:
        """A defect, by its copy."""
        self._on_defect()
        log.error("outbox.defect: the change or the send of %s failed", copy_id, exc_info=error)


def told(error: Exception) -> str:
    """What a card's question is told of a defect."""
    return f"a defect in the gateway: {type(error).__name__}"


def _later(tx: Tx, copy_id: str) -> None:
    copy = tx.get(Copy, copy_id)
    if copy is not None:
        tx.put(replace(copy, due_at=plus(tx.now, AGAIN_S)))

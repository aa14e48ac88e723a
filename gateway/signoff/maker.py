"""Renders what a copy shows now, from the store's rows: the dispatcher's `CardMaker`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from signoff import aside
from signoff.actions import one_line, whole_text
from signoff.cards import Facts, request_card, told_card
from signoff.catch_up_cards import catch_up_card
from signoff.changes.catching_up import absence_of
from signoff.changes.digests import Listed
from signoff.digest_cards import confirm_card, digest_card, file_of, file_part, needs_file
from signoff.digest_list import list_card, page_of
from signoff.drill_cards import drill_card
from signoff.errors import RequestNotFound
from signoff.model import ApprovalRequest, Card, Copy, Session
from signoff.pacing import Pace
from signoff.panels import panel_card
from signoff.ports import AdapterInfo, Clock, Store
from signoff.rows import request_key, session_key
from signoff.settings import Profile
from signoff.tokens import Signer

SMALLEST_UNITS = 2000
"""What every platform shows in one message."""


class Maker:
    """Cards, panels and notes. `infos`: each served platform's facts, by its key. `console`: the console's public
    origin, where there is one."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        signer: Signer,
        infos: Mapping[str, AdapterInfo],
        console: str | None = None,
        profiles: Mapping[str, Profile] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._signer = signer
        self._infos = infos
        self._console = console
        self._profiles = {} if profiles is None else profiles
        self._pace = Pace()

    def title(self, platform: str) -> str:
        """A platform's name for people."""
        info = self._infos.get(platform)
        return info.title if info else platform.capitalize()

    async def card(self, copy: Copy, row: ApprovalRequest | None, *, attach: bool) -> Card:
        """The card of this copy as the rows stand; raises `RequestNotFound` for a card without its request."""
        if copy.kind == "note":
            return msgspec.json.decode(copy.note or "", type=Card)
        if copy.kind == "drill":
            return drill_card(copy, self._signer)
        if copy.kind == "catch_up":
            return await self._catch_up(copy)
        if row is None and copy.kind == "panel" and copy.parent_copy is not None:
            return confirm_card(copy, await self._listed(copy.parent_copy), self._signer)
        if row is None:
            raise RequestNotFound
        facts = await self._facts(copy, row)
        if copy.kind == "card":
            return await aside.shown(row, partial(request_card, row, copy, facts, self._signer, attach=attach))
        if copy.kind == "told":
            return told_card(row, copy, facts)
        return await aside.shown(row, partial(panel_card, row, copy, facts, self._signer))

    async def _catch_up(self, copy: Copy) -> Card:
        rows = {}
        for entry in absence_of(copy).entries:
            row = await self._store.get(ApprovalRequest, request_key(copy.profile, entry.request_id))
            if row is not None:
                rows[entry.request_id] = row
        info = self._infos.get(copy.destination.platform)
        units = info.max_text_units if info else SMALLEST_UNITS
        return catch_up_card(copy, rows, self._signer, now=self._clock.now(), max_units=units, console=self._console)

    async def digest(self, copy: Copy, listed: Sequence[Listed], *, attach: bool, file: bool) -> Card:
        """The digest of these. It is made in steps, since its file holds every action whole; on a thread where some of
        them are long."""
        make = partial(self._digest, copy, listed, self._clock.now(), attach=attach, file=file)
        if any(aside.is_long(each.row) for each in listed):
            return await asyncio.to_thread(make)
        for each in listed:
            await self._pace.turn()
            one_line(each.row.action)  # masking is the work, and what was masked is remembered
            whole_text(each.row.action)
        return make()

    def _digest(self, copy: Copy, listed: Sequence[Listed], now: datetime, *, attach: bool, file: bool) -> Card:
        info = self._infos.get(copy.destination.platform)
        whole = None
        if attach and file and needs_file(listed):
            whole = file_of(copy, [file_part(each, now) for each in listed])
        prefix = info.prefix_at(copy.destination) if info else "/"
        ticks = info.ticks if info else True
        facts = Facts(now=now, title=self.title, prefix=prefix, console=self._console, ticks=ticks)
        units = info.max_text_units if info else SMALLEST_UNITS
        lists = info is not None and info.private_panels
        return digest_card(copy, listed, facts, self._signer, max_units=units, attach=attach, file=whole, lists=lists)

    async def digest_list(self, digest: Copy, listed: Sequence[Listed], skip: int) -> Card:
        """The list of a digest from one of its places on; on a thread where what it shows is long."""
        info = self._infos.get(digest.destination.platform)
        units = info.max_text_units if info else SMALLEST_UNITS
        make = partial(list_card, digest, listed, self._signer, skip=skip, max_units=units)
        if any(aside.is_long(each.row) for each in page_of(listed, skip)[0]):
            return await asyncio.to_thread(make)
        return make()

    async def _listed(self, digest_id: str) -> list[Listed]:
        digest = await self._store.get(Copy, digest_id)
        found = []
        for copy_id in digest.listed if digest is not None else ():
            copy = await self._store.get(Copy, copy_id)
            key = request_key(copy.profile, copy.request_id or "") if copy is not None else ""
            row = await self._store.get(ApprovalRequest, key)
            if copy is not None and row is not None:
                found.append(Listed(copy, row))
        return found

    async def _facts(self, copy: Copy, row: ApprovalRequest) -> Facts:
        info = self._infos.get(copy.destination.platform)
        return Facts(
            now=self._clock.now(),
            title=self.title,
            prefix=info.prefix_at(copy.destination) if info else "/",
            parent=await self._parent(row) if row.kind == "child" else None,
            next_of=await self._other(row, row.next_of),
            denied_like=await self._other(row, row.denied_like) if row.outcome is None else None,
            console=self._console,
            profile=self._profiles.get(row.profile),
            ticks=info.ticks if info else True,
        )

    async def _other(self, row: ApprovalRequest, request_id: str | None) -> ApprovalRequest | None:
        """Another request that this one's card speaks of."""
        if request_id is None:
            return None
        return await self._store.get(ApprovalRequest, request_key(row.profile, request_id))

    async def _parent(self, row: ApprovalRequest) -> str | None:
        session = await self._store.get(Session, session_key(row.profile, row.session_id))
        if session is None or session.parent is None:
            return None
        parent = await self._store.get(Session, session_key(row.profile, session.parent))
        return (parent.agent if parent else None) or session.parent

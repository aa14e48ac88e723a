"""Renders what a copy shows now, from the store's rows: the dispatcher's `CardMaker`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from signoff.cards import Facts, panel_card, request_card
from signoff.errors import RequestNotFound
from signoff.model import ApprovalRequest, Card, Copy, Session
from signoff.ports import AdapterInfo, Clock, Store
from signoff.rows import request_key, session_key
from signoff.tokens import Signer


class Maker:
    """Cards, panels and notes. `infos`: each served platform's facts, by its key."""

    def __init__(self, store: Store, clock: Clock, signer: Signer, infos: Mapping[str, AdapterInfo]) -> None:
        self._store = store
        self._clock = clock
        self._signer = signer
        self._infos = infos

    def title(self, platform: str) -> str:
        """A platform's name for people."""
        info = self._infos.get(platform)
        return info.title if info else platform.capitalize()

    async def card(self, copy: Copy, row: ApprovalRequest | None, *, attach: bool) -> Card:
        """The card of this copy as the rows stand; raises `RequestNotFound` for a card without its request."""
        if copy.kind == "note":
            return msgspec.json.decode(copy.note or "", type=Card)
        if row is None:
            raise RequestNotFound
        facts = await self._facts(copy, row)
        if copy.kind == "card":
            return request_card(row, copy, facts, self._signer, attach=attach)
        return panel_card(row, copy, facts, self._signer)

    async def _facts(self, copy: Copy, row: ApprovalRequest) -> Facts:
        info = self._infos.get(copy.destination.platform)
        next_of = None
        if row.next_of:
            next_of = await self._store.get(ApprovalRequest, request_key(row.profile, row.next_of))
        return Facts(
            now=self._clock.now(),
            title=self.title,
            prefix=info.command_prefix if info else "/",
            parent=await self._parent(row) if row.kind == "child" else None,
            next_of=next_of,
        )

    async def _parent(self, row: ApprovalRequest) -> str | None:
        session = await self._store.get(Session, session_key(row.profile, row.session_id))
        if session is None or session.parent is None:
            return None
        parent = await self._store.get(Session, session_key(row.profile, session.parent))
        return (parent.agent if parent else None) or session.parent

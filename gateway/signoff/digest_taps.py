"""Taps on a digest: they open a question's own card or the whole list, deny all, or approve all after a second tap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from signoff.authorize import Refused, person_may
from signoff.broker import Broker
from signoff.changes import tapping
from signoff.changes.answering_all import Answered
from signoff.changes.deciding import Ruling
from signoff.changes.digests import Listed
from signoff.changes.tapping import Meaning, OnDigest
from signoff.dispatcher import Dispatcher
from signoff.model import Actor, Answer, ApprovalRequest, Card, Copy, Session, replace
from signoff.ports import Store
from signoff.press import Press
from signoff.refusals import Refusals
from signoff.wording import safe_name, t

LEFT = ("critical", "not_yours", "votes", "ended")
"""Why one is left, in words of its own; for every other reason it is answered on its own card."""


class PanelMaker(Protocol):
    """Renders panels, and names platforms."""

    def title(self, platform: str) -> str:
        """A platform's name for people."""
        ...

    async def card(self, copy: Copy, row: ApprovalRequest | None, *, attach: bool) -> Card:
        """What a copy shows."""
        ...

    async def digest_list(self, digest: Copy, listed: Sequence[Listed], skip: int) -> Card:
        """The list of a digest from one of its places on."""
        ...


def is_digests(copy: Copy) -> bool:
    """Whether a button of this copy is about a whole digest: it stands on one, or on the panel opened there."""
    return copy.kind == "digest" or (copy.kind == "panel" and copy.request_id is None and copy.parent_copy is not None)


class DigestTaps:
    """What a verified tap on a digest does. `Taps` hands it on."""

    def __init__(
        self, broker: Broker, dispatcher: Dispatcher, store: Store, maker: PanelMaker, refusals: Refusals
    ) -> None:
        self._broker = broker
        self._dispatcher = dispatcher
        self._store = store
        self._maker = maker
        self._refusals = refusals

    async def tap(self, press: Press) -> Answer:
        """Answer a press by somebody who may decide in this profile."""
        choice = press.choice
        if choice == "all_once":
            return await self._confirm(press)
        if choice in ("all_deny", "confirm"):
            return await self._answer(press, "deny" if choice == "all_deny" else "once")
        if choice == "list" and press.info.private_panels:
            return await self._list(press)
        if choice == "close":
            meaning = await self._store.transact(
                partial(tapping.close_digest_panel, profile=press.profile, button=press.button)
            )
            self._dispatcher.wake()
            return await self._dead(press, meaning) or Answer(t("panel.closed"))
        return await self._refuse(press, "unknown", t("tap.unknown"))

    async def open(self, press: Press) -> tuple[Meaning, Answer | None]:
        """Post a listed question's own card; no answer where the button means nothing any more."""
        meaning, how = await self._store.transact(
            partial(tapping.open_listed, profile=press.profile, button=press.button)
        )
        if how is None or meaning.row is None:
            return meaning, None
        self._dispatcher.wake()
        return meaning, Answer(t(f"tap.listed_{how}", id=meaning.row.short_id))

    async def _list(self, press: Press) -> Answer:
        change = partial(tapping.list_digest, profile=press.profile, button=press.button)
        meaning, listed = await self._store.transact(change, bulk=True)
        dead = await self._dead(press, meaning)
        if dead is not None or meaning.digest is None:
            return dead or await self._refuse(press, "unknown", t("tap.unknown"))
        if all(each.row.outcome is not None for each in listed):
            await self._record(press, "late")
            return Answer(t("tap.listed_none"), lost=True)
        return Answer("", panel=await self._maker.digest_list(meaning.digest, listed, press.button.revision))

    async def _confirm(self, press: Press) -> Answer:
        change = partial(
            tapping.open_digest_panel,
            profile=press.profile,
            button=press.button,
            limit_s=self._broker.profile(press.profile).approvals.max_timeout_s,
            private=press.info.private_panels,
        )
        meaning = await self._store.transact(change, bulk=True)
        self._dispatcher.wake()
        dead = await self._dead(press, meaning)
        if dead is not None:
            return dead
        if meaning.panel is None:
            return await self._refuse(press, "unknown", t("tap.unknown"))
        if not meaning.runs:
            await self._record(press, "late")
            return Answer(t("tap.listed_none"), lost=True)
        if meaning.panel.private:
            return Answer("", panel=await self._maker.card(meaning.panel, None, attach=True))
        return Answer(t("tap.listed_confirm", count=meaning.runs))

    async def _answer(self, press: Press, choice: str) -> Answer:
        settings = self._broker.profile(press.profile)

        def may(row: ApprovalRequest, session: Session | None) -> Actor | None:
            allowed = person_may(settings, press.tap.person, "decide", session, "button")
            if isinstance(allowed, Refused):
                return None
            return allowed.actor if choice == "deny" else replace(allowed.actor, via="approve_all")

        def ruled(row: ApprovalRequest, by: Actor) -> Ruling:
            return self._broker.ruled_for(row, self._broker.ruling(press.profile, choice, by))

        change = partial(tapping.answer_digest, profile=press.profile, button=press.button, may=may, ruled=ruled)
        meaning, answered = await self._store.transact(change, bulk=True)
        self._dispatcher.wake()
        dead = await self._dead(press, meaning)
        if dead is not None or answered is None:
            return dead or await self._refuse(press, "unknown", t("tap.unknown"))
        done = sum(line.row.runs for line in answered.lines if line.left is None)
        if not done and all(line.left == "ended" for line in answered.lines):
            await self._record(press, "late")
            return Answer(t("tap.listed_none"), lost=True)
        told = [t(f"tap.done.{choice}_listed", count=done)] if done else []
        return Answer(" ".join([*told, *_left(answered)]))

    async def _dead(self, press: Press, meaning: OnDigest) -> Answer | None:
        """The answer for a button that means nothing here, which is recorded; None for a live one."""
        if meaning.status == "unknown":
            return await self._refuse(press, "unknown", t("tap.unknown"))
        if meaning.status == "live":
            return None
        copy = meaning.copy
        opener = copy.owner_name or copy.owner_id if copy is not None else None
        await self._record(press, "others_panel")
        return Answer(t("tap.others_panel", person=safe_name(opener or "")))

    async def _refuse(self, press: Press, why: str, text: str) -> Answer:
        await self._record(press, why)
        return Answer(text, alert=True)

    async def _record(self, press: Press, why: str) -> None:
        await self._refusals.record(
            press.profile, press.tap.person, press.tap.destination, why=why, operation="decide", via="button", row=None
        )


def _left(answered: Answered) -> list[str]:
    """`2 left: 2 critical.`"""
    left = Counter(line.left if line.left in LEFT else "singly" for line in answered.lines if line.left is not None)
    if not left:
        return []
    reasons = [t(f"digest.left_because.{why}", count=left[why]) for why in (*LEFT, "singly") if left[why]]
    return [t("tap.listed_left", count=sum(left.values()), reasons=", ".join(reasons))]

"""What the pages read of the store: the questions that wait, and what stands beside one of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from markupsafe import Markup

from signoff import aside
from signoff.broker import same_person
from signoff.changes import having
from signoff.changes.repeats import still_holds
from signoff.changes.staging import state_of
from signoff.console.cards import RANKS, Beside, CardView, May, card_view
from signoff.console.drawing import Drawing
from signoff.console.seats import Seat
from signoff.errors import RequestNotFound, StoreError
from signoff.model import ApprovalRequest, Session, Turn
from signoff.rows import request_key, session_key, turn_key
from signoff.server.core import Core
from signoff.wording import t

log = logging.getLogger(__name__)

MOST_READ = 5000
"""More waiting questions than people answer in a day; beyond, the page says how many it leaves out."""
LISTED = 100
"""Questions on one page."""


class Reading:
    """Reads rows and draws questions for one reader or for many."""

    def __init__(self, core: Core, drawing: Drawing) -> None:
        self._core = core
        self._drawing = drawing

    async def pending(self, profile: str) -> list[ApprovalRequest]:
        """The questions that wait, the gravest first, then the oldest. One that waits on another's card is not one."""
        rows = await self._core.broker.pending(profile, limit=MOST_READ)
        return sorted((row for row in rows if row.leader_id is None), key=_rank)

    async def find(self, profile: str, reference: str) -> ApprovalRequest:
        """A request by its id or short id. Raises `RequestNotFound`."""
        if not reference.isprintable() or len(reference) > 200:
            raise RequestNotFound
        return await self._core.broker.find(profile, reference)

    async def get(self, profile: str, request_id: str) -> ApprovalRequest | None:
        """A request by its id."""
        return await self._core.store.get(ApprovalRequest, request_key(profile, request_id))

    def title(self, platform: str) -> str:
        """A platform's name for people."""
        for (_, name), adapter in self._core.adapters.items():
            if name == platform:
                return adapter.info.title
        return platform.capitalize()

    async def view(self, row: ApprovalRequest, seat: Seat, *, listed: bool) -> CardView:
        """One question in words."""
        beside = await self._beside(row)
        may, mine = _ways(row, seat)
        return await aside.shown(row, partial(card_view, row, beside, may=may, mine=mine, listed=listed))

    async def card(self, row: ApprovalRequest, seat: Seat) -> str:
        """One question drawn for a list, with the place of the form token in it: see `Drawing.own`."""
        key = (row.profile, row.request_id, *_ways(row, seat), _stamp(row), await self._executor_missing(row))
        known = self._drawing.known(key)
        if known is not None:
            return known
        try:
            view = await self.view(row, seat, listed=True)
            return self._drawing.shared(
                key, lambda token, back: self._drawing.page("card.html", c=view, csrf=token, next=back, alone=False)
            )
        except StoreError:
            raise
        except Exception as error:  # a row's outer edge: the others stand on the page
            article = Markup('<article class="card" id="r-{short}" data-id="{id}"><p class="fact">{text}</p></article>')
            return article.format(short=row.short_id, id=row.request_id, text=self.undrawn(row, error))

    def undrawn(self, row: ApprovalRequest, error: Exception) -> str:
        """What stands in a list in the place of a question that a defect keeps from being drawn."""
        self._core.telemetry.unexpected()
        log.error("console.undrawn %s", row.short_id, exc_info=error)
        return t("console.refused.defect", id=row.short_id)

    async def cards(self, rows: Iterable[ApprovalRequest], seat: Seat, token: str, following: str) -> list[Markup]:
        """Several questions drawn for one reader, whose forms lead back to `following`; others get their turn in
        between."""
        drawn = []
        for row in rows:
            drawn.append(self._drawing.own(await self.card(row, seat), token, following))
            await asyncio.sleep(0)
        return drawn

    async def _beside(self, row: ApprovalRequest) -> Beside:
        store = self._core.store
        parent = None
        if row.kind == "child":
            session = await store.get(Session, session_key(row.profile, row.session_id))
            above = session.parent if session is not None else None
            if above is not None:
                other = await store.get(Session, session_key(row.profile, above))
                parent = (other.agent if other else None) or above
        next_of = await self.get(row.profile, row.next_of) if row.next_of else None
        like = await self.get(row.profile, row.denied_like) if row.denied_like and row.outcome is None else None
        denial = await self.denial(row)
        return Beside(
            now=self._core.clock.now(),
            title=self.title,
            parent=parent,
            next_of=next_of,
            denied_like=like,
            denial=denial,
            holds=denial is not None and await self._holds(denial),
            profile=self._core.profiles.get(row.profile),
            executor_missing=await self._executor_missing(row),
        )

    async def _executor_missing(self, row: ApprovalRequest) -> bool:
        """Whether it is a kept action that waits or was approved, and that no gateway could start now."""
        if row.stages is None or state_of(row) not in ("waits", "approved"):
            return False
        return having.missing(row.executor, await self._core.staged.had(row.profile))

    async def denial(self, row: ApprovalRequest) -> ApprovalRequest | None:
        """The request that a person denied, for one that is denied: itself, or the one that it repeats."""
        if row.repeat_of is not None:
            repeated = await self.get(row.profile, row.repeat_of)
            row = row if repeated is None else repeated
        if row.stages is not None:
            return None  # a kept action is asked about once
        denied = row.outcome == "denied" and any(actor.type == "person" for actor in row.decided_by)
        return row if denied and row.repeat_of is None else None

    async def _holds(self, denial: ApprovalRequest) -> bool:
        """Whether that denial would answer the same action if it were asked for now."""
        turn = None
        if denial.turn_id is not None:
            turn = await self._core.store.get(Turn, turn_key(denial.profile, denial.turn_id))
        return still_holds(denial, turn, self._core.clock.now())


def was_asked(row: ApprovalRequest) -> bool:
    """Whether a person was asked; what a rule, a grant or an earlier denial ended at birth never stood on a page."""
    if row.repeat_of is not None:
        return False
    asked = bool(row.destinations) or row.expires_at is not None
    return asked or any(actor.type == "person" for actor in row.decided_by)


def _rank(row: ApprovalRequest) -> tuple[int, float]:
    return RANKS[row.severity], row.created_at.timestamp()


def _ways(row: ApprovalRequest, seat: Seat) -> tuple[May, bool]:
    may: May = "decide" if seat.scope in ("approver", "admin") else "look"
    mine = may == "decide" and (
        seat.scope == "admin" or any(same_person(seat.actor, decider) for decider in row.decided_by)
    )
    return may, mine


def _stamp(row: ApprovalRequest) -> tuple[object, ...]:
    """Changes with everything that a drawn question shows of its row."""
    return (
        row.card_version,
        row.outcome,
        row.waiters,
        row.last_follow_no,
        row.expires_at,
        len(row.votes),
        row.execution.state,
        row.execution.ended_at,
        row.superseded_by,
        len(row.delivered_to),
    )

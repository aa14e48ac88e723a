"""Approve all and deny all: every question that a place showed before the command, or all of a digest, in one commit.

A copy that was posted after the command, or whose place in the chat's order is not known, was not seen by whoever
typed it, so approving leaves it. What an earlier answer of the same command settles by its grant counts as approved.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from signoff.changes import deciding, digests
from signoff.changes.deciding import Decided, Ruling
from signoff.changes.places import chat_order
from signoff.elicitation import needs_somebody
from signoff.errors import ChoiceNotOffered
from signoff.model import Actor, ApprovalRequest, Copy, Destination, Face, Session, replace
from signoff.ports import Tx
from signoff.rows import place_key, request_key, session_key

QUIET_OVER = 20
"""Above so many decided requests one summary speaks for this place, and their cards there are not edited one by one."""
JUST_ENDED = timedelta(seconds=60)
"""What ended this shortly before may have been decided while the command was typed, so it is named."""

Left = Literal["critical", "kept", "not_yours", "later", "not_shown", "no_text", "not_offered", "votes", "ended"]
May = Callable[[ApprovalRequest, Session | None], Actor | None]
"""Who answers this request, or None for somebody who may not."""


class AllOf(Struct, frozen=True, kw_only=True):
    """Which questions are meant."""

    profile: str
    place: Destination
    """Exactly this place: a chat excludes its threads."""
    before: int = 0
    """The command's own place in the chat's order."""
    written: datetime | None = None
    """When it was written at the latest, by the store's time; None: only now."""
    digest: str | None = None
    """Only what this digest lists: its own button was pressed, on it or on its panel."""
    revision: int = 0
    """The digest's revision that was pressed: what came later is not meant."""


class Line(Struct, frozen=True, kw_only=True):
    """One request, as it stands after the command. `left` None: answered as asked."""

    row: ApprovalRequest
    left: Left | None = None
    grant_id: str | None = None


class Answered(Struct, frozen=True, kw_only=True):
    """What became of each question, those answered first, else in the order of their cards."""

    lines: tuple[Line, ...] = ()
    quiet: bool = False
    """The cards of this place were left unedited."""


class _Shown(Struct, frozen=True):
    """A request with its copies in the place; `seen` are those that stood in the chat before the command."""

    row: ApprovalRequest
    copies: list[Copy]
    seen: list[Copy]
    upto: int
    """The followers that were counted on the seen ones."""
    counted: bool
    """Whether any were."""


def answer_all(tx: Tx, *, all_of: AllOf, may: May, ruled: Callable[[ApprovalRequest, Actor], Ruling]) -> Answered:
    """Decide every question of the place that may be; `ruled` makes the answer to one request by that person: `deny`,
    a scope, or `once`, which takes the followers counted on the card along."""
    plan: list[tuple[_Shown, Ruling]] = []
    left: list[Line] = []
    actors: dict[str, Actor | None] = {}
    for shown in _shown(tx, all_of):
        session_id = shown.row.session_id
        if session_id not in actors:
            session = tx.get(Session, session_key(all_of.profile, session_id))
            actors[session_id] = may(shown.row, session)
        actor = actors[session_id]
        ruling = _ruling(shown, ruled(shown.row, actor)) if actor is not None else None
        reason = _left(shown, ruling)
        if reason is not None:
            left.append(Line(row=shown.row, left=reason))
        elif ruling is not None:
            plan.append((shown, ruling))
    quiet = len(plan) > QUIET_OVER
    done: list[Line] = []
    late: list[Line] = []
    made: set[str] = set()
    for shown, ruling in plan:
        decided = _decide(tx, shown, ruling, quiet=quiet)
        made.update(grant.grant_id for grant in decided.grants)
        line = _line(decided, made)
        (done if line.left is None else late).append(line)
    return Answered(lines=(*done, *late, *left), quiet=quiet)


def _shown(tx: Tx, all_of: AllOf) -> list[_Shown]:
    """The requests with a card in exactly this place; what ended longer ago than a minute is nobody's question."""
    copies: dict[str, list[Copy]] = {}
    for copy in _copies(tx, all_of):
        if copy.request_id is not None:
            copies.setdefault(copy.request_id, []).append(copy)
    found = []
    known = _known_until(tx, all_of)
    for request_id, own in copies.items():
        row = tx.get(ApprovalRequest, request_key(all_of.profile, request_id))
        if row is None or (row.decided_at is not None and row.decided_at <= known):
            continue
        seen = [(copy, face) for copy in own if (face := _seen(copy, all_of)) is not None]
        upto = max((face.upto for _, face in seen), default=0)
        found.append(_Shown(row, own, [copy for copy, _ in seen], upto, any(face.shown for _, face in seen)))
    found.sort(key=lambda shown: chat_order(shown.copies))
    return found


def _known_until(tx: Tx, all_of: AllOf) -> datetime:
    """What ended by then is not named: whoever answers saw that it had, or it is long ago."""
    digest = tx.get(Copy, all_of.digest) if all_of.digest is not None else None
    return (digest.shown_at if digest is not None else None) or tx.now - JUST_ENDED


def _copies(tx: Tx, all_of: AllOf) -> list[Copy]:
    if all_of.digest is None:
        return tx.find(Copy, "place", place_key(all_of.profile, all_of.place))
    digest = tx.get(Copy, all_of.digest)
    return [each.copy for each in digests.entries(tx, digest)] if digest is not None else []


def _seen(copy: Copy, all_of: AllOf) -> Face | None:
    """What a copy counted where whoever answers saw it; None where they did not. A doubtful send has no known place in
    the chat's order, but a press proves that a digest stands there."""
    if all_of.digest is not None:
        return digests.face_at(copy, all_of.revision)
    if not 0 < copy.order < all_of.before:
        return None
    if not copy.faces:
        return Face(0)
    written = all_of.written
    stood = [face for face in copy.faces if written is None or face.at is None or face.at <= written]
    return stood[-1] if stood else copy.faces[0]


def _ruling(shown: _Shown, ruling: Ruling) -> Ruling:
    """`once` takes along the followers that were counted, and only those."""
    if ruling.choice != "once" or not shown.row.waiters:
        return ruling
    return replace(ruling, choice="once_all", upto=shown.upto) if shown.counted else ruling


def _left(shown: _Shown, ruling: Ruling | None) -> Left | None:
    """Why this request is not answered; None when it is to be."""
    row = shown.row
    if row.outcome is not None:
        return "ended"
    if ruling is None:
        return "not_yours"
    if ruling.choice == "deny":
        doubtful = any(copy.order == 0 and copy.state == "ambiguous" for copy in shown.copies)
        return None if shown.seen or doubtful else _unseen(shown)
    if not shown.seen:
        return _unseen(shown)
    if row.follow_no > shown.upto:
        return "not_shown"
    if row.severity == "critical":
        return "critical"
    if row.stages is not None:
        return "kept"  # approving runs it at once, so it is nothing that a list of others is answered with
    if needs_somebody(row.action):
        return "not_offered"  # whoever accepts a page opens it
    if not any(copy.whole_shown for copy in shown.seen):
        return "no_text"
    try:
        deciding.check_offered(row, ruling.choice, ruling.allowed)
    except ChoiceNotOffered:
        return "not_offered"
    return None


def _unseen(shown: _Shown) -> Left:
    return "later" if any(copy.order > 0 for copy in shown.copies) else "not_shown"


def _decide(tx: Tx, shown: _Shown, ruling: Ruling, *, quiet: bool) -> Decided:
    """One answer. A quiet one closes the cards of this place first, so that nothing is queued for them; cards of the
    same request elsewhere are edited, since no summary is posted there."""
    row = shown.row
    current = row.expires_at is None or row.expires_at > tx.now
    if quiet and current and row.threshold == 1:
        for copy in shown.copies:
            if copy.state == "sent" and copy.digest is None:  # one edit of a digest tells all that it lists
                tx.put(replace(copy, state="final", due_at=None))
    return deciding.decide(tx, row.profile, row.request_id, ruling)


def _line(decided: Decided, made: set[str]) -> Line:
    row = decided.row
    if decided.how == "won":
        return Line(row=row, grant_id=decided.grant.grant_id if decided.grant else None)
    if decided.how == "vote":
        return Line(row=row, left="votes")
    settled = row.outcome == "approved" and row.grant_id in made
    return Line(row=row) if settled else Line(row=row, left="ended")

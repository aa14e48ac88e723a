"""A session's questions are switched off for a while, and on again: by a person, by the clock, or with the session.

A bypass belongs to one session: a child has its own or none. It decides nothing that was asked before. Its end is the
time that people were told, so it does not move on while no gateway is up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from msgspec import Struct

from signoff.changes.common import NEW, plus
from signoff.changes.copies import new_note
from signoff.errors import InvalidInput
from signoff.ids import row_id
from signoff.model import Actor, ApprovalRequest, Card, Destination, Event, Session, replace
from signoff.ports import Tx
from signoff.routing import MAX_PARENTS, UNATTENDED
from signoff.rows import session_key
from signoff.settings import GrantSettings, Profile

BYPASS = "bypass"
"""The rung of the ladder, and the rule that a record names."""
MIN_MINUTES, MAX_MINUTES, DEFAULT_MINUTES = 1.0, 1440.0, 30.0
"""As a time box: 1 minute to 24 hours."""
SINGLE = frozenset({"once", "once_all", "deny"})
"""The answers that let no later action pass."""

Why = Literal["expired", "person", "stop_requested", "session_ended"]


class Bypass(Struct, frozen=True, kw_only=True):
    """What became of it. `session` as it is now, `before` until when questions were off."""

    session: Session
    before: datetime | None = None
    waiting: int = 0
    """Questions of the session that still wait, those on another's card included."""
    stale: bool = False
    """The same message was done before, and what it switched on has ended since: nothing changed."""


def refusal(profile: Profile, session: Session, root: Session) -> Literal["mode_off", "policy"] | None:
    """Why questions of this session may not be switched off; None where they may. `root` is its outermost parent.

    Where nothing is asked anyhow there is nothing to switch off. In unattended sessions the operator's settings decide,
    not a person. Where the operator offers single runs only, for some kind of action, a bypass would be wider.
    """
    if profile.approvals.mode == "off":
        return "mode_off"
    if session.kind in UNATTENDED or root.kind in UNATTENDED or not _standing_offered(profile.grants):
        return "policy"
    return None


def _standing_offered(grants: GrantSettings) -> bool:
    return all(set(offered) - SINGLE for offered in (grants.command, grants.code, grants.tool))


def live(profile: Profile, session: Session, root: Session, now: datetime) -> bool:
    """Whether nothing is asked in this session now. Settings that have come to forbid it count at once."""
    until = session.bypass_until
    return until is not None and until > now and refusal(profile, session, root) is None


def over(row: ApprovalRequest, session: Session, now: datetime) -> bool:
    """Whether a draft was let pass by a bypass that has ended by the time it is inserted."""
    return row.rung == BYPASS and (session.bypass_until is None or session.bypass_until <= now)


def check_minutes(minutes: float) -> float:
    """The length, if it is one that may be chosen. Raises `InvalidInput`."""
    if math.isnan(minutes) or not MIN_MINUTES <= minutes <= MAX_MINUTES:
        raise InvalidInput(f"minutes must be {MIN_MINUTES:g} to {MAX_MINUTES:g} (24 hours).", param="minutes")
    return minutes


def start(
    tx: Tx,
    session: Session,
    minutes: float,
    by: Actor,
    *,
    place: Destination | None,
    message: str | None,
    card: Callable[[Bypass], Card],
) -> Bypass:
    """Ask nothing in this session for so many minutes from now, however long an earlier bypass would have lasted.

    `place` is where it was typed and is answered: the session's own place is told with `card` where it is another.
    `message` names the typed message; the same one again changes nothing.
    """
    before, waiting = session.bypass_until, _waiting(tx, session)
    if message is not None and session.bypass_message == message:
        return Bypass(session=session, before=before, waiting=waiting, stale=before is None or before <= tx.now)
    until = plus(tx.now, 60 * minutes)
    begun = replace(session, bypass_until=until, bypass_by=by, bypass_place=place, bypass_message=message)
    tx.put(begun)
    tx.emit(_event(tx, "session.bypass_started", begun, until=until.isoformat(), by=_name(by)))
    done = Bypass(session=begun, before=before, waiting=waiting)
    _tell(tx, begun, {_own_place(tx, begun)} - {place}, card(done))
    return done


def end(tx: Tx, session: Session, by: Actor, *, place: Destination | None, card: Callable[[Bypass], Card]) -> Bypass:
    """Ask again from now on. Without a bypass nothing changes. `place` is where that is answered."""
    before, waiting = session.bypass_until, _waiting(tx, session)
    if before is None or before <= tx.now:
        return Bypass(session=session, waiting=waiting)
    ended = dropped(tx, session, by, "person")
    tx.put(ended)
    done = Bypass(session=ended, before=before, waiting=waiting)
    _tell(tx, ended, {_own_place(tx, ended), session.bypass_place} - {place}, card(done))
    return done


def expire(tx: Tx, session: Session, card: Callable[[Bypass], Card]) -> bool:
    """End a bypass whose time is over, and say so where people were told of it; whether there was one."""
    before = session.bypass_until
    if before is None or before > tx.now or session.closed_at is not None:
        return False
    ended = dropped(tx, session, None, "expired")
    tx.put(ended)
    told = card(Bypass(session=ended, before=before))
    _tell(tx, ended, {_own_place(tx, ended), session.bypass_place}, told)
    return True


def cut_short(tx: Tx, session: Session, card: Callable[[Bypass], Card]) -> None:
    """Say where people were told of a live bypass that it ends now, with its session."""
    told = card(Bypass(session=session, before=tx.now))
    _tell(tx, session, {_own_place(tx, session), session.bypass_place}, told)


def dropped(tx: Tx, session: Session, by: Actor | None, why: Why) -> Session:
    """The session without its bypass, to be put by the caller; told in the event log where it had one."""
    if session.bypass_until is None:
        return session
    tx.emit(_event(tx, "session.bypass_ended", session, why=why, by=_name(by)))
    return replace(session, bypass_until=None, bypass_by=None, bypass_place=None)


def root_of(tx: Tx, session: Session) -> Session:
    """The outermost parent of a child, itself for all others."""
    root = session
    for _ in range(MAX_PARENTS):
        parent = tx.get(Session, session_key(root.profile, root.parent)) if root.parent is not None else None
        if parent is None:
            break
        root = parent
    return root


def _waiting(tx: Tx, session: Session) -> int:
    rows = tx.find(ApprovalRequest, "live_session", session_key(session.profile, session.session_id))
    return sum(row.outcome is None for row in rows)


def _own_place(tx: Tx, session: Session) -> Destination | None:
    return session.destination or root_of(tx, session).destination


def _tell(tx: Tx, session: Session, places: set[Destination | None], card: Card) -> None:
    for place in sorted((each for each in places if each is not None), key=str):
        tx.put(new_note(row_id(), session.profile, place, card, now=tx.now, priority=NEW))


def _event(tx: Tx, kind: str, session: Session, **data: str) -> Event:
    return Event(profile=session.profile, type=kind, at=tx.now, session_id=session.session_id, data=data)


def _name(by: Actor | None) -> str:
    return "" if by is None else by.principal or by.name or by.user_id or by.key_id or by.type

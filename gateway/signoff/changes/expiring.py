"""A session that nobody used for long, and once a day every session that was used, starts anew.

Only outermost sessions expire: a child lives and ends with its parent, and its work counts as its parent's use. Where
something of the session waits for a person, or runs, it is not idle; the daily hour ends that, too, and says so. A
session starts anew as with `/new`: its registration stays, so its agent goes on asking, and its grants are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Literal, TypeVar
from zoneinfo import ZoneInfo

from signoff.changes import bypassing, stopping
from signoff.changes.bypassing import Bypass
from signoff.changes.common import earliest, plus
from signoff.model import ApprovalRequest, Card, Session, Turn, replace
from signoff.ports import Tx
from signoff.rows import session_key
from signoff.settings import Profile, SessionSettings

T = TypeVar("T")

LOOK_AGAIN_S = 60.0
"""A session that is in use is looked at this often, so it expires at most a minute late."""

Why = Literal["idle", "daily"]


def expires(settings: SessionSettings) -> bool:
    """Whether sessions expire at all."""
    return settings.idle_expires_s is not None or settings.daily_reset_at is not None


def used(change: Callable[[Tx], T], profile: Profile, session_id: str) -> Callable[[Tx], T]:
    """`change`, which also shows that the session is in use, where the profile lets sessions expire."""
    settings = profile.sessions
    if not expires(settings):
        return change

    def both(tx: Tx) -> T:
        done = change(tx)
        seen(tx, profile.name, session_id, settings)
        return done

    return both


def seen(tx: Tx, profile: str, session_id: str, settings: SessionSettings) -> None:
    """The session is in use now: the outermost one of its line expires later."""
    session = tx.get(Session, session_key(profile, session_id))
    root = bypassing.root_of(tx, session) if session is not None else None
    if root is not None and root.closed_at is None and root.kind != "child":
        tx.put(replace(root, seen_at=tx.now, ends_at=earliest(root.ends_at, _look_at(settings, tx.now))))


def arm(tx: Tx, session: Session, settings: SessionSettings) -> None:
    """The settings changed: the session's time counts from now, since how long it was idle was not watched."""
    if session.closed_at is None and session.kind != "child":
        tx.put(replace(session, seen_at=tx.now, ends_at=_look_at(settings, tx.now)))


def sweep(tx: Tx, session: Session, settings: SessionSettings, card: Callable[[Bypass], Card]) -> Why | None:
    """Look at a session whose time has come, and start it anew where it has expired; why, or None where it goes on.

    `card` tells people of a bypass that ends with it.
    """
    if session.ends_at is None or session.ends_at > tx.now or session.closed_at is not None:
        return None
    why = _expired(session, settings, tx.now)
    if why is None or (why == "idle" and _busy(tx, session)):
        tx.put(_looked_at(tx, session, settings))
        return None
    if session.bypass_until is not None and session.bypass_until > tx.now:
        bypassing.cut_short(tx, session, card)
    stopping.clear_session(tx, session, None, close=False, why=why)
    return why


def _expired(session: Session, settings: SessionSettings, now: datetime) -> Why | None:
    seen_at = session.seen_at or session.created_at
    daily = _daily_after(settings, seen_at)
    if daily is not None and daily <= now:
        return "daily"
    idle = _idle_at(settings, seen_at)
    # Any earlier look is one whether something waits or runs.
    return "idle" if idle is not None and idle <= now and session.ends_at == idle else None


def _looked_at(tx: Tx, session: Session, settings: SessionSettings) -> Session:
    """The session with when it is looked at next. What is busy now, or was in use since the look before, counts as in
    use until now: when the last of it was over is not written down."""
    if not expires(settings):
        return replace(session, ends_at=None)
    if settings.idle_expires_s is None:
        return replace(session, ends_at=_daily_after(settings, session.seen_at or session.created_at))
    if _busy(tx, session):
        return replace(session, seen_at=tx.now, ends_at=_look_at(settings, tx.now))
    return replace(
        session, seen_at=tx.now, ends_at=earliest(_idle_at(settings, tx.now), _daily_after(settings, tx.now))
    )


def _busy(tx: Tx, session: Session) -> bool:
    """Whether something of the session or below it waits, may still be started, runs, or is being worked on."""
    for session_id in stopping.family(tx, session.profile, session.session_id):
        key = session_key(session.profile, session_id)
        if tx.find(Turn, "open_session", key, limit=1):
            return True
        if tx.find(ApprovalRequest, "live_session", key, limit=1):
            return True
    return False


# --- when ------------------------------------------------------------------------------------


def _idle_at(settings: SessionSettings, seen_at: datetime) -> datetime | None:
    """When a session that was in use last at `seen_at` is idle."""
    return plus(seen_at, settings.idle_expires_s) if settings.idle_expires_s is not None else None


def _look_at(settings: SessionSettings, now: datetime) -> datetime | None:
    """When a session that is in use now is looked at next. Always sooner than it could be idle."""
    idle_s = settings.idle_expires_s
    soon = plus(now, min(LOOK_AGAIN_S, idle_s / 2)) if idle_s is not None else None
    return earliest(soon, _daily_after(settings, now))


def _daily_after(settings: SessionSettings, when: datetime) -> datetime | None:
    """The first daily hour after `when`. An hour that a clock change skips comes as much later as it skips."""
    if settings.daily_reset_at is None:
        return None
    zone = zone_of(settings.time_zone)
    hour = time.fromisoformat(settings.daily_reset_at)
    today = when.astimezone(zone).date()
    days = [datetime.combine(today + timedelta(days=number), hour, zone).astimezone(UTC) for number in (0, 1, 2)]
    return next(at for at in days if at > when)


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """The time zone of that name. Raises `ZoneInfoNotFoundError`, `ValueError` for what is none."""
    return UTC if name.upper() == "UTC" else ZoneInfo(name)

"""The typed `yolo`: nothing is asked in a session for a while, or again from now on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from signoff.authorize import Refused
from signoff.bypass_notes import off_text, on_text
from signoff.changes.bypassing import DEFAULT_MINUTES
from signoff.command_desk import Asked, Desk, Reply
from signoff.command_replies import Listing
from signoff.durations import clock as clock_text
from signoff.errors import NotPermitted, SessionNotFound
from signoff.grammar import Yolo
from signoff.model import Actor, Session
from signoff.ports import Clock, Store
from signoff.rows import session_key
from signoff.sessions import Sessions
from signoff.wording import safe_name, t


class BypassCommands:
    """Switches a session's questions off and on for people who typed so."""

    def __init__(self, desk: Desk, sessions: Sessions, store: Store, clock: Clock) -> None:
        self._desk = desk
        self._sessions = sessions
        self._store = store
        self._clock = clock

    async def answer(self, asked: Asked, typed: Yolo) -> Reply:
        """Do it for the card's session, else the only one of exactly this place; with several nothing is done."""
        actor = self._desk.may(asked, "yolo")
        if isinstance(actor, Refused):
            return await self._desk.refuse(asked, actor, "yolo")
        if typed.word is not None:
            return [t("reply.yolo_bad", word=safe_name(typed.word))]
        meant = await self._sessions_meant(asked)
        if not meant:
            return [t("stop.no_session")]
        if len(meant) > 1:
            return _several(meant, self._clock.now())
        try:
            return await (self._off if typed.off else self._on)(asked, typed, meant[0], actor)
        except NotPermitted as error:
            return [error.message]
        except SessionNotFound:
            return [t("stop.no_session")]  # it was closed between the reading and the change

    async def _on(self, asked: Asked, typed: Yolo, session: Session, actor: Actor) -> Reply:
        message = asked.message
        done = await self._sessions.bypass(
            asked.profile.name,
            session.session_id,
            actor,
            minutes=DEFAULT_MINUTES if typed.minutes is None else typed.minutes,
            place=message.destination,
            message=f"{message.destination} {message.message_id}" if message.message_id else None,
        )
        if done.stale:
            return [t("reply.yolo_was_over")]
        return Listing(head=(on_text(done, self._clock.now()),), public=True)

    async def _off(self, asked: Asked, typed: Yolo, session: Session, actor: Actor) -> Reply:
        place = asked.message.destination
        done = await self._sessions.end_bypass(asked.profile.name, session.session_id, actor, place=place)
        if done.before is None:
            return [t("reply.yolo_was_off")]
        return Listing(head=(off_text(actor),), public=True)

    async def _sessions_meant(self, asked: Asked) -> list[Session]:
        profile = asked.profile.name
        row = (await self._desk.look(asked)).replied
        if row is None:
            return await self._sessions.at_place(profile, asked.message.destination)
        session = await self._store.get(Session, session_key(profile, row.session_id))
        return [session] if session is not None and session.closed_at is None else []


def _several(meant: Sequence[Session], now: datetime) -> Listing:
    lines = []
    for session in meant:
        names = {
            "session": safe_name(session.session_id),
            "agent": safe_name(session.agent) if session.agent else t("who.agent"),
        }
        until = session.bypass_until
        if until is not None and until > now:
            lines.append(t("reply.yolo_session_on", clock=clock_text(until, now=now), **names))
        else:
            lines.append(t("reply.yolo_session", **names))
    return Listing(head=(t("reply.yolo_several", count=len(meant)),), lines=tuple(lines), file="sessions.txt")

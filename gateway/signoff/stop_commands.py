"""The typed `stop` and `new`: the work of a session, or of every session of a place, ends."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.authorize import Operation, Refused
from signoff.changes.stopping import Stopped
from signoff.command_desk import Asked, Desk, Reply
from signoff.command_replies import Listing, new_lines, stopped_lines
from signoff.errors import SessionNotFound
from signoff.model import Actor, Session
from signoff.ports import Clock, Store
from signoff.routing import MAX_PARENTS
from signoff.rows import session_key
from signoff.sessions import Sessions
from signoff.wording import t


class StopCommands:
    """Ends sessions for people who typed so."""

    def __init__(self, desk: Desk, sessions: Sessions, store: Store, clock: Clock) -> None:
        self._desk = desk
        self._sessions = sessions
        self._store = store
        self._clock = clock

    async def end(self, asked: Asked, verb: str) -> Reply:
        """End the work of the card's session, else of every session of exactly this place that the person may end."""
        meant = await self._sessions_meant(asked)
        if not meant:
            return [t("stop.no_session")]
        ended: list[tuple[Session, Stopped, Actor]] = []
        refused: tuple[Refused, Session] | None = None
        for session in meant:
            actor = await self._may_end(asked, verb, session)
            if isinstance(actor, Refused):
                refused = (actor, session)
                continue
            stopped = await self._ended_one(asked, verb, session, actor)
            if stopped is not None:
                ended.append((session, stopped, actor))
        if ended:
            return Listing(lines=tuple(self._ended_lines(asked, verb, ended)), file=f"{verb}.txt", public=True)
        if refused is not None:
            return await self._desk.refuse(asked, refused[0], verb, session=refused[1])
        return [t("stop.no_session")]

    def _ended_lines(self, asked: Asked, verb: str, ended: Sequence[tuple[Session, Stopped, Actor]]) -> list[str]:
        now, lines = self._clock.now(), []
        for session, stopped, actor in ended:
            if verb == "stop":
                lines += stopped_lines(actor, session, stopped, now, asked.prefix)
            else:
                lines += new_lines(actor, session, stopped, now, named=len(ended) > 1)
        return lines

    async def _sessions_meant(self, asked: Asked) -> list[Session]:
        profile = asked.profile.name
        row = (await self._desk.look(asked)).replied
        if row is None:
            return await self._sessions.at_place(profile, asked.message.destination)
        session = await self._store.get(Session, session_key(profile, row.session_id))
        return [session] if session is not None and session.closed_at is None else []

    async def _may_end(self, asked: Asked, verb: str, session: Session) -> Actor | Refused:
        """A child is asked about in its parent's place, so the parent's own user may end it too."""
        operation: Operation = "stop" if verb == "stop" else "new"
        verdict = self._desk.may(asked, operation, session)
        for _ in range(MAX_PARENTS):
            if not isinstance(verdict, Refused) or session.parent is None:
                break
            parent = await self._store.get(Session, session_key(session.profile, session.parent))
            if parent is None:
                break
            session, verdict = parent, self._desk.may(asked, operation, parent)
        return verdict

    async def _ended_one(self, asked: Asked, verb: str, session: Session, actor: Actor) -> Stopped | None:
        profile = asked.profile.name
        try:
            if verb == "stop":
                return await self._sessions.stop(profile, session.session_id, actor)
            return await self._sessions.clear(profile, session.session_id, actor, close=False)
        except SessionNotFound:
            return None  # it was closed between the reading and the stopping

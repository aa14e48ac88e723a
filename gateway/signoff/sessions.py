"""Sessions, their turns and their notifiers: who may ask, from where, and until when."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from signoff.bypass_notes import off_card, on_card
from signoff.changes import bypassing, expiring, stopping
from signoff.changes.bypassing import DEFAULT_MINUTES, Bypass
from signoff.changes.common import plus
from signoff.changes.declaring import Declaration, declare
from signoff.changes.stopping import Stopped
from signoff.errors import (
    DestinationNotAllowed,
    InvalidInput,
    KindNotAllowed,
    NotPermitted,
    SessionNotFound,
    StoreError,
    TurnEnded,
    TurnNotFound,
)
from signoff.expected import check_word
from signoff.ids import REQUEST_ID, new_id
from signoff.model import (
    ANSWERING_CAUSES,
    Actor,
    Cause,
    Destination,
    Notifier,
    Session,
    SessionKind,
    Turn,
    replace,
)
from signoff.ports import Store, Tx
from signoff.routing import UNATTENDED, mode_setting
from signoff.rows import NO_CONTEXT, place_key, session_key
from signoff.settings import AgentSettings, Profile
from signoff.wording import t

__all__ = ["MAX_ID_CHARS", "MAX_LEASE_S", "MIN_LEASE_S", "Declaration", "Sessions"]

log = logging.getLogger(__name__)

MAX_ID_CHARS = 200
"""The longest id of a session and of whatever it names: a platform, a chat, a thread, a person, a parent. Those of the
platforms have some 20."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
"""What stands in TOML without quotes."""
MIN_LEASE_S, MAX_LEASE_S, DEFAULT_LEASE_S = 2.0, 3600.0, 60.0
NOTIFIER_GRACE_S = 30.0
"""A notifier whose connection dropped counts as attached for this long."""


class Sessions:
    """Declare, read, stop and clear sessions; open, renew and end turns; attach and detach notifiers."""

    def __init__(
        self, store: Store, profiles: Mapping[str, Profile], served: Callable[[str], AbstractSet[str]]
    ) -> None:
        self._store = store
        self._profiles = profiles
        self._served = served
        self._ends: set[asyncio.Task[None]] = set()

    # --- sessions ----------------------------------------------------------------------------

    async def declare(
        self, profile_name: str, declaration: Declaration, agent: str | None, *, only_new: bool = False
    ) -> Session:
        """Make or change a session; `only_new` leaves one that was ever declared as it is. Raises `InvalidInput` (also
        for a parent that was closed, is too deep a child or descends from this session), `KindNotAllowed`,
        `DestinationNotAllowed`, `SessionNotFound` (another agent's session, or an unknown parent)."""
        _check_id(declaration.session_id)
        _check_words(declaration)
        check_word(declaration.kind, SessionKind, "kind")
        if declaration.session_id == NO_CONTEXT and agent is not None:
            raise InvalidInput(f"{NO_CONTEXT!r} is the gateway's own session; choose another id.", param="session_id")
        profile = self._profiles[profile_name]
        if agent is not None:
            self._check_allowed(profile, agent, declaration)
        self._check_place(profile_name, declaration)
        if (declaration.kind == "child") != (declaration.parent is not None):
            raise InvalidInput("A child session names its parent, and only a child does.", param="parent")
        change = partial(declare, profile=profile_name, declaration=declaration, agent=agent, only_new=only_new)
        return await self._store.transact(expiring.used(change, profile, declaration.session_id))

    def serves(self, profile: str, place: Destination) -> bool:
        """Whether this gateway posts on the place's platform."""
        return place.platform in self._served(profile)

    async def known(self, profile: str, session_id: str) -> Session | None:
        """The session as it is stored, open or closed; None where it was never declared."""
        return await self._store.get(Session, session_key(profile, session_id))

    async def get(self, profile: str, session_id: str, agent: str | None = None) -> Session:
        """An open session; another agent's is not found."""
        session = await self._store.get(Session, session_key(profile, session_id))
        if session is None or session.closed_at is not None or (agent is not None and session.agent != agent):
            raise SessionNotFound
        return session

    async def at_place(self, profile: str, destination: Destination) -> list[Session]:
        """The open sessions of exactly this place."""
        return await self._store.find(Session, "place", place_key(profile, destination))

    async def stop(self, profile: str, session_id: str, by: Actor | None, agent: str | None = None) -> Stopped:
        """End the session's turns, questions, unstarted approvals and children, all in one commit."""

        def change(tx: Tx) -> Stopped:
            session = stopping_session(tx, profile, session_id, agent)
            return stopping.stop_session(tx, session, by)

        return await self._store.transact(change, bulk=True)

    async def clear(
        self, profile: str, session_id: str, by: Actor | None, *, close: bool, agent: str | None = None
    ) -> Stopped:
        """As stop, and its grants and bypass go; `close` also forgets the registration, without it the session starts
        anew."""

        def change(tx: Tx) -> Stopped:
            session = stopping_session(tx, profile, session_id, agent)
            return stopping.clear_session(tx, session, by, close=close)

        return await self._store.transact(change, bulk=True)

    def ender(self, profile: str, session_id: str, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """What ends a session soon, from whichever thread it is called."""

        def begin() -> None:
            task = loop.create_task(self._end(profile, session_id), name=f"end-{session_id}")
            self._ends.add(task)
            task.add_done_callback(self._ends.discard)

        def end() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(begin)

        return end

    async def _end(self, profile: str, session_id: str) -> None:
        try:
            await self.clear(profile, session_id, None, close=True)
        except SessionNotFound:
            return  # somebody ended it before
        except StoreError as error:
            log.warning("session %s is over and could not be ended: %s", session_id, error)

    async def aclose(self) -> None:
        """Return once the sessions that are being ended are."""
        await asyncio.sleep(0)  # what was told a moment ago begins
        await asyncio.gather(*self._ends)

    # --- asking nothing for a while ----------------------------------------------------------

    async def bypass(
        self,
        profile: str,
        session_id: str,
        by: Actor,
        *,
        minutes: float = DEFAULT_MINUTES,
        place: Destination | None = None,
        message: str | None = None,
    ) -> Bypass:
        """Ask nothing in the session for so many minutes, 1 to 1440. The caller has made sure that `by` may.

        `place` and `message` name what was typed where; the session's own place is told where it is another. Raises
        `InvalidInput`, `SessionNotFound`, and `NotPermitted` where the settings leave no room for it.
        """
        length = bypassing.check_minutes(minutes)
        settings = self._profiles[profile]

        def change(tx: Tx) -> Bypass:
            session = stopping_session(tx, profile, session_id, None)
            why = bypassing.refusal(settings, session, bypassing.root_of(tx, session))
            if why is not None:
                raise NotPermitted(t("reply.yolo_mode_off" if why == "mode_off" else "reply.yolo_refused"))
            card = partial(on_card, now=tx.now)
            return bypassing.start(tx, session, length, by, place=place, message=message, card=card)

        return await self._store.transact(expiring.used(change, settings, session_id))

    async def end_bypass(self, profile: str, session_id: str, by: Actor, *, place: Destination | None = None) -> Bypass:
        """Ask again in the session; `before` of the answer is None where nothing was bypassed. Raises
        `SessionNotFound`."""

        def change(tx: Tx) -> Bypass:
            session = stopping_session(tx, profile, session_id, None)
            return bypassing.end(tx, session, by, place=place, card=lambda done: off_card(by))

        return await self._store.transact(change)

    # --- turns -------------------------------------------------------------------------------

    async def open_turn(
        self,
        profile: str,
        session_id: str,
        turn_id: str | None = None,
        lease_s: float = DEFAULT_LEASE_S,
        agent: str | None = None,
    ) -> Turn:
        """Open a turn that lives while its lease is renewed. Raises `SessionNotFound`, `InvalidInput`, `Conflict`, and
        `TurnEnded` in a child that ended with its parent."""
        turn_id = turn_id or new_id("turn")
        if not REQUEST_ID.fullmatch(turn_id):
            raise InvalidInput("turn_id must be 1 to 64 of A-Z, a-z, 0-9, _ and -.", param="turn_id")
        if math.isnan(lease_s) or not MIN_LEASE_S <= lease_s <= MAX_LEASE_S:
            raise InvalidInput(f"lease_s must be {MIN_LEASE_S:g} to {MAX_LEASE_S:g} seconds.", param="lease_s")

        def change(tx: Tx) -> Turn:
            _check_child_lives(tx, profile, session_id, agent)
            session = stopping_session(tx, profile, session_id, agent)
            return stopping.open_turn(tx, session, turn_id, lease_s)

        return await self._store.transact(expiring.used(change, self._profiles[profile], session_id))

    async def heartbeat(self, profile: str, turn_id: str, agent: str | None = None) -> Turn:
        """Renew a turn's lease. Raises `TurnNotFound`, `TurnEnded`."""

        def change(tx: Tx) -> Turn:
            _own_turn(tx, profile, turn_id, agent)
            return stopping.renew(tx, profile, turn_id)

        return await self._store.transact(change)

    async def end_turn(
        self, profile: str, turn_id: str, cause: Cause, by: Actor | None, agent: str | None = None
    ) -> Turn:
        """End a turn and withdraw what it still asks; ending it again changes nothing. Raises `TurnNotFound`."""

        def change(tx: Tx) -> Turn:
            turn = _own_turn(tx, profile, turn_id, agent)
            if turn.ended_at is None:
                stopping.end_turn(tx, turn, cause, by)
            return stopping.load_turn(tx, profile, turn_id)

        return await self._store.transact(change)

    # --- notifiers ---------------------------------------------------------------------------

    async def attach(
        self, profile: str, session_id: str, name: str, principal: str | None, lease_s: float | None = None
    ) -> Notifier:
        """An answer client (or callback) can put this session's requests before a person from now on.

        With `lease_s` (2 to 3600 seconds) it counts as gone after so long, unless it is attached again before. Raises
        `InvalidInput`, `SessionNotFound`.
        """
        _check_id(name)
        if lease_s is not None and not MIN_LEASE_S <= lease_s <= MAX_LEASE_S:
            raise InvalidInput(f"lease_s must be {MIN_LEASE_S:g} to {MAX_LEASE_S:g} seconds.", param="lease_s")

        def change(tx: Tx) -> Notifier:
            stopping_session(tx, profile, session_id, None)
            notifier = Notifier(
                profile=profile,
                session_id=session_id,
                name=name,
                principal=principal,
                attached_at=tx.now,
                gone_at=None if lease_s is None else plus(tx.now, lease_s),
            )
            tx.put(notifier)
            return notifier

        return await self._store.transact(change)

    async def detach(self, profile: str, session_id: str, name: str, cause: Cause = "notifier_gone") -> None:
        """It is gone on purpose: its requests are withdrawn unless another way to a person is left. Idempotent.

        `cause` says why it shows nothing any more, one of `ANSWERING_CAUSES`; raises `InvalidInput` for another.
        """
        if cause not in ANSWERING_CAUSES:
            allowed = ", ".join(sorted(ANSWERING_CAUSES))
            raise InvalidInput(
                f"An answering side does not go for the cause {cause}. It gives {allowed}.", param="cause"
            )

        def change(tx: Tx) -> None:
            notifier = tx.get(Notifier, stopping.notifier_key(profile, session_id, name))
            if notifier is not None:
                stopping.notifier_gone(tx, notifier, cause)

        await self._store.transact(change)

    async def dropped(self, profile: str, session_id: str, name: str) -> None:
        """Its connection dropped: it counts as attached for 30 s more."""

        def change(tx: Tx) -> None:
            notifier = tx.get(Notifier, stopping.notifier_key(profile, session_id, name))
            if notifier is not None:
                tx.put(replace(notifier, gone_at=plus(tx.now, NOTIFIER_GRACE_S)))

        await self._store.transact(change)

    # --- checks ------------------------------------------------------------------------------

    def _check_allowed(self, profile: Profile, name: str, declaration: Declaration) -> None:
        kind, agent = declaration.kind, profile.agents.get(name, AgentSettings())
        mode = getattr(profile.approvals, mode_setting(kind))
        harmless = kind in UNATTENDED and mode == "deny"
        if kind not in agent.kinds and kind != "child" and not harmless:
            kinds = ", ".join(f'"{each}"' for each in (*agent.kinds, kind))
            raise KindNotAllowed(
                f"This agent may not declare {kind} sessions. To let it, write kinds = [{kinds}] under "
                f"{_agent_table(profile, name)} in signoff.toml.",
                param="kind",
            )
        place = declaration.destination
        if place is None or agent.destinations is None:
            return
        if not {str(place), place.platform} & set(agent.destinations):
            raise DestinationNotAllowed(
                f"This agent may not ask in {place}: add it to destinations under {_agent_table(profile, name)} in "
                "signoff.toml.",
                param="chat_id",
            )

    def _check_place(self, profile: str, declaration: Declaration) -> None:
        place = declaration.destination
        if place is not None and place.platform not in self._served(profile):
            console = place.platform == "console"
            mend = (
                "`signoff serve` serves the web console, as does `signoff.serve` in a program."
                if console
                else f"Set platforms.{place.platform}."
            )
            served = ", ".join(sorted(self._served(profile))) or "none"
            raise DestinationNotAllowed(
                f"This gateway does not serve {place.platform!r}; it serves {served}. {mend}",
                param="platform",
            )


def _agent_table(profile: Profile, name: str) -> str:
    """The heading in `signoff.toml` under which this agent's settings stand."""
    above = "" if profile.name == "default" else f"profiles.{_toml_key(profile.name)}."
    return f"[{above}agents.{_toml_key(name)}]"


def _toml_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else f'"{name}"'


def _check_child_lives(tx: Tx, profile: str, session_id: str, agent: str | None) -> None:
    """A child that ended with its parent is told why, in whatever it does next; raises `TurnEnded`."""
    session = tx.get(Session, session_key(profile, session_id))
    if session is None or session.kind != "child" or session.closed_at is None:
        return
    if agent is None or session.agent == agent:
        raise TurnEnded(f"Session {session_id} has ended: {session.cause}. Open no turn in it.", cause=session.cause)


def stopping_session(tx: Tx, profile: str, session_id: str, agent: str | None) -> Session:
    """An open session of that agent (any agent's for None), inside a change; raises `SessionNotFound`."""
    session = tx.get(Session, session_key(profile, session_id))
    if session is None or session.closed_at is not None or (agent is not None and session.agent != agent):
        raise SessionNotFound
    return session


def _own_turn(tx: Tx, profile: str, turn_id: str, agent: str | None) -> Turn:
    turn = stopping.load_turn(tx, profile, turn_id)
    if agent is not None:
        session = tx.get(Session, session_key(profile, turn.session_id))
        if session is None or session.agent != agent:
            raise TurnNotFound
    return turn


def _check_id(text: str) -> None:
    if not 1 <= len(text) <= MAX_ID_CHARS or any(ord(c) < 32 for c in text):
        raise InvalidInput(f"An id has 1 to {MAX_ID_CHARS} characters and no control characters.", param="session_id")


def _check_words(declaration: Declaration) -> None:
    """Raise `InvalidInput` for a name in it that is longer than any name is, or that holds control characters."""
    place = declaration.destination
    names = {
        "platform": place.platform if place is not None else None,
        "chat_id": place.chat_id if place is not None else None,
        "thread_id": place.thread_id if place is not None else None,
        "user_id": declaration.user_id,
        "parent": declaration.parent,
        "parent_turn": declaration.parent_turn,
    }
    for param, text in names.items():
        if text is not None and (len(text) > MAX_ID_CHARS or any(ord(c) < 32 for c in text)):
            raise InvalidInput(f"{param} has at most {MAX_ID_CHARS} characters and no control characters.", param=param)

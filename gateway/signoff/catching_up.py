"""Catch-up: after an absence, one message in the place about what ended or is kept since, and what its buttons do.

An absence ends when a platform or the gateway is back that was away for some minutes, or when somebody who may decide
taps or types a command in a place where nobody answered for as long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from signoff.authorize import Allowed, Refused, person_may
from signoff.catch_up_cards import OPEN, WANT_ASKED
from signoff.changes import catching_up as changes
from signoff.changes import sending
from signoff.changes.catching_up import KINDS, Entry, Gathered, Index, Missed, kind_of
from signoff.errors import StoreError
from signoff.model import (
    Actor,
    Answer,
    ApprovalRequest,
    Change,
    Copy,
    Destination,
    Event,
    Note,
    Person,
    Session,
    Tap,
    Turn,
)
from signoff.ports import ChatAdapter, Clock, Store, Tx
from signoff.routing import MAX_PARENTS
from signoff.rows import request_key, session_key
from signoff.settings import Profile
from signoff.timing import wait_until
from signoff.tokens import TokenParts
from signoff.wording import agent_name, t

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Between two looks at the platforms, and the longest sleep: another process may have ended something."""
AWAY_FOR = changes.ABSENT_FOR
"""A platform that was away for so long was an absence of everybody there."""
SETTLE = timedelta(seconds=5)
"""After a platform is back, what ran out meanwhile ends first, so that the one message tells it too."""
PAGE = 500
MOST_READ = 20_000
"""So many events are gathered at a start at most; what lies further back was not told and is in the history."""
KEEP_EVERY = timedelta(minutes=1)
"""How often the place in the event log is written down although nothing was found."""

Listening = Callable[[str, str], bool]
"""Whether an agent of a profile reads the event stream now."""


class _Away(Struct, kw_only=True):
    """How one platform of a profile is."""

    since: datetime | None
    """Since when it is away; None while it works."""
    back_at: datetime | None = None
    """When it came back, while what ran out meanwhile is waited for."""


class _Sign(Struct, frozen=True):
    """Somebody gave a sign of life."""

    profile: str
    place: Destination
    at: datetime


class CatchUps:
    """One task of the gateway, and what taps and commands tell it. `adapters` by profile and platform."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        profiles: Mapping[str, Profile],
        adapters: Mapping[tuple[str, str], ChatAdapter],
        *,
        down: timedelta = timedelta(0),
        listening: Collection[Listening] = (),
        on_defect: Callable[[], None] = lambda: None,
    ) -> None:
        """`down`: how long no gateway was up before this one. `listening` is asked whether an agent reads the stream;
        both that and `adapters` may grow later. `on_defect` is called for each ending or place that had to be passed
        over."""
        self._store = store
        self._clock = clock
        self._profiles = profiles
        self._adapters = adapters
        self._listening = listening
        self._on_defect = on_defect
        self._down_since = clock.now() - down
        self._away: dict[tuple[str, str], _Away] = {}
        self._signs: list[_Sign] = []
        self._seq: dict[str, int] = {}
        """By profile: up to which event everything was gathered or is none of it."""
        self._saved: dict[str, tuple[int, datetime]] = {}
        self._news: set[str] = set()
        self._wake = asyncio.Event()

    # --- told by others ----------------------------------------------------------------------

    def alive(self, profile: str, place: Destination, person: Person) -> None:
        """Somebody tapped or typed a command here."""
        if not isinstance(self._may(profile, person, None), Refused):
            self._signs.append(_Sign(profile, place, self._clock.now()))
            self._wake.set()

    def _heard(self, feed: Sequence[Change]) -> None:
        """What does not concern us is passed over at once, so that only the rest of the log is ever read."""
        for change in feed:
            event = change.event
            if _concerns(event):
                self._news.add(event.profile)
            elif self._seq.get(event.profile) == event.seq - 1:
                self._seq[event.profile] = event.seq

    # --- the loop ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Gather and tell until cancelled."""
        unsubscribe = self._store.subscribe(self._heard)
        self._news |= set(self._profiles)
        try:
            while True:
                self._wake.clear()
                try:
                    await self.round()
                except StoreError as error:
                    log.error("catch-up not gathered: %s", error)
                    await self._clock.sleep_until(self._clock.now() + timedelta(seconds=LOOK_S))
                    continue
                await wait_until(self._clock, self._clock.now() + timedelta(seconds=LOOK_S), self._wake)
        finally:
            unsubscribe()

    async def round(self) -> None:
        """Gather what ended since the last round, then tell those who are back."""
        signs, self._signs = self._signs, []
        news, self._news = self._news, set()
        now = self._clock.now()
        try:
            for profile in news:
                await self.gather(profile)
            for profile in self._seq.keys() - news:
                await self._keep(profile)
            for sign in {(sign.profile, sign.place): sign for sign in signs}.values():
                await self._returned(sign.profile, sign.place, sign.at, None)
        except StoreError:
            self._news |= news
            self._signs = [*signs, *self._signs]
            raise
        for key, adapter in self._adapters.items():
            await self._look(key, adapter, now)

    async def _keep(self, profile: str) -> None:
        if not await self._save(profile, self._seq[profile], ()):
            del self._seq[profile]

    async def _look(self, key: tuple[str, str], adapter: ChatAdapter, now: datetime) -> None:
        """Tell the places of a platform that came back after some minutes."""
        health, away = adapter.health(), self._away.setdefault(key, _Away(since=self._down_since))
        if health.state != "ready":
            away.back_at = None
            if away.since is None:
                away.since = min(health.last_heard_at or now, now)
            return
        if away.since is None:
            return
        if away.back_at is None:
            away.back_at = now
        if away.back_at - away.since >= AWAY_FOR:
            if now < away.back_at + SETTLE:
                return
            await self._back(key, away.since, away.back_at)
        away.since = away.back_at = None

    async def _back(self, key: tuple[str, str], since: datetime, back_at: datetime) -> None:
        profile, platform = key
        await self.gather(profile)
        for place in (await self.index(profile)).places:
            if place is not None and place.platform == platform:
                await self._returned(profile, place, back_at, since)

    async def _returned(self, profile: str, place: Destination, back_at: datetime, away_since: datetime | None) -> None:
        if await self._store.get(Note, changes.place_name(profile, place)) is None:
            return
        change = partial(changes.returned, profile=profile, place=place, back_at=back_at, away_since=away_since)
        try:
            await self._store.transact(change)
        except StoreError:
            raise
        except Exception as error:  # a place's outer edge: the others are told
            self._pass_over(changes.place_name(profile, place), error)

    def _pass_over(self, what: str, error: Exception) -> None:
        self._on_defect()
        log.error("catch_up.passed_over %r", what, exc_info=error)

    # --- gathering ---------------------------------------------------------------------------

    async def index(self, profile: str) -> Index:
        """What is known of a profile's absences."""
        note = await self._store.get(Note, changes.index_name(profile))
        return changes.read_index(note) or Index(seq=0, since=self._down_since)

    async def missed(self, profile: str, place: Destination | None) -> Missed | None:
        """What a place was not told yet, None where there is nothing."""
        return await self._store.transact(partial(changes.untold_in, profile=profile, place=place))

    async def untold(self, profile: str) -> list[Missed]:
        """What is not told yet anywhere in a profile, place by place."""
        found = []
        for place in (await self.index(profile)).places:
            try:
                missed = await self.missed(profile, place)
            except StoreError:
                raise
            except Exception as error:  # as above
                self._pass_over(changes.place_name(profile, place), error)
                continue
            if missed is not None:
                found.append(missed)
        return found

    async def told(self, profile: str) -> list[Copy]:
        """The newest messages of a profile, the newest first."""
        found = [await self._store.get(Copy, name) for name in (await self.index(profile)).told]
        return [copy for copy in reversed(found) if copy is not None]

    async def forget(self, profile: str, place: Destination | None) -> None:
        """A place needs no telling any more."""
        await self._store.transact(partial(changes.forget, profile=profile, place=place))

    async def gather(self, profile: str) -> None:
        """Read on in the profile's log and write down what ended for want of an answer."""
        after = await self._begin(profile)
        while page := await self._store.events(profile, after, limit=PAGE):
            found = [each for event in page if (each := await self._found(event)) is not None]
            if not await self._save(profile, page[-1].seq, found):
                # Another gateway on the same store wrote it down: what that one has is not written twice.
                del self._seq[profile]
                after = await self._begin(profile)
                continue
            after = page[-1].seq
            self._seq[profile] = max(after, self._seq[profile])

    async def _begin(self, profile: str) -> int:
        """Where to read on: where this or an earlier gateway left off."""
        known = self._seq.get(profile)
        if known is not None:
            return known
        least = max(0, await self._store.last_seq(profile) - MOST_READ)
        change = partial(changes.begin, profile=profile, seq=least, since=self._down_since)
        index = await self._store.transact(change)
        self._saved[profile] = (index.seq, self._clock.now())
        self._seq[profile] = max(index.seq, least)
        return self._seq[profile]

    async def _save(self, profile: str, seq: int, found: Sequence[Gathered]) -> bool:
        """Write down what was found and that the log was read so far. False when somebody else wrote it down."""
        saved, at = self._saved[profile]
        now = self._clock.now()
        if seq <= saved or (not found and now - at < KEEP_EVERY):
            return True
        if not await self._store.transact(partial(changes.gather, profile=profile, after=saved, seq=seq, found=found)):
            return False
        self._saved[profile] = (seq, now)
        return True

    async def _found(self, event: Event) -> Gathered | None:
        if not _concerns(event):
            return None
        try:
            row = await self._store.get(ApprovalRequest, request_key(event.profile, event.request_id or ""))
            return await self._gathered(row) if row is not None else None
        except StoreError:
            raise
        except Exception as error:  # a row's outer edge: what ended with it is in the history, and the others are told
            self._pass_over(event.request_id or "", error)
            return None

    async def _gathered(self, row: ApprovalRequest) -> Gathered | None:
        """What is to be told of a request that ended, and where; None where it is nobody's absence."""
        kind = kind_of(row)
        if kind is None or row.decided_at is None:
            return None
        name = row.kept_as if kind == "staged" and row.kept_as else row.request_id
        return Gathered(await self._place(row, kind), Entry(name, kind, row.decided_at))

    async def _place(self, row: ApprovalRequest, kind: str) -> Destination | None:
        """The session's own place; for what has none, where kept actions are asked about, else the fallback place."""
        approvals = self._profiles[row.profile].approvals
        staged = approvals.staged_destination or approvals.fallback_destination
        if kind == "staged" or row.stages is not None:
            return staged
        if row.destinations:
            return row.destinations[0]
        return await self._own_place(row.profile, row.session_id) or staged

    async def _own_place(self, profile: str, name: str | None) -> Destination | None:
        """Where the session is; of a child, where the one above it is."""
        for _ in range(MAX_PARENTS + 1):
            session = await self._store.get(Session, session_key(profile, name)) if name is not None else None
            if session is None or session.destination is not None:
                return session.destination if session is not None else None
            name = session.parent
        return None

    # --- taps --------------------------------------------------------------------------------

    def _may(self, profile: str, person: Person, session: Session | None) -> Allowed | Refused:
        return person_may(self._profiles[profile], person, "decide", session, "button")

    async def tapped(self, copy: Copy, tap: Tap, parts: TokenParts) -> tuple[ApprovalRequest | None, Answer | Refused]:
        """Answer a press on such a message: the request that it is about, and what the person is told."""
        absence = changes.absence_of(copy)
        stands = copy.message_id is None or tap.message_id is None or copy.message_id == tap.message_id
        if not stands or parts.revision >= len(absence.entries):
            return None, Answer(t("tap.unknown"), alert=True)
        entry = absence.entries[parts.revision]
        row = await self._store.get(ApprovalRequest, request_key(copy.profile, entry.request_id))
        if row is None:
            return None, Answer(t("tap.unknown"), alert=True)
        session = await self._store.get(Session, session_key(row.profile, row.session_id))
        allowed = self._may(copy.profile, tap.person, session)
        if isinstance(allowed, Refused):
            return row, allowed
        if tap.message_id is not None and copy.message_id is None:
            await self._store.transact(partial(_learn, copy_id=copy.copy_id, tap=tap))
        if parts.choice == WANT_ASKED:
            told = await self.ask_again(row.profile, row.request_id, allowed.actor)
            return row, Answer(told or t("tap.unknown"))
        if parts.choice == OPEN:
            return row, await self._open(copy, row)
        return row, Answer(t("tap.unknown"), alert=True)

    async def ask_again(self, profile: str, request_id: str, by: Actor) -> str | None:
        """Tell the agent that somebody wants to be asked again; what that person is told. None where the request did
        not end for want of an answer."""
        row = await self._store.transact(partial(changes.ask_again, profile=profile, request_id=request_id, by=by))
        if row is None:
            return None
        here = await self._there(row)
        return t("tap.wanted_told" if here else "tap.wanted_away", agent=agent_name(row))

    async def _there(self, row: ApprovalRequest) -> bool:
        """Whether the agent is known to be there: it reads the stream, or works in that session."""
        if row.agent is not None and any(listens(row.profile, row.agent) for listens in self._listening):
            return True
        now = self._clock.now()
        turns = await self._store.find(Turn, "open_session", session_key(row.profile, row.session_id))
        return any(turn.lease_until > now for turn in turns)

    async def _open(self, copy: Copy, row: ApprovalRequest) -> Answer:
        change = partial(_open, copy_id=copy.copy_id, request_id=row.request_id)
        fresh, comes = await self._store.transact(change)
        if fresh is None or fresh.outcome is not None:
            return Answer(t("tap.listed_none"), lost=True)
        return Answer(t("tap.listed_opened" if comes else "tap.listed_stands", id=fresh.short_id))


def _concerns(event: Event) -> bool:
    return event.type == "approval.resolved" and event.data.get("outcome") in KINDS


def _learn(tx: Tx, copy_id: str, tap: Tap) -> None:
    copy = tx.get(Copy, copy_id)
    if copy is not None and tap.message_id is not None:
        sending.learn(tx, copy, tap.message_id, tap.order)


def _open(tx: Tx, copy_id: str, request_id: str) -> tuple[ApprovalRequest | None, bool]:
    copy = tx.get(Copy, copy_id)
    return changes.open_kept(tx, copy, request_id) if copy is not None else (None, False)

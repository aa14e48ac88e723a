"""One hook's deliveries, one after the other, while this gateway holds the hook's place."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from signoff.errors import StoreError
from signoff.hooks import places
from signoff.hooks.payloads import HOOK_OF
from signoff.hooks.places import HELD_FOR, HOLD_EVERY, Place
from signoff.hooks.posting import Poster
from signoff.hooks.reading import PAGE, load
from signoff.model import Event, replace
from signoff.ports import Clock, Store
from signoff.settings import HookSettings
from signoff.timing import wait_until

log = logging.getLogger("signoff.hooks")

BACKOFF_S = (5.0, 30.0, 120.0, 300.0, 900.0, 1800.0)
"""Between two tries, up to a tenth more; the last one again and again."""
JITTER = 0.1
"""So that receivers that came back are not told by many gateways in the same moment."""
MOST_PAUSE_S = 3600.0
"""A receiver that asks for a longer pause (`Retry-After`) is tried again after this long."""
GIVE_UP_AFTER = timedelta(hours=24)
IDLE = timedelta(seconds=15)
"""The log is read so often though nothing was heard: another process may have written."""
RENEW_EVERY = HELD_FOR / 2
STORE_RETRY = timedelta(seconds=5)
ASK_AGAIN = timedelta(seconds=1)
"""A place that another gateway holds is asked for again after this long at least."""
MISSING = "its place is missing in the store; it is put back with the next event, or within an hour"
ELSEWHERE = "another gateway tells it, and its log says why"
SAVE_EVERY = 1000
"""Events that are nothing for a hook are passed again after a restart, at most so many."""


def chance() -> float:
    """From 0 to 1, each as likely."""
    return secrets.randbelow(1001) / 1000


class _TakenOver(Exception):
    """Another gateway holds the place now."""


class Line:
    """One hook's deliveries. `begin` gives it its place; then `run` as a task."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        profile: str,
        name: str,
        hook: HookSettings,
        *,
        holder: str,
        counted: Callable[[str, str, str], None],
        backoff_s: Sequence[float],
        within_s: float,
        chance: Callable[[], float],
    ) -> None:
        self.profile, self.name = profile, name
        self.place = Place(seq=0, name="")
        self._store, self._clock, self._hook = store, clock, hook
        self._holder, self._alone = holder, False
        self._counted = partial(counted, profile, name)
        self._backoff_s, self._within_s, self._chance = backoff_s, within_s, chance
        self._wake = asyncio.Event()
        self._saved_seq = 0
        self._detail = ""
        self._holds_until = self._others_until = clock.now()
        """By this machine's clock: until when this gateway tells the receiver, or another one does."""
        self._hold_at = clock.now()
        """When it is held next, also with nothing to tell."""

    def wake(self) -> None:
        """There may be something to tell."""
        self._wake.set()

    def begin(self, place: Place, *, alone: bool) -> None:
        """Where it goes on. `alone`: no other gateway has the store's lock."""
        self.place, self._alone = place, alone

    def health(self, last_seq: int | None, stored: Place | None) -> dict[str, Any]:
        """Facts for an operator. `last_seq` is the newest event of the profile, None where it is not known; `stored` is
        the place as the store has it, so that what another gateway meets is told too. None: it is missing there."""
        place = self.place if stored is None else stored
        seq = max(place.seq, self.place.seq)  # what is nothing for this hook is passed, and saved now and then
        detail = ""
        if stored is None:
            detail = MISSING
        elif stored.failing_since is not None:
            detail = self._detail if stored.holder == self._holder else ELSEWHERE
        return {
            "state": "failing" if detail else "ok",
            "seq": seq,
            "behind": None if last_seq is None else max(0, last_seq - seq),
            "failing_since": place.failing_since,
            "parked": place.parked,
            "detail": detail,
        }

    async def run(self) -> None:
        """Deliver what there is and what comes, until cancelled."""
        poster = Poster(self._hook, self._clock, within_s=self._within_s)
        self._saved_seq = self.place.seq
        try:
            while True:
                await self._round(poster)
        finally:
            await poster.aclose()
            await self._release()

    async def _round(self, poster: Poster) -> None:
        self._wake.clear()
        if self._clock.now() < self._others_until:  # what there is then is read when it is this gateway's turn
            return await self._clock.sleep_until(self._others_until)
        try:
            if self._clock.now() >= self._hold_at:
                await self.hold()
            more = await self._page(poster)
        except _TakenOver as error:
            log.debug("%s", error)
            return None
        except StoreError as error:
            log.error("hook.unread %s/%s: %s", self.profile, self.name, error)
            return await self._clock.sleep_until(self._clock.now() + STORE_RETRY)
        if not more:
            await wait_until(self._clock, min(self._clock.now() + IDLE, self._hold_at), self._wake)
        return None

    async def _page(self, poster: Poster) -> bool:
        """Deliver one page of the log; whether there may be more."""
        page = await self._store.events(self.profile, self.place.seq, limit=PAGE)
        for event in page:
            if HOOK_OF.get(event.type) in self._hook.events:
                await self.hold()
                if event.seq > self.place.seq:  # else another gateway told it meanwhile
                    await self._tell(poster, event)
            else:
                self.place = replace(self.place, seq=max(self.place.seq, event.seq))
        if self.place.seq - self._saved_seq >= SAVE_EVERY:
            await self.hold()
            await self._save(self.place)
        return len(page) == PAGE

    # --- holding the place -----------------------------------------------------------------------

    async def hold(self) -> None:
        """Be the one gateway that tells this receiver, for as long as a try may take at least.

        Raises `_TakenOver` where another one is, `StoreError`.
        """
        now = self._clock.now()
        if now + timedelta(seconds=self._within_s) < self._holds_until and now < self._hold_at:
            return
        change = partial(
            places.hold,
            profile=self.profile,
            hook=self.name,
            holder=self._holder,
            last=self.place,
            alone=self._alone,
        )
        found, missing = await self._store.transact(change)
        self._missing(missing)
        # What is nothing for this hook may have been passed here and not been saved.
        self.place = replace(found, seq=max(found.seq, self.place.seq))
        self._hold_at = now + HOLD_EVERY
        if found.holder != self._holder:
            raise self._lost(now, found.held_until)
        self._holds_until = now + HELD_FOR

    def _missing(self, missing: bool) -> None:
        if missing:
            log.error(
                "hook.missing %s/%s: its place in the log was deleted; it is put back, at event %d",
                self.profile,
                self.name,
                self.place.seq,
            )

    def _lost(self, now: datetime, until: datetime | None = None) -> _TakenOver:
        """Another gateway holds the place, as far as is known `until` then. It is asked for again at that time, so that
        a gateway that died costs no more than that; clocks that differ cost some questions more."""
        latest = now + HELD_FOR
        self._holds_until = now
        self._others_until = latest if until is None else min(latest, max(until, now + ASK_AGAIN))
        return _TakenOver(f"another gateway delivers to {self.profile}/{self.name} now")

    async def _release(self) -> None:
        """Let the next gateway go on at once; without it, it waits until the time is over."""
        change = partial(places.release, profile=self.profile, hook=self.name, holder=self._holder)
        try:
            await self._store.transact(change)
        except StoreError as error:
            log.warning("hook.held %s/%s: %s", self.profile, self.name, error)

    async def _pause(self, pause_s: float) -> None:
        """Wait for the next try, and go on holding the place."""
        until = self._clock.now() + timedelta(seconds=pause_s)
        while (now := self._clock.now()) < until:
            await self._clock.sleep_until(min(until, now + RENEW_EVERY))
            await self.hold()

    # --- telling ---------------------------------------------------------------------------------

    async def _tell(self, poster: Poster, event: Event) -> None:
        body = await self._body(event)
        if body is None:
            await self._save(replace(self.place, seq=event.seq))
            return self._counted("skipped")
        tries = 0
        while True:
            await self.hold()
            posted = await poster.post(f"msg_{self.place.name}_{event.seq}", body)
            if posted.ok:
                await self._delivered(event)
                return self._counted("delivered")
            given_up = await self._failed(event, posted.detail)
            self._counted("failed")
            if given_up:
                return self._counted("parked")
            await self._pause(self._pause_s(tries, posted.retry_after_s))
            tries += 1

    def _pause_s(self, tries: int, wanted_s: float | None) -> float:
        """How long until the next try: never sooner than the receiver wants it, within reason."""
        own_s = self._backoff_s[min(tries, len(self._backoff_s) - 1)]
        pause_s = max(own_s, min(wanted_s or 0.0, MOST_PAUSE_S))
        return pause_s * (1 + JITTER * self._chance())

    async def _body(self, event: Event) -> bytes | None:
        """What is posted; None where it cannot be told."""
        try:
            payload = await load(self._store, event)
            return None if payload is None else msgspec.json.encode(payload)
        except StoreError:
            raise
        except Exception:  # one event's outer edge: what cannot be masked is not told, and the next one is
            log.exception("hook.skipped %s/%s: event %d", self.profile, self.name, event.seq)
            return None

    async def _delivered(self, event: Event) -> None:
        if self.place.failing_since is not None:
            log.info("hook.recovered %s/%s: %d events were given up", self.profile, self.name, self.place.parked)
        await self._save(replace(self.place, seq=event.seq, failing_since=None, parked=0))

    async def _failed(self, event: Event, detail: str) -> bool:
        """A try failed; whether the event is given up."""
        self._detail = detail
        now = self._clock.now()
        since = self.place.failing_since
        if since is None:
            log.warning("hook.failing %s/%s: %s; it is tried again", self.profile, self.name, detail)
            await self._save(replace(self.place, failing_since=now))
            return False
        if now - since < GIVE_UP_AFTER or now - event.at < GIVE_UP_AFTER:
            return False
        parked = replace(self.place, seq=event.seq, parked=self.place.parked + 1)
        await self._save(parked, None if self.place.parked else self._alarm(event, since, detail))
        return True

    def _alarm(self, event: Event, since: datetime, detail: str) -> Event:
        """What an operator must look at. Told once for a receiver that is gone, however much it misses."""
        log.error("hook.failed %s/%s since %s: %s; events are given up", self.profile, self.name, since, detail)
        data = {"hook": self.name, "seq": event.seq, "since": since.isoformat(), "detail": detail}
        return Event(profile=self.profile, type="hook.failed", at=self._clock.now(), data=data)

    async def _save(self, place: Place, failed: Event | None = None) -> None:
        """Keep the place. Raises `_TakenOver` where another gateway holds it, `StoreError`."""
        now = self._clock.now()
        change = partial(places.save, profile=self.profile, hook=self.name, place=place, failed=failed)
        kept, missing = await self._store.transact(change)
        self._missing(missing)
        if kept is None:
            raise self._lost(now)
        self._holds_until = now + HELD_FOR
        self.place, self._saved_seq = kept, kept.seq

"""Signed webhooks, from the event log to their receivers: at least once, in order for each hook, and never in the way.

The log is the outbox. Each hook has a place in it that is saved after each delivery, so a gateway that was killed sends
at most its last message again, under the same id. A receiver that cannot be reached is tried again and again, later and
later. What is a day old and failed all that time is given up, so a receiver is at most a day behind.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from signoff.errors import StoreError
from signoff.hooks import places
from signoff.hooks.payloads import HOOK_OF
from signoff.hooks.places import Place
from signoff.hooks.posting import WITHIN_S, Poster
from signoff.hooks.reading import PAGE, load
from signoff.model import Change, Event, replace
from signoff.ports import Clock, Store
from signoff.settings import HookSettings, Profile
from signoff.timing import wait_until

log = logging.getLogger("signoff.hooks")

BACKOFF_S = (5.0, 30.0, 120.0, 300.0, 900.0, 1800.0)
"""Between two tries; the last one again and again."""
GIVE_UP_AFTER = timedelta(hours=24)
IDLE = timedelta(seconds=15)
"""The log is read so often though nothing was heard: another process may have written."""
STORE_RETRY = timedelta(seconds=5)
SAVE_EVERY = 1000
"""Events that are nothing for a hook are passed again after a restart, at most so many."""


def _uncounted(_profile: str, _hook: str, _outcome: str) -> None:
    """Nobody counts."""


class Deliveries:
    """All webhooks of one gateway. `begin`, then `run` as a task."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        profiles: Mapping[str, Profile],
        *,
        counted: Callable[[str, str, str], None] = _uncounted,
        backoff_s: Sequence[float] = BACKOFF_S,
        within_s: float = WITHIN_S,
    ) -> None:
        """`counted` is told profile, hook and `delivered`, `failed`, `parked` or `skipped`."""
        self._store, self._clock, self._profiles = store, clock, profiles
        self._lines = [
            Line(store, clock, profile, name, hook, counted=counted, backoff_s=backoff_s, within_s=within_s)
            for profile, settings in profiles.items()
            for name, hook in settings.hooks.items()
        ]

    async def begin(self) -> None:
        """Find every hook's place; a new hook begins now. Raises `StoreError`."""
        for profile, settings in self._profiles.items():
            names = {hook: secrets.token_urlsafe(12) for hook in settings.hooks}
            last_seq = await self._store.last_seq(profile) if names else 0
            change = partial(places.begin, profile=profile, hooks=names, last_seq=last_seq)
            found = await self._store.transact(change)
            for line in self._lines:
                if line.profile == profile:
                    line.place = found[line.name]

    async def run(self) -> None:
        """Deliver until cancelled; at once done where no hook is configured."""
        unsubscribe = self._store.subscribe(self._heard)
        try:
            async with asyncio.TaskGroup() as group:
                for line in self._lines:
                    group.create_task(line.run(), name=f"hook-{line.profile}-{line.name}")
        finally:
            unsubscribe()

    def health(self) -> dict[str, dict[str, Any]]:
        """How each hook is, by `profile/name`."""
        return {f"{line.profile}/{line.name}": line.health() for line in self._lines}

    def _heard(self, changes: Sequence[Change]) -> None:
        for line in self._lines:
            if any(change.event.profile == line.profile for change in changes):
                line.wake()


class Line:
    """One hook's deliveries, one after the other."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        profile: str,
        name: str,
        hook: HookSettings,
        *,
        counted: Callable[[str, str, str], None],
        backoff_s: Sequence[float],
        within_s: float,
    ) -> None:
        self.profile, self.name = profile, name
        self.place = Place(seq=0, name="")
        self._store, self._clock, self._hook = store, clock, hook
        self._counted = partial(counted, profile, name)
        self._backoff_s, self._within_s = backoff_s, within_s
        self._wake = asyncio.Event()
        self._saved_seq = 0
        self._detail = ""

    def wake(self) -> None:
        """There may be something to tell."""
        self._wake.set()

    def health(self) -> dict[str, Any]:
        """Facts for an operator."""
        since = self.place.failing_since
        return {
            "state": "ok" if since is None else "failing",
            "seq": self.place.seq,
            "failing_since": since,
            "parked": self.place.parked,
            "detail": "" if since is None else self._detail,
        }

    async def run(self) -> None:
        """Deliver what there is and what comes, until cancelled."""
        poster = Poster(self._hook, self._clock, within_s=self._within_s)
        self._saved_seq = self.place.seq
        try:
            while True:
                self._wake.clear()
                try:
                    more = await self._page(poster)
                except StoreError as error:
                    log.error("hook.unread %s/%s: %s", self.profile, self.name, error)
                    await self._clock.sleep_until(self._clock.now() + STORE_RETRY)
                    continue
                if not more:
                    await wait_until(self._clock, self._clock.now() + IDLE, self._wake)
        finally:
            await poster.aclose()

    async def _page(self, poster: Poster) -> bool:
        """Deliver one page of the log; whether there may be more."""
        page = await self._store.events(self.profile, self.place.seq, limit=PAGE)
        for event in page:
            if HOOK_OF.get(event.type) in self._hook.events:
                await self._tell(poster, event)
            else:
                self.place = replace(self.place, seq=event.seq)
        if self.place.seq - self._saved_seq >= SAVE_EVERY:
            await self._save(self.place)
        return len(page) == PAGE

    async def _tell(self, poster: Poster, event: Event) -> None:
        body = await self._body(event)
        if body is None:
            await self._save(replace(self.place, seq=event.seq))
            return self._counted("skipped")
        tries = 0
        while True:
            posted = await poster.post(f"msg_{self.place.name}_{event.seq}", body)
            if posted.ok:
                await self._delivered(event)
                return self._counted("delivered")
            given_up = await self._failed(event, posted.detail)
            self._counted("failed")
            if given_up:
                return self._counted("parked")
            pause_s = self._backoff_s[min(tries, len(self._backoff_s) - 1)]
            tries += 1
            await self._clock.sleep_until(self._clock.now() + timedelta(seconds=pause_s))

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
        change = partial(places.save, profile=self.profile, hook=self.name, place=place, failed=failed)
        await self._store.transact(change)
        self.place, self._saved_seq = place, place.seq

"""Signed webhooks, from the event log to their receivers: at least once, in order for each hook, and never in the way.

The log is the outbox. Each hook has a place in it that is saved after each delivery, so a gateway that was killed sends
at most its last message again, under the same id. Of several gateways on one store one at a time tells a receiver. One
that cannot be reached is tried again and again, later and later. What is a day old and failed all that time is given
up, so a receiver is at most a day behind.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from signoff.errors import StoreError
from signoff.hooks import places
from signoff.hooks.lines import BACKOFF_S, GIVE_UP_AFTER, Line, chance
from signoff.hooks.places import Place
from signoff.hooks.posting import WITHIN_S
from signoff.model import Change, Note
from signoff.ports import Clock, Store
from signoff.settings import Profile

__all__ = ["BACKOFF_S", "GIVE_UP_AFTER", "Deliveries"]

log = logging.getLogger("signoff.hooks")

FORGET_EVERY = timedelta(hours=1)
"""Places that nobody has held for `places.KEPT_FOR` are looked for so often."""


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
        chance: Callable[[], float] = chance,
    ) -> None:
        """`counted` is told profile, hook and `delivered`, `failed`, `parked` or `skipped`; `chance` gives from 0 to 1
        how much of the jitter a pause has."""
        self._store, self._clock, self._profiles = store, clock, profiles
        self._alone = False
        holder = secrets.token_urlsafe(12)
        self._lines = [
            Line(
                store,
                clock,
                profile,
                name,
                hook,
                holder=holder,
                counted=counted,
                backoff_s=backoff_s,
                within_s=within_s,
                chance=chance,
            )
            for profile, settings in profiles.items()
            for name, hook in settings.hooks.items()
        ]

    async def begin(self, *, alone: bool = False) -> None:
        """Find every hook's place; a new hook begins now. `alone`: this gateway has the store's lock, so whoever held a
        place under that lock before is gone and is not waited for. Raises `StoreError`."""
        self._alone = alone
        for profile, settings in self._profiles.items():
            names = {hook: secrets.token_urlsafe(12) for hook in settings.hooks}
            last_seq = await self._store.last_seq(profile) if names else 0
            change = partial(places.begin, profile=profile, hooks=names, last_seq=last_seq, alone=alone)
            found, gone = await self._store.transact(change)
            _forgotten(profile, gone)
            for line in self._lines:
                if line.profile == profile:
                    line.begin(found[line.name], alone=alone)

    async def run(self) -> None:
        """Deliver until cancelled, and forget the places of hooks that no gateway has any more."""
        unsubscribe = self._store.subscribe(self._heard)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forget(), name="hooks-forgotten")
                for line in self._lines:
                    group.create_task(line.run(), name=f"hook-{line.profile}-{line.name}")
        finally:
            unsubscribe()

    async def health(self) -> dict[str, dict[str, Any]]:
        """How each hook is, by `profile/name`, whichever gateway tells it; how far it is behind where the store can
        tell."""
        newest = {profile: await self._newest(profile) for profile in {line.profile for line in self._lines}}
        return {
            f"{line.profile}/{line.name}": line.health(newest[line.profile], await self._stored(line))
            for line in self._lines
        }

    async def _newest(self, profile: str) -> int | None:
        try:
            return await self._store.last_seq(profile)
        except StoreError:
            return None

    async def _stored(self, line: Line) -> Place | None:
        """The line's place as the store has it, or as it is known here while the store cannot tell."""
        try:
            return places.read(await self._store.get(Note, places.note_name(line.profile, line.name)))
        except StoreError:
            return line.place

    async def _forget(self) -> None:
        """Look again and again, since a gateway that has no hook any more may run for long."""
        while True:
            await self._clock.sleep_until(self._clock.now() + FORGET_EVERY)
            for profile, settings in self._profiles.items():
                change = partial(places.forget, profile=profile, hooks=frozenset(settings.hooks), alone=self._alone)
                try:
                    _forgotten(profile, await self._store.transact(change))
                except StoreError as error:
                    log.warning("hook.unread %s: %s", profile, error)

    def _heard(self, changes: Sequence[Change]) -> None:
        for line in self._lines:
            if any(change.event.profile == line.profile for change in changes):
                line.wake()


def _forgotten(profile: str, hooks: Sequence[str]) -> None:
    for hook in hooks:
        log.info("hook.forgotten %s/%s: no gateway has it in its settings any more", profile, hook)

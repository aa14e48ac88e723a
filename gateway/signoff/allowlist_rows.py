"""Allowlists whose lines are rows, for a store that several gateways share: each judges by the same ones.

The lines are kept in memory and follow the change feed, so that judging never asks the store. One that is removed, by
whichever gateway, stops admitting as soon as the feed tells of it, without a further read. No file is followed: the
profile's `allowlist.toml` is imported once, at the first start on a store that never had a line of that profile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from msgspec import Struct

from signoff.allowlist_file import KEYS, AllowlistError, AllowlistFile, Entries, Mark, allowlist_path, entry_of
from signoff.allowlisting import Allowlisting
from signoff.changes import allowlist
from signoff.changes.allowlist import Changed, Line
from signoff.errors import StoreError
from signoff.model import Actor, AllowlistEntry, Change, Grant, replace
from signoff.outages import TOLD
from signoff.policy.allow import Allowlist
from signoff.ports import Clock, Store
from signoff.settings import Profile
from signoff.timing import wait_until

log = logging.getLogger(__name__)

READ_EVERY = timedelta(seconds=10)
"""How often the rows are read although the feed told of nothing, and the files looked at."""
TRY_AGAIN = timedelta(seconds=1)
"""How soon after the store failed."""
MOST_UNREAD = timedelta(seconds=10)
"""So long after a read was begun, none having come to its end since, no line admits anything until one does: another
gateway may have removed it meanwhile, and the feed may be as far away as the rows are."""
MANY = 100
"""A change of more lines is kept off the event loop."""
FIRST_START = Actor(type="system", name="allowlist.toml")
"""Who added the lines that the first start imported."""


class Standing(Struct, frozen=True, kw_only=True):
    """A line as it is listed: an operator's, or that of an "Always" (`grant_id`, which is then its id too)."""

    id: str
    list: str
    text: str
    """The text itself, with any secret in it: for operators, as the file is."""
    grant_id: str | None = None
    source: str = ""
    """The file it was imported from."""
    by: Actor
    added_at: datetime
    removed_at: datetime | None = None
    removed_by: Actor | None = None


def of_entry(entry: AllowlistEntry) -> Standing:
    """An operator's line."""
    return Standing(
        id=entry.entry_id,
        list=entry.list,
        text=entry.text,
        source=entry.source,
        by=entry.by,
        added_at=entry.created_at,
        removed_at=entry.removed_at,
        removed_by=entry.removed_by,
    )


def of_grant(grant: Grant) -> Standing:
    """The line of an "Always" on a command."""
    return Standing(
        id=grant.grant_id,
        list="commands",
        text=entry_of(grant.exact or ""),
        grant_id=grant.grant_id,
        by=grant.by,
        added_at=grant.created_at,
        removed_at=grant.revoked_at,
        removed_by=grant.revoked_by,
    )


async def stored(store: Store, profile: str, *, removed: bool = False) -> list[Standing]:
    """The lines of a profile, operators' first; `removed` adds those that stood there once, too."""
    entries = await store.find(AllowlistEntry, "profile" if removed else "live_profile", profile)
    given = await store.find(Grant, "profile" if removed else "live_profile", profile)
    return [*map(of_entry, entries), *(of_grant(grant) for grant in given if grant.exact is not None)]


async def admitted(store: Store, profile: str) -> Allowlist:
    """What the operators' lines of a profile admit. Grants speak for themselves."""
    return _allowlist(_standing(await store.find(AllowlistEntry, "live_profile", profile), profile))


def _standing(found: Sequence[AllowlistEntry], profile: str) -> list[AllowlistEntry]:
    """The lines among these that stand there. A row that was written by hand may say otherwise than its columns."""
    return [entry for entry in found if entry.profile == profile and entry.removed_at is None]


def _allowlist(entries: Sequence[AllowlistEntry]) -> Allowlist:
    commands, unattended = ([each.text for each in entries if each.list == name] for name in KEYS)
    return Allowlist(commands, unattended)


def lines_of(entries: Entries) -> list[Line]:
    """The lines of a file."""
    return [Line(list=name, text=text) for name in KEYS for text in getattr(entries, name)]


class AllowlistRows:
    """Follows the rows. `run` is one task of the gateway.

    A profile's new list takes effect by a new profile in `profiles`, which everything that judges looks up.
    """

    def __init__(self, store: Store, clock: Clock, profiles: dict[str, Profile], state_dir: Path) -> None:
        self._store, self._clock, self._profiles = store, clock, profiles
        self._files = {name: AllowlistFile(allowlist_path(state_dir, name)) for name in profiles}
        self._marks: dict[str, Mark] = {}
        self._entries: dict[str, dict[str, AllowlistEntry]] = {name: {} for name in profiles}
        self._heard = dict.fromkeys(profiles, 0)
        """So many commits that touched a profile's lines were told of."""
        self._behind: set[str] = set()
        self._failing: dict[str, StoreError] = {}
        """Why a profile's lines cannot be read, as it was told."""
        self._unread_since: dict[str, datetime] = {}
        """When the first read began of those that did not come to their end."""
        self._shut: set[str] = set()
        """Profiles whose lines admit nothing until they are read."""
        self._woken = asyncio.Event()

    async def begin(self) -> None:
        """Read every profile's lines, and import its file into a store that never had one. Raises `StoreError`."""
        self._store.subscribe(self.heard)  # for as long as the store is open: a removal must never be missed
        for name in self._files:
            await self._read(name)
            await self._look(name, first=not self._entries[name])

    def heard(self, changes: Sequence[Change]) -> None:
        """A commit's changes: what was removed admits nothing from here on; what was added is read."""
        touched: set[str] = set()
        lost: set[str] = set()
        for change in changes:
            kind, name = change.event.type, change.event.profile
            if kind not in {"allowlist.added", "allowlist.removed"} or name not in self._entries:
                continue
            touched.add(name)
            if kind == "allowlist.removed":
                self._entries[name].pop(str(change.event.data.get("entry_id")), None)
                lost.add(name)
        for name in touched:
            self._heard[name] += 1
            self._behind.add(name)
            self._woken.set()
        for name in lost:
            self._serve(name)

    async def run(self) -> None:
        """Follow the rows until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_up())
            tasks.create_task(self._keep_safe())

    async def _keep_safe(self) -> None:
        """Beside the reads, since one may hang."""
        while True:
            now = self._clock.now()
            for name, since in self._unread_since.items():
                if now - since >= MOST_UNREAD and name not in self._shut:
                    self._shut.add(name)
                    self._serve(name)
                    why = self._failing.get(name, "no answer")
                    text = "profile %s: no line of its allowlist counts until it can be read: %s"
                    log.error(text, name, why, extra=TOLD)
            await self._clock.sleep_until(now + TRY_AGAIN)

    async def _keep_up(self) -> None:
        while True:
            pause = TRY_AGAIN if self._behind and not self._woken.is_set() else READ_EVERY
            await wait_until(self._clock, self._clock.now() + pause, self._woken)
            told = self._woken.is_set()
            self._woken.clear()
            for name in tuple(self._behind) if told else tuple(self._files):
                await self._follow(name, look=not told)

    async def lines(self, profile: str, *, removed: bool = False) -> list[Standing]:
        """The lines of a profile, read from the store; `removed` adds those that stood there once, too."""
        return await stored(self._store, profile, removed=removed)

    async def change(
        self,
        profile: str,
        add: Sequence[Line],
        remove: Sequence[str],
        by: Actor,
        *,
        source: str = "",
        again: bool = True,
    ) -> Changed:
        """Add lines and remove others by their ids in one commit, as `changes.allowlist.change` does; this gateway
        judges by it when this returns, and the others once the feed tells them. Raises `InvalidInput`."""
        add = allowlist.checked(add)
        work = partial(
            allowlist.change, profile=profile, add=add, remove=tuple(remove), by=by, source=source, again=again
        )
        changed = await self._store.transact(work, bulk=len(add) + len(remove) > MANY)
        await self._follow(profile, look=False)
        return changed

    async def _follow(self, name: str, *, look: bool) -> None:
        """Read a profile's lines. Where the store fails, what is known stays in force for a while and is read again
        soon: what the feed told was removed is not among it any more."""
        self._behind.discard(name)
        try:
            await self._read(name)
            if look:
                await self._look(name, first=False)
            if self._failing.pop(name, None) is not None:
                log.info("the allowlist of profile %s is read again", name)
        except StoreError as error:
            if name not in self._failing or self._failing[name].message != error.message:
                log.error("the allowlist of profile %s could not be read: %s", name, error)
            self._failing[name] = error
            self._behind.add(name)

    async def _read(self, name: str) -> None:
        """Serve what stands in the store; once more where the feed told of a change while it was read."""
        self._unread_since.setdefault(name, self._clock.now())
        while True:
            heard = self._heard[name]
            found = await self._store.find(AllowlistEntry, "live_profile", name)
            if self._heard[name] == heard:
                break
        self._unread_since.pop(name, None)
        entries = {entry.entry_id: entry for entry in _standing(found, name)}
        if entries != self._entries[name] or name in self._shut:
            self._shut.discard(name)
            self._entries[name] = entries
            self._serve(name)

    def _serve(self, name: str) -> None:
        """Judge by the lines that are known from now on."""
        served = _allowlist(() if name in self._shut else tuple(self._entries[name].values()))
        profile = self._profiles[name]
        now = profile.allowlist
        if (now.commands, now.unattended_commands) != (served.commands, served.unattended_commands):
            self._profiles[name] = replace(profile, allowlist=served)

    async def _look(self, name: str, *, first: bool) -> None:
        """Tell an operator of a file with lines that count for nothing; at the first start import it instead."""
        file = self._files[name]
        mark = file.mark()
        if mark == self._marks.get(name, Mark()):
            return
        self._marks[name] = mark
        try:
            entries = await asyncio.to_thread(file.read)
        except AllowlistError as error:
            log.warning("profile %s: %s It is not followed: the store has the allowlist.", name, error)
            return
        for warning in entries.warnings:
            log.warning("%s", warning)
        if first and await self._imported(name, lines_of(entries)):
            return
        known = {(line.list, line.text) for line in await self.lines(name)}
        missing = sum((line.list, line.text) not in known for line in lines_of(entries))
        if missing:
            log.warning(
                "profile %s: %s is not followed, since the store has the allowlist. Lines in it that the store does "
                "not have: %d; `signoff allowlist import` shows them.",
                name,
                file.path,
                missing,
            )

    async def _imported(self, name: str, lines: list[Line]) -> bool:
        """Whether these lines came into a store that never had one of this profile, not even an "Always"."""
        if not lines or await self.lines(name, removed=True):
            return False
        source = str(self._files[name].path)
        work = partial(allowlist.first, profile=name, add=allowlist.checked(lines), by=FIRST_START, source=source)
        changed = await self._store.transact(work, bulk=len(lines) > MANY)
        await self._read(name)
        if changed is None:
            return False
        log.warning(
            "profile %s: %s was imported into the store, which had no line (%d now). From now on the store has the "
            "allowlist, which `signoff allowlist` changes; the file is not followed.",
            name,
            source,
            len(changed.added),
        )
        return True


def follower(store: Store, clock: Clock, profiles: dict[str, Profile], state_dir: Path) -> Allowlisting | AllowlistRows:
    """What keeps judgement up to date with the allowlists: rows where gateways share the store, else each profile's
    file."""
    kind = AllowlistRows if store.shared else Allowlisting
    return kind(store, clock, profiles, state_dir)

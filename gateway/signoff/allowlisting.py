"""Keeps each profile's allowlist file and its "Always" grants the same, and judgement up to date with the file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec

from signoff.allowlist_file import AllowlistError, AllowlistFile, Entries, Mark, allowlist_path, entry_of
from signoff.changes import grants
from signoff.errors import StoreError
from signoff.model import Actor, Change, Grant, replace
from signoff.policy.allow import Allowlist
from signoff.ports import Clock, Store, Tx
from signoff.rows import joined, key_of
from signoff.settings import Profile
from signoff.timing import wait_until

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(seconds=0.25)
"""How often the files are looked at; judging itself never asks the disk."""
TRY_AGAIN = timedelta(seconds=30)
"""After a file could not be written, or the store failed, the next try comes so much later."""
BY_HAND = Actor(type="system", name="allowlist.toml")
"""Who ended a grant whose line an operator took out of the file."""


class Allowlisting:
    """Watches the files and the grants. `run` is one task of the gateway.

    A profile's new list takes effect by a new profile in `profiles`, which everything that judges looks up.
    """

    def __init__(self, store: Store, clock: Clock, profiles: dict[str, Profile], state_dir: Path) -> None:
        self._store, self._clock, self._profiles = store, clock, profiles
        self._files = {name: AllowlistFile(allowlist_path(state_dir, name)) for name in profiles}
        self._marks: dict[str, Mark] = {}
        self._told: dict[str, tuple[str, ...]] = {}
        self._behind: set[str] = set()
        """Profiles whose grants changed since their file was last made the same."""
        self._ended: dict[str, set[str]] = {name: set() for name in profiles}
        """Grants that ended since then, by id."""
        self._woken = asyncio.Event()

    def path(self, profile: str) -> Path:
        """Where the file of a profile stands."""
        return self._files[profile].path

    async def begin(self) -> None:
        """Read every file and settle what changed while no gateway was up. Raises `StoreError`."""
        for name in self._files:
            every = await self._store.find(Grant, "profile", name)
            self._ended[name] |= {grant.grant_id for grant in every if grant.filed and grant.revoked_at is not None}
            await self._settle(name)

    def heard(self, changes: Sequence[Change]) -> None:
        """A commit's changes: those of grants are written to the files."""
        for change in changes:
            kind, name = change.event.type, change.event.profile
            if kind not in {"grant.created", "grant.revoked"} or name not in self._files:
                continue
            if kind == "grant.revoked":
                self._ended[name].add(str(change.event.data.get("grant_id")))
            self._behind.add(name)
            self._woken.set()

    async def run(self) -> None:
        """Follow files and grants until cancelled."""
        unsubscribe = self._store.subscribe(self.heard)
        try:
            while True:
                await self._round()
                await wait_until(self._clock, self._clock.now() + LOOK_EVERY, self._woken)
                self._woken.clear()
        finally:
            unsubscribe()

    async def _round(self) -> None:
        for name, file in self._files.items():
            if name not in self._behind and file.mark() == self._marks.get(name):
                continue
            self._behind.discard(name)
            try:
                await self._settle(name)
            except StoreError as error:
                log.error("the allowlist of profile %s could not be compared with its grants: %s", name, error)
                self._later(name)

    def _later(self, name: str) -> None:
        """Try again after a while."""

        def again() -> None:
            self._behind.add(name)
            self._woken.set()

        asyncio.get_running_loop().call_later(TRY_AGAIN.total_seconds(), again)

    async def _settle(self, name: str) -> None:
        """Make file, grants and judgement the same: a line that was taken out ends its grant, a grant that ended takes
        its line with it, a grant without a line gets one."""
        file = self._files[name]
        self._marks[name] = file.mark()
        try:
            entries = await asyncio.to_thread(file.read)
        except AllowlistError as error:
            self._serve(name, Entries(warnings=(str(error),)))
            if any(not grant.filed for grant in await self._live(name)):
                log.error("Could not save allowlist: %s The grants themselves hold.", error)
            return
        self._take_out(name, entries)
        live = await self._live(name)
        gone = [grant for grant in live if grant.filed and _entry(grant) not in entries.commands]
        if gone:
            await self._store.transact(partial(_end, keys=[key_of(grant) for grant in gone]))
            log.info("profile %s: %d grants ended, since their lines were taken out of %s", name, len(gone), file.path)
        kept = [grant for grant in live if grant not in gone]
        ended = await self._filed_ended(name)
        # The grants themselves speak for their lines, so that one that is revoked ends in that very commit.
        spoken_for = {_entry(grant) for grant in (*kept, *ended)}
        others = tuple(text for text in entries.commands if text not in spoken_for)
        self._serve(name, msgspec.structs.replace(entries, commands=others))
        await self._write(name, kept, ended, entries)

    async def _live(self, name: str) -> list[Grant]:
        """The standing grants of exact commands."""
        return [grant for grant in await self._store.find(Grant, "live_profile", name) if grant.exact is not None]

    async def _write(self, name: str, live: list[Grant], ended: list[Grant], entries: Entries) -> None:
        """Bring the file up to date with the grants. Its new mark is left to the next look, which also sees whatever
        an operator did meanwhile.

        A grant is noted as filed before its line is written: one that is revoked meanwhile, and one whose writing a
        crash broke off, then ends rather than leave behind a line that nobody answers for.
        """
        file = self._files[name]
        kept = {_entry(grant) for grant in live}
        stale = [text for grant in ended if (text := _entry(grant)) in entries.commands and text not in kept]
        unfiled = [key_of(grant) for grant in live if not grant.filed]
        filed = await self._store.transact(partial(_file, keys=unfiled, filed=True)) if unfiled else []
        missing = [text for grant in filed if (text := _entry(grant)) not in entries.commands]
        try:
            if missing:
                await asyncio.to_thread(file.add, missing)
            if stale:
                await asyncio.to_thread(file.remove, stale)
        except AllowlistError as error:
            log.error("Could not save allowlist: %s The grants themselves hold.", error)
            await self._store.transact(partial(_file, keys=[key_of(grant) for grant in filed], filed=False))
            self._later(name)
            return
        if ended:
            await self._store.transact(partial(_unfile, keys=[key_of(grant) for grant in ended]))

    async def _filed_ended(self, name: str) -> list[Grant]:
        """The grants that ended and whose lines still stand in the file, for all that is known."""
        ids = sorted(self._ended[name])
        found = [await self._store.get(Grant, joined(name, grant_id)) for grant_id in ids]
        ended = [grant for grant in found if grant is not None and grant.filed and grant.revoked_at is not None]
        self._ended[name] -= set(ids) - {grant.grant_id for grant in ended}
        return ended

    def _take_out(self, name: str, entries: Entries) -> None:
        """Judge no more by lines that the file does not have: that must not wait for a store that may fail."""
        profile = self._profiles[name]
        now = profile.allowlist
        left, left_unattended = frozenset(entries.commands), frozenset(entries.unattended_commands)
        commands = tuple(text for text in now.commands if text in left)
        unattended = tuple(text for text in now.unattended_commands if text in left_unattended)
        if (now.commands, now.unattended_commands) != (commands, unattended):
            self._profiles[name] = replace(profile, allowlist=Allowlist(commands, unattended))

    def _serve(self, name: str, entries: Entries) -> None:
        """Judge by these entries from now on, and tell an operator once of what admits nothing."""
        told = self._told.get(name, ())
        for warning in entries.warnings:
            if warning not in told:
                log.warning("%s", warning)
        self._told[name] = entries.warnings
        profile = self._profiles[name]
        now = profile.allowlist
        if (now.commands, now.unattended_commands) != (entries.commands, entries.unattended_commands):
            allowlist = Allowlist(entries.commands, entries.unattended_commands)
            self._profiles[name] = replace(profile, allowlist=allowlist)


def _entry(grant: Grant) -> str:
    return entry_of(grant.exact or "")


def _end(tx: Tx, *, keys: list[str]) -> None:
    """End grants whose lines are gone; one that ended meanwhile stays as it ended."""
    for key in keys:
        grant = tx.get(Grant, key)
        if grant is not None and grant.revoked_at is None:
            grants.end(tx, replace(grant, filed=False), BY_HAND)


def _file(tx: Tx, *, keys: list[str], filed: bool) -> list[Grant]:
    """Note whether the live ones of these grants have a line; those that are noted so."""
    found = [grant for key in keys if (grant := tx.get(Grant, key)) is not None and grant.revoked_at is None]
    noted = [replace(grant, filed=filed) for grant in found]
    for grant in noted:
        tx.put(grant)
    return noted


def _unfile(tx: Tx, *, keys: list[str]) -> None:
    """Note that ended grants have no line any more."""
    for key in keys:
        grant = tx.get(Grant, key)
        if grant is not None and grant.filed and grant.revoked_at is not None:
            tx.put(replace(grant, filed=False))

"""The settings that `check` and `policy` judge by: those of a profile, with its allowlist."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from signoff.allowlist_file import AllowlistError, AllowlistFile, allowlist_path
from signoff.errors import ConfigError, StoreError
from signoff.model import replace
from signoff.policy.allow import Allowlist
from signoff.settings import Profile


def profile_of(
    profiles: Mapping[str, Profile],
    name: str,
    *,
    state_dir: Path | None,
    allowlist: Path | None = None,
    store: str | None = None,
) -> Profile:
    """A profile as a gateway would judge by it: with the allowlist that stands in `state_dir`, in another file, or in
    the `store` of that URL where gateways share it.

    Raises `ConfigError` for a profile that is not there and for a named allowlist that cannot be read.
    """
    profile = profiles.get(name)
    if profile is None:
        raise ConfigError(f"There is no profile {name!r}; there are: {', '.join(sorted(profiles))}.")
    if state_dir is None and allowlist is None:
        return profile
    from signoff.stores.open import shared

    if allowlist is None and store is not None and shared(store):
        return _with_stored(profile, store)
    path = allowlist or allowlist_path(state_dir or Path(), name)
    if allowlist is not None and not allowlist.is_file():
        raise ConfigError(f"There is no allowlist {allowlist}.")
    try:
        entries = AllowlistFile(path).read()
    except AllowlistError as error:
        if allowlist is not None:
            raise ConfigError(str(error)) from None
        click.echo(f"signoff: {error}", err=True)
        return profile
    for warning in entries.warnings:
        click.echo(f"signoff: {warning}", err=True)
    return replace(profile, allowlist=Allowlist(entries.commands, entries.unattended_commands))


def _with_stored(profile: Profile, store: str) -> Profile:
    """With the lines in the store; where they cannot be read, none of them admits anything, and that is told."""
    from signoff.allowlist_rows import admitted
    from signoff.stores.looking import looking

    try:
        with looking(store) as (opened, runner):
            return replace(profile, allowlist=runner.run(admitted(opened, profile.name)))
    except StoreError as error:
        click.echo(f"signoff: judged without the allowlist, which stands in the store: {error.message}", err=True)
        return profile

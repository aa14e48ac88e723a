"""`init --import`: what other agents allow and deny, shown, and written after a yes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from signoff.allowlist_file import AllowlistError, AllowlistFile, allowlist_path
from signoff.cli.exits import OK, OTHER
from signoff.cli.output import put_json
from signoff.config import load_policy
from signoff.errors import ConfigError
from signoff.setup.importing import Line, Proposal, proposed
from signoff.setup.importing_files import files_of, wishes_of
from signoff.setup.writing import write_private
from signoff.stores.open import shared
from signoff.visible import LINE_END, visible


def import_settings(paths: tuple[str, ...], config: Path, profile: str, *, yes: bool, as_json: bool) -> int:
    """Show what the files want, and write it when told to; the exit code. Raises `ConfigError`."""
    files = files_of(paths, Path.cwd(), Path.home())
    if not files:
        raise ConfigError("No settings of Claude Code, Codex, opencode or hermes-agent were found; name a file.")
    proposal = proposed(wishes_of(file) for file in files)
    known = load_policy(config if config.exists() else None)
    if profile not in known.profiles:
        raise ConfigError(f"There is no profile {profile!r} in {config}.")
    allowlist = AllowlistFile(allowlist_path(known.gateway.state_dir, profile))
    present = allowlist.read()
    denied = known.profiles[profile].approvals.deny
    commands = [line for line in proposal.commands if line.text not in present.commands]
    deny = [line for line in proposal.deny if line.text not in denied]
    if not as_json:
        _show(proposal, commands, deny, allowlist.path, config)
    write = bool(commands or deny) and (yes or _confirmed(as_json=as_json))
    if write:
        _write(allowlist, commands, config, profile, deny)
    if as_json:
        put_json({"commands": commands, "deny": deny, "left": proposal.left, "written": write})
    elif write:
        click.echo("Written.")
        if commands and shared(str(known.gateway.store)):
            click.echo("The store has the allowlist: `signoff allowlist import` takes the file over into it.")
    if write or not (commands or deny):
        return OK
    if not as_json:
        click.echo("signoff: nothing was written; --yes writes it.", err=True)
    return OTHER


def _confirmed(*, as_json: bool) -> bool:
    return not as_json and sys.stdin.isatty() and click.confirm("Write this?", default=False)


def _show(proposal: Proposal, commands: list[Line], deny: list[Line], allowlist: Path, config: Path) -> None:
    _list(f"To be allowed ({allowlist}):", commands)
    _list(f"To be forbidden (approvals.deny in {config}):", deny)
    if not commands and not deny:
        click.echo("Nothing new is to be written.")
    if proposal.left:
        click.echo("Not carried over:")
        for left in proposal.left:
            click.echo(f"  {visible(_line(left.shown))}  ({left.where})\n    {visible(left.why)}.")


def _list(title: str, lines: list[Line]) -> None:
    if not lines:
        return
    click.echo(title)
    for line in lines:
        asks = f"  – rules ask for it today ({line.asks})" if line.asks else ""
        click.echo(f"  {visible(_line(line.text))}  ({line.where}){asks}")


def _line(text: str) -> str:
    return LINE_END.join(text.split("\n"))


def _write(allowlist: AllowlistFile, commands: list[Line], config: Path, profile: str, deny: list[Line]) -> None:
    """The deny rules first: when the second file fails, more is forbidden and not more allowed."""
    if deny:
        _write_deny(config, profile, [line.text for line in deny])
    if commands:
        try:
            allowlist.add([line.text for line in commands])
        except AllowlistError as error:
            raise ConfigError(str(error)) from None


def _write_deny(config: Path, profile: str, texts: list[str]) -> None:
    """Put these behind the deny rules of the file; comments and order stay. Raises `ConfigError`."""
    if not config.exists():
        raise ConfigError(f"There is no {config} for the deny rules; make one with `signoff init`, then import again.")
    mode = config.stat().st_mode & 0o777
    try:
        document: Any = tomlkit.parse(config.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, TOMLKitError) as error:
        raise ConfigError(f"{config} cannot be read: {error}.") from None
    place = document
    for name in ("approvals",) if profile == "default" else ("profiles", profile, "approvals"):
        if name not in place:
            place[name] = tomlkit.table()
        place = place[name]
    entries = place.get("deny")
    if entries is None:
        entries = place["deny"] = tomlkit.array()
        entries = place["deny"]
    if not isinstance(entries, Array):
        raise ConfigError(f"{config}: approvals.deny is not a list of texts.")
    for text in texts:
        entries.append(text)
    entries.multiline(True)
    target = config.resolve()
    write_private(target, tomlkit.dumps(document), replace=True)
    os.chmod(target, mode)
    load_policy(config)

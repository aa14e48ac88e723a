"""`allowlist`: the commands that need no question, where the store has them and no file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click
from msgspec import Struct

from signoff.allowlist_file import KEYS, AllowlistError, AllowlistFile, Entries, allowlist_path
from signoff.cli.app import LazyGroup
from signoff.cli.connect import Place, placed, with_client
from signoff.cli.exits import OK, OTHER
from signoff.cli.grants import giver
from signoff.cli.output import Shown, put_json, put_rows
from signoff.client import AllowlistChanged, AllowlistRecord
from signoff.display import shown
from signoff.errors import InvalidInput
from signoff.visible import LINE_END, visible

UNATTENDED = KEYS[1]


@click.group(
    cls=LazyGroup,
    places={
        "list": "signoff.cli.allowlist:list_lines",
        "add": "signoff.cli.allowlist:add",
        "remove": "signoff.cli.allowlist:remove",
        "import": "signoff.cli.allowlist:import_file",
        "export": "signoff.cli.allowlist:export_file",
    },
)
def allowlist() -> None:
    """List and change the allowlist in a PostgreSQL store; with SQLite, edit allowlist.toml."""


@click.command("list")
@placed
def list_lines(place: Place) -> None:
    """List what needs no question, and who added it. Secrets in texts are masked, but for --json."""
    lines = with_client(place, lambda client: client.allowlist())
    if place.as_json:
        put_json({"object": "list", "data": lines, "next": None})
        return
    rows = [(line.list, Shown(shown(line.text)), giver(line.by), _when(line.added_at), _origin(line)) for line in lines]
    put_rows(("LIST", "ENTRY", "BY", "SINCE", "FROM"), rows, empty="The allowlist is empty: everything is asked.")


@click.command()
@click.argument("texts", metavar="TEXT...", nargs=-1, required=True)
@click.option("--unattended", is_flag=True, help="Also where nobody could answer.")
@placed
def add(place: Place, /, *, texts: tuple[str, ...], unattended: bool) -> None:
    """Add commands that need no question from now on, for every gateway. `*` stands for any characters."""
    commands, others = ((), texts) if unattended else (texts, ())
    changed = with_client(place, lambda client: client.change_allowlist(commands=commands, unattended_commands=others))
    if place.as_json:
        put_json(changed)
        return
    _put(changed.added, "Needs no question any more: {}")
    if not changed.added:
        click.echo("It stood there already.")


@click.command()
@click.argument("texts", metavar="TEXT...", nargs=-1, required=True)
@placed
def remove(place: Place, /, *, texts: tuple[str, ...]) -> None:
    """Take entries out, by their text or id; what they admitted is asked again at once, by every gateway.

    The line of an "Always" ends that grant, as `signoff revoke` does.
    """
    lines = with_client(place, lambda client: client.allowlist())
    unknown = [text for text in texts if not any(text in (line.text, line.id) for line in lines)]
    if unknown:
        told = f"`{shown(unknown[0])}` is no entry; nothing is changed. `signoff allowlist list` shows them."
        raise InvalidInput(told)
    ids = [line.id for line in lines if line.text in texts or line.id in texts]
    changed = with_client(place, lambda client: client.change_allowlist(remove=ids))
    if place.as_json:
        put_json(changed)
    else:
        _put(changed.removed, "Taken out: {}")


# --- files -----------------------------------------------------------------------------------------


class Plan(Struct, frozen=True, kw_only=True):
    """What importing a file would do. What people were shown is done, whatever becomes of the file meanwhile."""

    add: tuple[tuple[str, str], ...]
    """The list and the text of each line."""
    remove: tuple[AllowlistRecord, ...]
    left: tuple[AllowlistRecord, ...]
    """Lines of the file that somebody removed from the store, and that stay so."""
    stay: int
    """So many lines of the store are not in the file."""


def planned(entries: Entries, lines: Sequence[AllowlistRecord], *, exactly: bool, again: bool) -> Plan:
    """Compare a file with the store's lines, those that were removed too."""
    standing = {(line.list, line.text): line for line in lines if line.removed_at is None}
    gone = {(line.list, line.text): line for line in lines if (line.list, line.text) not in standing}
    wanted = [(name, text) for name in KEYS for text in getattr(entries, name)]
    missing = [line for line in wanted if line not in standing]
    asked = set(wanted)
    others = tuple(line for at, line in standing.items() if at not in asked)
    return Plan(
        add=tuple(line for line in missing if again or line not in gone),
        remove=others if exactly else (),
        left=() if again else tuple(gone[line] for line in missing if line in gone),
        stay=0 if exactly else len(others),
    )


@click.command("import")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--replace", "exactly", is_flag=True, help="Also take out what the file does not have.")
@click.option("--again", is_flag=True, help="Also add lines that somebody removed.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@placed
def import_file(place: Place, /, *, file: Path | None, exactly: bool, again: bool, yes: bool) -> int:
    """Add a file's entries to the store, after showing what would change; by default the profile's allowlist.toml.

    What stands in the store stays, unless --replace is given. A line that somebody removed is left out and told.
    On a terminal it asks before it changes anything; elsewhere it needs --yes.

    Exit codes: 0 the store has it now, 1 nothing was changed for want of a yes, 2 wrong usage, 75 no gateway.
    """
    path = file or _own_file(place)
    entries = _read(path)
    plan = planned(
        entries, with_client(place, lambda client: client.allowlist(removed=True)), exactly=exactly, again=again
    )
    if not place.as_json:
        _show(plan, path)
    changed = AllowlistChanged()
    write = bool(plan.add or plan.remove) and (yes or _confirmed(place))
    if write:
        texts = {name: [text for at, text in plan.add if at == name] for name in KEYS}
        ids = [line.id for line in plan.remove]
        changed = with_client(
            place,
            lambda client: client.change_allowlist(**texts, remove=ids, source=str(path.absolute()), again=again),
        )
    if place.as_json:
        put_json({"add": plan.add, "remove": plan.remove, "left": plan.left, "written": write})
    elif write:
        click.echo(f"Added: {len(changed.added)}. Taken out: {len(changed.removed)}.")
    if write or not (plan.add or plan.remove):
        return OK
    if not place.as_json:
        click.echo("signoff: nothing was changed; --yes does it.", err=True)
    return OTHER


@click.command("export")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@placed
def export_file(place: Place, /, *, file: Path | None) -> None:
    """Write the store's allowlist to a file; by default the profile's allowlist.toml.

    The file is replaced as a whole. Comments in it stay, and so does the order of what stood there.
    """
    path = file or _own_file(place)
    lines = with_client(place, lambda client: client.allowlist())
    lists = {name: tuple(dict.fromkeys(line.text for line in lines if line.list == name)) for name in KEYS}
    try:
        written = AllowlistFile(path).become(Entries(**lists))
    except AllowlistError as error:
        raise InvalidInput(str(error)) from None
    if place.as_json:
        put_json({"file": str(path), "lines": sum(map(len, lists.values())), "written": written})
    else:
        click.echo(f"Entries of the store in {path}: {sum(map(len, lists.values()))}")


def _own_file(place: Place) -> Path:
    """The profile's allowlist.toml on the gateway's own machine. Raises `InvalidInput` where this may be another."""
    if place.by_url:
        raise InvalidInput("Name a file: allowlist.toml stands on the gateway's machine, which may be another.")
    return allowlist_path(place.location().gateway.state_dir, place.profile or "default")


def _read(path: Path) -> Entries:
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    try:
        entries = AllowlistFile(path).read()
    except AllowlistError as error:
        raise InvalidInput(str(error)) from None
    for warning in entries.warnings:
        click.echo(f"signoff: {visible(warning)}", err=True)
    return entries


def _confirmed(place: Place) -> bool:
    return not place.as_json and sys.stdin.isatty() and click.confirm("Do this?", default=False)


def _show(plan: Plan, path: Path) -> None:
    if plan.add:
        click.echo("Needs no question any more:")
        for name, text in plan.add:
            click.echo(f"  {_line(name, text)}")
    if plan.remove:
        click.echo("Taken out:")
        _put(plan.remove, "  {}")
    if plan.left:
        click.echo("Left out, since it was removed (--again adds it):")
        for line in plan.left:
            click.echo(f"  {_line(line.list, line.text)}  ({giver(line.removed_by)}, {_when(line.removed_at)})")
    if plan.stay:
        click.echo(f"Entries that {path} does not have, and that stay (--replace takes them out): {plan.stay}")
    if not plan.add and not plan.remove:
        click.echo("Nothing is to be changed.")


def _put(lines: Sequence[AllowlistRecord], form: str) -> None:
    for line in lines:
        click.echo(form.format(_line(line.list, line.text)))


def _line(name: str, text: str) -> str:
    told = LINE_END.join(shown(text).split("\n"))
    return f"{told}  (also unattended)" if name == UNATTENDED else told


def _origin(line: AllowlistRecord) -> str:
    return f"Always ({line.grant_id})" if line.grant_id else line.source


def _when(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else ""

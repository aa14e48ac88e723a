"""`check` and `why`: what would become of an action, and what led to what became of one. Nobody is asked."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from signoff.cli.connect import Place, placed, with_client
from signoff.cli.output import put_json
from signoff.cli.summaries import in_a_line
from signoff.errors import InvalidInput
from signoff.policy.telling import TreeLine, tree
from signoff.visible import LINE_END, visible

if TYPE_CHECKING:
    from signoff.checking import Check
    from signoff.model import Action
    from signoff.settings import Profile

KINDS = ("chat", "api", "cron", "webhook", "worker", "single_query")
COLOURS = {"allow": "green", "ask": "yellow", "block": "red", "stage": "cyan"}
MAX_BYTES = 8 * 1024 * 1024
"""A longer text is not read: the gateway takes no such request either."""


@click.command()
@click.argument("command", nargs=-1)
@click.option("--code", "language", metavar="LANGUAGE", help="The text is a script in this language.")
@click.option("--tool", metavar="NAME", help="Judge a call of this tool.")
@click.option("--file", "path", metavar="PATH", help="Judge a change of this file.")
@click.option("--from", "source", type=click.Path(path_type=Path, dir_okay=False), help="The file with the text.")
@click.option("--shell", metavar="NAME", help="The shell that runs it: bash, zsh, powershell, cmd …")
@click.option("--cwd", metavar="FOLDER", help="The folder it runs in (default: this one).")
@click.option("--kind", type=click.Choice(KINDS), default="chat", show_default=True, help="The kind of session.")
@click.option("--isolation", metavar="NAME", help="As in an attested isolated environment.")
@click.option("--session", "session_id", metavar="ID", help="As in this session of the running gateway.")
@click.option("--host", metavar="NAME", help="With --session: where it runs (default: this machine; '': unsaid).")
@click.option("--explain", is_flag=True, help="Also each rung of the ladder.")
@placed
def check(
    place: Place,
    /,
    *,
    command: tuple[str, ...],
    session_id: str | None,
    host: str | None,
    kind: str,
    isolation: str | None,
    explain: bool,
    **given: Any,
) -> int:
    """Judge a command text, a script, a tool call or a file change, and tell why. Nobody is asked, nothing stored.

    \b
        signoff check 'git push --force'
        signoff check --code python --from script.py

    It needs no gateway: rules, deny rules and the allowlist are read from signoff.toml and the profile's
    allowlist.toml, or from the PostgreSQL store that has the allowlist. With --session the running gateway judges, so
    that grants, denials and a bypass of that session count. A text of `-` is read from standard input.

    Exit codes: 0 judged, whatever the verdict (read it with --json); 2 wrong usage or configuration, 75 --session
    without a gateway.
    """
    from signoff.checking import alone, check_of

    action = _action(command, **given)
    wanted = explain or not place.as_json
    if session_id is None:
        now = datetime.now(UTC)
        checked = alone(action, _profile(place), now, kind=kind, isolation=isolation)  # type: ignore[arg-type]  # one of KINDS
        found = check_of(checked, explained=wanted)
    else:
        machine = socket.gethostname() if host is None else host or None
        found = _asked(place, action, session_id, machine, explain=wanted)
    if place.as_json:
        put_json(found if explain else _plain(found))
    else:
        _tell(found, explain=explain)
    return 0


def _action(command: tuple[str, ...], **given: Any) -> Action:
    from signoff.model import Code, Command, FileWrite, Tool

    language, tool, path, shell = given["language"], given["tool"], given["path"], given["shell"]
    if (tool is not None) + (path is not None) + (bool(command) or given["source"] is not None) != 1:
        raise click.UsageError("Give one of: a text (or --from FILE), --tool, or --file")
    cwd = str(Path(given["cwd"]).absolute()) if given["cwd"] is not None else str(Path.cwd())
    if tool is not None:
        return Tool(name=tool)
    if path is not None:
        return FileWrite(path=path, diff=None)
    text = _text(command, given["source"])
    if language is not None:
        return Code(language=language, code=text, cwd=cwd)
    return Command(command=text, cwd=cwd, shell=shell)


def _text(command: tuple[str, ...], source: Path | None) -> str:
    if source is not None and command:
        raise click.UsageError("Give the text or --from, not both")
    if source is None and command != ("-",):
        return command[0] if len(command) == 1 else shlex.join(command)
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1) if source is None else _head(source)
    except OSError as error:
        raise InvalidInput(f"{source} cannot be read: {error.strerror}.") from None
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"The text is larger than {MAX_BYTES // 1024 // 1024} MiB.")
    return data.decode("utf-8", "surrogateescape")


def _head(source: Path) -> bytes:
    with source.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _profile(place: Place) -> Profile:
    from signoff.cli.judged_by import profile_of
    from signoff.config import find_config, load_policy

    config = load_policy(place.config or find_config())
    gateway, name = config.gateway, place.profile or "default"
    return profile_of(config.profiles, name, state_dir=gateway.state_dir, store=str(gateway.store))


def _asked(place: Place, action: Action, session_id: str, host: str | None, *, explain: bool) -> Check:
    from signoff.checking import Check

    record = with_client(place, lambda client: client.check(action, session_id=session_id, host=host, explain=explain))
    return msgspec.convert(msgspec.to_builtins(record), Check)


def _plain(found: Check) -> dict[str, Any]:
    """The verdict without the explanation that was not asked for."""
    told: dict[str, Any] = msgspec.to_builtins(found)
    del told["explanation"]
    return told


@click.command()
@click.argument("request_id", metavar="ID")
@placed
def why(place: Place, request_id: str) -> None:
    """Tell why a request was asked, let run or forbidden: each command, each rule, and what decided."""
    facts = with_client(place, lambda client: client.why(request_id))
    if place.as_json:
        put_json(facts)
        return
    keys = ", ".join(facts["rule_keys"]) or "none"
    sentence = f"{facts['description'][:1].upper()}{facts['description'][1:]}"
    head = click.style(f"{facts['short_id']} ({facts['severity']})", bold=True)
    click.echo(f"{head}: {in_a_line(sentence)} (rule {keys})")
    for line in facts["why"]:
        click.echo(in_a_line(line))
    for line in facts["tree"]:
        _put_line(msgspec.convert(line, TreeLine), in_a_line)
    if facts["more"]:
        click.echo(f"and {facts['more']} more commands")
    if facts["rules_now"] is not None:
        click.echo(f"By the rules as they are now: {', '.join(facts['rules_now']) or 'none'}.")
    if facts["rung"]:
        click.echo(f"Decided by the rung {facts['rung']}.")
    if facts.get("answer"):
        click.echo(in_a_line(facts["answer"]))


# --- for people ----------------------------------------------------------------------------------


def _tell(found: Check, *, explain: bool) -> None:
    sentence = f"{found.description[:1].upper()}{found.description[1:]}."
    verdict = click.style(found.verdict, fg=COLOURS[found.verdict], bold=True)
    click.echo(f"{verdict} ({found.severity}): {_shown(sentence)}")
    explanation = found.explanation
    if explanation is None:
        return
    for line in tree(explanation):
        _put_line(line, _shown)
    if explanation.more:
        click.echo(f"and {explanation.more} more commands")
    for problem in explanation.problems:
        click.echo(f"Not understood: {_shown(problem)}.")
    if explain:
        click.echo("")
        for rung in explanation.rungs:
            said = _shown(rung.said) or rung.reached
            click.echo(f"{rung.rung:<10} {_coloured(rung.verdict, said)}")
        return
    click.echo(f"Decided by the rung {found.rung}: {_shown(_decided(found))}")


def _put_line(line: TreeLine, shown: Callable[[str], str]) -> None:
    about = f"{', '.join(line.rules)}: {line.reason}" if line.rules and line.verdict != "allow" else line.reason
    place = f" ({line.around})" if line.around else ""
    room = "  " * line.depth
    click.echo(f"{room}{line.number} {shown(line.text)}{place}")
    click.echo(f"{room}  {_coloured(line.verdict, line.verdict)} {shown(about)}")


def _coloured(verdict: str | None, text: str) -> str:
    return click.style(text, fg=COLOURS[verdict]) if verdict is not None else text


def _shown(text: str) -> str:
    return visible(LINE_END.join(text.split("\n")))


def _decided(found: Check) -> str:
    """What the rung did; what rules say stands in the tree already."""
    if found.rung == "person":
        return "a person is asked."
    return found.why[0] if found.why else f"{found.description}."

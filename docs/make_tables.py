"""Writes the tables and diagrams of the documentation that the program knows better than any author.

    python docs/make_tables.py

A page holds a table between `<!-- made: NAME -->` and `<!-- end -->`. The tests fail when a page differs from what
this script would write, so a new setting, route, metric or command cannot stay undocumented.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import click

from signoff.cli.app import cli
from signoff.config import settings_table
from signoff.endings import ending
from signoff.errors import ActionRefused, ClaimRefused
from signoff.lifecycle import TABLES, mermaid
from signoff.model import (
    Actor,
    Alike,
    ApprovalRequest,
    Cause,
    Command,
    Covered,
    Destination,
    Execution,
    ExecutionState,
    Operand,
    Outcome,
    replace,
)
from signoff.policy import python, ruleset, windows
from signoff.server.openapi import errors_of
from signoff.server.table import ROUTES
from signoff.telemetry import Telemetry

FOLDER = Path(__file__).resolve().parent
PACKAGE = FOLDER.parent / "gateway" / "signoff"
BLOCK = re.compile(r"(<!-- made: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
PLACE_ARGUMENTS = ("config", "profile", "as_json")
"""Options that every command has which talks to a gateway; told once."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table. Bars in cells are escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


# --- settings, routes, metrics ---------------------------------------------------------------------


def settings() -> str:
    """Every setting."""
    heads = ("setting", "default", "unit", "meaning", "variable")
    rows = ((f"`{row.name}`", _code(row.default), row.unit, row.doc, _env(row.env)) for row in settings_table())
    return table(heads, rows)


def _code(text: str) -> str:
    """A literal default as code; one that is told in words stays words."""
    literal = text[:1].isdigit() or text[:1] in ("[", '"') or text in ("true", "false")
    return f"`{text}`" if literal else text


def _env(name: str) -> str:
    """A variable as code; a setting that is whole tables has none."""
    return f"`{name}`" if name else "none"


def routes() -> str:
    """Every route with who may call it and what it answers."""
    heads = ("route", "scopes", "answers", "what it does")
    return table(heads, ((_route(r), _scopes(r), _answers(r), r.text) for r in ROUTES))


def _route(entry: Any) -> str:
    query = "&".join(f"{name}=" for name in entry.query.__struct_fields__)
    return f"`{entry.method} {entry.path}{'?' + query if query else ''}`"


def _scopes(entry: Any) -> str:
    return ", ".join(sorted(entry.scopes)) or "no key"


def _answers(entry: Any) -> str:
    good = ", ".join(str(status) for status in entry.statuses)
    several = (ActionRefused, ClaimRefused)
    own = {code for kind in entry.errors for code in (entry.error_codes if kind in several else (kind.code,))}
    found = errors_of(entry)
    bad = [f"{status} `{code}`" for status in sorted(found) for code in found[status] if code in own]
    return "; ".join([good, *bad])


def metrics() -> str:
    """Every metric."""
    rows = []
    for family in Telemetry().registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in _labels(family.name))
        rows.append((f"`{name}`", family.type, labels, family.documentation))
    return table(("metric", "type", "labels", "meaning"), rows)


def _labels(name: str) -> tuple[str, ...]:
    for value in vars(Telemetry()).values():
        if getattr(value, "_name", None) == name:
            labels: tuple[str, ...] = value._labelnames
            return labels
    return ()


# --- the command line ------------------------------------------------------------------------------


def command_line() -> str:
    """Every command with its arguments, options and meaning."""
    return table(("command", "options", "what it does"), _commands(cli, ("signoff",)))


def _commands(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name  # noqa: S101  # the group has just listed it
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
            continue
        words = [param.make_metavar(context) for param in command.params if isinstance(param, click.Argument)]
        options = [
            f"`{param.opts[-1]}`"
            for param in command.params
            if isinstance(param, click.Option) and not param.hidden and param.name not in PLACE_ARGUMENTS
        ]
        yield f"`{' '.join((*path, name, *words))}`", ", ".join(options), _first(command)


def _first(command: click.Command) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


# --- rules -----------------------------------------------------------------------------------------

THEMES = ("floors.toml", *ruleset.rule_files(), "python.toml", "windows.toml")
"""The files of rules in their order on the page."""


def rules() -> str:
    """The rules that ask or block, theme by theme."""
    parts = []
    for file in THEMES:
        rows = list(dict.fromkeys(_rules_of(file)))
        if rows:
            parts.append(f"## {file.removesuffix('.toml').replace('_', ' ').capitalize()}\n\n")
            parts.append(table(("rule", "severity", "verdict", "a command that"), rows) + "\n")
    return "\n" + "".join(parts)


def _rules_of(file: str) -> Iterator[tuple[str, str, str, str]]:
    if file == "windows.toml":
        yield from ((f"`{row.key}`", "critical", "block", row.description) for row in windows.table())
        return
    for rule in python.shipped().rules if file == "python.toml" else ruleset.load(file).rule:
        if rule.verdict != "allow":
            yield f"`{rule.key}`", rule.severity, rule.verdict, rule.sentence


# --- modules ---------------------------------------------------------------------------------------


def modules() -> str:
    """The modules and packages of the gateway, from the top layer down; those that any layer may use come last."""
    layers = list(_layers())
    placed = {name for layer in layers for name in layer}
    others = sorted(_names(PACKAGE) - placed - {"__main__"})
    rows = [
        (str(number), f"`{name}`", _about(PACKAGE, name)) for number, layer in enumerate(layers, 1) for name in layer
    ]
    return table(("layer", "module", "what it is"), [*rows, *(("any", f"`{n}`", _about(PACKAGE, n)) for n in others)])


def modules_of_policy() -> str:
    """The same of judgement alone."""
    folder = PACKAGE / "policy"
    return table(("module", "what it is"), ((f"`policy/{n}`", _about(folder, n)) for n in sorted(_names(folder))))


def _layers() -> Iterator[list[str]]:
    """The layers as `lint-imports` checks them."""
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text("utf-8"))
    [layers] = [each["layers"] for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    yield from (re.findall(r"signoff\.(\w+)", layer) for layer in layers)


def _names(folder: Path) -> set[str]:
    found = {file.stem for file in folder.glob("*.py")} | {file.parent.name for file in folder.glob("*/__init__.py")}
    return found - {"__init__"}


def _about(folder: Path, name: str) -> str:
    """The first sentence of its docstring."""
    file = folder / name / "__init__.py" if (folder / name).is_dir() else folder / f"{name}.py"
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()))[0]


# --- endings and states ----------------------------------------------------------------------------

T0 = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
ANA = Actor(type="person", platform="telegram", user_id="81234567", name="Ana", via="button")
AGENT = Actor(type="agent", name="deploy-bot")
BASE = ApprovalRequest(
    request_id="req_1",
    profile="default",
    short_id="7Q2MK",
    session_id="nightly",
    agent="deploy-bot",
    kind="cron",
    host="ci-3",
    action=Command(command="sh run.sh", operands=(Operand(path="run.sh", sha256="0" * 64, bytes=1),)),
    digest="0" * 64,
    label="this exact command",
    description="deletes the root filesystem",
    destinations=(Destination("telegram", "-1001"),),
    timeout_s=300.0,
    created_at=T0,
    decided_at=T0 + timedelta(seconds=60),
    expires_at=T0 + timedelta(seconds=300),
)
NOT_RUN: tuple[tuple[str | None, Actor | None], ...] = (
    (None, None),
    ("undone", ANA),
    ("stop_requested", ANA),
    ("session_ended", ANA),
    ("turn_ended", None),
    ("turn_interrupted", None),
    ("parent_ended", None),
    ("requester_gone", None),
    ("withdrawn", AGENT),
    ("changed_since_review", None),
)

BY_PEOPLE = ("stop_requested", "session_ended", "undone")
"""Causes that usually name who did it."""


def rows_of_endings() -> Iterator[ApprovalRequest]:
    """A request for every way in which one can stand once it has ended."""
    for outcome in get_args(Outcome):
        if outcome == "approved":
            yield from _approved()
        elif outcome == "denied":
            yield replace(BASE, outcome=outcome, decided_by=(ANA,))
            yield replace(BASE, outcome=outcome, decided_by=(ANA,), reason="wrong branch")
            again = replace(BASE, repeat_of="req_0", repeat_short="8ZT4C", repeat_at=T0 - timedelta(minutes=2))
            yield replace(again, outcome=outcome, decided_by=(ANA,))
        elif outcome == "cancelled":
            for cause in get_args(Cause):
                by = ANA if cause in BY_PEOPLE else None
                yield replace(BASE, outcome=outcome, cause=cause, ended_by=by, superseded_by="8ZT4C")
        elif outcome == "blocked":
            yield replace(BASE, outcome=outcome, decided_by=(Actor(type="policy", rule="floor.delete_root"),))
            setting = Actor(type="policy", setting='approvals.cron_mode = "deny"')
            yield replace(BASE, outcome=outcome, decided_by=(setting,))
        elif outcome == "notify_failed":
            error = "the bot was removed from the chat"
            yield replace(BASE, outcome=outcome, delivery_error=error, refused_by=BASE.destinations[0])
            yield replace(BASE, outcome=outcome, delivery_error="connection refused")
        else:
            yield replace(BASE, outcome=outcome)


def _approved() -> Iterator[ApprovalRequest]:
    approved = replace(BASE, outcome="approved", choice="once", decided_by=(ANA,))
    started = T0 + timedelta(seconds=61)
    ended = T0 + timedelta(seconds=75)
    lapsed = T0 + timedelta(seconds=360)
    for state in get_args(ExecutionState):
        for cause, by in NOT_RUN if state == "not_run" else ((None, None),):
            yield replace(
                approved,
                execution=Execution(
                    state=state,
                    cause=cause,
                    ended_by=by,
                    claimed_at=started if state not in ("none", "lapsed") else None,
                    ended_at={"none": None, "claimed": None, "lapsed": lapsed}.get(state, ended),
                    exit_code={"succeeded": 0, "failed": 3}.get(state),
                ),
                claim_by=T0 + timedelta(seconds=360) if state in ("none", "lapsed") else None,
            )
    several = replace(approved, choice="once_all", runs=3, alike=Alike(states={"failed": 1, "claimed": 1}, since=1))
    run = Execution(state="succeeded", claimed_at=started, ended_at=ended, exit_code=0)
    yield replace(several, execution=run)
    grant = Actor(type="grant", grant_id="4TQ8R", platform="telegram", user_id="81234567", name="Ana")
    covered = Covered("session", "sh run.sh")
    yield replace(approved, decided_by=(grant,), covered=covered, execution=run)


def endings() -> str:
    """Outcome, cause and execution: what the card says, and what the agent reads."""
    heads = ("outcome", "cause", "execution", "on the card", "to the agent")
    return table(heads, map(_ending, rows_of_endings()))


def _ending(row: ApprovalRequest) -> tuple[str, ...]:
    now = T0 + timedelta(seconds=400)
    said = ending(row, now, title=str.capitalize)
    status = " / ".join("".join(span.text for span in block.spans) for block in said.status)
    execution = f"`{row.execution.state}`" if row.outcome == "approved" else ""
    if row.execution.cause:
        execution += f" `{row.execution.cause}`"
    return f"`{row.outcome}`", f"`{row.cause}`" if row.cause else "", execution, status, said.message


def _diagram(name: str) -> Callable[[], str]:
    return lambda: f"```mermaid\n{mermaid(TABLES[name])}\n```\n"


MADE: dict[str, Callable[[], str]] = {
    "settings": settings,
    "routes": routes,
    "metrics": metrics,
    "command-line": command_line,
    "rules": rules,
    "modules": modules,
    "modules-policy": modules_of_policy,
    "endings": endings,
    **{f"diagram-{name}": _diagram(name) for name in TABLES},
}


def renewed(text: str) -> str:
    """The page with every made part as it should be; raises KeyError for a name that nothing here makes."""
    return BLOCK.sub(lambda found: found[1] + MADE[found[2]]() + found[3], text)


def main() -> None:
    """Write them all."""
    for page in sorted(FOLDER.glob("*.md")):
        before = page.read_text("utf-8")
        after = renewed(before)
        if after != before:
            page.write_text(after, "utf-8")


if __name__ == "__main__":
    main()

"""Nothing of the program is undocumented, and nothing documented is missing from the program."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import click
import pytest

import signoff
import signoff_adapters
from docs import make_tables
from signoff import Client, Gateway
from signoff.bench.rows import MEASURES
from signoff.cli import exits
from signoff.cli.app import cli
from signoff.config import settings_table
from signoff.console.door import INSIDE, OPEN
from signoff.context import VARIABLES
from signoff.errors import ActionRefused, ClaimRefused, SignoffError
from signoff.grammar import ALIASES, VERBS
from signoff.model import CAUSES, OUTCOMES, ExecutionState
from signoff.ports import ChatAdapter, Checkup, GroupCheckup, Inbox, Store
from signoff.server.on_actions import ACTION_CODES
from signoff.server.on_approvals import CLAIM_CODES
from signoff.server.openapi import document
from signoff.server.table import ROUTES
from tests.breakages.test_breakages import BREAKAGES
from tests.docs.pages import PAGES, ROOT, blocks, plain, prose, rows, words_in_code

DOCS = ROOT / "docs"
CODE = (ROOT / "gateway" / "signoff", ROOT / "adapters" / "signoff_adapters")
OUTSIDE = {"/start", "/bot", "/newbot"}
"""Words with a slash that are no command of ours."""


def names(page: str, head: str) -> list[str]:
    """The first cells of a page's tables."""
    return [plain(row[0]) for row in rows(DOCS / page, head)]


def same(documented: list[str], known: set[str]) -> None:
    """Each once, and no other."""
    assert sorted(documented) == sorted(known), {
        "undocumented": sorted(known - set(documented)),
        "unknown": sorted(set(documented) - known),
        "twice": sorted({name for name in documented if documented.count(name) > 1}),
    }


# --- made by a script ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_what_a_script_makes_is_as_it_would_make_it(page: Path) -> None:
    text = page.read_text("utf-8")
    assert make_tables.renewed(text) == text, "run: python docs/make_tables.py"


def test_every_made_part_stands_somewhere() -> None:
    made = {found[2] for page in DOCS.glob("*.md") for found in make_tables.BLOCK.finditer(page.read_text("utf-8"))}
    assert made == set(make_tables.MADE)


# --- settings --------------------------------------------------------------------------------------


def test_settings() -> None:
    same(names("settings.md", "setting"), {row.name for row in settings_table()})


def test_no_page_names_a_setting_that_does_not_exist() -> None:
    known = {row.name for row in settings_table()}
    sections = "approvals|gateway|grants|agents|principals|platforms"
    form = re.compile(rf"(?:profiles\.<name>\.)?((?:{sections})\.(?:<name>\.|[a-z_]+\.)*[a-z_]+)(?: = .*)?")
    loose = {"platforms.matrix", "gateway.cli", "gateway.request", "gateway.gate.call"}
    wrong = []
    for page in PAGES:
        for word in words_in_code(page):
            found = form.fullmatch(word)
            if found and found[1] not in known | loose and not any(name.startswith(f"{found[1]}.") for name in known):
                wrong.append((page.name, word))
    assert wrong == []


def test_no_page_names_a_variable_that_does_not_exist() -> None:
    settings = [re.compile(re.sub("<[A-Z]+>", "(<NAME>|[A-Z0-9]+)", row.env)) for row in settings_table() if row.env]
    source = "".join(file.read_text("utf-8") for folder in CODE for file in folder.rglob("*.py"))
    for page in PAGES:
        for name in re.findall(r"SIGNOFF_[A-Z0-9_<>]*[A-Z0-9>]", page.read_text("utf-8")):
            if "__" in name:
                known = name == "SIGNOFF_<SECTION>__<NAME>" or any(form.fullmatch(name) for form in settings)
                assert known, (page.name, name)
            else:
                assert f'"{name}"' in source, (page.name, name)


def test_the_clients_variables() -> None:
    folders = (ROOT / "gateway/signoff/client", ROOT / "gateway/signoff/cli")
    source = "".join(file.read_text("utf-8") for folder in folders for file in folder.rglob("*.py"))
    read = set(re.findall(r'"(SIGNOFF_[A-Z]+(?:_[A-Z]+)*)"', source)) | set(VARIABLES.values())
    same(sorted({*names("settings.md", "variable"), *names("contexts.md", "variable")}), read)


# --- HTTP ------------------------------------------------------------------------------------------


def test_routes_are_those_of_the_openapi_document() -> None:
    described = json.loads(document(ROUTES, version("signoff")))["paths"]
    known = {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
    same([name.partition("?")[0] for name in names("api.md", "route")], known)


def console_routes() -> set[str]:
    """The console's addresses, whose patterns have one group for each part that differs."""
    found = set()
    for method, pattern, _ in (*OPEN, *INSIDE):
        path = re.sub(r"\([^)]*\)", "{id}", pattern.removesuffix("/?")).replace("\\.", ".")
        assert re.fullmatch(r"/[a-z./{}-]+", path), pattern
        found.add(f"{method} {path}")
    return found


def test_console_routes() -> None:
    same(names("console.md", "address"), console_routes())


def test_no_page_names_a_route_that_does_not_exist() -> None:
    known = {(entry.method, re.sub(r"{[a-z_]+}", "{}", entry.path)) for entry in ROUTES}
    known |= {
        (method, path.replace("{id}", "{}")) for method, _, path in (each.partition(" ") for each in console_routes())
    }
    form = re.compile(r"(GET|POST|PUT|DELETE) (/[^\s?`]+)")
    for page in PAGES:
        for method, path in form.findall(prose(page)):
            if "…" not in path:
                assert (method, re.sub(r"{[a-z_]+}", "{}", path)) in known, (page.name, method, path)


# --- errors ----------------------------------------------------------------------------------------


def every_error() -> Iterator[type[SignoffError]]:
    for package in (signoff, signoff_adapters):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".testing" not in module.name and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    waiting = [SignoffError]
    while waiting:
        kind = waiting.pop()
        waiting.extend(kind.__subclasses__())
        if kind.__module__.startswith(("signoff.", "signoff_adapters.")) and ".testing" not in kind.__module__:
            yield kind


def test_errors() -> None:
    known = {kind.code: kind.status for kind in every_error()} | {"internal_error": 500}
    known |= dict.fromkeys(CLAIM_CODES, ClaimRefused.status)
    known |= dict.fromkeys(ACTION_CODES, ActionRefused.status)
    same(names("errors.md", "code"), set(known))
    over_http = {plain(row[0]): int(row[1]) for row in rows(DOCS / "errors.md", "code") if row[1].isdigit()}
    assert {code: known[code] for code in over_http} == over_http


def test_every_error_that_a_route_answers_with_is_told_with_its_status() -> None:
    over_http = {plain(row[0]) for row in rows(DOCS / "errors.md", "code") if row[1].isdigit()}
    text = json.dumps(json.loads(document(ROUTES, "0")))
    described = {code for codes in re.findall(r"Error codes: ([^.]*)\.", text) for code in re.findall("`(.*?)`", codes)}
    assert described - over_http == set()


# --- events, metrics, endings ----------------------------------------------------------------------


def emitted() -> Iterator[tuple[str, str]]:
    """The event types in the source and the module of each: calls of `Event(type=…)`, `emit(tx, …)` and the like."""
    for folder in CODE:
        for file in folder.rglob("*.py"):
            if "testing" in file.parts:
                continue
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    yield from ((kind, str(file.relative_to(folder))) for kind in _types(node))


def _types(call: ast.Call) -> Iterator[str]:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    given: list[ast.expr] = []
    if name == "Event":
        given = [keyword.value for keyword in call.keywords if keyword.arg == "type"]
    elif name in ("emit", "_emit", "_event"):
        given = call.args[1:2]
    for value in given:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value


def test_events() -> None:
    told = {plain(row[0]): set(plain(row[2]).split(", ")) for row in rows(DOCS / "events.md", "type")}
    known: dict[str, set[str]] = {}
    for kind, module in emitted():
        known.setdefault(kind, set()).add(module)
    same(names("events.md", "type"), set(known))
    assert told == known


def test_metrics() -> None:
    known = {plain(line.split("|")[1]).strip() for line in make_tables.metrics().splitlines()[2:]}
    same(names("metrics.md", "metric"), known)


def test_every_outcome_and_cause_has_its_words() -> None:
    table = rows(DOCS / "endings.md", "outcome")
    assert {plain(row[0]) for row in table} == OUTCOMES
    assert {plain(row[1]) for row in table} - {""} == CAUSES
    assert {plain(row[0]) for row in rows(ROOT / "README.md", "outcome")} == OUTCOMES
    same(names("endings.md", "cause"), set(CAUSES))
    told = [word for row in rows(DOCS / "endings.md", "execution") for word in re.findall("`([a-z_]+)`", row[0])]
    same(told, set(get_args(ExecutionState)))
    for outcome, cause, execution, card, agent in table:
        may_run = plain(execution) == "none"  # who reads a claimed one is not who claimed it
        assert agent.startswith(("BLOCKED:", "STAGED:")) != may_run, (outcome, cause, execution)
        assert plain(outcome).replace("_", " ") in card.lower(), (outcome, card)


# --- commands --------------------------------------------------------------------------------------


def test_chat_commands() -> None:
    told = [word.strip("/") for name in names("commands.md", "command") for word in re.findall(r"/[a-z]+", name)]
    same(told, {*VERBS, *ALIASES})


def commands(group: click.Group, path: str = "signoff") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield f"{path} {name}"
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def test_no_page_names_a_command_that_does_not_exist() -> None:
    known = set(commands(cli))
    for page in PAGES:
        shell = [line for block in blocks(page) if block.language == "sh" for line in block.text.splitlines()]
        for text in (*words_in_code(page), *shell):
            for found in re.finditer(r"(?<![\w/.-])signoff (key )?([a-z]+)\b", text):
                assert f"signoff {found[1] or ''}{found[2]}" in known, (page.name, text)


def test_exit_codes() -> None:
    told = {int(code) for code in names("commands.md", "code") if code.isdigit()}
    known = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert told == known | {126}


# --- ports and dependencies ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "port"),
    [
        ("adapters.md", ChatAdapter),
        ("adapters.md", Checkup),
        ("adapters.md", GroupCheckup),
        ("adapters.md", Inbox),
        ("stores.md", Store),
    ],
)
def test_every_method_of_a_port(page: str, port: type[Any]) -> None:
    members = {name for name, value in vars(port).items() if inspect.isfunction(value) or isinstance(value, property)}
    methods = {name for name in members if not name.startswith("_")}
    head = "method" if page == "stores.md" else f"method of {port.__name__}"
    told = [name for row in rows(DOCS / page, f"method of `{port.__name__}`" if head != "method" else head)
            for name in re.findall(r"`([a-z_]+)", row[0])]  # fmt: skip
    same(told, methods)


def test_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras: list[list[str]] = list(project["optional-dependencies"].values())
    required = [*project["dependencies"], *(each for extra in extras for each in extra)]
    known = {}
    for requirement in required:
        found = re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[[a-z,]+\])?>=([0-9.]+)(?:; .*)?", requirement)
        if found:
            known[found[1]] = found[2]
        else:
            assert requirement.startswith("signoff["), requirement
    told = {}
    for row in rows(DOCS / "dependencies.md", "package"):
        bound = next(cell for cell in row[1:] if re.fullmatch(r"[0-9.]+", cell))
        told[row[0]] = bound
    assert told == known


def test_the_lowest_versions_are_those_that_are_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    tried = [
        *project["dependencies"],
        *(each for name in ("telegram", "discord", "slack", "postgres", "yaml") for each in extras[name]),
    ]
    lines = (ROOT / "tests" / "lowest.txt").read_text("utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    # A constraint names no extra; psycopg's own asks for the same version of psycopg-binary.
    assert sorted(pinned) == sorted(requirement.replace("[binary]", "").replace(">=", "==") for requirement in tried)


# --- goals, breakages, verbs -----------------------------------------------------------------------


def in_ms(value: str, unit: str) -> tuple[float, str]:
    """A goal as the bench has it, seconds as milliseconds."""
    number = float(value.replace(",", ""))
    return (number * 1000, "ms") if unit == "s" else (number, unit.removeprefix("/s"))


def test_the_goals_are_those_of_the_bench() -> None:
    goal = re.compile(r"(?<!\(p)\b([\d,.]+)(?: (ms|s|kB|MB|MiB|%))?")
    told = [in_ms(*found) for row in rows(DOCS / "bench.md", "row") if len(row) == 5 for found in goal.findall(row[2])]
    known = [row for measure in MEASURES for row in measure.rows if row.goal is not None]
    assert told == [in_ms(str(row.goal), row.unit) for row in known]


def test_breakages() -> None:
    told = {row[0]: (plain(row[1]), plain(row[2])) for row in rows(ROOT / "CONTRIBUTING.md", "breakage")}
    known = {name: (file, " ".join(chosen)) for name, (file, _, _, chosen) in BREAKAGES.items()}
    assert told == known


def test_the_verbs_that_an_embedded_gateway_lacks() -> None:
    page = prose(DOCS / "embedding.md")
    [sentence] = re.findall(r"It lacks (.*?):", page, re.DOTALL)
    public = {kind: {name for name in dir(kind) if not name.startswith("_")} for kind in (Client, Gateway)}
    same(re.findall(r"`(\w+)`", sentence), public[Client] - public[Gateway])


# --- links and the map -----------------------------------------------------------------------------


def links(page: Path) -> Iterator[str]:
    """Where the page's links and pictures lead, those outside of the repository left out."""
    for target in re.findall(r"\]\(([^)]+)\)|(?:src|srcset)=\"([^\"]+)\"", prose(page)):
        link = target[0] or target[1]
        if "://" not in link:
            yield link


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as they are made of their words."""
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", plain(head)).strip().lower().replace(" ", "-") for head in heads}


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for link in links(page):
            file, _, anchor = link.partition("#")
            there = (page.parent / file) if file else page
            assert there.exists(), (page.name, link)
            assert not anchor or anchor in anchors(there), (page.name, link)


def test_every_page_is_one_click_from_the_map() -> None:
    index = DOCS / "README.md"
    reached = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    assert {page.name for page in DOCS.glob("*.md") if page.resolve() not in reached} == {"README.md"}


def test_every_page_begins_with_what_it_is_for() -> None:
    for page in (*DOCS.glob("*.md"), ROOT / "deploy" / "README.md"):
        first = [part for part in prose(page).split("\n\n") if not part.startswith("<!--")][1]
        assert re.match(r"[A-Z`]", first), f"{page.name}: begin with a sentence, not a table, picture or heading"


def test_buttons_are_called_as_on_the_card() -> None:
    texts = tomllib.loads((ROOT / "gateway" / "signoff" / "texts" / "en.toml").read_text("utf-8"))["button"]
    known = {re.split(r":? ?\{", text)[0] for text in texts.values() if isinstance(text, str)}
    told = [word for row in rows(DOCS / "answering.md", "button") for word in re.findall("`([^`]+)`", row[0])]
    assert told
    assert set(told) - known == set()

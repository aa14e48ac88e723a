"""Every shipped rule: what it catches, what it lets pass, and that it is needed."""

from functools import cache
from pathlib import Path

import msgspec
import pytest
from tests.tables import every

from signoff.policy import findings, ruleset
from signoff.policy.findings import Findings
from signoff.policy.paths import PathFacts
from signoff.policy.rule import Rule
from signoff.policy.ruleset import RuleSet
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import Script, read_shell
from signoff.policy.shell.deadline import Deadline
from signoff.policy.unknown import UnknownCommands

FOLDER = Path(__file__).parent / "rules"
HOME = "/home/ana"
CWD = "/home/ana/project"
FACTS = OwnFacts(
    paths=PathFacts(home=HOME, own=("/home/ana/.local/state/signoff", "/home/ana/signoff.toml"), start=CWD), pid=4242
)


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of a case file: commands on which rules of this key fire, and neighbours on which none of them does."""

    key: str
    fires: tuple[str, ...]
    passes: tuple[str, ...] = ()


class _Cases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    case: tuple[Case, ...]


@cache
def cases_of(name: str) -> tuple[Case, ...]:
    """The cases of a rule file; where there is no such file, every rule of it is without a case, which fails."""
    path = FOLDER / name
    return msgspec.toml.decode(path.read_bytes(), type=_Cases).case if path.exists() else ()


@cache
def read(command: str) -> Script:
    return read_shell(command, home=HOME, cwd=CWD, clock=lambda: 0.0)


def found(command: str, rules: RuleSet, *, unknown_commands: UnknownCommands = "verbs") -> Findings:
    return findings.find(read(command), rules, FACTS, Deadline(lambda: 0.0), unknown_commands)


def keys(command: str, rules: RuleSet) -> set[str]:
    """The keys of every rule that speaks about the command, those that allow included."""
    strict = found(command, rules, unknown_commands="ask")
    return {finding.rule.key for finding in (*strict.fired, *strict.allowed)}


NAMES = (*ruleset.rule_files(), "floors.toml")


@cache
def set_of(name: str) -> RuleSet:
    """The floors for their own file, all other rules together for the others."""
    return ruleset.floors() if name == "floors.toml" else ruleset.shipped()


FIRES = [(name, case.key, command) for name in NAMES for case in cases_of(name) for command in case.fires]
PASSES = [(name, case.key, command) for name in NAMES for case in cases_of(name) for command in case.passes]


@every("name, key, command", FIRES)
def test_a_rule_fires(name: str, key: str, command: str) -> None:
    assert key in keys(command, set_of(name))


@every("name, key, command", PASSES)
def test_its_neighbour_passes(name: str, key: str, command: str) -> None:
    assert key not in keys(command, set_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_case_names_a_rule_of_its_file_and_every_rule_has_a_case(name: str) -> None:
    ours = {rule.key for rule in ruleset.load(name).rule}
    assert {case.key for case in cases_of(name)} == ours
    assert all(case.fires for case in cases_of(name))


def _spelled(rule: Rule) -> str:
    return f"{rule.key} {','.join(rule.programs)[:40]} {','.join(rule.subcommands)[:40]}"


ROWS = [(name, row, _spelled(rule)) for name in NAMES for row, rule in enumerate(ruleset.load(name).rule)]


@cache
def rows_fired(name: str, command: str) -> frozenset[int]:
    """The rows of a file that fire on a command."""
    rules = set_of(name)
    own = {id(rule): row for row, rule in enumerate(ruleset.load(name).rule)}
    return frozenset(
        own[id(compiled.rule)]
        for part in read(command).commands
        for compiled, _program in rules.fired(part, read(command), FACTS, Deadline(lambda: 0.0))
        if id(compiled.rule) in own
    )


@every("name, row, spelled", ROWS)
def test_no_rule_can_be_deleted_unnoticed(name: str, row: int, spelled: str) -> None:
    """Of the commands on which a rule fires, one is there on which no other row of the same key does."""
    key = ruleset.load(name).rule[row].key
    alike = {other for other, rule in enumerate(ruleset.load(name).rule) if rule.key == key}
    commands = [command for case in cases_of(name) if case.key == key for command in case.fires]
    assert any(rows_fired(name, command) & alike == {row} for command in commands)

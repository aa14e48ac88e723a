"""A set of rules, found by program."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec.structs import replace

from signoff.expected import problem
from signoff.policy import predicates
from signoff.policy.matching import DECLARERS, Compiled, Group, Reading, any_ending, assigned_names, reading
from signoff.policy.path_classes import CLASSES
from signoff.policy.programs import module_of, name_of
from signoff.policy.rule import Program, Rule, RuleError, check
from signoff.policy.seen import OwnFacts, Seen
from signoff.policy.shell import Command, Redirect, Script
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.options import OptionSpec, arguments

_PACKAGE = "signoff.policy.rules"
_NOT_RULES = frozenset({"floors.toml", "windows.toml", "unknown.toml", "python.toml", "manuals.toml"})
_MAX_NAMES = 4096
"""How many programs' rules are kept at hand; names come from the texts that are judged."""

_NO_RULE = Rule(key="no.rule", verdict="allow")
"""Adds nothing to how a program's options are read."""

_UNKNOWN_FIELD = re.compile(r"unknown field `(\w+)`")


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of rules."""

    rule: tuple[Rule, ...] = ()
    program: tuple[Program, ...] = ()


class RuleSet:
    """Rules with an index by program. Never changes; `with_own` and `without` make another one."""

    def __init__(self, rules: tuple[Rule, ...], programs: tuple[Program, ...] = (), own: tuple[Rule, ...] = ()) -> None:
        """Index sound rules, the operator's `own` ones first."""
        self.rules = rules
        self.programs = programs
        self.own = own
        self._readings = {name: program for program in programs for name in program.names}
        self._named: dict[str, list[Compiled]] = {}
        self._known: set[str] = set()
        self._starred: list[tuple[tuple[str, ...], Compiled]] = []
        self._assigns: list[Compiled] = []
        self._redirects: list[Compiled] = []
        self._groups: dict[str, tuple[Group, ...]] = {}
        for rule in own:
            self._add(Compiled(rule, own=True))
        for rule in rules:
            self._add(Compiled(rule))
        self._unclassed = [compiled for compiled in self._redirects if not compiled.by_class]
        self._assign_fits = any_ending(tuple(name for one in self._assigns for name in one.rule.assigns))
        self._stems = tuple({stem for stems, _compiled in self._starred for stem in stems})
        self._telling = tuple(stem for stem in self._stems if stem.removeprefix("./"))

    def _add(self, compiled: Compiled) -> None:
        rule = compiled.rule
        if not rule.programs:
            (self._redirects if rule.writes or rule.reads else self._assigns).append(compiled)
            return
        stems = tuple(name[:-1] for name in rule.programs if name.endswith("*"))
        if stems:
            self._starred.append((stems, compiled))
        for name in rule.programs:
            if not name.endswith("*"):
                self._named.setdefault(name, []).append(compiled)
                if not rule.partial:
                    self._known.add(name)

    def with_own(self, rows: Sequence[Mapping[str, Any] | Rule]) -> "RuleSet":
        """This set with the operator's own rows before it. Raises `RuleError` for the first row that cannot be used."""
        problems = problems_of(rows)
        if problems:
            raise problems[0]
        return RuleSet(self.rules, self.programs, tuple(map(_own_rule, rows)))

    def without(self, row: int) -> "RuleSet":
        """This set without one of its shipped rows, counted from 0."""
        return RuleSet((*self.rules[:row], *self.rules[row + 1 :]), self.programs, self.own)

    def knows(self, name: str) -> bool:
        """Whether some rule or row is about programs of this name. One about every program or file is not, nor one that
        knows the program in part."""
        if name in self._known or name in self._readings:
            return True
        return bool(self._telling) and name.startswith(self._telling)

    def options_of(self, name: str) -> tuple[OptionSpec, OptionSpec]:
        """Which options of a program take a value: those before its first operand, and those behind it."""
        how = reading(_NO_RULE, self._readings.get(name))
        return how.leading or how.spec, how.spec

    def _is_starred(self, name: str) -> bool:
        return bool(self._stems) and name.startswith(self._stems)

    def groups_of(self, name: str) -> tuple[Group, ...]:
        """The rules about a program, those that read its options alike together."""
        found = self._groups.get(name)
        if found is None:
            if name not in self._named and not self._is_starred(name):
                return ()
            found = self._grouped(name)
            if len(self._groups) >= _MAX_NAMES:
                self._groups.clear()
            self._groups[name] = found
        return found

    def _grouped(self, name: str) -> tuple[Group, ...]:
        groups: dict[Reading, list[Compiled]] = {}
        starred = [compiled for stems, compiled in self._starred if name.startswith(stems)]
        for compiled in (*self._named.get(name, ()), *starred):
            groups.setdefault(reading(compiled.rule, self._readings.get(name)), []).append(compiled)
        return tuple(Group(how, rules) for how, rules in groups.items())

    def fired(
        self, command: Command, script: Script, facts: OwnFacts, deadline: Deadline
    ) -> list[tuple[Compiled, Seen]]:
        """The rules that fire on one command, each with the command as it saw it. Raises `OutOfTimeError`."""
        words = command.own_words
        name = name_of(words[0].text, command.cwd) if words else ""
        found: list[tuple[Compiled, Seen]] = []
        if command.redirects or command.assignments or name in DECLARERS:
            found += self._around(Seen(command, words, name, arguments, facts, script), deadline)
        if not words:
            return found
        for group in self.groups_of(name):
            group.add_fired(Seen(command, words, name, group.read, facts, script), deadline, found)
        module = module_of(words, name) if name[:2] == "py" else None
        if module is not None:
            full, rest = module
            for part in dict.fromkeys((full, full.partition(".")[0])):
                for group in self.groups_of(part):
                    group.add_fired(Seen(command, rest, part, group.read, facts, script), deadline, found)
        return found

    def _around(self, seen: Seen, deadline: Deadline) -> list[tuple[Compiled, Seen]]:
        """Rules that are about no program: they look at assignments and redirections."""
        redirects = seen.command.redirects
        looking: list[Compiled] = []
        if redirects and not all(map(_goes_nowhere, redirects)):
            looking = self._redirects
            if len(self._unclassed) < len(looking) and not seen.redirected_classes():
                looking = self._unclassed
        names = assigned_names(seen)
        if names and any(map(self._assign_fits, names)):
            looking = [*looking, *self._assigns]
        found: list[tuple[Compiled, Seen]] = []
        for compiled in looking:
            deadline.check()
            if compiled.fires(seen):
                found.append((compiled, self._as_read(compiled, seen)))
        return found

    def _as_read(self, compiled: Compiled, seen: Seen) -> Seen:
        """The same command with its options read as its program and the rule say."""
        how = reading(compiled.rule, self._readings.get(seen.name))
        return Seen(seen.command, seen.words, seen.name, how.read, seen.facts, seen.script)


def _goes_nowhere(redirect: Redirect) -> bool:
    """`2>&1` and `> /dev/null`, of which no rule speaks."""
    target = redirect.target.text
    return target == "/dev/null" or (redirect.operator[-1:] == "&" and target.isdigit())


def _checked(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    classes, known = frozenset(CLASSES), frozenset(predicates.table())
    for row, rule in enumerate(rules, 1):
        check(rule, classes, known, row=row)
    return rules


@cache
def load(name: str) -> Table:
    """One file of rules of the package. Raises `RuleError`."""
    try:
        table = msgspec.toml.decode(files(_PACKAGE).joinpath(name).read_bytes(), type=Table)
        _checked(table.rule)
    except (msgspec.ValidationError, RuleError) as error:
        raise RuleError(f"{name}: {error}", row=getattr(error, "row", 0)) from error
    return table


def rule_files() -> tuple[str, ...]:
    """The files of rules of the package, without the floors."""
    names = (item.name for item in files(_PACKAGE).iterdir() if item.name.endswith(".toml"))
    return tuple(sorted(name for name in names if name not in _NOT_RULES))


@cache
def shipped() -> RuleSet:
    """All rules of the package except the floors."""
    tables = [load(name) for name in rule_files()]
    programs = tuple(program for table in tables for program in table.program)
    names = [name for program in programs for name in program.names]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise RuleError(f"programs with two rows: {', '.join(sorted(twice))}")
    return RuleSet(tuple(rule for table in tables for rule in table.rule), programs)


@cache
def floors() -> RuleSet:
    """The floors: what nobody may approve."""
    table = load("floors.toml")
    return RuleSet(table.rule, table.program)


# The operator's own rows


def problems_of(rows: Sequence[Mapping[str, Any] | Rule]) -> list[RuleError]:
    """What is wrong with an operator's rows: one error, of one line, for each row that cannot be used."""
    classes, known = frozenset(CLASSES), frozenset(predicates.table())
    found: list[RuleError] = []
    for row, given in enumerate(rows, 1):
        try:
            check(_own_rule(given), classes, known, row=row)
        except RuleError as error:
            found.append(RuleError(f"rule {row}: {error}", row=row, field=error.field))
    return found


def _own_rule(given: Mapping[str, Any] | Rule) -> Rule:
    """A row as the operator wrote it, with words for people where there are none."""
    rule = given if isinstance(given, Rule) else _converted(given)
    if rule.verdict == "allow":
        return rule
    return replace(
        rule,
        sentence=rule.sentence or f"falls under the rule {rule.key} of the operator",
        label=rule.label or "this rule",
        breadth=rule.breadth or f"All that the rule {rule.key} covers",
    )


def _converted(given: Mapping[str, Any]) -> Rule:
    try:
        return msgspec.convert(dict(given), type=Rule)
    except msgspec.ValidationError as error:
        path, said = problem(error, Rule)
        named = _UNKNOWN_FIELD.search(said)
        if named is not None:
            raise RuleError(f'there is no field "{named.group(1)}"', field=named.group(1)) from error
        field = path.partition("[")[0]
        raise RuleError(f"{field}{field and ': '}{said}", field=field) from error

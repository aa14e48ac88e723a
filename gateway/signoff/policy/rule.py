"""One rule about a simple command: a row of data, and what makes a row a sound one."""

import re
from typing import Literal

import msgspec

from signoff.policy.verdict import MAX_LABEL_CHARS, Severity, VerdictWord

Where = Literal["", "here", "remote", "container"]

_KEY = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+")


class RuleError(ValueError):
    """A row cannot be used. `row` counts from 1 within its table; `field` is the field at fault, or empty."""

    def __init__(self, message: str, *, row: int = 0, field: str = "") -> None:
        """Keep the place beside the message."""
        super().__init__(message)
        self.row = row
        self.field = field


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule fires on one resolved simple command when everything it says is true of it.

    What it is called and what follows:

    - `key` (dotted; rows may share one), `verdict`, `severity`, `sentence` (for people, lower case at the start and no
      full stop), `label` (a button, 20 characters at most), `breadth` (what a standing approval of it covers).

    The program and its words:

    - `programs`: names; a star at the end is any ending, `./name` a file of that name outside the folders of programs;
      none means any program.
    - `subcommands`: the first operands, such as `push` or `compose down`; a part may be `*` or end in one.
    - `flags` (one is given), `all_flags` (each is), `without` (none is); long ones also by an unambiguous beginning.
    - `operands` (classes of paths), `words`, `prefixes`, `contains`: for each of these that is given, one operand
      behind the subcommand must fit one of its entries. `value_of` looks behind a text (`of=`); `option_values` names
      options whose values are looked at instead of the operands. `min_operands` and `max_operands` count behind the
      subcommand.
    - `short_values`, `long_values` (without dashes), `long_single`: which options take a value and whether long ones
      have one dash. They are added to what the program's own row says.

    What stands around it:

    - `assigns` (names set before the program, alone, or by `export` and `env`; a star at the end is any ending),
      `writes` and `reads` (classes of a redirection's target), `chain` (one of these wrappers is around it), `place`,
      `fed` (whether something other than the terminal feeds it).

    `partial` says that the row knows the program in part only, so that the words of `unknown.toml` still ask about it.

    And `only_if` and `unless`: predicates by name, all of which, or none of which, must hold. `unknown` lets a row
    that asks or blocks fire on words that are only known when the command runs.
    """

    key: str
    verdict: VerdictWord
    severity: Severity = "medium"
    sentence: str = ""
    label: str = ""
    breadth: str = ""
    programs: tuple[str, ...] = ()
    subcommands: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    all_flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    value_of: str = ""
    option_values: tuple[str, ...] = ()
    min_operands: int = 0
    max_operands: int | None = None
    short_values: str = ""
    long_values: tuple[str, ...] = ()
    long_single: bool = False
    assigns: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    place: Where = ""
    fed: bool | None = None
    only_if: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    unknown: bool = False
    partial: bool = False


class Program(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How programs read their options: a `[[program]]` row, which spares every rule about them saying it again.

    `leading_short` and `leading_long` are the options that take a value before the first operand only (`git -C folder
    push`); `short_values` and `long_values` take one behind it (before it too, where nothing is leading).
    """

    names: tuple[str, ...]
    short_values: str = ""
    long_values: tuple[str, ...] = ()
    long_single: bool = False
    leading_short: str = ""
    leading_long: tuple[str, ...] = ()


_CLASS_FIELDS = ("operands", "writes", "reads")
_WORD_FIELDS = ("operands", "words", "prefixes", "contains")
_SURROUNDINGS = ("programs", "assigns", "writes", "reads")


def check(rule: Rule, classes: frozenset[str], predicates: frozenset[str], *, row: int = 0) -> None:
    """Raise `RuleError` with one clear line where the row makes no sense."""
    if not _KEY.fullmatch(rule.key):
        message = f'key "{rule.key}" must be two or more lower-case names with dots between'
        raise RuleError(message, row=row, field="key")
    if not any(getattr(rule, name) for name in _SURROUNDINGS):
        raise RuleError(f"{rule.key} names no program, assignment or redirection", row=row, field="programs")
    for field, known in (*((name, classes) for name in _CLASS_FIELDS), ("only_if", predicates), ("unless", predicates)):
        for name in getattr(rule, field):
            if name not in known:
                raise RuleError(f'{rule.key} names "{name}" in {field}, which does not exist', row=row, field=field)
    _check_entries(rule, row)
    _check_words(rule, row)


def _check_entries(rule: Rule, row: int) -> None:
    """Entries that could never fit, or would fit what nobody meant."""
    for field in ("flags", "all_flags", "without", "option_values"):
        for name in getattr(rule, field):
            if name[:1] != "-" or len(name) < 2:
                raise RuleError(f'{rule.key} has "{name}" in {field} without its dash', row=row, field=field)
    if any(not entry.strip() for entry in rule.subcommands):
        raise RuleError(f"{rule.key} has an empty entry in subcommands", row=row, field="subcommands")
    for field in ("programs", "assigns"):
        for name in getattr(rule, field):
            if not name or "*" in name[:-1]:
                message = f'{rule.key} has "{name}" in {field}; a star may only end a name'
                raise RuleError(message, row=row, field=field)
    if not any(getattr(rule, name) for name in _WORD_FIELDS):
        for field in ("option_values", "value_of"):
            if getattr(rule, field):
                raise RuleError(
                    f"{rule.key} has {field} but no operands, words, prefixes or contains", row=row, field=field
                )


def _check_words(rule: Rule, row: int) -> None:
    """What people read must be there and fit, where the rule asks or blocks."""
    if rule.verdict == "allow":
        if rule.unknown:
            raise RuleError(f"{rule.key} allows, so it cannot fire on unknown words", row=row, field="unknown")
        return
    for field in ("sentence", *(("label", "breadth") if rule.verdict == "ask" else ())):
        if not getattr(rule, field):
            raise RuleError(f"{rule.key} has no {field}", row=row, field=field)
    if len(rule.label) > MAX_LABEL_CHARS:
        raise RuleError(f"{rule.key} has a label of more than {MAX_LABEL_CHARS} characters", row=row, field="label")
    if rule.sentence.endswith("."):
        raise RuleError(f"the sentence of {rule.key} ends with a full stop", row=row, field="sentence")

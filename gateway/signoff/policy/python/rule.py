"""Rules about Python code: rows of data, found by the name of what is called."""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Generic, Literal, TypeVar

import msgspec

from signoff.policy.deny import fits, pattern_parts
from signoff.policy.verdict import Severity

_PACKAGE = "signoff.policy.rules"
_FILE = "python.toml"
_MAX_NAMES = 4096
"""How many names' rows are kept at hand; names come from the code that is judged."""


class CodeRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule fires on one call, import or change of an attribute when everything it says is true of it.

    - `key`, `verdict`, `severity`, `sentence`, `label`, `breadth` are those of rules about commands.
    - `calls`, `sets`, `uses`, `imports`: dotted names of functions called or handed on, attributes replaced or deleted,
      attributes looked at, and modules imported. A star is any text; `?` at the start is an object that is not known.
    - `argument` (its place) and `keyword` (its name) choose the argument that `operands` (classes of paths), `words`,
      `prefixes` and `contains` look at; `object` chooses the object whose method is called; none of them means any
      argument. `unknown` lets a value that is only known when the code runs fit.
    - `carries`: what flows into the arguments: `environ` (the whole environment), `secret_name` (a variable that is
      named like a secret), `secret_file` (the content of a secret file).
    - `only_if` and `unless`: checks by name, all of which, or none of which, must hold.
    """

    key: str
    verdict: Literal["ask", "block"] = "ask"
    severity: Severity = "medium"
    sentence: str
    label: str = ""
    breadth: str = ""
    calls: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    argument: int | None = None
    keyword: str = ""
    object: bool = False
    operands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    unknown: bool = False
    carries: tuple[Literal["environ", "secret_name", "secret_file"], ...] = ()
    only_if: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class Runner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Functions that start a command. `shape` says how they are told of it, from the argument `at` (or `keyword`) on:

    `text` (one shell text), `command` (a list of words or a text), `words` (each argument is a word), `list` (the
    program, then a list of its words). `skip` words behind the program are its name once more. `before` are words that
    stand before those, and so are the parts of the function's name from the part `named` on (`sh.git.push`: from 1).
    """

    calls: tuple[str, ...]
    shape: Literal["text", "command", "words", "list"]
    at: int = 0
    keyword: str = ""
    skip: int = 0
    before: tuple[str, ...] = ()
    named: int = 0


class Passer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Functions that call another one: it is the argument `function` (or `keyword`), and its arguments are the `rest`,
    the items of a `list` at `at` (or `list_keyword`), or `each` item of it for a call of its own."""

    calls: tuple[str, ...]
    function: int = 0
    keyword: str = ""
    arguments: Literal["rest", "list", "each"] = "rest"
    at: int = 1
    list_keyword: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rule: tuple[CodeRule, ...]
    runner: tuple[Runner, ...] = ()
    passer: tuple[Passer, ...] = ()


Row = TypeVar("Row", CodeRule, Runner, Passer)


class _Index(Generic[Row]):
    """Rows by the dotted names they speak of: whole ones by name, those with a star by what stands at their ends."""

    def __init__(self, rows: Iterable[tuple[Row, tuple[str, ...]]]) -> None:
        self._whole: dict[str, list[Row]] = {}
        self._heads: dict[str, list[tuple[list[str], Row]]] = {}
        self._tails: dict[str, list[tuple[list[str], Row]]] = {}
        self._others: list[tuple[list[str], Row]] = []
        self._known: dict[str, tuple[Row, ...]] = {}
        for row, names in rows:
            for name in names:
                self._add(name, row)

    def _add(self, name: str, row: Row) -> None:
        if "*" not in name:
            self._whole.setdefault(name, []).append(row)
            return
        parts = pattern_parts(name)
        head, tail = parts[0].partition("."), parts[-1].rpartition(".")
        if head[1]:
            self._heads.setdefault(head[0], []).append((parts, row))
        elif tail[1]:
            self._tails.setdefault(tail[2], []).append((parts, row))
        else:
            self._others.append((parts, row))

    def of(self, name: str) -> tuple[Row, ...]:
        """The rows about a name, each once."""
        known = self._known.get(name)
        if known is not None:
            return known
        rows = {id(row): row for row in self._whole.get(name, ())}
        starred = (
            *self._heads.get(name.partition(".")[0], ()),
            *self._tails.get(name.rpartition(".")[2], ()),
            *self._others,
        )
        rows.update((id(row), row) for parts, row in starred if fits(parts, name))
        if len(self._known) >= _MAX_NAMES:
            self._known.clear()
        self._known[name] = found = tuple(rows.values())
        return found


class CodeRules:
    """Rules, runners and passers with an index by name. Never changes."""

    def __init__(
        self, rules: tuple[CodeRule, ...], runners: tuple[Runner, ...] = (), passers: tuple[Passer, ...] = ()
    ) -> None:
        """Index the rows."""
        self.rules = rules
        self.runners = runners
        self.passers = passers
        self._calls = _Index((rule, rule.calls) for rule in rules)
        self._sets = _Index((rule, rule.sets) for rule in rules)
        self._uses = _Index((rule, rule.uses) for rule in rules)
        self._imports = _Index((rule, rule.imports) for rule in rules)
        self._runners = _Index((row, row.calls) for row in runners)
        self._passers = _Index((row, row.calls) for row in passers)

    def about(self, kind: str, name: str) -> tuple[CodeRule, ...]:
        """The rules that speak of this name."""
        return {"set": self._sets, "use": self._uses, "import": self._imports}.get(kind, self._calls).of(name)

    def runner(self, name: str) -> Runner | None:
        """How a function that starts commands is told of them."""
        found = self._runners.of(name)
        return found[0] if found else None

    def passer(self, name: str) -> Passer | None:
        """How a function that calls another one is told of it."""
        found = self._passers.of(name)
        return found[0] if found else None

    def without(self, row: int) -> "CodeRules":
        """These rules without one row, counted from 0."""
        return CodeRules((*self.rules[:row], *self.rules[row + 1 :]), self.runners, self.passers)


@cache
def shipped() -> CodeRules:
    """The rules of the package."""
    table = msgspec.toml.decode(files(_PACKAGE).joinpath(_FILE).read_bytes(), type=_Table)
    return CodeRules(table.rule, table.runner, table.passer)

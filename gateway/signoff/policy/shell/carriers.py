"""Programs that carry another command or a text in some language: the table, and who is in it."""

import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import msgspec

from signoff.policy.shell.model import Place, Word
from signoff.policy.shell.names import without_version
from signoff.policy.shell.options import Marks, OptionSpec, arguments

Change = Literal["nothing", "who", "where", "what"]


class Carrier(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one family of programs carries a command (a row of `carriers.toml`, where the fields are explained)."""

    names: tuple[str, ...]
    subcommands: tuple[str, ...] = ()
    short_values: str = ""
    long_values: tuple[str, ...] = ()
    long_pairs: tuple[str, ...] = ()
    long_single: bool = False
    skip: int = 0
    skips: Literal["any", "first", "number"] = "any"
    only_behind: str = ""
    assignments: bool = False
    inner: Literal[
        "words", "text", "first", "each", "definitions", "clauses", "template", "behind", "pairs", "itself", "none"
    ] = "words"
    not_with: str = ""
    min_operands: int = 1
    words_with: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    code_takes: Literal["positional", "words", "nothing"] = "nothing"
    code_files: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    program_option: tuple[str, ...] = ()
    clause_starts: tuple[str, ...] = ()
    clause_ends: tuple[str, ...] = ()
    appends: bool = False
    again: bool = False
    query: tuple[str, ...] = ()
    stdin_is: Literal["", "code", "arguments"] = ""
    file_is_code: bool = False
    default: str = ""
    later: bool = False
    fresh: bool = False
    partial: bool = False
    language: str = ""
    place: Place = "here"
    changes: Change
    spec: OptionSpec = OptionSpec()
    phrases: tuple[tuple[str, ...], ...] = ()
    starts: frozenset[str] = frozenset()
    options_only: bool = False

    def __post_init__(self) -> None:
        """Put together once what every call needs: `options_only` says that it carries nothing but by an option."""
        only = self.inner == "none" and not (self.stdin_is or self.file_is_code or self.words_with)
        msgspec.structs.force_setattr(self, "options_only", only)
        spec = OptionSpec(
            short_values=self.short_values,
            long_values=self.long_values,
            long_pairs=self.long_pairs,
            long_single=self.long_single,
        )
        msgspec.structs.force_setattr(self, "spec", spec)
        phrases = tuple(tuple(subcommand.split()) for subcommand in self.subcommands)
        msgspec.structs.force_setattr(self, "phrases", phrases)
        msgspec.structs.force_setattr(self, "starts", frozenset(phrase[0] for phrase in phrases))


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    carrier: tuple[Carrier, ...]
    code_variables: tuple[str, ...]
    command_options: tuple[str, ...]
    without_command_options: tuple[str, ...]


@cache
def _loaded() -> _Table:
    return msgspec.toml.decode(files(__package__).joinpath("carriers.toml").read_bytes(), type=_Table)


def rows() -> tuple[Carrier, ...]:
    """All rows, in their order."""
    return _loaded().carrier


@cache
def table() -> dict[str, tuple[Carrier, ...]]:
    """The carriers by program name."""
    found: dict[str, tuple[Carrier, ...]] = {}
    for carrier in rows():
        for name in carrier.names:
            found[name] = (*found.get(name, ()), carrier)
    return found


@cache
def code_variables() -> frozenset[str]:
    """Environment variables whose value some program runs as shell text."""
    return frozenset(_loaded().code_variables)


ANY = Carrier(names=("*",), inner="none", changes="what")
"""Any program that is told of a command by an option with a name for that."""


@cache
def _excepted() -> frozenset[str]:
    return frozenset(_loaded().without_command_options)


@cache
def _option_names() -> re.Pattern[str]:
    """The names of options that say of themselves that they take a command."""
    names = (re.escape(name).replace(r"\*", r"[\w-]+") for name in _loaded().command_options)
    return re.compile(rf"--(?!no-)(?:{'|'.join(names)})")


@lru_cache(maxsize=4096)
def takes_command(option: str) -> bool:
    """Whether an option, without its value, says by its name that it takes a command (`--post-hook`)."""
    return len(option) <= _MAX_OPTION_CHARS and _option_names().fullmatch(option.replace("_", "-")) is not None


_MAX_OPTION_CHARS = 64
"""Longer words are no names of options."""


def command_options(words: tuple[Word, ...]) -> list[tuple[int, str, str, str]]:
    """The options among the words that say by their names that they take a command: place, name, `=` and value."""
    found: list[tuple[int, str, str, str]] = []
    for place, word in enumerate(words):
        if word.text[:2] == "--":
            name, equals, value = word.text.partition("=")
            if takes_command(name):
                found.append((place, name, equals, value))
    if not found:
        return found
    program = words[0].text
    if program.rpartition("/")[2] in _excepted() or len(program) >= _MAX_PROGRAM_CHARS:
        return []
    known = _rows(program).options
    return [each for each in found if each[1] not in known]


class _Rows(msgspec.Struct, frozen=True):
    """The rows of one program, and the words with which the subcommands of all of them begin."""

    rows: tuple[Carrier, ...] = ()
    starts: frozenset[str] = frozenset()
    by_options: Marks = Marks(())
    """The options of those rows that carry nothing but by one."""
    options: frozenset[str] = frozenset()
    """The options of all rows whose values are texts."""


_NONE = _Rows()
_MAX_PROGRAM_CHARS = 256
"""No program has a longer name."""


@lru_cache(maxsize=2048)
def _rows(program: str) -> _Rows:
    """The rows of a program: by its last name, else without its version, else as a folder without case has it."""
    name = program.rpartition("/")[2]
    known = table()
    rows = known.get(name) or known.get(without_version(name)) or ()
    if not rows:
        folded = unicodedata.normalize("NFKC", name).casefold()
        rows = known.get(folded) or known.get(without_version(folded)) or ()
    if not rows:
        return _NONE
    starts = frozenset(start for row in rows for start in row.starts)
    options = [name for row in rows if row.options_only for name in (*row.code, *row.code_files)]
    texts = frozenset(name for row in rows for name in (*row.code, *row.code_files, *row.clause_starts))
    return _Rows(rows, starts, Marks(options), texts)


def find(words: tuple[Word, ...]) -> list[tuple[Carrier, tuple[Word, ...], int]]:
    """The carriers of these words, each with the words as it sees them (behind its subcommand), and how many came
    before those."""
    program = words[0].text
    known = _rows(program) if len(program) < _MAX_PROGRAM_CHARS else _NONE
    if not known.rows:
        return []
    texts = [word.text for word in words]
    begins = not known.starts.isdisjoint(texts)
    carries_by_options = known.by_options.may_be_in(words)
    found: list[tuple[Carrier, tuple[Word, ...], int]] = []
    for carrier in known.rows:
        if carrier.options_only and not carries_by_options:
            continue
        if not carrier.subcommands:
            found.append((carrier, words, 0))
        elif begins and not carrier.starts.isdisjoint(texts) and (at := _subcommand(words, texts, carrier)):
            found.append((carrier, words[at:], at))
    return found


def _subcommand(words: tuple[Word, ...], texts: list[str], carrier: Carrier) -> int:
    """The place of the last word of its subcommand (`docker compose exec`), or 0."""
    for phrase in carrier.phrases:
        if phrase[-1] not in texts:
            continue
        at = 0
        for part in phrase:
            after = arguments(words[at:], carrier.spec, stop=True)
            if not after.operands or after.operands[0][1].text != part:
                break
            at += after.rest
        else:
            return at
    return 0

"""Programs that carry another command: which words, or which text, they run."""

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from signoff.policy.shell.model import UNKNOWN, Place, Word
from signoff.policy.shell.options import Arguments, OptionSpec, arguments
from signoff.policy.shell.quoting import requote

Change = Literal["nothing", "who", "where", "what"]


class Carrier(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one family of programs carries a command (a row of `carriers.toml`, where the fields are explained)."""

    names: tuple[str, ...]
    subcommands: tuple[str, ...] = ()
    short_values: str = ""
    long_values: tuple[str, ...] = ()
    long_pairs: tuple[str, ...] = ()
    skip: int = 0
    skip_to: str = ""
    assignments: bool = False
    inner: Literal["words", "text", "first", "definitions", "clauses", "none"] = "words"
    words_with: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    code_takes: Literal["positional", "words", "nothing"] = "nothing"
    query: tuple[str, ...] = ()
    stdin_is: Literal["", "code", "arguments"] = ""
    file_is_code: bool = False
    default: str = ""
    fresh: bool = False
    place: Place = "here"
    changes: Change

    @property
    def options(self) -> OptionSpec:
        """Its options, for `arguments`."""
        return OptionSpec(short_values=self.short_values, long_values=self.long_values, long_pairs=self.long_pairs)


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    """What a carrier runs: `words`, shell `text`, or a `file` of shell code.

    `own` counts the words that are the carrier's. `positional` are `$1`, `$2`, ... of a text; None keeps those there
    are. `zero` is its `$0`.
    """

    own: int
    words: tuple[Word, ...] = ()
    text: str | None = None
    file: Word | None = None
    stdin: bool = False
    assignments: tuple[tuple[str, str], ...] = ()
    positional: tuple[str, ...] | None = None
    zero: str | None = None


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    carrier: tuple[Carrier, ...]


@cache
def table() -> dict[str, tuple[Carrier, ...]]:
    """The carriers by program name."""
    found: dict[str, tuple[Carrier, ...]] = {}
    raw = files(__package__).joinpath("carriers.toml").read_bytes()
    for carrier in msgspec.toml.decode(raw, type=_Table).carrier:
        for name in carrier.names:
            found[name] = (*found.get(name, ()), carrier)
    return found


def find(words: tuple[Word, ...]) -> tuple[Carrier, tuple[Word, ...], int] | None:
    """The carrier of these words, the words as it sees them (behind its subcommand), and how many came before those."""
    name = words[0].text.rpartition("/")[2]
    for carrier in table().get(name, ()):
        if not carrier.subcommands:
            return carrier, words, 0
        at = _subcommand(words, carrier)
        if at:
            return carrier, words[at:], at
    return None


def _subcommand(words: tuple[Word, ...], carrier: Carrier) -> int:
    """The place of the last word of its subcommand (`docker compose exec`), or 0."""
    for subcommand in carrier.subcommands:
        at = 0
        for part in subcommand.split():
            after = arguments(words[at:], carrier.options, stop=True)
            if not after.operands or after.operands[0][1].text != part:
                break
            at += after.rest
        else:
            return at
    return 0


def unwrap(carrier: Carrier, words: tuple[Word, ...]) -> list[Inner]:
    """What `carrier` runs when called with `words`; empty when it runs nothing that the words show."""
    if carrier.inner == "clauses":
        return _clauses(words)
    if carrier.inner == "definitions":
        values = [word.text.partition("=")[2] for word in words[1:] if "=" in word.text]
        return [Inner(own=len(words), text=value) for value in values]
    if carrier.words_with and (direct := _direct(carrier, words)):
        return direct
    # su takes its options behind the user's name as well.
    given = arguments(words, carrier.options, stop=carrier.inner != "none" or carrier.file_is_code)
    if carrier.query and given.has(*carrier.query):
        return []
    if carrier.code_takes == "positional":
        if given.has(*carrier.code) and given.operands:
            return [_from_switch(words, given)]
    elif (option := given.value(carrier.code)) is not None and option.value is not None:
        return [_from_option(carrier, words, given, option.value.text)]
    return _from_operands(carrier, words, given)


def _direct(carrier: Carrier, words: tuple[Word, ...]) -> list[Inner]:
    """`runuser -u ana -- ls`: with this option the operands are a program and its words, even behind other operands."""
    for stop in (True, False):
        given = arguments(words, carrier.options, stop=stop)
        if given.has(*carrier.words_with) and given.operands:
            return [Inner(own=given.operands[0][0], words=tuple(word for _place, word in given.operands))]
    return []


def _from_switch(words: tuple[Word, ...], given: Arguments) -> Inner:
    texts = [word.text for _place, word in given.operands if not word.text.startswith(("-", "+"))]
    text, zero = (*texts[:2], "", "")[:2]
    return Inner(own=len(words), text=text, positional=tuple(texts[2:]), zero=zero or None)


def _from_option(carrier: Carrier, words: tuple[Word, ...], given: Arguments, text: str) -> Inner:
    if carrier.code_takes == "words":
        rest = [requote(word.text) for _place, word in given.operands]
        return Inner(own=len(words), text=" ".join([text, *rest]), positional=())
    return Inner(own=len(words), text=text, positional=())


def _from_operands(carrier: Carrier, words: tuple[Word, ...], given: Arguments) -> list[Inner]:
    operands = list(given.operands)
    if carrier.inner == "none":
        return _from_shell(carrier, words, operands)
    if carrier.skip_to:
        operands = _behind(operands, carrier.skip_to)
    if carrier.skip and len(operands) > carrier.skip + 1 and operands[carrier.skip][1].text in carrier.code:
        return [Inner(own=len(words), text=operands[carrier.skip + 1][1].text, positional=())]
    assigned: list[tuple[str, str]] = []
    while carrier.assignments and operands and _is_assignment(operands[0][1].text):
        name, _equals, value = operands.pop(0)[1].text.partition("=")
        assigned.append((name, value))
    operands = _options_after_skip(carrier, operands)
    if not operands:
        return _without_command(carrier, words)
    inner = tuple(word for _place, word in operands)
    if carrier.inner == "first":
        return [Inner(own=len(words), text=inner[0].text)] if len(inner) > 1 or carrier.skip else []
    if carrier.inner == "text":
        return [Inner(own=operands[0][0], text=" ".join(word.text for word in inner))]
    return [Inner(own=operands[0][0], words=inner, assignments=tuple(assigned))]


def _without_command(carrier: Carrier, words: tuple[Word, ...]) -> list[Inner]:
    """A carrier that got no command runs its default one, or a shell that reads its input, or nothing."""
    if carrier.default:
        return [Inner(own=len(words), words=(Word(carrier.default),))]
    return [Inner(own=len(words), stdin=True)] if carrier.stdin_is == "code" else []


def _options_after_skip(carrier: Carrier, operands: list[tuple[int, Word]]) -> list[tuple[int, Word]]:
    """Leave out the operands before the program (a duration, a host), and options and `--` between them and it."""
    if not carrier.skip:
        return operands
    operands = operands[carrier.skip :]
    while operands and operands[0][1].text.startswith("-") and len(operands[0][1].text) > 1:
        text = operands.pop(0)[1].text
        if text == "--":
            break
        letter = text.lstrip("-")
        takes_value = letter in carrier.long_values if text.startswith("--") else letter[-1:] in carrier.short_values
        if takes_value and "=" not in text and operands:
            operands.pop(0)
    return operands


def _from_shell(carrier: Carrier, words: tuple[Word, ...], operands: list[tuple[int, Word]]) -> list[Inner]:
    """A shell without `-c` reads its first operand as a file, else its standard input."""
    if carrier.file_is_code and operands and operands[0][1].text not in {"-", "/dev/stdin", "/proc/self/fd/0"}:
        rest = tuple(word.text for _place, word in operands[1:])
        return [Inner(own=len(words), file=operands[0][1], positional=rest)]
    return [Inner(own=len(words), stdin=True, positional=tuple(word.text for _place, word in operands[1:]))]


def _behind(operands: list[tuple[int, Word]], mark: str) -> list[tuple[int, Word]]:
    for place, (_index, word) in enumerate(operands):
        if word.text == mark:
            return operands[place + 1 :]
    return operands


def _is_assignment(text: str) -> bool:
    name, equals, _value = text.partition("=")
    return bool(equals) and name.replace("_", "a").isalnum() and not name[:1].isdigit()


_CLAUSE_STARTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def _clauses(words: tuple[Word, ...]) -> list[Inner]:
    """The commands of find's `-exec` clauses; `{}` stands for what is only known when they run."""
    found: list[Inner] = []
    start = 0
    for place, word in enumerate(words):
        if start and word.text in {";", "+"}:
            found.append(_clause(words, start, place))
            start = 0
        elif not start and word.text in _CLAUSE_STARTS:
            start = place + 1
    if start and start < len(words):
        found.append(_clause(words, start, len(words)))
    return found


def _clause(words: tuple[Word, ...], start: int, end: int) -> Inner:
    inner = tuple(Word(word.text.replace("{}", UNKNOWN), pattern=word.pattern) for word in words[start:end])
    return Inner(own=len(words), words=inner)

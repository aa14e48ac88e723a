"""Options and operands of a command line, as most programs read them."""

from collections.abc import Iterable

import msgspec

from signoff.policy.shell.model import UNKNOWN, Word


class OptionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Which options of a program take a value: letters of short ones, names of long ones without dashes.

    `long_pairs` names long options that take two values. `long_single` says that the program writes long options with
    one dash (find, docker's older tools).
    """

    short_values: str = ""
    long_values: tuple[str, ...] = ()
    long_pairs: tuple[str, ...] = ()
    long_single: bool = False
    taking: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Put together once what every call needs: `taking` are the `long_values`."""
        msgspec.structs.force_setattr(self, "taking", frozenset(self.long_values))


_MARK_CHARS = 4


class Marks:
    """How some options begin: tells at a glance that none of them is among the words, however a program reads them."""

    __slots__ = ("_beginnings", "_letters")

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names, with their dashes."""
        names = tuple(names)
        self._letters = frozenset(name[1] for name in names if name[1] != "-" and len(name) < _MARK_CHARS)
        self._beginnings = frozenset(f"{name}="[:_MARK_CHARS] for name in names) | frozenset(names)

    def may_be_in(self, words: Iterable[Word]) -> bool:
        """Whether a word may be one of the options, the beginning of one, or have one among other letters."""
        for word in words:
            text = word.text
            if text[:1] != "-":
                continue
            if text[:_MARK_CHARS] in self._beginnings:
                return True
            if self._letters and text[1:2] != "-" and not self._letters.isdisjoint(text):
                return True
        return False


class Option(msgspec.Struct, frozen=True, gc=False):
    """One option (`-r`, `--recursive`) with its value; `index` is the place of its word."""

    name: str
    value: Word | None
    index: int


class Arguments(msgspec.Struct, frozen=True, gc=False):
    """Options and operands with their places; `rest` is the place of the first operand (or behind the last word)."""

    options: tuple[Option, ...]
    operands: tuple[tuple[int, Word], ...]
    rest: int

    def has(self, *names: str) -> bool:
        """Whether one of the options is given; a long one also by an unambiguous beginning of three letters or more."""
        return any(matches(option.name, name) for option in self.options for name in names)

    def value(self, names: tuple[str, ...]) -> Option | None:
        """The first of these options that has a value."""
        for option in self.options:
            if option.value is not None and any(matches(option.name, name) for name in names):
                return option
        return None


def matches(given: str, name: str) -> bool:
    """Whether the option as given means the option `name`."""
    if given == name:
        return True
    return name.startswith("--") and len(given) >= 5 and name.startswith(given)


_PLAIN = OptionSpec()


def arguments(words: tuple[Word, ...], spec: OptionSpec = _PLAIN, *, stop: bool = False) -> Arguments:
    """Read the words after the program; with `stop` options end at the first operand, as wrappers read them."""
    options: list[Option] = []
    operands: list[tuple[int, Word]] = []
    index, end = 1, len(words)
    while index < end:
        text = words[index].text
        if text == "--":
            operands += enumerate(words[index + 1 :], index + 1)
            break
        if text[:1] != "-" or len(text) < 2:
            if stop:
                return Arguments(tuple(options), tuple(enumerate(words[index:], index)), index)
            operands.append((index, words[index]))
            index += 1
            continue
        index = _option(words, index, spec, options)
    rest = operands[0][0] if operands else end
    return Arguments(tuple(options), tuple(operands), rest)


def _option(words: tuple[Word, ...], index: int, spec: OptionSpec, options: list[Option]) -> int:
    """Read the option at `index`; the place behind it and its value."""
    text = words[index].text
    following = words[index + 1] if index + 1 < len(words) else None
    if text.startswith("--") or spec.long_single:
        name, equals, value = text.partition("=")
        if equals:
            options.append(Option(name, Word(value), index))
        elif following is not None and spec.taking and name.lstrip("-") in spec.taking:
            options.append(Option(name, following, index))
            return index + 2
        else:
            options.append(Option(name, None, index))
            return index + (3 if spec.long_pairs and name.lstrip("-") in spec.long_pairs else 1)
        return index + 1
    for place, letter in enumerate(text[1:], 1):
        if letter == UNKNOWN:
            break
        if letter in spec.short_values:
            attached = text[place + 1 :]
            if attached or following is None:
                options.append(Option("-" + letter, Word(attached) if attached else None, index))
                return index + 1
            options.append(Option("-" + letter, following, index))
            return index + 2
        options.append(Option("-" + letter, None, index))
    return index + 1

"""One simple command as rules and predicates see it."""

from collections.abc import Callable
from functools import lru_cache

import msgspec

from signoff.policy.path_classes import text_classes
from signoff.policy.paths import PathFacts
from signoff.policy.shell import UNKNOWN, Command, Script, Word
from signoff.policy.shell.options import Arguments


class OwnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway knows of itself and of the user: paths, process, home."""

    paths: PathFacts = PathFacts()
    pid: int | None = None


_SHORTEST_LONG = 5
"""So many characters of a long option's name, its dashes included, mean it."""


_NO_CLASSES: frozenset[str] = frozenset()


@lru_cache(maxsize=4096)
def _begins(given: str, names: frozenset[str] | tuple[str, ...]) -> bool:
    """Whether an option as given is the beginning of one of the names."""
    return any(name.startswith(given) for name in names)


@lru_cache(maxsize=4096)
def _begins_other(given: str, names: frozenset[str]) -> bool:
    return any(name != given and name.startswith(given) for name in names)


class Seen:
    """A command with its options read as one group of rules reads them.

    `words` are the program's own, without those of a command it carries; `words[0]` is the program, or the module that
    `python -m` runs. `name` is the program's folded name.
    """

    __slots__ = (
        "_dashed", "_flags", "_given", "_long", "_operands", "_read", "_redirected", "_texts", "command", "facts",
        "name", "script", "words",
    )  # fmt: skip
    _given: Arguments | None
    _operands: list[Word] | None
    _dashed: list[tuple[int, Word]] | None
    _texts: list[str] | None
    _flags: frozenset[str] | None
    _redirected: list[tuple[bool, frozenset[str]]] | None
    _long: tuple[str, ...]

    def __init__(
        self,
        command: Command,
        words: tuple[Word, ...],
        name: str,
        read: Callable[[tuple[Word, ...]], Arguments],
        facts: OwnFacts,
        script: Script,
    ) -> None:
        """Keep what is known; nothing is worked out before it is asked for. `read` reads options and operands."""
        self.command = command
        self.words = words
        self.name = name
        self.facts = facts
        self.script = script
        self._read = read
        self._given = self._operands = self._dashed = self._texts = self._flags = self._redirected = None
        self._long = ()

    @property
    def given(self) -> Arguments:
        """The options and operands with their places."""
        if self._given is None:
            self._given = self._read(self.words)
        return self._given

    @property
    def operands(self) -> list[Word]:
        """The words that are no options and no values of options, in order."""
        if self._operands is None:
            self._operands = [word for _place, word in self.given.operands]
        return self._operands

    @property
    def texts(self) -> list[str]:
        """The operands' texts, with unknown stretches in them."""
        if self._texts is None:
            self._texts = [word.text for word in self.operands]
        return self._texts

    @property
    def dashed(self) -> list[tuple[int, Word]]:
        """The words that begin with a dash, however the program reads them, with their places."""
        if self._dashed is None:
            self._dashed = [(place, word) for place, word in enumerate(self.words) if word.text[:1] == "-"]
        return self._dashed

    def redirected_classes(self, *, writes: bool | None = None) -> frozenset[str]:
        """The classes of paths that the texts of the files are of which its redirections write, or read, or both."""
        if self._redirected is None:
            cwd, facts = self.command.cwd, self.facts.paths
            self._redirected = [(each.writes, text_classes(each.target, cwd, facts)) for each in self.command.redirects]
        found = [classes for wrote, classes in self._redirected if classes and (writes is None or wrote is writes)]
        return _NO_CLASSES.union(*found) if found else _NO_CLASSES

    @property
    def cwd(self) -> str | None:
        """The folder the command runs in, where it is known."""
        return self.command.cwd

    @property
    def flags(self) -> frozenset[str]:
        """The names of the options given, with their dashes."""
        if self._flags is None:
            self._flags = frozenset([option.name for option in self.given.options])
            self._long = tuple([name for name in self._flags if len(name) >= _SHORTEST_LONG and name[:2] == "--"])
        return self._flags

    def has(self, *names: str) -> bool:
        """Whether one of these options is given; a long one also by an unambiguous beginning."""
        return self.has_any(frozenset(names))

    def has_any(self, names: frozenset[str]) -> bool:
        """The same for a set that is made once."""
        if not (self.flags if self._flags is None else self._flags).isdisjoint(names):
            return True
        for given in self._long:  # noqa: SIM110  # a generator would cost more than the loop
            if _begins(given, names):
                return True
        return False

    def given_of(self, names: frozenset[str]) -> frozenset[str]:
        """Which of these options are given; all of them where a long one may be the beginning of another one."""
        found = (self.flags if self._flags is None else self._flags) & names
        for given in self._long:
            if _begins_other(given, names):
                return names
        return found

    def values(self, *names: str) -> list[Word]:
        """The values of these options, as often as they are given."""
        found: list[Word] = []
        for option in self.given.options:
            value, name = option.value, option.name
            if value is None:
                continue
            if name in names or (len(name) >= _SHORTEST_LONG and name[:2] == "--" and _begins(name, names)):
                found.append(value)
        return found

    @property
    def perhaps_options(self) -> bool:
        """Whether a word that is only known when the command runs may be an option."""
        return any(UNKNOWN in word.text and (word.many or word.text[0] in {UNKNOWN, "-"}) for word in self.words[1:])

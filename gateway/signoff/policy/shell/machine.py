"""The state of reading one text: where it is, what it knows, what it found."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import tree_sitter

from signoff.policy.shell.deadline import Deadline, TooManyWordsError
from signoff.policy.shell.model import Command, Place, Redirect
from signoff.policy.shell.quoting import backticked
from signoff.policy.shell.scope import Scope
from signoff.policy.shell.syntax import text_of

TOO_DEEP = "it nests too deeply"
"""Why a text was not read to its end; ends a sentence that begins with "cannot be understood"."""

MAX_DEPTH = 48
"""How deep constructs, substitutions and inner texts may nest, all counted together: it keeps the walk far from the
interpreter's recursion limit, and no honest command comes near."""

MAX_COMMANDS = 2000
"""How many simple commands one text may have, calls of its functions written out."""

MAX_WORDS = 12000
"""How many words all its commands may have together, those of wrappers counted again: judging them takes time too."""


class Io(msgspec.Struct, frozen=True, kw_only=True):
    """What stands around a command: its input, redirections, wrappers, place and assignments before it."""

    stdin: str | None = None
    fed: bool = False
    redirects: tuple[Redirect, ...] = ()
    chain: tuple[str, ...] = ()
    place: Place = "here"
    assignments: tuple[tuple[str, str], ...] = ()
    source: str = ""


class Machine:
    """Walks a text as the shell would, without running anything. A cheap interpreter of constants only."""

    def __init__(
        self,
        deadline: Deadline,
        scope: Scope,
        read: Callable[["Machine", str, Io], str | None],
        statement: Callable[["Machine", tree_sitter.Node, Io], str | None],
    ) -> None:
        """Start with nothing found; `read` reads an inner text, `statement` walks one node."""
        self.deadline = deadline
        self.scope = scope
        self.source = b""
        self.io = Io()
        self.commands: list[Command] = []
        self.problems: dict[str, None] = {}
        self.opaque: dict[str, None] = {}
        self.fork_bombs: dict[str, None] = {}
        self.depth = 0
        self.unsure = 0
        self._word_count = 0
        self._read = read
        self._statement = statement

    def emit(self, command: Command) -> None:
        """Keep a command that was found. Raises `TooManyWordsError`."""
        self._word_count += len(command.words) + len(command.redirects)
        if len(self.commands) >= MAX_COMMANDS or self._word_count > MAX_WORDS:
            raise TooManyWordsError
        self.commands.append(command)

    def note_opaque(self, what: str) -> None:
        """Code that only exists when the text runs."""
        self.opaque.setdefault(what)

    def read(self, text: str, io: Io) -> str | None:
        """Read an inner text; its output, or None."""
        return self._read(self, text, io)

    def statement(self, node: tree_sitter.Node, io: Io) -> str | None:
        """Walk a node; its output, or None."""
        return self._statement(self, node, io)

    @contextmanager
    def nested(self) -> Iterator[bool]:
        """One level deeper; False when that is too deep, which is noted."""
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                self.problems.setdefault(TOO_DEEP)
            yield self.depth <= MAX_DEPTH
        finally:
            self.depth -= 1

    @contextmanager
    def subshell(self) -> Iterator[None]:
        """What is assigned or changed inside is forgotten afterwards."""
        scope = self.scope
        self.scope = scope.copy()
        try:
            yield
        finally:
            self.scope = scope

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """What stands inside may not run, or run several times."""
        self.unsure += 1
        try:
            yield
        finally:
            self.unsure -= 1

    def substitute(self, node: tree_sitter.Node) -> str | None:
        """Read the code of a substitution; its output, or None when that is not known."""
        fed = node.type == "process_substitution" and text_of(node, self.source).startswith(">")
        io = Io(place=self.io.place, chain=self.io.chain, fed=fed)
        with self.nested() as deeper, self.subshell():
            if not deeper:
                return None
            text = text_of(node, self.source)
            if text.startswith("`") and "\\" in text:
                return self.read(backticked(text[1:-1]), io)
            outputs = [self.statement(child, io) for child in node.named_children]
        return None if None in outputs else "".join(text for text in outputs if text)

"""The state of reading one text: where it is, what it knows, what it found."""

from collections.abc import Callable

import msgspec
import tree_sitter

from signoff.policy.shell import evaluating
from signoff.policy.shell.carriers import code_variables
from signoff.policy.shell.deadline import Deadline, TooManyWordsError
from signoff.policy.shell.model import UNKNOWN, Command, Place, Redirect
from signoff.policy.shell.scope import Scope
from signoff.policy.shell.syntax import text_of

TOO_DEEP = "it nests too deeply"
"""Why a text was not read to its end; ends a sentence that begins with "cannot be understood"."""

NOT_ALL_READ = "a part of it was not read"
"""The same for a text in which something runs that no rule of reading reached."""

UNREADABLE = "its syntax cannot be read"
"""The same for a text that is no shell text, or not one that the grammar knows."""

MAX_DEPTH = 48
"""How deep constructs, substitutions and inner texts may nest, all counted together: it keeps the walk far from the
interpreter's recursion limit, and no honest command comes near."""

MAX_COMMANDS = 10_000
"""How many simple commands one text may have, calls of its functions written out."""

MAX_WORDS = 60_000
"""How many words all its commands may have together, those of wrappers counted again: judging them takes time too."""

MAX_CHARS = 2 * 1024 * 1024
"""How many characters these words may have together, where there are more than a few commands: one variable may stand
in each of thousands. They are compared with every deny rule."""

_FEW_COMMANDS = 16

MAX_CALLS = 500
"""How many calls of its functions are followed: functions that call each other twice double them at each step."""

MAX_DEEP_LOOPS = 64
"""How many loops within two others are gone through once more, because they change what they use."""

MAX_EXPANDED = 64 * 1024
"""Longer values are not expanded once more."""


class Io(msgspec.Struct, frozen=True, kw_only=True):
    """What stands around a command: its input, redirections, wrappers, place and assignments before it."""

    stdin: str | None = None
    fed: bool = False
    redirects: tuple[Redirect, ...] = ()
    chain: tuple[str, ...] = ()
    place: Place = "here"
    assignments: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    """What was assigned before the commands that carry this one: it finds that set."""
    source: str = ""


class _Level:
    """Counts the levels of nesting; one for each machine, since every node of a text goes through it."""

    __slots__ = ("_machine",)

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine

    def __enter__(self) -> bool:
        machine = self._machine
        machine.depth += 1
        if machine.depth > MAX_DEPTH:
            machine.problems.setdefault(TOO_DEEP)
            return False
        return True

    def __exit__(self, *_error: object) -> None:
        self._machine.depth -= 1


class _Subshell:
    """Gives the machine a scope of its own for a while."""

    __slots__ = ("_machine", "_outer")

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._outer = machine.scope

    def __enter__(self) -> None:
        self._outer = self._machine.scope
        self._machine.scope = self._outer.copy()

    def __exit__(self, *_error: object) -> None:
        self._machine.scope = self._outer


class _Perhaps:
    """Counts the constructs around that may not run."""

    __slots__ = ("_machine",)

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine

    def __enter__(self) -> None:
        self._machine.unsure += 1

    def __exit__(self, *_error: object) -> None:
        self._machine.unsure -= 1


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
        self.loops = 0
        self.deep_loops = 0
        self.failing = False
        self.visited: set[int] = set()
        """The nodes of statements and substitutions that were walked, in the text that is being read."""
        self.covered: list[tuple[int, int]] = []
        """Stretches of that text which are data, or are read as texts of their own."""
        self.call_count = 0
        self.at_exit: list[str] = []
        self._word_count = 0
        self._char_count = 0
        self._level = _Level(self)
        self._perhaps = _Perhaps(self)
        self._read = read
        self._statement = statement

    def close(self) -> None:
        """Let go of what refers back to it: then counting references frees it, and no collector is needed."""
        del self._level, self._perhaps

    def emit(self, command: Command) -> None:
        """Keep a command that was found. Raises `TooManyWordsError`."""
        self._word_count += len(command.words) + len(command.redirects)
        if len(self.commands) >= MAX_COMMANDS or self._word_count > MAX_WORDS:
            raise TooManyWordsError
        if len(self.commands) >= _FEW_COMMANDS:
            self._char_count += sum([len(word.text) for word in command.words])
            if self._char_count > MAX_CHARS:
                raise TooManyWordsError
        self.commands.append(command)
        for name, value in command.assignments:
            self.assigned(name, value, Io(chain=command.chain, place=command.place))

    def assigned(self, name: str, value: str, around: Io) -> None:
        """Read a value that the shell, or the program it is set for, runs or expands."""
        if name in code_variables() and value:
            with self.nested() as deeper, self.subshell(), self.perhaps():
                if deeper:
                    self.read(value, Io(chain=(*around.chain, name), place=around.place))
        else:
            evaluating.assigned(self, name, value)

    def expand(self, text: str) -> None:
        """Read the substitutions in a text that the shell expands as between double quotes."""
        end = "E"
        while end in text:
            end += "E"
        with self.nested() as deeper, self.subshell(), self.perhaps():
            if deeper and len(text) < MAX_EXPANDED:
                self.read(f": <<{end}\n{text}\n{end}\n", Io(chain=self.io.chain, place=self.io.place))
                if self.commands and self.commands[-1].program == ":":
                    self.commands.pop()

    def evaluate_again(self, text: str) -> None:
        """Follow a text that is evaluated as arithmetic."""
        evaluating.arithmetic(self, text)

    def may_fail(self) -> None:
        """Arithmetic that may make no sense: then the shell drops the rest of the line, whatever it would set."""
        if not self.failing:
            self.failing = True
            self.unsure += 1

    def line_ends(self) -> None:
        """What may have dropped the rest of a line reaches no further."""
        if self.failing:
            self.failing = False
            self.unsure -= 1

    def change(self, text: str) -> None:
        """Forget the variables that an arithmetic expression sets."""
        evaluating.changed(self, text)

    def evaluate_elements(self, text: str) -> None:
        """Read the text of an array between brackets, which the shell reads once more."""
        if UNKNOWN in text:
            self.note_opaque("the elements of an array")
        with self.nested() as deeper, self.subshell(), self.perhaps():
            if deeper and ("$" in text or "`" in text or "<(" in text or ">(" in text):
                self.read(f"_elements_={text}", Io(chain=self.io.chain, place=self.io.place))

    def called(self) -> None:
        """Count a call of a function. Raises `TooManyWordsError`."""
        self.call_count += 1
        if self.call_count > MAX_CALLS:
            raise TooManyWordsError

    def deep_loop(self) -> None:
        """Count a loop deep within others that is gone through once more, which doubles at each level. Raises
        `TooManyWordsError`."""
        self.deep_loops += 1
        if self.deep_loops > MAX_DEEP_LOOPS:
            raise TooManyWordsError

    def cover(self, start: int, end: int) -> None:
        """Nothing between these bytes is walked as a part of the present text."""
        self.covered.append((start, end))

    def note_unreadable(self) -> None:
        """The grammar reads a part of the text in another way than the shell."""
        self.problems.setdefault(UNREADABLE)

    def note_opaque(self, what: str) -> None:
        """Code that only exists when the text runs."""
        self.opaque.setdefault(what)

    def read(self, text: str, io: Io) -> str | None:
        """Read an inner text; its output, or None."""
        return self._read(self, text, io)

    def statement(self, node: tree_sitter.Node, io: Io) -> str | None:
        """Walk a node; its output, or None."""
        return self._statement(self, node, io)

    def nested(self) -> "_Level":
        """One level deeper; False when that is too deep, which is noted."""
        return self._level

    def subshell(self) -> "_Subshell":
        """What is assigned or changed inside is forgotten afterwards."""
        return _Subshell(self)

    def perhaps(self) -> "_Perhaps":
        """What stands inside may not run, or run several times."""
        return self._perhaps

    def substitute(self, node: tree_sitter.Node) -> str | None:
        """Read the code of a substitution; its output, or None when that is not known."""
        self.visited.add(node.id)
        fed = node.type == "process_substitution" and text_of(node, self.source).startswith(">")
        io = Io(place=self.io.place, chain=self.io.chain, fed=fed)
        with self.nested() as deeper, self.subshell():
            if not deeper:
                return None
            outputs = [self.statement(child, io) for child in node.named_children]
        return None if None in outputs else "".join(text for text in outputs if text)

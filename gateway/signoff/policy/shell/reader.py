"""Reads a shell text into the simple commands it would run."""

import re
import time
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from operator import itemgetter

import tree_sitter
from msgspec.structs import replace

from signoff.policy.shell import line, misread, plain, respelling, simple, source, syntax, walk
from signoff.policy.shell.carriers import table
from signoff.policy.shell.deadline import BUDGET_S, Deadline, GivenUpError
from signoff.policy.shell.evaluating import PROMPTS
from signoff.policy.shell.machine import NOT_ALL_READ, TOO_DEEP, UNREADABLE, Io, Machine
from signoff.policy.shell.model import PLACEHOLDER, UNKNOWN, UNKNOWN_HOME, Script, Word
from signoff.policy.shell.scope import Scope

_COMMENT_BEFORE = re.compile(rb"(?:^|[;&|()<>`\n]|(?<!\\)(?:\\\\)*[ \t])\Z")
"""What stands before a comment: a blank that no backslash quotes, or the end of what came before."""

_BLANK_BEFORE = frozenset({b"  ", b"\n ", b"; "})
"""The same for most comments, which are thus told at once."""

_OWN = re.compile(
    r"PWD|OLDPWD|SHLVL|_|IFS|PPID|E?UID|GROUPS|S?RANDOM|SECONDS|LINENO|EPOCH\w+|HISTCMD|FUNCNAME|DIRSTACK|OPT(?:IND|ARG)"
    r"|SHELLOPTS|PIPESTATUS|BASH|BASHPID|BASH_\w+|BASHOPTS"
)
"""Variables that the shell sets itself, whatever it is started with."""

MAX_BROKEN_BYTES = 4096
"""Longer texts with an error are not parsed once more: the parser cannot be interrupted while it mends them."""

_RUNS = re.compile(r"[`(]|\$[{\[]")


def read_shell(
    text: str,
    *,
    home: str | None = None,
    cwd: str | None = None,
    env: tuple[tuple[str, str], ...] = (),
    clock: Callable[[], float] = time.thread_time,
    budget_s: float = BUDGET_S,
) -> Script:
    """The commands of `text`, nested ones included, as bash and its kin would run them.

    `env` are the variables that are set around it, by names that a shell can have; its `HOME` goes before `home`.
    `clock` returns seconds, `budget_s` of which may be spent.
    Never raises on any text. What could not be read in time or at all is in `problems`.
    """
    only = plain.words(text)
    try:
        rows = None if only is None else simple.rows_of(only)
        alone = None if only is None or rows is None or env else simple.alone(only, rows, cwd, text.strip())
    except (RecursionError, MemoryError):
        return Script(problems=(TOO_DEEP,))
    if alone is not None:
        return Script(commands=(alone,))
    if len(text) > source.MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > source.MAX_BYTES:
        return Script(problems=(f"it is longer than {source.MAX_BYTES // 1024} kB",))
    table()  # loaded once, which is not this text's time
    machine = Machine(Deadline(clock, budget_s), Scope(home or UNKNOWN_HOME, cwd), _read, walk.statement)
    if UNKNOWN in text:
        machine.problems.setdefault("it contains a NUL character")
        text = text.replace(UNKNOWN, "")
    _run(machine, text, env, only, rows)
    machine.close()
    return Script(
        commands=tuple(machine.commands),
        problems=tuple(machine.problems),
        opaque=tuple(machine.opaque),
        fork_bombs=tuple(machine.fork_bombs),
    )


def _run(
    machine: Machine,
    text: str,
    env: tuple[tuple[str, str], ...],
    only: tuple[Word, ...] | None,
    rows: list[simple.Row] | None,
) -> None:
    """Have the machine read the text, or its words where it is one plain command. What stops it is a problem."""
    try:
        _surround(machine, env)
        with machine.nested():
            if only is not None:
                walk.plain_command(machine, only, Io(source=text.strip()), rows)
            elif (pipelines := line.read(text)) is not None:
                line.run(machine, pipelines)
            else:
                _parse(machine, text.encode("utf-8", "replace").decode(), Io())
        with machine.perhaps():
            for handler in machine.at_exit:
                # A trap was read where it was set; what its variables hold when it runs may be something else.
                machine.read(handler, Io(chain=("trap",)))
    except GivenUpError as error:
        machine.problems.setdefault(error.reason)
    except (RecursionError, MemoryError):
        # The count of levels comes first; this is for a caller whose own stack was nearly full.
        machine.problems.setdefault(TOO_DEEP)


def _surround(machine: Machine, env: tuple[tuple[str, str], ...]) -> None:
    """Set and export what the text finds set. Variables that the shell sets itself stay as they are."""
    scope = machine.scope
    for name, given in env:
        machine.deadline.check()
        value = given.encode("utf-8", "replace").decode()
        if _OWN.fullmatch(name):
            continue
        scope.assign(name, (value,), surely=True)
        scope.exported.add(name)
        if name == "HOME":
            scope.home = value
        # Prompts without a substitution run nothing, and users have them in every form.
        if name not in PROMPTS or _RUNS.search(value):
            machine.assigned(name, value, Io())


def _read(machine: Machine, text: str, io: Io) -> str | None:
    """Read an inner text within the machine's scope."""
    with machine.nested() as deeper:
        if not deeper:
            return None
        words = plain.words(text)
        if words is None:
            return _parse(machine, text, io)
        return walk.plain_command(machine, words, replace(io, source=text.strip()))


def _parse(machine: Machine, text: str, io: Io) -> str | None:
    """Parse a text and walk it."""
    overload = source.overload(text)
    if overload is not None:
        machine.problems.setdefault(overload)
        return None
    prepared = source.joined(text.replace(UNKNOWN, PLACEHOLDER), machine.deadline)
    outer = (machine.source, machine.visited, machine.covered)
    machine.visited, machine.covered = set(), []
    try:
        prepared, root = _tree(machine, prepared)
        machine.source = prepared.encode()
        _note_odd(machine, prepared, root)
        if root.has_error:
            machine.problems.setdefault(UNREADABLE)
            return _read_prefix(machine, io)
        output = machine.statement(root, io)
        _note_unread(machine, root)
        return output
    finally:
        machine.source, machine.visited, machine.covered = outer


def _tree(machine: Machine, text: str) -> tuple[str, tree_sitter.Node]:
    """The text and its tree; spelled otherwise where the grammar takes its words apart in another way than the shell.
    Where that does not help, it is noted."""
    data = text.encode()
    root = syntax.parse(data, machine.deadline).root_node
    broken = root.has_error
    if len(data) > MAX_BROKEN_BYTES if broken else not misread.is_misread(root, data, machine.deadline):
        return text, root
    again, spots = respelling.respelled(text, machine.deadline)
    if again == text:
        if not broken:
            machine.problems.setdefault(UNREADABLE)
        return text, root
    data = again.encode()
    other = syntax.parse(data, machine.deadline).root_node
    if other.has_error:
        if not broken:
            machine.problems.setdefault(UNREADABLE)
        return text, root
    if not respelling.is_at_spots(other, spots, machine.deadline) or misread.is_misread(other, data, machine.deadline):
        machine.problems.setdefault(UNREADABLE)
    return again, other


def _note_unread(machine: Machine, root: tree_sitter.Node) -> None:
    """Whatever runs and was not walked is a problem, so that a gap in reading asks instead of passing."""
    if machine.problems:
        return
    machine.deadline.check()
    runs, comments = syntax.running(root)
    source = machine.source
    for node in comments:
        machine.deadline.check()
        start = node.start_byte
        if source[start - 2 : start] in _BLANK_BEFORE:
            continue
        if _COMMENT_BEFORE.search(source, max(start - 64, 0), start) is None:
            machine.problems.setdefault(UNREADABLE)  # to the shell this hash is a part of a word
            return
    covered = sorted(machine.covered)
    ends = list(accumulate((end for _start, end in covered), max))
    for node in runs:
        if node.id in machine.visited:
            continue
        machine.deadline.check()
        before = bisect_right(covered, node.start_byte, key=itemgetter(0))
        if before and node.start_byte < ends[before - 1]:
            continue
        machine.problems.setdefault(NOT_ALL_READ)
        return


def _read_prefix(machine: Machine, io: Io) -> str | None:
    machine.source = syntax.understood_prefix(machine.source, machine.deadline)
    if machine.source:
        machine.statement(syntax.parse(machine.source, machine.deadline).root_node, io)
    return None


def _note_odd(machine: Machine, text: str, root: tree_sitter.Node) -> None:
    odd = source.first_odd(text, root, machine.deadline)
    if odd is not None:
        machine.problems.setdefault(f"it has the character {odd} outside quotes")

"""Reads a shell text into the simple commands it would run."""

import time
from collections.abc import Callable

import tree_sitter

from signoff.policy.shell import source, syntax, walk
from signoff.policy.shell.carriers import table
from signoff.policy.shell.deadline import Deadline, GivenUpError
from signoff.policy.shell.machine import TOO_DEEP, UNREADABLE, Io, Machine
from signoff.policy.shell.model import PLACEHOLDER, UNKNOWN, UNKNOWN_HOME, Script
from signoff.policy.shell.scope import Scope


def read_shell(
    text: str, *, home: str | None = None, cwd: str | None = None, clock: Callable[[], float] = time.thread_time
) -> Script:
    """The commands of `text`, nested ones included, as bash and its kin would run them.

    Never raises on any text. What could not be read in time or at all is in `problems`.
    """
    if len(text) > source.MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > source.MAX_BYTES:
        return Script(problems=(f"it is longer than {source.MAX_BYTES // 1024} kB",))
    table()  # loaded once, which is not this text's time
    machine = Machine(Deadline(clock), Scope(home or UNKNOWN_HOME, cwd), _read, walk.statement)
    if UNKNOWN in text:
        machine.problems.setdefault("it contains a NUL character")
        text = text.replace(UNKNOWN, "")
    try:
        machine.read(text.encode("utf-8", "replace").decode(), Io())
        with machine.perhaps():
            for handler in machine.at_exit:
                # A trap was read where it was set; what its variables hold when it runs may be something else.
                machine.read(handler, Io(chain=("trap",)))
    except GivenUpError as error:
        machine.problems.setdefault(error.reason)
    except (RecursionError, MemoryError):
        # The count of levels comes first; this is for a caller whose own stack was nearly full.
        machine.problems.setdefault(TOO_DEEP)
    return Script(
        commands=tuple(machine.commands),
        problems=tuple(machine.problems),
        opaque=tuple(machine.opaque),
        fork_bombs=tuple(machine.fork_bombs),
    )


def _read(machine: Machine, text: str, io: Io) -> str | None:
    """Parse a text and walk it within the machine's scope."""
    with machine.nested() as deeper:
        if not deeper:
            return None
        overload = source.overload(text)
        if overload is not None:
            machine.problems.setdefault(overload)
            return None
        prepared = source.joined(text.replace(UNKNOWN, PLACEHOLDER), machine.deadline)
        data = prepared.encode()
        outer, machine.source = machine.source, data
        try:
            root = syntax.parse(data, machine.deadline).root_node
            _note_odd(machine, prepared, root)
            if root.has_error:
                machine.problems.setdefault(UNREADABLE)
                return _read_prefix(machine, io)
            return machine.statement(root, io)
        finally:
            machine.source = outer


def _read_prefix(machine: Machine, io: Io) -> str | None:
    machine.source = syntax.understood_prefix(machine.source, machine.deadline)
    if machine.source:
        machine.statement(syntax.parse(machine.source, machine.deadline).root_node, io)
    return None


def _note_odd(machine: Machine, text: str, root: tree_sitter.Node) -> None:
    odd = source.first_odd(text, root, machine.deadline)
    if odd is not None:
        machine.problems.setdefault(f"it has the character {odd} outside quotes")

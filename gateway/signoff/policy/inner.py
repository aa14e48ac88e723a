"""Code in other languages inside of commands: what it starts is judged with the commands around it."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from signoff.policy.python import PythonScript, read_python
from signoff.policy.shell import UNKNOWN, Code, Command, Script
from signoff.policy.shell.deadline import Deadline

BUDGET_S = 0.01
"""The time for one piece of code, and for all but the last one together. With those for reading and judging it stays
below 100 ms."""

MAX_CODES = 8
"""As many pieces of code are read; no honest command comes near."""

TOO_MUCH = "it runs too much code in other languages"
PYTHON = "python"


class Inner(msgspec.Struct, frozen=True):
    """A script with the commands that its code would start, and that code as it was read."""

    script: Script
    codes: tuple[PythonScript, ...] = ()


def read_inner(
    script: Script,
    *,
    home: str | None = None,
    cwd: str | None = None,
    env: tuple[tuple[str, str], ...] = (),
    clock: Callable[[], float] = time.thread_time,
    budget_s: float = BUDGET_S,
) -> Inner:
    """Read the Python code that commands of the script run; never raises on any text.

    `env` are the variables that are set around it; `budget_s` may be spent twice, the second time on the last piece.
    Code that is not known from the text alone makes the script opaque, and code that cannot be read has a problem.
    """
    pieces = [(command, code) for command in script.commands for code in command.code if code.language == PYTHON]
    if not pieces:
        return Inner(script)
    codes: list[PythonScript] = []
    commands: list[Command] = list(script.commands)
    problems = dict.fromkeys(script.problems)
    opaque = dict.fromkeys(script.opaque)
    bombs = dict.fromkeys(script.fork_bombs)
    deadline = Deadline(clock, budget_s)
    seen: set[Code] = set()
    for command, code in pieces:
        if code in seen:
            continue
        seen.add(code)
        if len(seen) > MAX_CODES or deadline.expired():
            problems.setdefault(TOO_MUCH)
            break
        if UNKNOWN in code.text:
            opaque.setdefault(PYTHON)
        folder = command.cwd if command.cwd is not None else cwd
        text = code.text.replace(UNKNOWN, "")
        read = read_python(text, clock=clock, cwd=folder, home=home, env=env, budget_s=budget_s)
        codes.append(read)
        commands += _carried(read.shell, command)
        problems.update(
            dict.fromkeys((*(f"its Python code: {problem}" for problem in read.problems), *read.shell.problems))
        )
        opaque.update(dict.fromkeys(read.shell.opaque))
        bombs.update(dict.fromkeys(read.shell.fork_bombs))
    told = {"problems": tuple(problems), "opaque": tuple(opaque), "fork_bombs": tuple(bombs)}
    return Inner(replace(script, commands=tuple(commands), **told), tuple(codes))


def _carried(shell: Script, around: Command) -> list[Command]:
    """The commands that code starts, in the place and behind the wrappers of the command that runs it."""
    chain = (*around.chain, PYTHON)
    return [
        replace(
            command,
            chain=(*chain, *command.chain),
            place=around.place if command.place == "here" else command.place,
        )
        for command in shell.commands
    ]

"""Scripts: what code would start, and what it would do itself, where its language is one that is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from signoff.policy import windows
from signoff.policy.inner import Inner, read_inner
from signoff.policy.languages import WINDOWS_SHELLS, is_python, shell_of
from signoff.policy.python import PythonScript, notebook, read_python
from signoff.policy.shell import Script, read_shell, zsh
from signoff.policy.shell.deadline import Deadline


class Around(NamedTuple):
    """What is known around code: its user's home, its folder, and the seconds for reading it and the code inside."""

    home: str | None
    cwd: str | None
    clock: Callable[[], float]
    budget_s: float
    inner_s: float


def read_code(text: str, language: str, around: Around) -> Inner:
    """The commands of code and the Python in it; nothing where its language is not read. Never raises on any text."""
    if is_python(language):
        return _python(text, around)
    shell = shell_of(language)
    if shell:
        return _shell(text, shell, around)
    if language.strip():
        return Inner(Script())
    # Nobody said what it is, so it is looked at as either. That it cannot be read as one of them tells nothing.
    halved = around._replace(budget_s=around.budget_s / 2)
    shell_text, python = _shell(text, "bash", halved), _python(text, halved)
    commands = (*shell_text.script.commands, *python.script.commands)
    script = Script(commands=commands, fork_bombs=shell_text.script.fork_bombs)
    return Inner(script, (*shell_text.codes, *python.codes))


def _python(text: str, around: Around) -> Inner:
    begun = around.clock()

    def read(code: str) -> PythonScript:
        left_s = max(0.0, around.budget_s - (around.clock() - begun))
        return read_python(code, clock=around.clock, cwd=around.cwd, home=around.home, budget_s=left_s)

    codes = [read(text)]
    plain = notebook.as_python(text) if codes[0].problems else None
    if plain is not None:
        codes = [read(plain)]
        if codes[0].problems:
            codes.append(read(notebook.commands_of(text)))
    script = replace(codes[-1].shell, problems=tuple(dict.fromkeys((*codes[0].problems, *codes[-1].shell.problems))))
    return Inner(script, tuple(codes))


def _shell(text: str, shell: str, around: Around) -> Inner:
    home, cwd, clock = around.home, around.cwd, around.clock
    if shell in WINDOWS_SHELLS:
        script = windows.read(text, shell, Deadline(clock, around.budget_s))
    else:
        script = read_shell(text, home=home, cwd=cwd, clock=clock, budget_s=around.budget_s)
        if shell == "zsh" and not script.problems and zsh.reads_otherwise(text):
            script = replace(script, problems=(zsh.ZSH_ONLY,))
    return read_inner(script, home=home, cwd=cwd, clock=clock, budget_s=around.inner_s)

"""A text that is one line of plain commands between `|`, `&&`, `||` and `;`: such a one needs no parser either."""

import re
from itertools import zip_longest

import msgspec

from signoff.policy.shell import plain, walk
from signoff.policy.shell.machine import Io, Machine
from signoff.policy.shell.model import Redirect, Word
from signoff.policy.shell.scope import Scope

_STAGE = re.compile(rf"[ \t]*+({plain.COMMAND})([ \t]++2>&1(?![^ \t\n;&|]))?[ \t]*+(&&|\|\|?(?!&)|;(?!;)|[ \t\n]*+\Z)")
"""A command, whether its errors go where its output goes, and what joins it to the next one."""

_ERRORS_TOO = (Redirect(operator=">&", target=Word("1")),)


class Stage(msgspec.Struct, frozen=True, gc=False):
    """One command of a pipeline, as it is written and as the shell sees its words."""

    words: tuple[Word, ...]
    source: str
    errors_too: bool


class Pipeline(msgspec.Struct, frozen=True):
    """Commands of which each feeds the next, and the sign before the first: nothing, `;`, `&&` or `||`."""

    sign: str
    stages: list[Stage]


def read(text: str) -> list[Pipeline] | None:
    """The commands of the only line in `text`; None where anything in it may be more than that."""
    if len(text) > plain.MAX_CHARS:
        return None
    found: list[Pipeline] = []
    at = len(text) - len(text.lstrip(" \t\n"))
    sign = ""
    while match := _STAGE.match(text, at):
        source, redirect, following = match.groups()
        words = plain.words_of(source)
        if words is None:
            return None
        if sign != "|":
            found.append(Pipeline(sign, []))
        found[-1].stages.append(Stage(words, source, redirect is not None))
        at, sign = match.end(), following.strip()
        if not sign:
            return None if at < len(text) or _is_hard(found) else found
    return None


def _is_hard(pipelines: list[Pipeline]) -> bool:
    """Whether the parser's tree has something in another place than the shell: then it is the tree that is walked, so
    that a text means the same however it is read. That happens to what follows three stages within a list, and to what
    stands around most redirections within a list or behind several stages."""
    for pipeline, following in zip_longest(pipelines, pipelines[1:]):
        first, *others = [stage.errors_too for stage in pipeline.stages]
        is_last = following is None or following.sign == ";"
        if others and (others[-1] or (not is_last and len(others) > 1)):
            return True
        if pipeline.sign in {"&&", "||"} and (any(others) or (first and not is_last)):
            return True
    return False


def run(machine: Machine, pipelines: list[Pipeline]) -> None:
    """Run the pipelines as `walk` runs those that the parser finds."""
    before: Scope | None = None
    for pipeline in pipelines:
        if pipeline.sign == ";":
            _ends(machine, before)
            before = None
        elif pipeline.sign and before is None:
            before = machine.scope.copy()
        if pipeline.sign == "||":
            with machine.perhaps():
                _piped(machine, pipeline.stages)
        else:
            _piped(machine, pipeline.stages)
    _ends(machine, before)


def _ends(machine: Machine, before: Scope | None) -> None:
    """A list ends, of which all but the first pipeline may not have run; `before` is what was known behind that."""
    if before is not None:
        machine.scope.merge(before)
        walk.moved(machine, before.cwd)


def _piped(machine: Machine, stages: list[Stage]) -> None:
    if len(stages) == 1:
        _run(machine, stages[0], Io())
        return
    output, fed = None, False
    for stage in stages:
        with machine.subshell():
            output = _run(machine, stage, Io(stdin=output, fed=fed))
        fed = True


def _run(machine: Machine, stage: Stage, io: Io) -> str | None:
    redirects = _ERRORS_TOO if stage.errors_too else ()
    io = Io(stdin=io.stdin, fed=io.fed, redirects=redirects, source=stage.source)
    return walk.plain_command(machine, stage.words, io)

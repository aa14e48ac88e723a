"""What a standing approval covers, and what an action needs covered: names that are compared, never interpreted. Pure.

An action needs a name for each rule that asks for it and each program it asks about (`git.force_push@git`), or one for
all code of a language, all calls of a tool, all that a plugin's rule asks about. Where no rule speaks for it, the only
name is its digest. Beside these each action has one name for a permanent approval: a command's is its exact text.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from signoff.actions import USUAL_SHELLS
from signoff.model import Action, Code, Command, Operand, Rule, Tool, replace
from signoff.policy import Verdict, unwrapped
from signoff.policy.unwrap import TRANSPARENT

MAX_NAMES = 32
"""An action that needs more names than this is covered by its digest alone."""
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./+-]+(?=\s|\Z)")
"""A first word that stands for itself: no quoting, no assignment, nothing to expand."""


def needed(action: Action, coverage: tuple[str, ...], digest: str) -> tuple[str, ...]:
    """The names of which each must be covered. `coverage` is the verdict's; to it the reviewed files are bound."""
    if not coverage or len(coverage) > MAX_NAMES:
        return (digest,)
    operands = action.operands if isinstance(action, Command) else ()
    if not operands:
        return coverage
    content = _content(operands)
    return tuple(f"{name}#{content}" for name in coverage)


def standing(action: Action, digest: str) -> str:
    """The name under which a permanent approval of this action is kept.

    A command's is its exact text without wrappers that change nothing, in any folder; what else is set around it, and
    the content of its files, is bound too.
    """
    if isinstance(action, Command):
        text = exact_text(action)
        if text is not None:
            return f"exact:{_hash(text.encode('utf-8', 'surrogatepass'))}"
        bound = replace(action, command=_bare(action.command), cwd=None)
        return f"action:{_hash(repr(msgspec.to_builtins(bound)).encode('utf-8', 'surrogatepass'))}"
    if isinstance(action, Code):
        return f"code:{action.language.casefold()}"
    if isinstance(action, Tool):
        return f"tool:{action.name}"
    return f"rule:{action.rule_key}" if isinstance(action, Rule) else digest


def likeness(action: Action, verdict: Verdict) -> str:
    """Equal for actions of the same programs that the same rules ask for, whatever their other words are."""
    kind = str(action.__struct_config__.tag)
    names = sorted(verdict.coverage) or [*sorted(verdict.rule_keys), verdict.description]
    return _hash("\x00".join((kind, *names)).encode("utf-8", "surrogatepass"))


def exact_text(action: Action) -> str | None:
    """The text that stands for a command as a whole; None where something beside the text decides what it does."""
    if not isinstance(action, Command) or action.env or action.operands:
        return None
    if action.shell and action.shell not in USUAL_SHELLS:
        return None
    return _bare(action.command)


def _bare(command: str) -> str:
    text = command.strip()
    first = _PLAIN_WORD.match(text)
    if first is not None and first.group() not in TRANSPARENT:
        return text  # nothing wraps it, which a parse would only confirm
    return unwrapped(command) or text


def _content(operands: tuple[Operand, ...]) -> str:
    told = sorted(f"{operand.path}\x00{operand.sha256}\x00{operand.bytes}" for operand in operands)
    return _hash("\x00".join(told).encode("utf-8", "surrogatepass"))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]

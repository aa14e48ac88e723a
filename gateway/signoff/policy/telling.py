"""An explanation as lines: the tree of commands with numbers, what each is, and what rules say of it."""

from __future__ import annotations

import msgspec

from signoff.policy.explaining import CommandSeen, Explanation, RuleSaid
from signoff.policy.shell.quoting import requote
from signoff.policy.verdict import VerdictWord
from signoff.visible import LINE_END

MAX_TEXT_CHARS = 160
"""How much of one command stands in a line."""

_PLACES = {"here": "", "remote": "on another host", "container": "in a container"}
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-…*?[]~{}")


class TreeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One command: its number in the tree (`2.1` is carried by `2`), how deep it lies, its text, and what came of it.

    `verdict` is `allow` where nothing about it asks. `rules` are the keys of those that ask, or of the one that allows;
    `reason` is what they say, or why none had to. `around` says where it runs, when not here.
    """

    number: str
    depth: int
    text: str
    verdict: VerdictWord
    rules: tuple[str, ...] = ()
    reason: str = ""
    around: str = ""


def tree(explanation: Explanation) -> tuple[TreeLine, ...]:
    """A line for each command, those it carries below it, then the lines of code that rules speak of."""
    lines: list[TreeLine] = []
    counts: list[int] = []
    for command in explanation.commands:
        depth = min(len(command.wrappers), len(counts))
        counts = [*counts[: depth + 1], *([0] if depth == len(counts) else [])]
        counts[depth] += 1
        lines.append(_line(".".join(map(str, counts)), depth, command))
    first = counts[0] if counts else 0
    for place, seen in enumerate(explanation.lines, first + 1):
        keys, reason = _rules((seen.rule,))
        verdict = seen.rule.verdict
        lines.append(TreeLine(number=str(place), depth=0, text=seen.text, verdict=verdict, rules=keys, reason=reason))
    return tuple(lines)


def _line(number: str, depth: int, command: CommandSeen) -> TreeLine:
    blocking = tuple(rule for rule in command.rules if rule.verdict == "block")
    asking = blocking or tuple(rule for rule in command.rules if rule.verdict == "ask")
    keys, reason = _rules(asking or command.rules)
    verdict = asking[0].verdict if asking else "allow"
    return TreeLine(
        number=number,
        depth=depth,
        text=written(command),
        verdict=verdict,
        rules=keys,
        reason=reason if asking else command.passed,
        around=_PLACES[command.place],
    )


def _rules(rules: tuple[RuleSaid, ...]) -> tuple[tuple[str, ...], str]:
    keys = tuple(dict.fromkeys(rule.key for rule in rules))
    return keys, ", and ".join(dict.fromkeys(rule.sentence for rule in rules if rule.sentence))


def written(command: CommandSeen) -> str:
    """A command's own words on one line, quoted where that makes a difference; cut where it is long."""
    words = [word if word and _PLAIN.issuperset(word) else requote(word) for word in command.words]
    text = " ".join((*command.assignments, *words, *command.redirections)) or command.text
    text = LINE_END.join(" ".join(line.split()) for line in text.strip().split("\n"))
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "…"

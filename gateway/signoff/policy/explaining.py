"""Why a verdict is what it is: what was read in an action, which rules spoke, and what each rung of the ladder said."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Literal

import msgspec

from signoff.policy import ruleset
from signoff.policy.contexts import ActionKind, JudgeContext, Subject, read
from signoff.policy.findings import Finding, shown
from signoff.policy.ladder import LADDER, step
from signoff.policy.programs import name_of
from signoff.policy.rule import Rule
from signoff.policy.ruleset import RuleSet
from signoff.policy.shell import UNKNOWN, Command, carriers
from signoff.policy.shell.deadline import Deadline, GivenUpError
from signoff.policy.shell.model import Place
from signoff.policy.verdict import DecisionWord, Severity, Verdict, VerdictWord
from signoff.policy.warming import warm

TELLING_BUDGET_S = 0.01
"""The time for telling what rules said of each command, beside that for judging."""
MAX_COMMANDS = 200
"""As many commands are told one by one; the rest is counted."""
MAX_WORDS = 64
MAX_WORD_CHARS = 200
"""Longer words are cut, and words behind these many left out: whoever asks has the text itself."""


class RuleSaid(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that spoke about a command; `own` says that the operator wrote it. One that allows has no sentence."""

    key: str
    verdict: VerdictWord
    severity: Severity
    sentence: str = ""
    own: bool = False


class CommandSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One simple command as it was read; stretches that are only known when it runs stand as `…`.

    `words` are its own, without those of a command it carries, which follows as one of its own with this one among its
    `wrappers` (outermost first). `passed` says why it needs no question where no rule asks for one.
    """

    text: str
    words: tuple[str, ...]
    wrappers: tuple[str, ...] = ()
    place: Place = "here"
    folder: str | None = None
    assignments: tuple[str, ...] = ()
    redirections: tuple[str, ...] = ()
    fed: bool = False
    rules: tuple[RuleSaid, ...] = ()
    passed: str = ""


class LineSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A line of Python code about which a rule spoke."""

    text: str
    rule: RuleSaid


class RungSaid(msgspec.Struct, frozen=True, kw_only=True):
    """One rung of the ladder: what it said, or that it passed the action on, or that it was not reached."""

    rung: str
    verdict: DecisionWord | None = None
    said: str = ""
    reached: Literal["passed on", "decided", "not reached"]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with all that led to it.

    `problems` says why the text was not understood, `opaque` names code that only exists when it runs. `more` counts
    the commands that are not told one by one.
    """

    action_kind: ActionKind
    verdict: Verdict
    commands: tuple[CommandSeen, ...] = ()
    more: int = 0
    lines: tuple[LineSeen, ...] = ()
    problems: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    rungs: tuple[RungSaid, ...] = ()


def explain(
    action_kind: ActionKind, text: str, context: JudgeContext, *, clock: Callable[[], float] = time.thread_time
) -> Explanation:
    """Judge one action as `ladder.judge` does, and tell why. Never raises on any text."""
    warm()
    subject = read(action_kind, text, context, clock)
    verdict: Verdict | None = None
    rungs: list[RungSaid] = []
    for rung in LADDER:
        if verdict is not None:
            rungs.append(RungSaid(rung=rung.name, reached="not reached"))
            continue
        verdict = step(rung, subject)
        if verdict is None:
            rungs.append(RungSaid(rung=rung.name, reached="passed on"))
        else:
            rungs.append(told_rung(rung.name, verdict))
    assert verdict is not None  # noqa: S101  # the last rung always answers
    return _told(subject, verdict, tuple(rungs), Deadline(clock, TELLING_BUDGET_S))


def told_rung(name: str, verdict: Verdict) -> RungSaid:
    """What the rung that decided said."""
    said = " ".join(verdict.why) or f"{verdict.description[:1].upper()}{verdict.description[1:]}."
    return RungSaid(rung=name, verdict=verdict.verdict, said=said, reached="decided")


def _told(subject: Subject, verdict: Verdict, rungs: tuple[RungSaid, ...], deadline: Deadline) -> Explanation:
    rules = _Rules(subject, deadline)
    commands = subject.script.commands
    if subject.windows:
        commands = tuple(dict.fromkeys(commands))  # its reader tells some of them twice
    told: list[CommandSeen] = []
    with suppress(GivenUpError):
        told.extend(rules.told(command) for command in commands[:MAX_COMMANDS])
    return Explanation(
        action_kind=subject.action_kind,
        verdict=verdict,
        commands=tuple(told),
        more=len(commands) - len(told),
        lines=rules.lines(),
        problems=subject.script.problems,
        opaque=subject.script.opaque,
        rungs=rungs,
    )


class _Rules:
    """What rules said of each command of a subject."""

    def __init__(self, subject: Subject, deadline: Deadline) -> None:
        self._subject = subject
        self._deadline = deadline
        self._ruleset: RuleSet = subject.context.rules or ruleset.shipped()
        self._own = frozenset(id(rule) for rule in self._ruleset.own)
        found = subject.found
        self._findings: tuple[Finding, ...] = (*found.all, *found.allowed) if found is not None else ()

    def lines(self) -> tuple[LineSeen, ...]:
        """The lines of Python code about which rules spoke."""
        told = (LineSeen(text=each.text, rule=self._said(each.rule)) for each in self._findings if each.line)
        return tuple(dict.fromkeys(told))[:MAX_COMMANDS]

    def told(self, command: Command) -> CommandSeen:
        """One command with its rules."""
        rules = tuple(dict.fromkeys(map(self._said, self._about(command))))
        asks = any(rule.verdict != "allow" for rule in rules)
        return CommandSeen(
            text=shown(command),
            words=tuple(_word(word.text) for word in command.own_words[:MAX_WORDS]),
            wrappers=tuple(map(_word, command.chain)),
            place=command.place,
            folder=command.cwd,
            assignments=tuple(_word(f"{name}={value}") for name, value in command.assignments),
            redirections=tuple(f"{each.operator} {_word(each.target.text)}" for each in command.redirects),
            fed=command.fed,
            rules=rules,
            passed="" if asks else self._passed(command, rules),
        )

    def _about(self, command: Command) -> Iterable[Rule]:
        """The rules that decided about it; where something blocks the whole, also those that would have asked."""
        if self._subject.windows:
            return [each.rule for each in self._findings if each.command.source == command.source]
        facts, script = self._subject.facts, self._subject.script
        floors = ruleset.floors().fired(command, script, facts, self._deadline)
        rules = [compiled.rule for compiled, _name in floors]
        rules += [each.rule for each in self._findings if each.command is command]
        found = self._subject.found
        if found is None or found.verdict == "block":
            fired = self._ruleset.fired(command, script, facts, self._deadline)
            rules += [compiled.rule for compiled, _name in fired if compiled.asks]
        return rules

    def _said(self, rule: Rule) -> RuleSaid:
        return RuleSaid(
            key=rule.key,
            verdict=rule.verdict,
            severity=rule.severity,
            sentence=rule.sentence if rule.verdict != "allow" else "",
            own=id(rule) in self._own,
        )

    def _passed(self, command: Command, rules: tuple[RuleSaid, ...]) -> str:
        if rules:
            return f"the rule {rules[0].key} allows it"
        if not command.words:
            return "it starts no program, and no rule speaks of what it sets"
        if self._subject.found is None:
            return "rules were not asked"
        if self._subject.windows:
            return "it only looks, or no rule speaks of it"
        name = name_of(command.words[0].text, command.cwd)
        if UNKNOWN in command.words[0].text:
            return "its program is only known when it runs"
        if name in carriers.table():
            return "it changes nothing by itself; what it carries is judged"
        if self._ruleset.knows(name):
            return "rules know its program, and none speaks of this use"
        if self._subject.context.unknown_commands == "allow":
            return 'no rule knows its program (approvals.unknown_commands = "allow")'
        return "no rule knows its program, and nothing in it is a destructive word"


def _word(text: str) -> str:
    text = text.replace(UNKNOWN, "…")
    return text if len(text) <= MAX_WORD_CHARS else text[: MAX_WORD_CHARS - 1] + "…"

"""What the rules say of a whole script: who asks, why, and how far a standing approval would reach."""

from functools import cache
from itertools import islice
from typing import get_args

import msgspec

from signoff.policy import manuals, python
from signoff.policy.breadth import Breadth, breadth_of
from signoff.policy.matching import MANY_CHARS, Compiled
from signoff.policy.programs import is_installed, name_of
from signoff.policy.python import CodeRule, PythonScript
from signoff.policy.rule import Rule
from signoff.policy.ruleset import RuleSet
from signoff.policy.seen import OwnFacts, Seen
from signoff.policy.shell import UNKNOWN, Command, Script, carriers
from signoff.policy.shell.deadline import Deadline
from signoff.policy.unknown import HIDDEN, UnknownCommands, reason
from signoff.policy.unknown import names as unknown_names
from signoff.policy.unknown import table as unknown_words
from signoff.policy.verdict import MAX_LABEL_CHARS, Severity, VerdictWord

MAX_TEXT_CHARS = 120
"""How much of a command is quoted in one line of `why`."""

_MAX_READ_CHARS = 16 * MAX_TEXT_CHARS
"""As much of it is looked at for that: blanks may stand between its words, and a command may be as long as the text."""

MAX_WHY = 12
"""As many findings get a line of their own in `why`."""

CHECK_EVERY = 8
"""Commands between two looks at the clock, which costs as much as a command without rules."""

_RANKS: dict[Severity, int] = {severity: rank for rank, severity in enumerate(get_args(Severity))}


class Finding(msgspec.Struct, frozen=True):
    """A rule that fired on a command; `program` is what the rule took it for.

    A rule about Python code has a command without words, and the `line` of code.
    """

    rule: Rule
    command: Command
    program: str
    line: str = ""
    reach: Breadth | None = None
    """What narrows an approval of it; None for code, of which the rule says all."""

    @property
    def text(self) -> str:
        """The command or the line of code as shown."""
        return _short(self.line) if self.line else shown(self.command)

    @property
    def coverage(self) -> str:
        """What a grant must hold to cover this finding: the rule for this program, and for a deed such as this."""
        return f"{self.rule.key}@{self.program if self.reach is None else self.reach.coverage}"

    @property
    def label(self) -> str:
        """What a button calls it."""
        return (self.reach.label if self.reach is not None else "") or self.rule.label

    @property
    def breadth(self) -> str:
        """What a standing approval of it would cover."""
        told = self.reach.told if self.reach is not None else ""
        return f"{self.rule.breadth} ({told})" if told else self.rule.breadth


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found in one script.

    `fired` are the rules that ask or block (only those that block, where one does), `unknown` the programs without a
    rule that ask, both with the gravest first; `allowed` are the rules that allow. `understood` is False when the text
    could not be read whole, or runs text that is only known when it runs: then it asks, whatever else was found.
    """

    verdict: VerdictWord
    fired: tuple[Finding, ...] = ()
    unknown: tuple[Finding, ...] = ()
    allowed: tuple[Finding, ...] = ()
    understood: bool = True

    @property
    def all(self) -> tuple[Finding, ...]:
        """Everything that asks or blocks, the gravest first."""
        if not self.fired or not self.unknown:
            return self.fired or self.unknown
        return tuple(sorted((*self.fired, *self.unknown), key=_gravity))

    @property
    def rule_keys(self) -> tuple[str, ...]:
        """The keys of the rules that fired, the gravest first; each once."""
        return tuple(dict.fromkeys(finding.rule.key for finding in self.all))

    @property
    def _coverable(self) -> bool:
        return bool(self.fired) and not self.unknown and self.understood

    @property
    def coverage(self) -> tuple[str, ...]:
        """What a standing approval must cover, sorted; empty when none but one for the exact text can."""
        if not self._coverable:
            return ()
        return tuple(sorted({finding.coverage for finding in self.fired}))

    @property
    def worst(self) -> Finding | None:
        """The gravest finding."""
        return next(iter(self.all), None)

    @property
    def severity(self) -> Severity:
        """The highest severity; low when nothing asks."""
        worst = self.worst
        return worst.rule.severity if worst is not None else "low"

    @property
    def label(self) -> str:
        """What a button calls the rules that fired; empty where no standing approval covers them."""
        labels = list(dict.fromkeys(finding.label for finding in self.fired)) if self._coverable else []
        if len(labels) <= 1:
            return labels[0] if labels else ""
        both = " + ".join(labels)
        return both if len(both) <= MAX_LABEL_CHARS else f"these {len(labels)} kinds"

    @property
    def breadth(self) -> str:
        """What a standing approval would cover, kind by kind; empty where there can be none."""
        return "; ".join(dict.fromkeys(finding.breadth for finding in self.fired)) if self._coverable else ""

    @property
    def why(self) -> tuple[str, ...]:
        """A line for each finding, those of the same words once."""
        different = {(item.rule.key, item.line or item.command.source or item.command.words): item for item in self.all}
        told = (f"`{item.text}` {item.rule.sentence}. (rule {item.rule.key})" for item in different.values())
        lines = tuple(dict.fromkeys(islice(told, MAX_WHY)))
        more = len(different) - MAX_WHY
        return lines if more <= 0 else (*lines, f"{more} more of the same kinds.")


def find(
    script: Script,
    ruleset: RuleSet,
    facts: OwnFacts,
    deadline: Deadline,
    unknown_commands: UnknownCommands = "verbs",
    codes: tuple[PythonScript, ...] = (),
) -> Findings:
    """What the rules say of each command of the script, and of the Python code it runs. Raises `OutOfTimeError`."""
    collected = _Collected(script, ruleset, facts, unknown_commands)
    for code in codes:
        collected.look_into(code, deadline)
    for place, command in enumerate(script.commands):
        if place % CHECK_EVERY == CHECK_EVERY - 1 or len(command.source) > MANY_CHARS:
            deadline.check()
        collected.look_at(command, deadline)
    return collected.findings()


class _Collected:
    """Findings in the making."""

    def __init__(self, script: Script, ruleset: RuleSet, facts: OwnFacts, unknown_commands: UnknownCommands) -> None:
        self.script = script
        self.ruleset = ruleset
        self.facts = facts
        self.how = unknown_commands
        self.blocks: list[Finding] = []
        self.asks: list[Finding] = []
        self.allows: list[Finding] = []
        self.unknown: list[Finding] = []

    def look_into(self, code: PythonScript, deadline: Deadline) -> None:
        for found in python.find(code, self.facts, deadline):
            rule = _as_rule(found.rule)
            kept = self.blocks if rule.verdict == "block" else self.asks
            kept.append(Finding(rule, _NO_COMMAND, found.program, found.text))

    def look_at(self, command: Command, deadline: Deadline) -> None:
        fired = self.ruleset.fired(command, self.script, self.facts, deadline)
        if fired:
            fired = _own_first(fired)
        asks = prints = False
        for compiled, seen in fired:
            if compiled.asks:
                if not asks and not prints:
                    prints = manuals.only_prints(command)
                if prints and not (compiled.own or compiled.general):
                    continue
                asks = True
                kept = self.blocks if compiled.rule.verdict == "block" else self.asks
                kept.append(_asking(compiled.rule, seen))
        if asks:
            return
        if prints:
            self.allows.append(_finding(manuals.RULE, command, name_of(command.words[0].text, command.cwd)))
            return
        if fired and not (command.words and self._is_impostor(command)):
            compiled, seen = fired[0]
            self.allows.append(_finding(compiled.rule, command, seen.name))
        elif command.words:
            self._unknown(command)

    def _unknown(self, command: Command) -> None:
        words = command.words[: command.own]
        name = name_of(words[0].text, command.cwd)
        carrier = carriers.table().get(name)
        if self.how == "ask" and carrier is not None and all(row.changes == "nothing" for row in carrier):
            return
        known = self.ruleset.knows(name) or (carrier is not None and not all(row.partial for row in carrier))
        impostor = self._is_impostor(command)
        rule = reason(words, name, known=known, impostor=impostor, how=self.how)
        if rule is HIDDEN and (self.script.opaque or self.script.problems):
            return  # that the text is not understood says it already
        if rule is not None:
            self.unknown.append(_finding(rule, command, name))

    def _is_impostor(self, command: Command) -> bool:
        """A file with the name of a program that everybody knows, from where none is installed."""
        text = command.words[0].text
        if "/" not in text or self.how == "allow" or is_installed(text, command.cwd):
            return False
        return name_of(text, command.cwd).removeprefix("./") in unknown_words().commonplace

    def findings(self) -> Findings:
        script = self.script
        understood = not (script.problems or script.opaque or script.fork_bombs)
        if self.blocks:
            return Findings(verdict="block", fired=gravest_first(self.blocks), understood=understood)
        asks = self.asks or self.unknown or not understood
        return Findings(
            verdict="ask" if asks else "allow",
            fired=gravest_first(self.asks),
            unknown=gravest_first(self.unknown),
            allowed=tuple(self.allows),
            understood=understood,
        )


def gravest_first(found: list[Finding]) -> tuple[Finding, ...]:
    """The findings in the order in which people are told of them."""
    return tuple(sorted(found, key=_gravity)) if len(found) > 1 else tuple(found)


def _gravity(finding: Finding) -> tuple[int, bool, bool, bool]:
    """What is told first: the most severe, of these what runs code of others; what stays within the folder comes late,
    and last what is only guessed of a program that no rule knows."""
    rule, reach = finding.rule, finding.reach
    others_code = rule.key.startswith("remote_code.") or rule.key == "python.remote_code"
    return -_RANKS[rule.severity], not others_code, unknown_names(rule), reach is not None and reach.inside


def _asking(rule: Rule, seen: Seen) -> Finding:
    reach = None if rule.verdict == "block" else breadth_of(rule.key, seen)
    return Finding(rule, seen.command, seen.name.removeprefix("./"), reach=reach)


def _own_first(fired: list[tuple[Compiled, Seen]]) -> list[tuple[Compiled, Seen]]:
    """An operator's rule that allows silences the shipped ones that ask because of the program; what is written or
    assigned asks all the same, and so does what a rule of the operator asks about."""
    own = [item for item in fired if item[0].own]
    if not own or any(item[0].asks for item in own):
        return fired
    return [*own, *(item for item in fired if not item[0].own and (item[0].general or item[0].rule.verdict == "block"))]


def _finding(rule: Rule, command: Command, name: str) -> Finding:
    return Finding(rule, command, name.removeprefix("./"))


@cache
def _as_rule(rule: CodeRule) -> Rule:
    """A rule about code as a rule about commands, for those who show and count what fired."""
    return Rule(
        key=rule.key,
        verdict=rule.verdict,
        severity=rule.severity,
        sentence=rule.sentence,
        label=rule.label,
        breadth=rule.breadth,
    )


_NO_COMMAND = Command(words=(), own=0)


def shown(command: Command) -> str:
    """A command as a line for people: as written, or as resolved where its writing is not known."""
    return _short(command.source or command.text)


def _short(text: str) -> str:
    """A text on one line, cut behind a word: nobody, and no mask either, knows a piece of a secret for one."""
    if len(text) > _MAX_READ_CHARS:
        text = text[:_MAX_READ_CHARS].rsplit(None, 1)[0] + " …"
    text = " ".join(text.replace(UNKNOWN, "…").split())
    if len(text) <= MAX_TEXT_CHARS:
        return text
    head, blank, _rest = text[: MAX_TEXT_CHARS - 1].rpartition(" ")
    return f"{head}{blank}…"

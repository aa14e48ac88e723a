"""How an action was judged, as a tree for people: its commands, the rules that spoke of each, what decided. Pure."""

from __future__ import annotations

from msgspec import Struct

from signoff.console.reach import Asked, Reach, reach
from signoff.display import shown
from signoff.judging import kind_of
from signoff.model import Action, ApprovalRequest, Severity
from signoff.policy import Verdict
from signoff.policy.explaining import Explanation, RuleSaid
from signoff.policy.telling import TreeLine, tree
from signoff.settings import Profile
from signoff.whys import MAX_LINES, PERSON_RUNG, decided_line, explained, rules_now
from signoff.wording import safe_name, t

DEEPEST = 4
"""Commands that lie deeper are drawn no further in; their numbers say where they belong."""


class Said(Struct, frozen=True, kw_only=True):
    """A rule that spoke."""

    key: str
    word: str
    severity: Severity
    sentence: str
    own: bool


class Node(Struct, frozen=True, kw_only=True):
    """One command, or one line of code. `number` says where it belongs: `2.1` is carried by `2`."""

    number: str
    depth: int
    text: str
    verdict: str
    word: str
    around: tuple[str, ...]
    """What is wrapped around it, and where it runs when not here."""
    rules: tuple[Said, ...]
    """Those that spoke of one that asks or blocks."""
    passed: str
    """Why it needs no question."""


class Step(Struct, frozen=True, kw_only=True):
    """One rung of the ladder, and what it said."""

    name: str
    word: str
    decided: bool
    said: str


class Judged(Struct, frozen=True, kw_only=True):
    """A judgement in words; every text is masked."""

    title: str
    sentence: str
    """The title without the rules."""
    decided: str
    nodes: tuple[Node, ...]
    more: str
    notes: tuple[str, ...]
    """What could not be understood, and whether rules changed since."""
    complete: bool
    """Whether the text was understood and every command told, by rules that say what they said when it was asked."""
    reach: Reach | None
    ladder: tuple[Step, ...] = ()
    digest: str = ""

    @property
    def first(self) -> tuple[Node, ...]:
        """The commands that stand in the open: of many those that ask."""
        if len(self.nodes) <= MAX_LINES:
            return self.nodes
        return tuple(node for node in self.nodes if node.verdict != "allow") or self.nodes[:MAX_LINES]

    @property
    def others(self) -> tuple[Node, ...]:
        """The rest, which a reader opens."""
        first = {node.number for node in self.first}
        return tuple(node for node in self.nodes if node.number not in first)


def judged(row: ApprovalRequest, profile: Profile, *, reaching: bool = True) -> Judged:
    """How a request was judged: what was seen is read anew, what decided is as it was then. `reaching`: also how far
    a standing approval would go."""
    found = explained(row, profile)
    now = rules_now(row, found, profile)
    notes = _notes(found)
    if now is not None:
        notes += (t("why.changed", rules=", ".join(map(safe_name, now)) or "none"),)
    return Judged(
        title=_title(row.severity, row.description, row.rule_keys),
        sentence=_sentence(row.severity, row.description),
        decided=decided_line(row),
        nodes=_nodes(found),
        more=_more(found),
        notes=notes,
        complete=_complete(found) and now is None,
        reach=reach(_asked(row.action, row), profile)
        if reaching and row.rung in ("", PERSON_RUNG) and row.outcome != "blocked"
        else None,
        digest=t("why.digest", digest=row.digest),
    )


def asking(why: Judged) -> tuple[str, ...] | None:
    """The commands that rules ask about, long ones cut; None where it is not known which they all are."""
    found = tuple(node.text for node in why.nodes if node.verdict != "allow")
    return found if found and why.complete else None


def _asked(action: Action, said: ApprovalRequest | Verdict) -> Asked:
    """What a standing approval would have to cover, by a request's row or a verdict alone."""
    return Asked(
        kind=kind_of(action),
        severity=said.severity,
        coverage=said.coverage,
        once_only=said.once_only,
        unread_file=said.unread_file,
    )


def foreseen(action: Action, found: Explanation, profile: Profile) -> Judged:
    """What would become of an action, with every rung of the ladder."""
    verdict = found.verdict
    return Judged(
        title=_title(verdict.severity, verdict.description, verdict.rule_keys),
        sentence=_sentence(verdict.severity, verdict.description),
        decided=_setting(verdict),
        nodes=_nodes(found),
        more=_more(found),
        notes=_notes(found),
        complete=_complete(found),
        reach=reach(_asked(action, verdict), profile) if verdict.verdict == "ask" else None,
        ladder=tuple(
            Step(
                name=t(f"console.rung.{rung.rung}"),
                word=t(f"console.reached.{rung.reached.replace(' ', '_')}"),
                decided=rung.reached == "decided",
                # Why a person is asked stands in the tree, rule by rule.
                said=shown(rung.said, prose=True) if rung.rung != PERSON_RUNG else "",
            )
            for rung in found.rungs
        ),
    )


def _title(severity: Severity, description: str, keys: tuple[str, ...]) -> str:
    rule = ", ".join(map(safe_name, keys)) or "none"
    sentence = shown(description, prose=True)
    return t("why.title", severity=t(f"severity.{severity}"), sentence=sentence, rule=rule)


def _sentence(severity: Severity, description: str) -> str:
    return t("console.about.sentence", severity=t(f"severity.{severity}"), sentence=shown(description, prose=True))


def _setting(verdict: Verdict) -> str:
    return t("console.judged.setting", setting=shown(verdict.setting, prose=True)) if verdict.setting else ""


def _nodes(found: Explanation) -> tuple[Node, ...]:
    """A node for each line of the tree: first the commands, then the lines of code."""
    commands = found.commands
    told = [(command.wrappers, command.rules) for command in commands]
    told += [((), (line.rule,)) for line in found.lines]
    return tuple(_node(line, *each) for line, each in zip(tree(found), told, strict=True))


def _node(line: TreeLine, wrappers: tuple[str, ...], rules: tuple[RuleSaid, ...]) -> Node:
    around = [t("console.judged.inside", wrappers=" › ".join(safe_name(each) for each in wrappers))] if wrappers else []
    asks = line.verdict != "allow"
    return Node(
        number=line.number,
        depth=min(line.depth, DEEPEST),
        text=shown(line.text, prose=True),
        verdict=line.verdict,
        word=t(f"console.judged.{line.verdict}"),
        around=(*around, *([line.around] if line.around else [])),
        rules=tuple(map(_said, rules)) if asks else (),
        passed="" if asks else shown(line.reason, prose=True),
    )


def _said(rule: RuleSaid) -> Said:
    return Said(
        key=safe_name(rule.key),
        word=t(f"severity.{rule.severity}"),
        severity=rule.severity,
        sentence=shown(rule.sentence, prose=True),
        own=rule.own,
    )


def _more(found: Explanation) -> str:
    return t("why.more", count=found.more) if found.more else ""


def _complete(found: Explanation) -> bool:
    return not found.more and not found.problems


def _notes(found: Explanation) -> tuple[str, ...]:
    problems = [t("console.judged.problem", problem=shown(each, prose=True)) for each in found.problems]
    opaque = [t("console.judged.opaque", what=shown(each, prose=True)) for each in found.opaque]
    return tuple(dict.fromkeys((*problems, *opaque)))[:12]

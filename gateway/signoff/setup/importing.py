"""What other agents' settings allow and deny, in this gateway's words. Pure: texts in, proposals out.

Allowed commands become entries of `allowlist.toml`, denied ones `approvals.deny`. What would mean something wider here
than it meant there is left out, with the reason.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from signoff.policy import JudgeContext, judge
from signoff.policy.deny import fits, pattern_parts
from signoff.policy.ruleset import shipped
from signoff.policy.shell import carriers
from signoff.setup.carrying import carries_any

Wanted = Literal["allow", "ask", "deny"]

MAX_ALTERNATIVES = 64
"""A Codex rule whose alternatives make more entries than this is left out: nobody reads so many."""

_OPERATORS = re.compile(r"[;&|<>`\n]|\$\(")
_RULE = re.compile(r"(\w+)(?:\((.*)\))?", re.S)
_TRAILING = re.compile(r"(?P<head>[^*]*\S) \*")
ALL = "it is about every command; set approvals.mode, or choose per session with /yolo"
OPERATORS = "it joins or redirects commands, and an entry here admits one simple command"
ANY_PROGRAM = "it begins with a star, so it would admit any program"
ANY_COMMAND = "it would let any command run, by way of that program; let those commands run that are meant"
SIGNS = "it uses ? or [, and here only * stands for other characters"
NOT_A_COMMAND = "it is about a tool and not about a command; answer such a question with Always once"
NOT_A_COMMAND_DENIED = "it is about a tool and not about a command; here tools ask, and a person may deny each call"
ASKS = 'what asks there asks here by its rule; write a [[rules]] row with verdict "ask" for what no rule knows'
CATEGORY = "it names a kind of command; here a person allows a kind for a session, on the card"
NOT_READ = "it cannot be read"


class Wish(Struct, frozen=True, kw_only=True):
    """One setting as it stands there: what is wanted for which texts, `*` standing for anything, and why it cannot be
    carried over, where that is known already."""

    wanted: Wanted
    shown: str
    where: str
    texts: tuple[str, ...] = ()
    why_not: str = ""


class Left(Struct, frozen=True, kw_only=True):
    """A setting that is not carried over, and why."""

    where: str
    shown: str
    why: str


class Line(Struct, frozen=True, kw_only=True):
    """An entry to write, where it comes from, and the rule that asks for the same today."""

    text: str
    where: str
    asks: str = ""


class Proposal(Struct, frozen=True, kw_only=True):
    """What would be written, and what would not."""

    commands: tuple[Line, ...] = ()
    deny: tuple[Line, ...] = ()
    left: tuple[Left, ...] = ()


def proposed(files: Iterable[tuple[Wish, ...]]) -> Proposal:
    """What comes of the settings of several files. `files` holds each file's wishes in order of precedence: what
    stands later wins where both fit."""
    commands: dict[str, Line] = {}
    deny: dict[str, Line] = {}
    left: list[Left] = []
    for wishes in files:
        for place, wish in enumerate(wishes):
            if wish.wanted == "ask" and wish.texts == ("*",):
                continue  # what nothing allows asks here too
            why = wish.why_not or _why_not(wish, wishes[place + 1 :])
            if why:
                left.append(Left(where=wish.where, shown=wish.shown, why=why))
                continue
            for text in wish.texts:
                if wish.wanted == "deny" and f"{text} *" in wish.texts:
                    continue  # a deny rule `rm *` forbids a bare `rm` as well
                if wish.wanted == "deny":
                    deny.setdefault(text, Line(text=text, where=wish.where))
                else:
                    commands.setdefault(text, Line(text=text, where=wish.where, asks=_asks(text)))
    return Proposal(commands=tuple(commands.values()), deny=tuple(deny.values()), left=tuple(left))


def _why_not(wish: Wish, later: Iterable[Wish]) -> str:
    if wish.wanted == "ask":
        return ASKS
    if all(not text.replace("*", "").strip() for text in wish.texts):
        return ALL
    if any(sign in text for text in wish.texts for sign in "?["):
        return SIGNS
    if wish.wanted == "deny":
        return ""
    if any(_OPERATORS.search(text) for text in wish.texts):
        return OPERATORS
    if any(text.startswith("*") for text in wish.texts):
        return ANY_PROGRAM
    if any(carries_any(text) for text in wish.texts):
        return ANY_COMMAND
    stronger = next((each for each in later if each.wanted == "ask" and _overlap(wish, each)), None)
    return f"{stronger.shown} asks for some of it there, which an entry here could not" if stronger else ""


def _overlap(one: Wish, other: Wish) -> bool:
    return any(may_overlap(a, b) for a in one.texts for b in other.texts)


def may_overlap(one: str, other: str) -> bool:
    """Whether some text may fit both patterns; said too often rather than too seldom."""
    a, b = pattern_parts(one), pattern_parts(other)
    if len(a) == 1:
        return fits(b, a[0])
    if len(b) == 1:
        return fits(a, b[0])
    heads = a[0].startswith(b[0]) or b[0].startswith(a[0])
    return heads and (a[-1].endswith(b[-1]) or b[-1].endswith(a[-1]))


def _asks(text: str) -> str:
    """The rule that asks for the entry's own words today."""
    verdict = judge("command", text.replace("*", "").strip(), JudgeContext(kind="chat", attended=True))
    return (verdict.rule_keys[0] if verdict.rule_keys else verdict.description) if verdict.verdict != "allow" else ""


def _escaped(text: str) -> str:
    """A text from there as an entry: `*` stays a star, `\\*` one that stands for itself, other backslashes too."""
    return re.sub(r"\\(?!\*)", r"\\\\", text)


def _with_bare(text: str) -> tuple[str, ...]:
    """A pattern `git status *` also means the bare command."""
    found = _TRAILING.fullmatch(text)
    return (found["head"], text) if found else (text,)


# --- Claude Code ---------------------------------------------------------------------------------


def from_claude(tree: Mapping[str, Any], where: str) -> tuple[Wish, ...]:
    """`permissions` of a settings.json: deny stands above ask, and ask above allow."""
    permissions = tree.get("permissions")
    if not isinstance(permissions, dict):
        return ()
    return tuple(
        _claude_rule(rule, wanted, where)
        for wanted in ("allow", "ask", "deny")
        for rule in _list(permissions.get(wanted))
    )


def _of_tool(wanted: Any) -> str:
    return NOT_A_COMMAND_DENIED if wanted == "deny" else NOT_A_COMMAND


def _claude_rule(rule: Any, wanted: Wanted, where: str) -> Wish:
    shown = f"{wanted} {rule}"
    found = _RULE.fullmatch(rule.strip()) if isinstance(rule, str) else None
    if found is None:
        return Wish(wanted=wanted, shown=shown, where=where, why_not=NOT_READ)
    if found[1] != "Bash":
        return Wish(wanted=wanted, shown=shown, where=where, why_not=_of_tool(wanted))
    text = (found[2] if found[2] is not None else "*").strip()
    if text.endswith(":*"):
        text = f"{text[:-2].rstrip()} *"
    return Wish(wanted=wanted, shown=shown, where=where, texts=_with_bare(_escaped(text.strip())))


# --- Codex ---------------------------------------------------------------------------------------

_DECISIONS: dict[str, Wanted] = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}


def from_codex_rules(text: str, where: str) -> tuple[Wish, ...]:
    """`prefix_rule(...)` calls; the most restrictive of those that fit wins. Raises `ValueError` for other text."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from None
    calls = [node.value for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    wishes = [_codex_rule(call, where) for call in calls]
    order: dict[Wanted, int] = {"allow": 0, "ask": 1, "deny": 2}
    return tuple(sorted(wishes, key=lambda wish: order[wish.wanted]))


def _codex_rule(call: ast.Call, where: str) -> Wish:
    shown = " ".join(ast.unparse(call).split())
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    try:
        given = {
            word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg in {"pattern", "decision"}
        }
    except ValueError:
        return Wish(wanted="allow", shown=shown, where=where, why_not=NOT_READ)
    pattern, wanted = given.get("pattern"), _DECISIONS.get(given.get("decision", "allow"))
    if name != "prefix_rule" or wanted is None or not isinstance(pattern, list) or not pattern:
        return Wish(wanted="allow", shown=shown, where=where, why_not=NOT_READ)
    texts = list(_alternatives(pattern))
    if not texts:
        return Wish(wanted=wanted, shown=shown, where=where, why_not=NOT_READ)
    both = tuple(each for text in texts for each in (text, f"{text} *"))
    return Wish(wanted=wanted, shown=shown, where=where, texts=both)


def _alternatives(pattern: list[Any]) -> Iterator[str]:
    """Each way through a pattern whose parts are words or lists of words; none where one is neither."""
    ways: list[list[str]] = [[]]
    for part in pattern:
        words = part if isinstance(part, list) else [part]
        if not all(isinstance(word, str) and word and not word.isspace() for word in words):
            return
        ways = [[*way, word] for way in ways for word in words]
        if len(ways) > MAX_ALTERNATIVES:
            return
    for way in ways:
        yield " ".join(word.replace("\\", "\\\\").replace("*", "\\*") for word in way)


def from_codex_config(text: str, where: str) -> tuple[Wish, ...]:
    """What a config.toml says of approvals; none of it is about single commands. Raises `ValueError`."""
    tree = tomllib.loads(text)
    names = [name for name in ("approval_policy", "sandbox_mode") if name in tree]
    why = "it is about all actions; here approvals.mode and agents.<name>.isolation say such things"
    return tuple(
        Wish(wanted="allow", shown=f"{name} = {json.dumps(tree[name])}", where=where, why_not=why) for name in names
    )


# --- opencode ------------------------------------------------------------------------------------


def from_opencode(tree: Mapping[str, Any], where: str) -> tuple[Wish, ...]:
    """`permission.bash` of an opencode.json: the last pattern that fits wins."""
    permission = tree.get("permission")
    if not isinstance(permission, dict):
        return (_opencode_rule("*", permission, where),) if permission is not None else ()
    wishes = []
    for tool, given in permission.items():
        if tool == "bash":
            rules = given.items() if isinstance(given, dict) else [("*", given)]
            wishes += [_opencode_rule(pattern, wanted, where) for pattern, wanted in rules]
        elif given != "ask":
            shown = f"{tool}: {json.dumps(given)}"
            wishes.append(Wish(wanted="allow", shown=shown, where=where, why_not=_of_tool(given)))
    return tuple(_under_denials(wishes))


def _opencode_rule(pattern: str, wanted: Any, where: str) -> Wish:
    shown = f"{pattern}: {json.dumps(wanted)}"
    if wanted not in ("allow", "ask", "deny"):
        return Wish(wanted="allow", shown=shown, where=where, why_not=NOT_READ)
    return Wish(wanted=wanted, shown=shown, where=where, texts=_with_bare(_escaped(pattern.strip())))


def _under_denials(wishes: list[Wish]) -> Iterator[Wish]:
    """Exceptions from a denial before them cannot be carried over: here a deny rule has none."""
    for place, wish in enumerate(wishes):
        above = (
            each
            for each in wishes[:place]
            if each.wanted == "deny" and not each.why_not and any(text.strip("* ") for text in each.texts)
        )
        over = next((each for each in above if wish.wanted == "allow" and _overlap(wish, each)), None)
        if over is None or wish.why_not:
            yield wish
        else:
            why = f"{over.shown} forbids it here, where a deny rule has no exceptions"
            yield Wish(wanted=wish.wanted, shown=wish.shown, where=wish.where, texts=wish.texts, why_not=why)


# --- hermes-agent --------------------------------------------------------------------------------


def from_hermes(tree: Mapping[str, Any], where: str) -> tuple[Wish, ...]:
    """`command_allowlist` and `approvals.deny` of a config.yaml; deny stands above."""
    approvals = tree.get("approvals")
    denied = approvals.get("deny") if isinstance(approvals, dict) else None
    allowed = [_hermes_entry(entry, where) for entry in _list(tree.get("command_allowlist"))]
    return (*allowed, *(_hermes_deny(entry, where) for entry in _list(denied)))


def _hermes_entry(entry: Any, where: str) -> Wish:
    shown = f"command_allowlist: {entry}"
    if not isinstance(entry, str) or not entry.strip():
        return Wish(wanted="allow", shown=shown, where=where, why_not=NOT_READ)
    program = entry.split()[0]
    if "*" not in entry and not (shipped().knows(program) or program in carriers.table()):
        return Wish(wanted="allow", shown=shown, where=where, why_not=CATEGORY)
    return Wish(wanted="allow", shown=shown, where=where, texts=(_escaped(entry.strip()),))


def _hermes_deny(entry: Any, where: str) -> Wish:
    shown = f"approvals.deny: {entry}"
    if not isinstance(entry, str) or not entry.strip():
        return Wish(wanted="deny", shown=shown, where=where, why_not=NOT_READ)
    return Wish(wanted="deny", shown=shown, where=where, texts=(_escaped(entry.strip()),))


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]

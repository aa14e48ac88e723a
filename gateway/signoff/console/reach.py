"""How far a standing approval reaches, in words: what one would cover, and what a live one covers. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from signoff.display import shown
from signoff.model import Severity
from signoff.policy import ruleset
from signoff.settings import Profile
from signoff.wording import safe_name, t

_BY_KIND = {"code": ("code:", "code"), "tool": ("tool:", "tool"), "rule": ("rule:", "plugin")}
"""How the name begins that covers all of a kind, and the word for it in the texts."""


class Reach(Struct, frozen=True, kw_only=True):
    """What a standing approval of one action would cover. `covers` is empty where `lead` says that there is none."""

    lead: str
    covers: tuple[str, ...] = ()
    always: str = ""
    """What a permanent one would cover."""


class Asked(Struct, frozen=True, kw_only=True):
    """What the reach of an action depends on. `coverage` is empty where no kind of action is named."""

    kind: str
    severity: Severity
    coverage: tuple[str, ...]
    once_only: bool
    unread_file: str


def reach(asked: Asked, profile: Profile) -> Reach:
    """The reach of an action that people are asked for."""
    if asked.severity == "critical":
        return Reach(lead=t("console.reach.critical"))
    if asked.once_only:
        file = asked.unread_file
        return Reach(lead=t("fact.only_once", file=safe_name(file)) if file else t("console.reach.once_only"))
    if asked.kind == "elicitation":
        return Reach(lead=t("console.reach.question"))
    if asked.kind in _BY_KIND:
        return Reach(
            lead=t("console.reach.lead"),
            covers=covered(asked.kind, asked.coverage, profile),
            always=t("console.reach.always_kind", profile=safe_name(profile.name)),
        )
    exact = "text" if asked.kind == "command" else "change"
    return Reach(
        lead=t("console.reach.lead"),
        covers=covered(asked.kind, asked.coverage, profile),
        always=t(f"console.reach.always_{exact}", profile=safe_name(profile.name)),
    )


def covered(kind: str, names: Iterable[str], profile: Profile) -> tuple[str, ...]:
    """The names that a standing approval holds, each as a sentence, those of the same words once."""
    told = dict.fromkeys(_told(kind, name, profile) for name in names)
    return tuple(told) or (t("console.reach.exactly"),)


def _told(kind: str, name: str, profile: Profile) -> str:
    if kind in _BY_KIND:
        start, word = _BY_KIND[kind]
        if not name.startswith(start):
            return t("console.reach.exactly")
        return t(f"console.reach.{word}", name=safe_name(name.removeprefix(start)))
    name, bound, _ = name.partition("#")
    key, found, program = name.partition("@")
    if not found:
        return t("console.reach.exactly")
    breadth = "; ".join(dict.fromkeys(_breadths(key, program, profile))) or t("console.reach.rule", rule=safe_name(key))
    by = program.removesuffix("]").replace(" [", ": ", 1).replace("] [", ", ")
    text = t("console.reach.by", breadth=breadth, program=safe_name(by)) if program else breadth
    return t("console.reach.content", breadth=text) if bound else text


def _breadths(key: str, program: str, profile: Profile) -> list[str]:
    """What the rules of that key say they cover: those about the program, else all of them."""
    rules = profile.rules or ruleset.shipped()
    known = [rule for rule in (*rules.own, *rules.rules) if rule.key == key and rule.breadth]
    bare = program.partition(" [")[0].rpartition(" ")[2]
    about = [rule for rule in known if bare in rule.programs]
    return [shown(rule.breadth, prose=True) for rule in about or known]

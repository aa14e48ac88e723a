"""The facts of one question, each under its name: who, when, why, by which rules, what decided, shown where. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from signoff.console.judged import Judged, asking
from signoff.console_adapter import PLATFORM
from signoff.display import shown
from signoff.durations import clock, duration
from signoff.endings import user_summary
from signoff.model import ApprovalRequest
from signoff.whys import MAX_SEEN, PERSON_RUNG
from signoff.wording import safe_name, t


class Fact(Struct, frozen=True, kw_only=True):
    """A name and what stands under it, line by line. `note` explains the name to whoever does not know it."""

    name: str
    lines: tuple[str, ...]
    note: str = ""
    timed: bool = False
    """Whether its lines name times in our own words alone, so that a page may tell them in its reader's zone."""


class About(Struct, frozen=True, kw_only=True):
    """What there is to know of a question beside its card: the facts in the order in which one asks, and the commands.
    `asks` are those for which a person is asked, as they are written; None where not all of them are known."""

    facts: tuple[Fact, ...]
    judged: Judged
    asks: tuple[str, ...] | None


def about(row: ApprovalRequest, judged: Judged, *, who: str, until: str, now: datetime) -> About:
    """All of it. `who` asks; `until` says how long it waits, empty once it ended."""
    return About(facts=tuple(_facts(row, judged, who, until, now)), judged=judged, asks=asking(judged))


def _facts(row: ApprovalRequest, judged: Judged, who: str, until: str, now: datetime) -> Iterable[Fact]:
    yield _fact("who", [who])
    yield _fact("when", _when(row, until, now), timed=True)
    seen = () if judged.nodes else row.why[:MAX_SEEN]  # else it stands in the tree, command by command
    yield _fact("why", [judged.sentence, *(shown(line, prose=True) for line in seen)])
    yield _fact("rules", [*map(safe_name, row.rule_keys)] or [t("console.about.no_rule")])
    yield _fact("rung", [t(f"console.rung.{_rung(row)}"), judged.decided], note=t("console.about.rung_note"))
    if row.outcome is not None:
        yield _fact("ended", [user_summary(row, now)], timed=row.reason is None)
    yield _fact("places", _places(row))


def _rung(row: ApprovalRequest) -> str:
    """The rung that decided: what is stored is older than a grant or an earlier denial that answered."""
    if any(actor.type == "grant" for actor in row.decided_by):
        return "grants"
    return "denied" if row.repeat_of is not None else row.rung or PERSON_RUNG


def _fact(name: str, lines: Iterable[str], note: str = "", *, timed: bool = False) -> Fact:
    return Fact(name=t(f"console.about.{name}"), lines=tuple(lines), note=note, timed=timed)


def _when(row: ApprovalRequest, until: str, now: datetime) -> list[str]:
    lines = [t("console.about.asked_at", clock=clock(row.created_at, now=now))]
    if until:
        lines.append(until)
    if row.decided_at is not None:
        took = duration(max((row.decided_at - row.created_at).total_seconds(), 0.0))
        lines.append(t("console.about.ended_at", clock=clock(row.decided_at, now=now), duration=took))
    return lines


def _places(row: ApprovalRequest) -> list[str]:
    here = [t("console.about.here")] if any(place.platform == PLATFORM for place in row.delivered_to) else []
    chats = [safe_name(str(place)) for place in row.delivered_to if place.platform != PLATFORM]
    return here + chats or [t("console.about.nowhere")]

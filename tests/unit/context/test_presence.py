"""Who could answer: the whole table, with every combination of kinds and inherited flags in exactly one row of it."""

from __future__ import annotations

from itertools import chain, combinations, product

import pytest
from msgspec import Struct

from signoff.model import SessionKind
from signoff.presence import JOBS, NOBODY, PRECEDENCE, Flags, Presence, kind_of, presence

CLI, GATEWAY, ASK = Presence(True, False, False), Presence(False, True, False), Presence(False, False, True)
CLI_AND_GATEWAY, GATEWAY_AND_ASK = Presence(True, True, False), Presence(False, True, True)
EVERYBODY = Presence(True, True, True)


class Row(Struct, frozen=True):
    """One row: the strongest kind that is named (weaker ones may be stale beside it), each flag set, not set or either
    way (None), and what holds then."""

    number: str
    named: SessionKind | None
    kind: SessionKind | None
    found: Presence
    place: bool | None = None
    interactive: bool | None = None
    ask: bool | None = None
    notifier: bool | None = None

    def has(self, flags: Flags) -> bool:
        """Whether the row speaks of these."""
        strongest = next((kind for kind in PRECEDENCE if kind in flags.kinds), None)
        told = [(self.place, flags.place), (self.interactive, flags.interactive)]
        told += [(self.ask, flags.ask), (self.notifier, flags.notifier)]
        return strongest == self.named and all(wanted in (None, is_set) for wanted, is_set in told)


def _in_a_gateway(numbers: str, named: SessionKind | None, kind: SessionKind) -> list[Row]:
    """A chat's or an API run's: its own place or who listens; the terminal of who started the process never."""
    found = [
        Row(f"{numbers} 2.4e place", named, kind, GATEWAY, place=True, notifier=False),
        Row(f"{numbers} place, listened to", named, kind, GATEWAY, place=True, notifier=True, ask=False),
        Row(f"{numbers} 2.4c place, ask", named, kind, GATEWAY_AND_ASK, place=True, notifier=True, ask=True),
    ]
    if named is None:
        return found  # without a place it is not known to be one
    return [
        *found,
        Row(f"{numbers} 2.4d nobody listens", named, kind, NOBODY, place=False, notifier=False),
        Row(f"{numbers} listened to", named, kind, GATEWAY, place=False, notifier=True, ask=False),
        Row(f"{numbers} 2.3.4 2.4c ask", named, kind, GATEWAY_AND_ASK, place=False, notifier=True, ask=True),
    ]


def _at_a_terminal(numbers: str, kind: SessionKind) -> list[Row]:
    """A named terminal session, or a child whose parent's kind is not known."""
    return [
        Row(f"{numbers} person", kind, kind, CLI, place=False, interactive=True, notifier=False),
        Row(f"{numbers} nobody", kind, kind, NOBODY, place=False, interactive=False, notifier=False),
        Row(f"{numbers} both", kind, kind, CLI_AND_GATEWAY, place=False, interactive=True, notifier=True, ask=False),
        Row(f"{numbers} all", kind, kind, EVERYBODY, place=False, interactive=True, notifier=True, ask=True),
        Row(f"{numbers} listened", kind, kind, GATEWAY, place=False, interactive=False, notifier=True, ask=False),
        Row(f"{numbers} ask", kind, kind, GATEWAY_AND_ASK, place=False, interactive=False, notifier=True, ask=True),
        Row(f"{numbers} place", kind, kind, GATEWAY, place=True, notifier=False),
        Row(f"{numbers} place, listened", kind, kind, GATEWAY, place=True, notifier=True, ask=False),
        Row(f"{numbers} place, ask", kind, kind, GATEWAY_AND_ASK, place=True, notifier=True, ask=True),
    ]


TABLE = [
    # Jobs: whatever flag is inherited, whoever listens, whatever weaker kind is stale beside it.
    Row("2.2 single query, 2.3.1, 2.3.3, 2.4a", "single_query", "single_query", NOBODY),
    Row("2.2 cron, 2.3.1, 2.3.2, 2.3.3, 2.4a", "cron", "cron", NOBODY),
    Row("2.2 webhook, 2.3.4, 2.3.5, 2.4b", "webhook", "webhook", NOBODY),
    Row("2.2 worker, 2.3.3, 2.3.6", "worker", "worker", NOBODY),
    *_in_a_gateway("2.2 gateway platform", "chat", "chat"),
    *_in_a_gateway("2.2 api", "api", "api"),
    *_at_a_terminal("2.2 interactive", "cli"),
    *_at_a_terminal("2.2 child", "child"),
    # No kind is named: a place, an ask process, a person at the terminal are guessed from, in this order.
    *_in_a_gateway("2.2 gateway platform, guessed", None, "chat"),
    Row("2.2 ask process, 2.4d", None, "api", NOBODY, place=False, ask=True, notifier=False),
    Row("2.2 ask process, 2.4c", None, "api", GATEWAY_AND_ASK, place=False, ask=True, notifier=True),
    Row("2.4f interactive only", None, "cli", CLI, place=False, ask=False, interactive=True, notifier=False),
    Row(
        "2.2 interactive, listened",
        None,
        "cli",
        CLI_AND_GATEWAY,
        place=False,
        ask=False,
        interactive=True,
        notifier=True,
    ),
    Row("2.2 no context, G2-19", None, None, NOBODY, place=False, ask=False, interactive=False),
]

SUBSETS = [frozenset(each) for each in chain.from_iterable(combinations(PRECEDENCE, n) for n in range(9))]
EVERY = [
    Flags(kinds=kinds, place=place, interactive=interactive, ask=ask, notifier=notifier)
    for kinds in SUBSETS
    for place, interactive, ask, notifier in product((False, True), repeat=4)
]


def test_every_combination_stands_in_one_row() -> None:
    assert len(EVERY) == 256 * 16
    assert [flags for flags in EVERY if sum(row.has(flags) for row in TABLE) != 1] == []


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.number)
def test_the_table(row: Row) -> None:
    mine = [flags for flags in EVERY if row.has(flags)]
    assert mine
    for flags in mine:
        assert (presence(flags), kind_of(flags)) == (row.found, row.kind), flags


def test_the_jobs_are_those_that_no_flag_makes_attended() -> None:  # 2.3.3
    flags = {"place": True, "interactive": True, "ask": True, "notifier": True}
    alone = {kind for kind in PRECEDENCE if not presence(Flags(kinds=frozenset({kind}), **flags)).anybody}
    assert alone == JOBS

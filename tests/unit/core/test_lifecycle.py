"""The tables of transitions: every pair of every table, and that nothing leads out of an ending."""

from __future__ import annotations

import pytest
from tests.tables import every

from signoff import lifecycle
from signoff.lifecycle import DELIVERY, EXECUTION, REQUEST, TABLES, IllegalTransition, Table, allows, apply, mermaid
from signoff.model import OUTCOMES


def states(table: Table) -> set[str]:
    """Every state that a table names."""
    return {state for state, _ in table} | set(table.values())


def events(table: Table) -> set[str]:
    """Every event that a table names."""
    return {event for _, event in table}


PAIRS = [
    (name, state, event)
    for name, table in TABLES.items()
    for state in sorted(states(table) | {"nowhere"})
    for event in sorted(events(table) | {"nothing"})
]


@every("name, state, event", PAIRS)
def test_every_pair(name: str, state: str, event: str) -> None:
    table = TABLES[name]
    if (state, event) in table:
        assert allows(table, state, event)
        assert apply(table, state, event) == table[state, event]
    else:
        assert not allows(table, state, event)
        with pytest.raises(IllegalTransition, match=state):
            apply(table, state, event)


def test_no_transition_leaves_an_outcome() -> None:
    assert not {state for state, _ in REQUEST} & OUTCOMES
    assert set(REQUEST.values()) == OUTCOMES | {"pending"}
    assert {state for state, _ in REQUEST} == {"new", "pending"}


def test_what_is_over_stays_over() -> None:
    assert {state for state, _ in EXECUTION} == {"none", "claimed", "unknown"}
    assert {state for state, _ in DELIVERY} == {"queued", "sending", "ambiguous", "sent", "final"}
    assert {event for state, event in DELIVERY if state == "final"} == {"reopen"}
    assert "stopped" not in {state for state, _ in lifecycle.ADAPTER}


def test_nothing_runs_twice() -> None:
    """No way leads back to a state that could be claimed."""
    assert "none" not in EXECUTION.values()
    assert [state for (state, _), after in EXECUTION.items() if after == "claimed"] == ["none"]


def test_the_diagram_has_every_transition() -> None:
    for table in TABLES.values():
        lines = mermaid(table).splitlines()
        assert lines[0] == "stateDiagram-v2"
        assert {line.strip() for line in lines[1:]} == {
            f"{state} --> {after}: {event}" for (state, event), after in table.items()
        }

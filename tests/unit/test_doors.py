"""The four ways to a gateway have the same verbs, with the same words."""

from __future__ import annotations

import inspect

import pytest

from signoff import BlockingClient, BlockingGateway, Client, Gateway
from signoff.verbs import Verbs

ONLY_OVER_HTTP = {
    *("events", "health_detailed", "keys", "create_key", "revoke_key", "start_drill", "drill", "health"),
    *("allowlist", "change_allowlist", "open_sessions"),
}
"""In process these are the gateway's own: `store.events`, `health()`, `keys`, `allowlisting`, its store's sessions,
and drills of the running gateway."""
NOT_SHARED = {"profile", "by", "seen", "turn_id"}
"""A client's key says the profile and the person; the clients alone tell of a record as it changes."""


def verbs(door: type) -> set[str]:
    """The public coroutines and functions of a class, without those that open and close it."""
    found = {name for name, _ in inspect.getmembers(door, inspect.isfunction) if not name.startswith("_")}
    return found - {"close", "aclose"}


def test_the_blocking_twins_have_all_verbs() -> None:
    assert verbs(BlockingClient) == verbs(Client)
    # `call_tool` is the twin of `gateway.gate.call`.
    assert verbs(BlockingGateway) == verbs(Verbs) | {"call_tool"}


def test_in_process_and_over_http_the_verbs_are_the_same() -> None:
    assert verbs(Client) - ONLY_OVER_HTTP == verbs(Verbs)
    assert issubclass(Gateway, Verbs)


@pytest.mark.parametrize("name", sorted(verbs(Verbs)))
@pytest.mark.parametrize(("one", "other"), [(Client, BlockingClient), (Verbs, BlockingGateway)])
def test_a_verb_takes_the_same_words_in_both_twins(one: type, other: type, name: str) -> None:
    words = [inspect.signature(getattr(door, name)).parameters.items() for door in (one, other)]
    taken = [{word: (each.kind, each.default) for word, each in found if word not in NOT_SHARED} for found in words]
    assert taken[0] == taken[1]

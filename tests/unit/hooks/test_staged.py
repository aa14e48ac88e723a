"""Kept actions: the asker's record, the question about it and a second run have a pair of hooks each."""

from __future__ import annotations

from collections import Counter

from tests.unit.core.harness import BY_ANN
from tests.unit.gate.kept import KeptWorld
from tests.unit.hooks.test_pairing import Ear, post, pre

from signoff.changes import staging
from signoff.ports import Store
from signoff.testing.clock import FakeClock


async def test_what_is_kept_is_asked_and_told_in_pairs(store: Store, clock: FakeClock) -> None:
    world, ear = KeptWorld(store, clock), Ear(store)
    await world.job()
    kept = await world.keep()
    row = await world.staged.approve("default", kept.request_id, BY_ANN)
    await store.transact(lambda tx: staging.start(tx, "default", row.request_id, "dead"))
    await world.advance(staging.LEASE_S + 1)
    again = await world.staged.run_again("default", row.request_id, BY_ANN)
    heard = await ear.whole(store)
    told = {payload.request_id: payload for payload in post(heard)}
    asked = {payload.request_id: payload for payload in pre(heard)}
    assert Counter(payload.request_id for payload in pre(heard)) == Counter(list(told))
    assert Counter(payload.request_id for payload in post(heard)) == Counter(list(told))
    assert len(told) == 3
    staged = told[kept.stages or ""]
    assert (staged.outcome, staged.kept_as) == ("staged", kept.request_id)
    assert staged.message.startswith(f"STAGED: kept as {kept.short_id}")
    assert (told[kept.request_id].outcome, asked[kept.request_id].stages) == ("approved", staged.request_id)
    assert told[kept.request_id].superseded_by is None
    assert told[again.request_id].outcome == "approved"
    await ear.hooks.aclose()
    await world.aclose()

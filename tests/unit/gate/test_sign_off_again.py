"""An action of which nobody knows whether it ran takes the same sign-off for a second run as for the first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.core.harness import ANN, BEN, BY_ANN
from tests.unit.gate.kept import BY_BEN, KeptWorld, lost, profile_with
from tests.unit.staged_cards.world import newest

from signoff.changes import staging
from signoff.errors import ActionRefused, ChoiceNotOffered
from signoff.model import ApprovalRequest, replace
from signoff.settings import GrantSettings
from signoff.staged import state_of


async def lost_of_two(world: KeptWorld) -> ApprovalRequest:
    """One that two people must agree to, approved by both, whose claimant stopped while it ran."""
    row = await world.keep()
    await world.put(replace(row, threshold=2))
    await world.flush()
    for by in (BY_ANN, BY_BEN):
        await world.staged.approve("default", row.request_id, by)
    await world.store.transact(lambda tx: staging.start(tx, "default", row.request_id, "dead"))
    await world.advance(staging.LEASE_S + 1)
    found = await world.row(row)
    assert (state_of(found), len(found.votes)) == ("unknown", 2)
    return found


async def test_one_of_two_has_nothing_run(world: KeptWorld) -> None:
    row = await lost_of_two(world)
    world.start()
    again = await world.staged.run_again("default", row.short_id, BY_BEN)
    assert (again.outcome, state_of(again), len(again.votes)) == (None, "waits", 1)
    await world.advance(60)
    assert world.ran == []
    same = await world.staged.approve("default", again.request_id, BY_BEN)
    assert (same.outcome, len(same.votes)) == (None, 1), "one person counts once"
    done = await world.staged.approve("default", again.request_id, BY_ANN)
    assert (done.outcome, {actor.user_id for actor in done.decided_by}) == ("approved", {ANN, BEN})
    assert state_of(await world.until_ended(done)) == "succeeded"
    assert [call.id for call in world.ran] == [again.request_id]


async def test_the_other_one_of_two_may_refuse_it(world: KeptWorld) -> None:
    row = await lost_of_two(world)
    again = await world.staged.run_again("default", row.short_id, BY_BEN)
    await world.staged.reject("default", again.request_id, BY_ANN)
    assert state_of(await world.row(again)) == "denied"
    with pytest.raises(ActionRefused):
        await world.staged.replay("default", again.request_id)
    assert world.ran == []


async def test_it_expires_like_the_first_one(world: KeptWorld) -> None:
    row = await lost_of_two(world)
    again = await world.staged.run_again("default", row.short_id, BY_BEN)
    assert again.timeout_s is not None
    assert again.expires_at is not None
    assert (again.expires_at - again.created_at).total_seconds() == again.timeout_s
    await world.advance(again.timeout_s + 1)
    assert state_of(await world.row(again)) == "expired"


async def test_by_taps_on_the_card(world: KeptWorld) -> None:
    row = await lost_of_two(world)
    await world.tap(row, "run_again", BEN)
    await world.flush()
    told = await world.tap(row, "confirm", BEN)
    again = await newest(world)
    assert told.text == f"Asked once more as {again.short_id}: 1 of 2 agree. One more person must agree."
    await world.flush()
    card = await world.card(again)
    assert "1 of 2" in card.text
    assert again.decided_copy is None
    assert (await world.tap(again, "once", ANN)).text == "Approved. Executor mailer runs it now."
    assert (await world.row(again)).outcome == "approved"


async def test_what_the_profile_does_not_offer_any_more_is_not_run_again(
    make: Callable[..., KeptWorld], world: KeptWorld
) -> None:
    row = await lost(world)
    later = make(profile=replace(profile_with(), grants=GrantSettings(tool=("deny",))))
    with pytest.raises(ChoiceNotOffered):
        await later.staged.run_again("default", row.short_id, BY_BEN)
    assert state_of(await later.row(row)) == "unknown"
    assert (await newest(later)).request_id == row.request_id


async def test_who_may_not_decide_has_nothing_run_again(world: KeptWorld) -> None:
    row = await lost_of_two(world)
    assert "may not decide" in (await world.tap(row, "run_again", "666")).text
    assert (await newest(world)).request_id == row.request_id

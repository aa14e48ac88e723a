"""What is told of a question that reached nobody: that a place refused it only where one did, and which one."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.core.harness import OTHER_PLACE, PLACE, World

from signoff.endings import ending
from signoff.errors import AdapterUnavailable, SendRefused
from signoff.model import ApprovalRequest, Destination, replace
from signoff.settings import ApprovalSettings, Profile

SLACK = Destination("slack", "C1")
REFUSED = SendRefused("bot was removed")
BOTH = Profile(approvers={"fake": ("1",)}, approvals=ApprovalSettings(also_to=(OTHER_PLACE,)))
DOWN = AdapterUnavailable("connection refused")
MEND_REFUSED = "Mend: see that the bot is in that chat and may post there, then signoff doctor."
MEND_SILENT = "Mend: see that the platform can be reached and takes messages, then signoff doctor."


async def told(world: World, row: ApprovalRequest) -> tuple[str, ...]:
    """The summary, then the card's lines without mark and clock."""
    found = ending(await world.row(row), world.clock.now(), title=str.title)
    assert found.word == "notify_failed"
    return found.summary, *("".join(span.text for span in block.spans) for block in found.status)


async def test_a_place_that_refused_is_named(world: World) -> None:
    world.chat.fail(REFUSED)
    summary, verdict, mend = await told(world, await world.ask())
    assert summary == "Notify failed: Fake refused the message (bot was removed), nobody was asked, not run."
    assert verdict == (
        "⚠️ Notify failed · 09:00 UTC · Fake refused the message (bot was removed) · nobody was asked · not run"
    )
    assert mend == MEND_REFUSED


async def test_nobody_refused_what_no_place_could_take(world: World) -> None:
    world.chat.fail(DOWN, times=100)
    row = await world.ask()
    follower = await world.submit()
    await world.advance(20)
    for each in (row, follower):
        summary, verdict, mend = await told(world, each)
        said = "no place took the message (connection refused)"
        assert summary == f"Notify failed: {said}, nobody was asked, not run."
        assert f" · {said} · nobody was asked · not run" in verdict
        assert mend == MEND_SILENT


async def test_the_sentence_of_an_error_ends_once(world: World) -> None:
    world.chat.fail(AdapterUnavailable("Fake could not be reached: ConnectError."), times=100)
    row = await world.ask()
    await world.advance(20)
    summary, verdict, _ = await told(world, row)
    said = "no place took the message (Fake could not be reached: ConnectError)"
    assert summary == f"Notify failed: {said}, nobody was asked, not run."
    assert f" · {said} · nobody was asked" in verdict


async def test_the_fallback_that_refused_is_named(make_world: Callable[..., World]) -> None:
    """Not the first place, which refused too, for another reason."""
    world = make_world(fallbacks={"default": OTHER_PLACE})
    await world.session()
    world.chat.fail(REFUSED)
    world.chat.fail(SendRefused("chat not found"), times=2)
    row = await world.ask()
    assert (await world.row(row)).refused_by == OTHER_PLACE
    assert "chat not found" in (await told(world, row))[0]


async def test_a_fallback_that_cannot_be_reached_refused_nothing(make_world: Callable[..., World]) -> None:
    world = make_world(fallbacks={"default": OTHER_PLACE})
    await world.session()
    world.chat.fail(REFUSED)
    world.chat.fail(DOWN, times=100)
    row = await world.ask()
    await world.advance(20)
    assert "no place took the message (connection refused)" in (await told(world, row))[0]


async def test_a_platform_that_is_not_served_refused_nothing(world: World) -> None:
    row = await world.submit()
    copy = await world.copy(row)
    await world.put(replace(copy, destination=SLACK), replace(await world.row(row), destinations=(SLACK,)))
    await world.flush()
    assert "no place took the message (slack is not served here)" in (await told(world, row))[0]


async def test_of_two_places_the_one_that_refused_last_is_named(make_world: Callable[..., World]) -> None:
    world = make_world(profile=BOTH)
    await world.session()
    world.chat.fail(REFUSED)
    world.chat.fail(SendRefused("chat not found"))
    row = await world.ask()
    copies = {copy.destination: copy.error for copy in await world.copies(row)}
    after = await world.row(row)
    assert after.refused_by is not None
    assert after.delivery_error == copies[after.refused_by]
    assert {PLACE, OTHER_PLACE} == set(copies)

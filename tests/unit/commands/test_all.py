"""Approve all and deny all: what a place showed before the command, each with its result, the rest with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from tests.unit.commands.world import ANA, BEN, OTHER, ROOM, THREAD, World, person, until

from signoff.actions import one_line
from signoff.changes.answering_all import QUIET_OVER
from signoff.model import ApprovalRequest, Change, Copy, Destination, replace
from signoff.ports import Tx
from signoff.rows import request_key
from signoff.testing.fake_adapter import FakeMessage


async def test_each_is_listed_and_every_card_edited(world: World) -> None:
    await world.session("s2")
    first, second = await world.ask(), await world.ask(session="s2")
    assert await world.type("/approve all") == (
        "Ana: approve all · 09:00 UTC · 2 of 2 approved once, no grant made\n"
        f"Approved {first.short_id} · {one_line(first.action)}\n"
        f"Approved {second.short_id} · {one_line(second.action)}"
    )
    for row in (first, second):
        done = await world.row(row)
        assert (done.outcome, done.choice, done.decided_by[0].via) == ("approved", "once", "approve_all")
        shown = await world.adapter.until(lambda all_, row=row: any(_closed(each, row) for each in all_))  # type: ignore[misc]  # bound at once
        assert shown
    assert await world.broker.grants("default") == []


def _closed(message: FakeMessage, row: ApprovalRequest) -> bool:
    return row.short_id in message.text and "Approved once by Ana" in message.text


async def test_followers_that_were_shown_go_along(world: World) -> None:
    leader = await world.ask("deploy all")
    shown = await world.submit("deploy all")

    async def counted() -> bool:
        copy = (await world.copies(leader))[0]
        return copy.faces[-1].upto == 1 and copy.lease_until is None

    await until(counted)
    world.adapter.stall("update")
    late = await world.submit("deploy all")

    async def counted_too() -> bool:
        return (await world.copies(leader))[0].faces[-1].upto == 2

    await until(counted_too)  # the edit that will show it is on its way, and never comes
    face = (await world.copies(leader))[0].faces[-1]
    await world.change_copies(leader, faces=(replace(face, upto=1, shown=1),))
    text = await world.type("/approve all")
    world.adapter.go_on("update")
    assert "2 of 2 approved once, no grant made" in text
    assert f"Approved {leader.short_id} (2 runs) · deploy all" in text
    assert await world.outcomes(leader, shown, late) == ["approved", "approved", None]
    assert (await world.row(leader)).choice == "once_all"


async def test_critical_is_left_by_approve_all_and_not_by_deny_all(world: World) -> None:
    plain, critical = await world.ask(), await world.ask(severity="critical")
    text = await world.type("/approve all")
    assert f"Left {critical.short_id} · critical: needs its own tap" in text
    assert "1 of 2 approved" in text
    assert await world.outcomes(plain, critical) == ["approved", None]
    text = await world.type("/deny all too late today")
    assert text.splitlines()[0] == "Ana: deny all · 09:00 UTC · 1 of 2 denied"
    assert f"Denied {critical.short_id}" in text
    done = await world.row(critical)
    assert (done.outcome, done.reason, done.decided_by[0].via) == ("denied", "too late today", "command")


async def test_only_exactly_this_place(world: World) -> None:
    await world.session("s2", THREAD)
    await world.session("s3", OTHER)
    here, inside, there = await world.ask(), await world.ask(session="s2"), await world.ask(session="s3")
    text = await world.type("/approve all")
    assert text.splitlines()[-1] == "1 more waits in a thread of this channel; not touched."
    assert await world.outcomes(here, inside, there) == ["approved", None, None]
    assert "1 of 1" in await world.type("/approve all", where=THREAD)
    assert await world.outcomes(inside, there) == ["approved", None]


async def test_what_came_after_the_command_is_left(world: World) -> None:
    early = await world.ask()
    await world.adapter.say("hello", where=ROOM, by=ANA)
    assert world.last is not None
    command = replace(world.last, text="/approve all")
    late = await world.ask()
    await world.commands.handle("default", command, world.adapter.info)
    assert f"Left {late.short_id} · came after your command" in (await world.answer()).text
    assert await world.outcomes(early, late) == ["approved", None]


async def test_what_arrives_while_it_runs_stays_pending(world: World) -> None:
    early = [await world.ask() for _ in range(5)]
    asking = [asyncio.create_task(world.ask()) for _ in range(20)]
    await world.adapter.say("/approve all", where=ROOM, by=ANA)
    late = await asyncio.gather(*asking)
    assert await world.outcomes(*early) == ["approved"] * 5
    assert await world.outcomes(*late) == [None] * 20


async def test_what_nobody_can_have_read_whole_is_left(world: World) -> None:
    clipped, doubtful, fine = await world.ask(), await world.ask(), await world.ask()
    await world.change_copies(clipped, whole_shown=False)
    await world.change_copies(doubtful, state="ambiguous", order=0)
    text = await world.type("/approve all")
    assert f"Left {clipped.short_id} · its whole text was not shown" in text
    assert f"Left {doubtful.short_id} · not shown here yet" in text
    assert await world.outcomes(clipped, doubtful, fine) == [None, None, "approved"]
    assert "2 of 3 denied" in await world.type("/deny all")


async def test_a_taken_over_card_that_does_not_count_its_leader_is_left(world: World) -> None:
    row = await world.ask()
    await world.change(row, follow_no=3)
    assert f"Left {row.short_id} · not shown here yet" in await world.type("/approve all")
    assert await world.outcomes(row) == [None]


async def test_scopes_make_a_grant_each(world: World) -> None:
    narrow, wide = await world.ask(choices=("once", "deny")), await world.ask()
    text = await world.type("/approve all 30m")
    (grant,) = await world.broker.grants("default")
    assert text.splitlines()[0] == f"Ana: approve all · 09:00 UTC · 1 of 2 approved, grants made: {grant.grant_id}"
    assert f"Left {narrow.short_id} · “30m” is not on offer" in text
    assert grant.expires_at == world.clock.now() + timedelta(minutes=30)
    assert (grant.request_id, grant.by.via) == (wide.request_id, "approve_all")
    assert await world.outcomes(narrow, wide) == [None, "approved"]


async def test_a_grant_of_the_same_command_settles_the_next(world: World) -> None:
    await world.session("s2")
    rows = [await world.ask("deploy all"), await world.ask("deploy all", session="s2")]
    text = await world.type("/approve all always")
    assert "2 of 2 approved, grants made: " in text
    assert len(await world.broker.grants("default")) == 1
    assert await world.outcomes(*rows) == ["approved", "approved"]


async def test_what_ended_meanwhile_is_named(world: World) -> None:
    ended, row = await world.ask(), await world.ask()
    world.adapter.stall("update")
    await world.broker.decide("default", ended.request_id, "deny", person(BEN))
    text = await world.type("/approve all")
    world.adapter.go_on("update")
    assert f"Left {ended.short_id} · already denied by Ben at 09:00 UTC" in text
    assert await world.outcomes(ended, row) == ["denied", "approved"]


async def test_delivered_again_it_changes_nothing(world: World) -> None:
    rows = [await world.ask() for _ in range(QUIET_OVER + 1)]
    await world.type("/approve all")
    late = await world.ask()
    before = [await world.row(row) for row in rows]
    await world.again()
    assert [await world.row(row) for row in rows] == before
    assert await world.outcomes(late) == [None]


async def test_nothing_waits(world: World) -> None:
    assert await world.type("/approve all") == "Nothing waits here."
    assert await world.type("/deny all") == "Nothing waits here."


@pytest.mark.parametrize("count", [QUIET_OVER, QUIET_OVER + 5])
async def test_many_are_told_in_one_summary(world: World, count: int) -> None:
    rows = [await world.submit() for _ in range(count)]
    for row in rows:
        await world.shown(row)
    await world.idle()
    before = len([call for call, _ in world.adapter.calls if call == "update"])
    reply = await world.reply("/approve all")
    lines = reply.text.splitlines()
    assert lines[0] == f"Ana: approve all · 09:00 UTC · {count} of {count} approved once, no grant made"
    await world.idle()
    edits = len([call for call, _ in world.adapter.calls if call == "update"]) - before
    assert await world.outcomes(*rows) == ["approved"] * count
    if count <= QUIET_OVER:
        assert (edits, len(lines), reply.card.attachment) == (count, 1 + count, None)
        return
    assert edits == 0
    assert (len(lines), lines[-1]) == (22, "and 5 more in approve-all.txt")
    assert reply.card.attachment is not None
    whole = reply.card.attachment.content.decode().splitlines()
    assert len(whole) == 1 + count
    orders = {row.short_id: (await world.copies(row))[0].order for row in rows}
    named = [line.split()[1] for line in whole[1:]]
    assert named == sorted(orders, key=orders.__getitem__)
    assert {(await world.copies(row))[0].state for row in rows} == {"final"}


async def test_cards_elsewhere_are_edited_since_no_summary_is_posted_there(world: World) -> None:
    rows = [await world.submit() for _ in range(QUIET_OVER + 1)]
    for row in rows:
        await world.shown(row)
    elsewhere = [_elsewhere(row, OTHER, 1000 + number) for number, row in enumerate(rows)]

    def put(tx: Tx) -> None:
        for copy in elsewhere:
            tx.put(copy)

    await world.store.transact(put)
    await world.type("/approve all")
    for copy in elsewhere:
        stored = await world.store.get(Copy, copy.copy_id)
        assert stored is not None
        assert stored.due_at is not None or stored.state == "failed"  # its message is not there, so the edit may fail


def _elsewhere(row: ApprovalRequest, place: Destination, order: int) -> Copy:
    return Copy(
        copy_id=f"elsewhere{order:07d}",
        profile="default",
        request_id=row.request_id,
        destination=place,
        message_id=str(order),
        order=order,
        state="sent",
        created_at=row.created_at,
    )


async def test_the_summary_fits_the_platform(world: World) -> None:
    for number in range(15):
        await world.ask(f"deploy {number} {'long ' * 40}")
    world.adapter.info = replace(world.adapter.info, max_text_units=1000)
    reply = await world.reply("/deny all")
    assert len(reply.text) < 1000
    assert reply.card.attachment is not None
    assert reply.card.attachment.content.count(b"Denied") == 15


async def test_five_thousand_in_one_commit(world: World) -> None:
    row = await world.ask()
    stored = await world.row(row)
    copy = (await world.copies(row))[0]
    count = 5000

    def seed(tx: Tx) -> None:
        for number in range(count):
            request_id = f"many_{number}"
            tx.put(
                replace(
                    stored,
                    request_id=request_id,
                    short_id=f"M{number:04d}",
                    coalesce_key=request_id,
                    created_at=stored.created_at + timedelta(milliseconds=number),
                )
            )
            tx.put(replace(copy, copy_id=f"many{number:012d}", request_id=request_id, message_id=f"m{number}"))

    await world.store.transact(seed, bulk=True)
    told: list[int] = []
    last_key = request_key("default", f"many_{count - 1}")
    reads: list[asyncio.Future[ApprovalRequest | None]] = []

    def heard(changes: Sequence[Change]) -> None:
        told.append(len(changes))
        if len(changes) > 1 and not reads:
            reads.append(asyncio.ensure_future(world.store.get(ApprovalRequest, last_key)))

    stop = world.store.subscribe(heard)
    text = await world.type("/approve all")
    stop()
    assert text.startswith("Ana: approve all · 09:00 UTC · 5,001 of 5,001 approved once, no grant made")
    assert text.endswith("and 4,981 more in approve-all.txt")
    assert sum(told) >= count + 1
    # The last one was durable when the first was told: all were one commit.
    last = await reads[0]
    assert last is not None
    assert last.outcome == "approved"

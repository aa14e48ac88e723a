"""One question approved or denied by a typed command, and the commands that decide nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.commands.world import ANA, BEN, EVE, OTHER, PROFILE, ROOM, THREAD, World, opened, person, until

from signoff.actions import one_line
from signoff.model import Elicitation, replace


async def test_the_only_question_needs_no_id(world: World) -> None:
    row = await world.ask()
    assert await world.type("/approve") == f"{row.short_id} approved once. The agent is told."
    done = await world.row(row)
    assert (done.outcome, done.choice, done.decided_by[0].principal, done.decided_by[0].via) == (
        "approved",
        "once",
        "Ana",
        "command",
    )


async def test_an_id_in_any_case_and_place_of_the_profile(world: World) -> None:
    first, second = await world.ask(), await world.ask()
    assert await world.type(f"/APPROVE@signoff_bot {second.short_id.lower()}", where=OTHER) == (
        f"{second.short_id} approved once. The agent is told."
    )
    assert await world.outcomes(first, second) == [None, "approved"]


@pytest.mark.parametrize("case", [str.upper, str.lower])
async def test_a_request_id_spelt_like_a_short_id_draws_no_answer_to_itself(
    world: World, case: Callable[[str], str]
) -> None:
    """Agents choose the ids of their requests."""
    read = await world.ask()
    other = await world.ask("deploy --everything", request_id=case(read.short_id))
    await world.type(f"/approve {case(read.short_id)}")
    assert await world.outcomes(read, other) == ["approved", None]


async def test_scopes_make_their_grants(world: World) -> None:
    rows = [await world.ask() for _ in range(3)]
    told = [
        await world.type(f"!approve {row.short_id} {scope}")
        for row, scope in zip(rows, ("session", "ALWAYS", "30m"), strict=True)
    ]
    grants = {grant.request_id: grant for grant in await world.broker.grants("default")}
    assert [grants[row.request_id].scope for row in rows] == ["session", "always", "time_box"]
    for row, text in zip(rows, told, strict=True):
        grant = grants[row.request_id]
        assert text.startswith(f"{row.short_id} approved ")
        assert text.endswith(f"/revoke {grant.grant_id} ends it.")
    assert "until 09:30 UTC" in told[2]


async def test_a_denial_with_its_reason(world: World) -> None:
    row = await world.ask()
    assert await world.type("/deny wrong   target\nplease") == (
        f"{row.short_id} denied. The agent reads: “wrong target please”."
    )
    assert (await world.row(row)).reason == "wrong target please"


async def test_a_long_reason_is_cut_and_the_person_told(world: World) -> None:
    row = await world.ask()
    text = await world.type(f"/deny {row.short_id} " + "x" * 300)
    assert "its last 20 characters were cut" in text
    assert (await world.row(row)).reason == "x" * 280


async def test_the_card_replied_to_is_meant(world: World) -> None:
    first, second = await world.ask(), await world.ask()
    await world.type("/deny not now", reply_to=await world.card(second))
    await world.type("approve", reply_to=await world.card(first), addressed=True)
    assert await world.outcomes(first, second) == ["approved", "denied"]


async def test_several_wait_and_nothing_is_decided(world: World) -> None:
    rows = [await world.ask(), await world.ask()]
    for verb in ("approve", "deny"):
        text = await world.type(f"/{verb} session" if verb == "approve" else "/deny")
        assert text.splitlines()[0] == "2 wait here; nothing was decided. Add an id:"
        assert text.splitlines()[-1] == f"or /{verb} all."
        for row in rows:
            assert f"{row.short_id} medium · {one_line(row.action)} · deploy-bot · until 09:05 UTC" in text
    assert await world.outcomes(*rows) == [None, None]


async def test_a_thread_and_its_channel_are_two_places(world: World) -> None:
    await world.session("s2", THREAD)
    inside = await world.ask(session="s2")
    assert await world.type("/approve") == (
        "Nothing waits here.\n1 more waits in a thread of this channel; not touched."
    )
    above = await world.ask()
    await world.type("/approve", where=THREAD)
    assert await world.outcomes(inside, above) == ["approved", None]


async def test_a_card_that_came_after_the_command_is_not_meant(world: World) -> None:
    early = await world.adapter.say("hello", where=ROOM, by=ANA)
    row = await world.ask()
    assert world.last is not None
    late = replace(world.last, text="/approve")
    assert late.message_id == early
    await world.commands.handle("default", late, world.adapter.info)
    assert (await world.answer()).text.startswith("1 waits here; nothing was decided. Add its id:")
    assert await world.outcomes(row) == [None]


async def test_a_doubtful_send_can_be_denied_without_its_id_but_not_approved(world: World) -> None:
    world.adapter.lose_answer()
    row = await world.submit()

    async def doubtful() -> bool:
        return (await world.copies(row))[0].state == "ambiguous"

    await until(doubtful)
    assert "nothing was decided" in await world.type("/approve")
    assert "denied" in await world.type("/deny")
    assert await world.outcomes(row) == ["denied"]


@pytest.mark.parametrize("text", ["/approve 7Q2MK", "/deny 7Q2MK wrong target", "/approve 7Q2MO"])
async def test_an_unknown_id_decides_nothing(world: World, text: str) -> None:
    row = await world.ask()
    word = text.split()[1]
    assert await world.type(text) == f"{word} is not waiting here; nothing was decided. Waiting: {row.short_id}."
    assert await world.outcomes(row) == [None]


async def test_an_unknown_word_after_approve_decides_nothing(world: World) -> None:
    row = await world.ask()
    for text in ("/approve please", f"/approve {row.short_id} forever", "/approve once always", "/approve 90"):
        assert "nothing was decided. Choose once, session, always or 30m." in await world.type(text)
    assert await world.outcomes(row) == [None]


async def test_a_form_that_nobody_filled_in_stays_pending(world: World) -> None:
    row = await world.ask()
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    await world.change(row, action=Elicitation(server="crm", message="Which customer?", schema=schema))
    assert await world.type(f"/approve {row.short_id}") == (
        "It asks for fields to be filled in: answer it in the console. Nothing was decided."
    )
    assert await world.outcomes(row) == [None]


async def test_what_is_not_on_offer_stays_pending(world: World) -> None:
    row = await world.ask(choices=("once", "deny"))
    assert await world.type(f"/approve {row.short_id} always") == (
        "“always” is not on offer for this request. Nothing was decided."
    )
    assert await world.outcomes(row) == [None]


async def test_critical_is_approved_by_its_id_only(world: World) -> None:
    row = await world.ask(severity="critical")
    for reply_to in (None, await world.card(row)):
        text = await world.type("/approve", reply_to=reply_to)
        assert text.startswith("1 waits here; nothing was decided. Add its id:")
        assert row.short_id in text
    assert "not on offer" in await world.type(f"/approve {row.short_id} session")
    assert await world.outcomes(row) == [None]
    assert "approved once" in await world.type(f"/approve {row.short_id}")


async def test_without_its_whole_text_it_can_only_be_denied(world: World) -> None:
    row = await world.ask()
    await world.change_copies(row, whole_shown=False)
    assert await world.type(f"/approve {row.short_id}") == (
        f"{row.short_id}: The whole text could not be attached, so it cannot be approved here."
    )
    assert await world.outcomes(row) == [None]
    assert "denied" in await world.type(f"/deny {row.short_id}")


async def test_an_ended_one_says_who_ended_it(world: World) -> None:
    row = await world.ask()
    await world.broker.decide("default", row.request_id, "once", person(BEN))
    assert await world.type(f"/deny {row.short_id}") == (
        f"{row.short_id}: Already approved by Ben at 09:00 UTC. Your tap changed nothing."
    )


async def test_approving_what_was_denied_lets_it_ask_again(world: World) -> None:
    row = await world.ask("deploy it")
    await world.broker.decide("default", row.request_id, "deny", person(BEN))
    assert (await world.submit("deploy it")).outcome == "denied"
    assert await world.type(f"/approve {row.short_id}") == (
        f"Ben denied {row.short_id} at 09:00 UTC. Nothing is approved; it may be asked again."
    )
    assert await world.outcomes(row) == ["denied"]
    assert (await world.submit("deploy it")).outcome is None


async def test_a_deadline_that_passed_wins(world: World) -> None:
    row = await world.ask()
    world.clock._now = (await world.row(row)).expires_at or world.clock.now()
    assert await world.type(f"/approve {row.short_id}") == (
        f"{row.short_id}: Timeout: it expired at 09:05 UTC and nobody had answered. Your tap came 0 s late. Not run."
    )
    assert await world.outcomes(row) == ["timeout"]


async def test_delivered_again_it_says_who_decided(world: World) -> None:
    row = await world.ask()
    await world.type(f"/approve {row.short_id} session")
    assert await world.again() == f"{row.short_id}: You already approved this at 09:00 UTC."
    assert len(await world.broker.grants("default")) == 1


async def test_two_people_race_and_one_wins(world: World) -> None:
    row = await world.ask()
    await asyncio.gather(
        world.adapter.say(f"/approve {row.short_id}", where=ROOM, by=ANA),
        world.adapter.say(f"/deny {row.short_id} no", where=ROOM, by=BEN),
    )
    shown = await world.adapter.until(lambda all_: sum(row.short_id in each.text for each in all_) >= 3)
    done = await world.row(row)
    replies = [each.text for each in shown if each.reply_to]
    assert len(replies) == 2
    winner, loser = ("Ana", "Ben") if done.outcome == "approved" else ("Ben", "Ana")
    assert [by.principal for by in done.decided_by] == [winner]
    assert sum(winner in text and loser not in text for text in replies) == 1
    assert len(await world.events("approval.resolved")) == 1


async def test_followers_are_approved_only_by_their_own_answers(world: World) -> None:
    first = await world.ask("deploy all")
    rows = [first, await world.submit("deploy all"), await world.submit("deploy all")]
    assert [row.leader_id for row in rows[1:]] == [first.request_id] * 2
    assert await world.type(f"/approve {first.short_id}") == (
        f"{first.short_id}: Approved once. The agent is told. The other 2 ask again."
    )
    assert await world.outcomes(*rows) == ["approved", None, None]


async def test_a_stranger_decides_nothing_and_is_recorded(world: World) -> None:
    row = await world.ask()
    for text in ("/approve", f"/deny {row.short_id}", "/approve all"):
        assert await world.type(text, by=EVE) == "You may not do this here; nothing changed. Your id is 9."
    await world.silence("/deny all", by=EVE)
    assert await world.outcomes(row) == [None]
    (event,) = await world.events("tap.refused")
    assert (event.data["user_id"], event.data["why"], event.data["operation"]) == ("9", "not_listed", "decide")


async def test_an_empty_list_lets_nobody_decide() -> None:
    async with opened("memory://", replace(PROFILE, approvers={"fake": ()})) as world:
        row = await world.ask()
        assert await world.type("/approve") == (
            "No approver is set up, so nobody can decide. Add 1 to platforms.fake.approvers."
        )
        assert await world.outcomes(row) == [None]


@pytest.mark.parametrize("text", ["/approve", "/deny all", "!stop", "/help", "/approve nonsense"])
async def test_second_hand_messages_decide_nothing(world: World, text: str) -> None:
    row = await world.ask()
    assert await world.type(text, unattributable=True) == (
        "Forwarded, edited or anonymous messages decide nothing. Please send it yourself."
    )
    assert await world.outcomes(row) == [None]
    await world.silence("ok", unattributable=True)
    await world.silence("/weather", unattributable=True)


async def test_loose_words_decide_nothing_and_are_answered_once_a_card(world: World) -> None:  # G2-38
    await world.silence("yes")
    row = await world.ask()
    assert await world.type("ok thanks", by=EVE) == (
        "“ok” decides nothing here. Tap a button, or reply /approve or /deny to the card."
    )
    for text in ("yes", "👍🏽", "continue", "yes, but check first", "approve"):
        await world.silence(text)
    await world.silence("no", where=THREAD)
    second = await world.ask()
    assert (await world.type("Yes, but check first")).startswith("“yes” decides nothing here.")
    await world.silence("the build went fine")
    assert await world.outcomes(row, second) == [None, None]


async def test_a_word_typed_before_the_card_is_not_about_it(world: World) -> None:  # G2-38
    await world.adapter.say("hello", where=ROOM, by=ANA)
    assert world.last is not None
    early = replace(world.last, text="yes")
    await world.ask()
    await world.commands.handle("default", early, world.adapter.info)
    await world.idle()
    assert [each for each in world.adapter.messages if each.reply_to == early.message_id] == []


async def test_slips_are_answered_with_the_nearest_verb(world: World) -> None:
    assert await world.type("/aprove all") == (
        "“aprove” is not a command; nothing was decided. Did you mean /approve? /help lists all."
    )
    await world.silence("/weather tomorrow")
    assert await world.type("/weather", direct=True) == (
        "“weather” is not a command; nothing was decided. /help lists all."
    )


async def test_none_waits_and_the_last_one_is_named_for_ten_minutes(world: World) -> None:
    assert await world.type("/approve") == "Nothing waits here."
    row = await world.ask()
    await world.type("/deny")
    last = f"Nothing waits here. The last one, {row.short_id}, ended: denied at 09:00 UTC."
    assert await world.type("/approve") == last
    assert await world.type("/approve all") == last
    assert await world.type("/approve", where=OTHER) == "Nothing waits here."
    await world.clock.advance(601)
    assert await world.type("/approve") == "Nothing waits here."

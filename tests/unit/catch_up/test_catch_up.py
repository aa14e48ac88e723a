"""One message after an absence: when it comes and when not, what it says, what its buttons do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.unit.catch_up.world import ANN, BEN, FALLBACK, PLACE, Absent, kept, mail
from tests.unit.core.harness import BY_ANN, OTHER_PLACE

from signoff.changes import catching_up
from signoff.errors import AdapterUnavailable
from signoff.model import Note, Person, replace
from signoff.ports import AdapterInfo, Tx
from signoff.settings import ApprovalSettings, ToolGateSettings

Make = Callable[..., Absent]


# --- somebody comes back -------------------------------------------------------------------------


async def test_who_comes_back_is_told_once_what_ended_meanwhile(world: Absent) -> None:
    row = await world.unanswered("rm -rf ./build")
    assert row.outcome == "timeout"
    await world.passes(3600)
    assert world.messages() == []
    await world.life()
    told = await world.only()
    # Asked at 09:00, unanswered from 09:05 on.
    assert told.text.splitlines() == [
        "Nobody answered here, 09:05 UTC to 10:05 UTC:",
        "1 timeout",
        f"{row.short_id} timeout 09:05 UTC · rm -rf ./build · deploy-bot",
    ]
    assert [b.label for line in told.card.rows for b in line] == [f"Ask again: {row.short_id}"]
    for _ in range(3):
        await world.life()
        await world.passes(600)
    assert len(world.messages()) == 1


@pytest.mark.parametrize("way", ["tap", "command"])
async def test_a_tap_or_a_command_of_somebody_who_may_decide_is_a_sign_of_life(world: Absent, way: str) -> None:
    await world.unanswered()
    later = await world.ask("deploy later")
    await world.passes(200)
    assert world.messages() == []
    if way == "tap":
        await world.tap(later, "once")
        await world.looked()
    else:
        await world.life(text="/pending")
    assert len(world.messages()) == 1


async def test_what_is_no_sign_of_life(world: Absent) -> None:
    """A stranger's command, conversation, a forwarded command, and life in another place."""
    await world.unanswered()
    await world.passes(600)
    await world.life(by="666")
    await world.life(text="good morning, all")
    await world.chat.say("/help", where=PLACE, by=ANN, unattributable=True)
    await world.life(place=OTHER_PLACE)
    await world.looked()
    assert world.messages() == []
    await world.life()
    assert len(world.messages()) == 1


async def test_who_was_there_within_three_minutes_needs_no_message(world: Absent) -> None:
    await world.unanswered()
    await world.passes(170)
    await world.life()
    await world.passes(3600)
    await world.life()
    assert world.messages() == []
    assert (await world.catch_ups.index("default")).places == ()


async def test_nothing_happened_nothing_is_said(world: Absent) -> None:
    row = await world.ask()
    await world.decide(row, "deny")
    blocked = await world.submit("rm -rf /")
    assert blocked.outcome == "blocked"
    taken = await world.ask("deploy taken")
    await world.cancel(taken)
    await world.passes(3600)
    await world.life()
    assert world.messages() == []


async def test_a_second_absence_is_told_by_itself(world: Absent) -> None:
    first = await world.unanswered("deploy one")
    await world.passes(600)
    await world.life()
    second = await world.unanswered("deploy two")
    await world.passes(600)
    await world.life(by=BEN)
    one, two = world.messages()
    assert first.short_id in one.text and first.short_id not in two.text
    assert second.short_id in two.text


# --- what is told --------------------------------------------------------------------------------


async def test_what_was_blocked_since_nobody_was_there_is_told_in_the_session_s_place(world: Absent) -> None:
    await world.session("mail", kind="cron", destination=None, agent="mailer")
    await world.session("hook", kind="webhook", destination=PLACE, agent="ci-bot")
    await world.session("below", kind="child", parent="hook", agent="ci-bot")
    mailed = await world.submit("npm publish", "mail")
    hooked = await world.submit("npm publish", "hook")
    handed = await world.submit("npm publish", "below")
    assert (mailed.outcome, hooked.outcome, handed.outcome) == ("blocked", "blocked", "blocked")
    await world.passes(600)
    await world.life()
    await world.life(place=FALLBACK)
    here, there = await world.only(), await world.only(FALLBACK)
    assert f'{hooked.short_id} blocked 09:00 UTC, unattended_mode is "deny" · npm publish · ci-bot' in here.text
    assert f'{mailed.short_id} blocked 09:00 UTC, cron_mode is "deny" · npm publish · mailer' in there.text
    assert f"{handed.short_id} blocked" in here.text
    assert mailed.short_id not in here.text


async def test_what_no_executor_could_run_later_says_so(make: Make) -> None:
    world = make(approvals=ApprovalSettings(cron_mode="defer", fallback_destination=FALLBACK))
    await world.session("mail", kind="cron", destination=None, agent="mailer")
    row = await world.submit("npm publish", "mail")
    assert row.outcome == "blocked"
    await world.passes(600)
    await world.life(place=FALLBACK)
    line = f"{row.short_id} blocked 09:00 UTC, no executor could run it later · npm publish · mailer"
    assert line in (await world.only(FALLBACK)).text


async def test_what_the_tool_gate_could_not_keep_says_so(make: Make) -> None:
    """A named tool without an executor is blocked in a job, whatever the job's own setting says."""
    gate = ToolGateSettings(require_approval=("send_email",))
    world = make(approvals=ApprovalSettings(tool_gate=gate, cron_mode="approve", fallback_destination=FALLBACK))
    await world.session("mail", kind="cron", destination=None, agent="mailer")
    row = await world.submit(mail(), "mail")
    assert row.outcome == "blocked"
    await world.passes(600)
    await world.life(place=FALLBACK)
    told = await world.only(FALLBACK)
    assert f"{row.short_id} blocked 09:00 UTC, no executor could run it later · send_email" in told.text
    assert (await world.tapped(told, f"Ask again: {row.short_id}")).text.startswith("mailer is")


async def test_what_could_not_be_delivered_is_told_when_the_platform_is_back(world: Absent) -> None:
    world.platform("degraded")
    await world.looked()
    world.chat.fail(AdapterUnavailable("away"), times=1000)
    row = await world.submit("terraform apply")
    await world.passes(400)
    row = await world.row(row)
    assert row.outcome == "notify_failed"
    assert world.messages() == []
    world.chat._failures.clear()
    world.platform("ready")
    await world.looked()
    assert world.messages() == []
    await world.passes(6)
    told = await world.only()
    assert told.text.splitlines()[:3] == [
        "While nobody could answer, 09:00 UTC to 09:06 UTC:",
        "1 notify failed",
        f"{row.short_id} notify failed 09:00 UTC · terraform apply · deploy-bot",
    ]
    await world.life()
    await world.passes(600)
    assert len(world.messages()) == 1


@pytest.mark.parametrize(("away_s", "told"), [(120, 0), (240, 1)])
async def test_a_short_outage_is_no_absence(world: Absent, away_s: float, told: int) -> None:
    world.platform("degraded")
    await world.looked()
    world.chat.fail(AdapterUnavailable("away"), times=1000)
    await world.submit()
    await world.passes(away_s)
    world.chat._failures.clear()
    world.platform("ready")
    await world.passes(20)
    assert len(world.messages()) == told


async def test_an_outage_in_which_nothing_ended_is_not_told(world: Absent) -> None:
    await world.unanswered()
    world.platform("degraded")
    await world.passes(600)
    world.platform("ready")
    await world.passes(20)
    assert world.messages() == []
    await world.life()
    assert len(world.messages()) == 1


async def test_what_is_staged_waits_and_is_opened_from_the_message(world: Absent) -> None:
    await world.session("mail", kind="cron", destination=None, agent="mailer")
    blocked = await world.submit("npm publish", "mail")
    question = await kept(world, "mail")
    await world.passes(600)
    await world.life(place=FALLBACK)
    told = await world.only(FALLBACK)
    assert told.text.splitlines()[1] == "1 blocked, 1 staged"
    assert f"{question.short_id} staged 09:00 UTC, still waits · send_email · mailer" in told.text
    assert [[b.label for b in line] for line in told.card.rows] == [
        [f"Ask again: {blocked.short_id}", f"Open {question.short_id}"]
    ]
    cards = len(await world.cards(question))
    answer = await world.tapped(told, f"Open {question.short_id}")
    assert answer.text == f"{question.short_id}: its own card comes now."
    assert len(await world.cards(question)) == cards + 1
    assert "already" in (await world.tapped(told, f"Open {question.short_id}")).text
    assert len(await world.cards(question)) == cards + 1
    await world.tap(question, "deny")
    assert (await world.row(question)).outcome == "denied"
    assert "Nothing" in (await world.tapped(told, f"Open {question.short_id}")).text


async def test_what_was_answered_meanwhile_is_not_told(world: Absent) -> None:
    await world.session("mail", kind="cron", destination=None, agent="mailer")
    question = await kept(world, "mail")
    await world.passes(600)
    assert await world.decide(question, "deny") == "won"
    await world.life(place=FALLBACK)
    assert world.messages(FALLBACK) == []


async def test_twenty_are_listed_and_the_rest_is_counted_with_the_console_s_address(make: Make) -> None:
    world = make(console="https://signoff.example")
    await world.session(agent="deploy-bot")
    await world.session("mail", kind="cron", destination=PLACE, agent="mailer")
    rows = [await world.submit(f"npm publish {number}", "mail") for number in range(125)]
    await world.passes(600)
    await world.life()
    told = await world.only()
    lines = told.text.splitlines()
    assert lines[1] == "125 blocked"
    assert len(lines) == 2 + 20 + 1
    assert lines[-1] == "and 105 more: https://signoff.example/console/catch-up"
    assert [line.split()[0] for line in lines[2:-1]] == [row.short_id for row in rows[-20:]]
    assert sum(len(line) for line in told.card.rows) == 20


async def test_long_actions_and_names_fit_the_smallest_platform(make: Make) -> None:
    info = AdapterInfo(platform="fake", title="Fake", max_text_units=2000, per_chat_s=0.0, per_second=1e6)
    world = make(info=info)
    await world.session("mail", kind="cron", destination=PLACE, agent="m" * 64)
    for number in range(30):
        await world.submit(f"npm publish {'x' * 5000} {number}", "mail")
    await world.passes(600)
    await world.life()
    told = await world.only()
    assert len(told.text.encode("utf-16-le")) // 2 < 1900
    listed = len(told.text.splitlines()) - 3
    assert 8 <= listed <= 20
    assert told.text.splitlines()[-1] == f"and {30 - listed} more"
    assert sum(len(line) for line in told.card.rows) == listed


# --- ask again -----------------------------------------------------------------------------------


async def test_ask_again_tells_the_agent_once_and_decides_nothing(world: Absent) -> None:
    row = await world.unanswered()
    await world.passes(600)
    await world.life()
    told = await world.only()
    answer = await world.tapped(told, f"Ask again: {row.short_id}")
    assert answer.text == "deploy-bot is away; it is told when it returns."
    world.reading = True
    again = await world.tapped(told, f"Ask again: {row.short_id}", by=BEN)
    assert again.text == "deploy-bot is told that you want to be asked."
    (event,) = await world.events("approval.ask_again")
    assert (event.request_id, event.session_id) == (row.request_id, "s")
    after = await world.row(row)
    assert replace(after, wanted_by=None) == row
    assert after.wanted_by is not None and after.wanted_by.user_id == ANN


async def test_an_agent_that_works_in_the_session_is_there(world: Absent) -> None:
    row = await world.unanswered()
    await world.passes(600)
    await world.turn("now", lease_s=60)
    await world.life()
    answer = await world.tapped(await world.only(), f"Ask again: {row.short_id}")
    assert answer.text == "deploy-bot is told that you want to be asked."


async def test_only_who_may_decide_asks_again(world: Absent) -> None:
    row = await world.unanswered()
    await world.passes(600)
    await world.life()
    told = await world.only()
    answer = await world.tapped(told, f"Ask again: {row.short_id}", by="666")
    assert answer.alert and "may not decide" in answer.text
    assert await world.events("approval.ask_again") == []
    assert [event.data["why"] for event in await world.events("tap.refused")] == ["not_listed"]


async def test_a_button_means_nothing_on_another_message_or_beyond_the_list(world: Absent) -> None:
    row = await world.unanswered()
    await world.passes(600)
    await world.life()
    told = await world.only()
    (copy,) = await world.copies_told()
    (token,) = told.tokens(f"Ask again: {row.short_id}")
    elsewhere = await world.chat.press(token, by=ANN, message_id="9999", destination=PLACE)
    assert "not known" in elsewhere.text
    for choice, revision in (("want_asked", 7), ("once", 0)):
        forged = world.signer.token(copy.copy_id, revision, choice, "fake", PLACE.chat_id)
        assert "not known" in (await world.press(forged, told)).text
    assert await world.events("approval.ask_again") == []


async def test_only_what_ended_for_want_of_an_answer_is_asked_again(world: Absent) -> None:
    row = await world.ask()
    await world.decide(row, "deny")
    assert await world.catch_ups.ask_again("default", row.request_id, BY_ANN) is None
    assert await world.catch_ups.ask_again("default", "unknown", BY_ANN) is None
    assert await world.events("approval.ask_again") == []


# --- across restarts -----------------------------------------------------------------------------


async def test_after_a_restart_nothing_is_lost_and_nothing_told_twice(make: Make) -> None:
    first = make()
    await first.session(agent="deploy-bot")
    await first.looked()
    row = await first.ask()
    await first.advance(301)  # it ends, and the process dies before anything was gathered
    assert (await first.row(row)).outcome == "timeout"
    await first.aclose()
    second = make(down_s=0.0)
    await second.looked()
    await second.passes(600)
    await second.life()
    assert row.short_id in (await second.only()).text
    await second.aclose()
    third = make(down_s=600.0)
    await third.passes(30)
    await third.life()
    assert third.messages() == []
    index = await third.catch_ups.index("default")
    assert index.places == () and len(index.told) == 1


async def test_what_ran_out_while_no_gateway_was_up_is_told_at_the_start(make: Make) -> None:
    first = make()
    await first.session(agent="deploy-bot")
    row = await first.ask()
    await first.looked()
    await first.aclose()
    first.clock._now += timedelta(hours=2)
    second = make(down_s=7200.0)
    await second.passes(20)
    told = await second.only()
    assert told.text.splitlines()[0] == "While nobody could answer, 09:00 UTC to 11:00 UTC:"
    assert f"{row.short_id} timeout 11:00 UTC" in told.text
    await second.life()
    assert len(second.messages()) == 1


async def test_what_ended_before_it_was_ever_gathered_is_history(make: Make) -> None:
    first = make()
    await first.session(agent="deploy-bot")
    await first.unanswered()

    def upgraded(tx: Tx) -> None:
        for name in (catching_up.index_name("default"), catching_up.place_name("default", PLACE)):
            note = tx.get(Note, name)
            if note is not None:
                tx.delete(note)

    await first.store.transact(upgraded)
    await first.aclose()
    await first.clock.advance(600)
    second = make()
    await second.life()
    assert second.messages() == []


async def test_two_gateways_on_one_store_tell_it_once(make: Make) -> None:
    one, two = make(), make()
    await one.looked()
    await two.looked()
    await one.session(agent="deploy-bot")
    rows = []
    for number in range(5):
        rows.append(await one.ask(f"deploy {number}"))
        await one.advance(301)
        await (one if number % 2 else two).looked()
    await one.looked()
    await two.looked()
    missed = await two.catch_ups.missed("default", PLACE)
    assert missed is not None
    assert [entry.request_id for entry in missed.entries] == [row.request_id for row in rows]


async def test_a_place_of_nobody_is_kept_for_the_console(make: Make) -> None:
    world = make(approvals=ApprovalSettings())
    await world.session("mail", kind="cron", destination=None, agent="mailer")
    row = await world.submit("npm publish", "mail")
    await world.passes(600)
    missed = await world.catch_ups.missed("default", None)
    assert missed is not None and [entry.request_id for entry in missed.entries] == [row.request_id]
    await world.catch_ups.forget("default", None)
    assert await world.catch_ups.missed("default", None) is None


async def test_a_log_full_of_other_things_is_passed_over(world: Absent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what concerns an absence is read again from the log."""
    for number in range(30):
        await world.decide(await world.submit(f"deploy {number}"), "deny")
    await world.looked()
    read: list[int] = []
    events = world.store.events

    async def counted(*args: object, **facts: object) -> object:
        found = await events(*args, **facts)  # type: ignore[arg-type]  # passed on as they are
        read.append(len(found))
        return found

    monkeypatch.setattr(world.store, "events", counted)
    for number in range(30):
        await world.decide(await world.submit(f"deploy again {number}"), "deny")
    await world.looked()
    assert read == []
    row = await world.unanswered("deploy unanswered")
    assert 0 < sum(read) < 10
    assert (await world.catch_ups.missed("default", PLACE)) is not None
    assert row.outcome == "timeout"


def test_a_person_without_a_place_in_the_settings_is_nobody(world: Absent) -> None:
    world.catch_ups.alive("default", PLACE, Person(platform="fake", user_id="666"))
    assert world.catch_ups._signs == []

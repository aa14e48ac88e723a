"""Sockets that are connected and deaf, refused, silent or asked to go: each heals, and the history says what was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.contract.test_slack import ANA, GROUP, SlackStage, slack_stage
from tests.platforms.slack import FaultKind

from signoff.ports import ChatAdapter
from signoff.testing.adapter_stage import RecordingInbox, card, pass_time, running, until, until_shown
from signoff_adapters.slack import SlackConfig
from signoff_adapters.slack.echo import AT_MOST_EVERY_S

HEAL_S = 30.0


@pytest.fixture
async def stage() -> AsyncIterator[SlackStage]:
    async with slack_stage("socket") as stage:
        yield stage


async def numbers(stage: SlackStage, *, taking: bool = True) -> set[int]:
    """The open sockets, without those that take nothing new."""
    return {each.number for each in await stage.slack.sockets() if not (taking and (each.draining or each.deaf))}


async def whole(stage: SlackStage, count: int = 2) -> None:
    """So many sockets take deliveries."""

    async def enough() -> bool:
        return len(await numbers(stage)) >= count

    await until_shown(enough, what=f"{count} sockets are open")


@asynccontextmanager
async def at_work(adapter: ChatAdapter, inbox: RecordingInbox) -> AsyncIterator[None]:
    """An adapter with settings of its own, which need not be ready; stopped and closed afterwards."""
    task = asyncio.create_task(adapter.run(inbox))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await adapter.aclose()


async def hears(stage: SlackStage, inbox: RecordingInbox, adapter: ChatAdapter) -> None:
    """A press gets through whichever socket it takes."""
    posted = await adapter.post(stage.group, card())
    for _ in range(4):
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        assert (await stage.slack.answer_of(press)).kind == "ephemeral"


async def test_two_sockets_are_held(stage: SlackStage) -> None:
    async with running(stage, RecordingInbox()):
        await whole(stage)
        assert len(await stage.slack.log(method="apps.connections.open")) == 2
    async with running(stage, RecordingInbox()):
        await whole(stage)


async def test_while_one_socket_is_gone_the_other_hears(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        await whole(stage)
        await stage.slack.fault("503", method="apps.connections.open", times=1)
        await stage.slack.fault("abort", method="interactive")
        await hears(stage, inbox, adapter)
        assert adapter.health().state == "ready"
        await until(lambda: "socket" in adapter.health().detail, what="the loss is told")


@pytest.mark.parametrize("reason", ["refresh_requested", "warning"])
async def test_a_refresh_that_slack_asks_for_deafens_nobody(stage: SlackStage, reason: str) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        await whole(stage)
        posted = await adapter.post(stage.group, card())
        before = await numbers(stage)
        await stage.slack.disconnect(reason)  # type: ignore[arg-type]  # the two reasons
        await until_shown(lambda: _others(stage, before), what="new sockets are open")
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        assert (await stage.slack.answer_of(press)).kind == "ephemeral"
        assert adapter.health().state == "ready"
        assert not any("degraded" in line for line in adapter.health().history)
        assert any(f"Slack asked for it ({reason})" in line for line in adapter.health().history)
        await until_shown(lambda: _gone_in_time(stage, before), what="the old sockets are closed")


async def _others(stage: SlackStage, before: set[int]) -> bool:
    return len(await numbers(stage) - before) >= 2


async def _gone_in_time(stage: SlackStage, before: set[int]) -> bool:
    """Whether they are gone a second later: when the adapter has heard its new sockets, and begun to wait, the platform
    cannot tell."""
    await stage.clock.advance(1.0)
    return not await numbers(stage, taking=False) & before


async def test_an_envelope_of_a_socket_that_leaves_is_acknowledged_there(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    inbox.held.add(GROUP)
    async with running(stage, inbox) as adapter:
        await whole(stage)
        posted = await adapter.post(stage.group, card())
        before = await numbers(stage)
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        await until(lambda: bool(inbox.taps), what="the tap is in")
        await stage.slack.disconnect("refresh_requested")
        await until_shown(lambda: _others(stage, before), what="new sockets are open")
        inbox.release()
        assert (await stage.slack.answer_of(press)).kind == "ephemeral"
        (envelope,) = await stage.slack.envelopes(kind="interactive")
        assert (envelope.state, envelope.attempts) == ("acknowledged", 1)


@pytest.mark.parametrize("kind", ["handshake", "no_hello"])
async def test_an_address_is_used_once_whatever_came_of_it(stage: SlackStage, kind: FaultKind) -> None:
    """The library's own client tries the used address again and again."""
    inbox = RecordingInbox()
    await stage.slack.fault(kind, method="socket", times=4)
    adapter = stage.adapter(answer_timeout_s=0.2 if kind == "no_hello" else 3.0)
    async with at_work(adapter, inbox):
        await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=HEAL_S, what="it is ready")
        await hears(stage, inbox, adapter)
        sockets = await stage.slack.log(method="socket")
        assert [each.error for each in sockets if each.error == "invalid_ticket"] == []
        assert any("degraded" in line for line in adapter.health().history)


async def test_sockets_that_answer_no_ping_are_replaced(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        await whole(stage)
        before = await numbers(stage)
        await stage.slack.mute_pongs()
        history = adapter.health().history
        began = stage.clock.now()
        await pass_time(
            stage.clock,
            lambda: len([line for line in adapter.health().history if "no sign of life" in line]) >= 1,
            within_s=HEAL_S,
            what="the silence is noticed",
        )
        await until_shown(lambda: _others(stage, before), what="new sockets are open")
        left_s = HEAL_S - (stage.clock.now() - began).total_seconds()
        await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=left_s, what="it is healed")
        assert (stage.clock.now() - began).total_seconds() <= HEAL_S
        assert len(adapter.health().history) > len(history)
        await hears(stage, inbox, adapter)


async def test_deaf_sockets_that_answer_pings_are_noticed_by_a_card_that_is_not_reported(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        await whole(stage)
        await adapter.post(stage.group, card("heard"))
        await stage.slack.until(stage.slack.pending_count, lambda pending: pending == 0)
        before = await numbers(stage)
        await stage.slack.deafen()
        began = stage.clock.now()
        await adapter.post(stage.group, card("not reported back"))
        await pass_time(
            stage.clock,
            lambda: any("deaf" in line for line in adapter.health().history),
            within_s=HEAL_S,
            what="it is noticed",
        )
        await until_shown(lambda: _others(stage, before), what="new sockets are open")
        left_s = HEAL_S - (stage.clock.now() - began).total_seconds()
        await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=left_s, what="it is healed")
        assert (stage.clock.now() - began).total_seconds() <= HEAL_S
        await hears(stage, inbox, adapter)


async def test_a_channel_that_is_not_heard_alarms_nobody(stage: SlackStage) -> None:
    bot = await stage.slack.add_bot("xoxb-quiet", "xapp-quiet", events=["app_mention"])
    await stage.slack.join(GROUP, bot)
    adapter = stage.adapter(bot_token="xoxb-quiet", app_token="xapp-quiet")
    async with at_work(adapter, RecordingInbox()):
        await adapter.ready()
        await adapter.post(stage.group, card())
        await stage.clock.advance(8)
        assert not any("deaf" in line for line in adapter.health().history)


async def test_idle_sockets_are_renewed(stage: SlackStage) -> None:
    adapter = stage.adapter(renew_after_s=60.0)
    inbox = RecordingInbox()
    async with at_work(adapter, inbox):
        await adapter.ready()
        await whole(stage)
        before = await numbers(stage)
        await pass_time(
            stage.clock,
            lambda: len([line for line in adapter.health().history if "idle for long" in line]) == 2,
            within_s=80,
            what="both are renewed",
        )
        await until_shown(lambda: _others(stage, before), what="new sockets are open")
        assert adapter.health().state == "ready"
        assert not any("degraded" in line for line in adapter.health().history)
        await hears(stage, inbox, adapter)


async def test_socket_mode_that_is_switched_off_is_named_and_tried_again(stage: SlackStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await whole(stage)
        await stage.slack.disconnect("link_disabled")
        await until(lambda: "Socket Mode is switched off" in adapter.health().detail, what="it is named")
        await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=HEAL_S, what="it is healed")


async def test_a_limit_on_new_sockets_is_waited_for(stage: SlackStage) -> None:
    await stage.slack.fault("429", method="apps.connections.open", times=2, retry_after_s=20)
    adapter = stage.adapter()
    async with at_work(adapter, RecordingInbox()):
        await until(lambda: adapter.health().state == "degraded", what="it was refused")
        began = stage.clock.now()
        await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=60, what="it is ready")
        assert (stage.clock.now() - began).total_seconds() >= 19


async def test_duplicates_over_several_sockets_are_handled_once(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        await whole(stage)
        posted = await adapter.post(stage.group, card())
        await stage.slack.fault("duplicate", method="interactive")
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        await stage.slack.answer_of(press)
        for _ in range(3):
            await stage.slack.redeliver(press)
        await stage.slack.until(stage.slack.pending_count, lambda pending: pending == 0)
        assert len((await stage.slack.press_state(press)).answers) == 1
    assert len(inbox.taps) == 1


async def test_while_a_card_waits_deaf_sockets_are_replaced_without_anything_posted(stage: SlackStage) -> None:
    """Nobody posts, so nothing could be missed: the sockets are renewed in turn."""
    adapter, turn_s, inbox = stage.adapter(turn_every_s=12.0), 12.0, RecordingInbox()
    async with at_work(adapter, inbox):
        await adapter.ready()
        await whole(stage)
        posted = await adapter.post(stage.group, card())
        await stage.slack.deafen()
        began = stage.clock.now()
        await passed(stage, 1, within_s=turn_s + 1)
        await passed(stage, 2, within_s=turn_s)
        assert (stage.clock.now() - began).total_seconds() > turn_s, "Slack allows about one new socket a minute"
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        assert (await stage.slack.answer_of(press)).kind == "ephemeral"
        assert not any("degraded" in line for line in adapter.health().history)
        await adapter.update(stage.group, posted.message_id, card("Approved", rows=()))
        opened = len(await stage.slack.log(method="apps.connections.open"))
        await stage.clock.advance(3 * turn_s)
        await hears(stage, inbox, adapter)
        assert len(await stage.slack.log(method="apps.connections.open")) == opened


async def test_a_message_that_keeps_its_buttons_for_days_takes_no_turns(stage: SlackStage) -> None:
    adapter, inbox = stage.adapter(turn_every_s=3700.0, renew_after_s=1e6), RecordingInbox()
    async with at_work(adapter, inbox):
        await adapter.ready()
        await whole(stage)
        await adapter.post(stage.group, card())
        opened = len(await stage.slack.log(method="apps.connections.open"))
        await stage.clock.advance(3800)
        await hears(stage, inbox, adapter)
        assert len(await stage.slack.log(method="apps.connections.open")) == opened


async def test_a_press_through_a_socket_whose_turn_it_is_is_acknowledged_there(stage: SlackStage) -> None:
    adapter, inbox = stage.adapter(turn_every_s=12.0, sockets=1), RecordingInbox()
    inbox.held.add(GROUP)
    async with at_work(adapter, inbox):
        await adapter.ready()
        posted = await adapter.post(stage.group, card())
        await stage.slack.until(stage.slack.pending_count, lambda pending: pending == 0)
        before = await numbers(stage)
        await stage.slack.fault("stall", method="apps.connections.open", after_s=0.5)
        await stage.clock.advance(12.5)
        await stage.slack.wait_for_log(lambda found: len(found) == 2, method="apps.connections.open")
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        await until(lambda: bool(inbox.taps), what="the tap is in")
        await until_shown(lambda: _new(stage, before), what="the new socket is open")
        await adapter.post(stage.group, card("by now it has said hello"))
        inbox.release()
        assert (await stage.slack.answer_of(press)).kind == "ephemeral"
        (envelope,) = await stage.slack.envelopes(kind="interactive")
        assert (envelope.state, envelope.sockets) == ("acknowledged", sorted(before))


async def _new(stage: SlackStage, before: set[int]) -> bool:
    return bool(await numbers(stage) - before)


def test_the_turns_keep_to_what_slack_allows() -> None:
    assert SlackConfig(bot_token="xoxb-1").turn_every_s >= AT_MOST_EVERY_S


async def passed(stage: SlackStage, count: int, *, within_s: float) -> None:
    """So many sockets take deliveries within so much of the clock."""
    until_there = asyncio.create_task(whole(stage, count))
    await pass_time(stage.clock, until_there.done, within_s=within_s, what=f"{count} sockets take deliveries")
    await until_there


async def test_sockets_that_are_deaf_from_the_start_are_noticed_by_the_first_card(stage: SlackStage) -> None:
    """What an earlier process heard is remembered."""
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        await adapter.post(stage.group, card("heard"))
        await stage.slack.until(stage.slack.pending_count, lambda pending: pending == 0)
        await pass_time(stage.clock, lambda: bool(inbox._kept), within_s=5, what="it is remembered")
    await stage.slack.fault("deaf", method="socket", times=2)
    inbox = RecordingInbox(inbox)
    async with running(stage, inbox) as adapter:
        await until_shown(lambda: _open(stage, 2), what="both are open")
        await adapter.post(stage.group, card("not reported back"))
        await pass_time(
            stage.clock,
            lambda: any("deaf" in line for line in adapter.health().history),
            within_s=HEAL_S,
            what="it is noticed",
        )
        await passed(stage, 2, within_s=HEAL_S)
        await hears(stage, inbox, adapter)


async def _open(stage: SlackStage, count: int) -> bool:
    return len(await stage.slack.sockets()) >= count

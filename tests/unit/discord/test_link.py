"""The gateway connection: what ends it, how it comes back, and that presses made meanwhile are heard."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import discord
import msgspec
import pytest
from tests.contract.test_discord import ANA, GROUP, TOKEN, DiscordStage, config_for, discord_stage

from signoff.errors import AdapterFatal
from signoff.model import Answer, Destination
from signoff.ports import ChatAdapter
from signoff.testing.adapter_stage import RecordingInbox, card, pass_time, running, until, until_shown
from signoff.testing.clock import FakeClock
from signoff_adapters.discord import DiscordAdapter
from signoff_adapters.discord.link import Resumable

Trouble = Callable[[DiscordStage], Awaitable[None]]


@pytest.fixture
async def stage() -> AsyncIterator[DiscordStage]:
    async with discord_stage("gateway") as stage:
        yield stage


async def answered(stage: DiscordStage, press: str) -> list[Answer]:
    """The answers to a press, once there are any."""
    await until_shown(lambda: _any_answer(stage, press), what="the press is answered")
    return await stage.answers(press)


async def _any_answer(stage: DiscordStage, press: str) -> bool:
    return bool(await stage.answers(press))


async def _invalid(stage: DiscordStage) -> None:
    await stage.discord.invalidate_session()


async def _resumable(stage: DiscordStage) -> None:
    await stage.discord.invalidate_session(resumable=True)


async def _no_resume(stage: DiscordStage) -> None:
    await stage.discord.refuse_resumes(1)
    await stage.discord.drop_gateway()


async def _closed_for_good(stage: DiscordStage, code: int) -> None:
    """Every resume ends so, as long as the session is tried again."""
    await stage.discord.refuse_resumes(1_000, code=code)
    await stage.discord.drop_gateway()


async def _no_handshake(stage: DiscordStage) -> None:
    await stage.discord.fail_handshakes(2)
    await stage.discord.drop_gateway()


async def _silent(stage: DiscordStage) -> None:
    await stage.discord.freeze_gateway()
    await until(lambda: stage.adapters[-1].health().state == "degraded", what="the silence was noticed")
    await stage.discord.freeze_gateway(False)


async def _no_ready(stage: DiscordStage) -> None:
    await stage.discord.hold_ready()
    await stage.discord.invalidate_session()
    await until(lambda: _tells(stage.adapters[-1], "did not begin a session"), what="it was given up")
    await stage.discord.hold_ready(False)


TROUBLES: dict[str, Trouble] = {
    "op 7": lambda stage: stage.discord.reconnect(),
    "op 9": _invalid,
    "op 9, resumable": _resumable,
    "reset": lambda stage: stage.discord.drop_gateway(),
    "closed 4000": lambda stage: stage.discord.close_gateway(4000),
    "closed 1000": lambda stage: stage.discord.close_gateway(1000),
    "resume refused": _no_resume,
    "resume closed 4000": lambda stage: _closed_for_good(stage, 4000),
    "resume closed 4007": lambda stage: _closed_for_good(stage, 4007),
    "handshakes fail": _no_handshake,
    "garbled": lambda stage: stage.discord.garble_gateway(),
    "nothing comes": _silent,
    "no ready": _no_ready,
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_it_hears_again_within_30_s_and_tells_what_happened(stage: DiscordStage, trouble: str) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        before = len(adapter.health().history)
        await TROUBLES[trouble](stage)
        await pass_time(
            stage.clock, lambda: len(adapter.health().history) > before + 1, within_s=30, what="it came back"
        )
        await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=30, what="it is ready")
        press = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        assert await answered(stage, press) == [inbox.answer]
        assert any("degraded" in line for line in adapter.health().history[before:])
    assert [tap.token for tap in inbox.taps] == ["t-approve"]


async def test_a_press_during_a_drop_is_delivered_on_resume(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.discord.hold_gateway()
        await stage.discord.drop_gateway()
        press = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        await stage.discord.hold_gateway(False)
        await pass_time(stage.clock, lambda: bool(inbox.taps), within_s=30, what="the press is in")
        assert await answered(stage, press) == [inbox.answer]
        assert sum(each.resumes for each in await stage.discord.sessions()) == 1


async def test_a_stall_of_the_network_leaves_the_session_and_its_presses(stage: DiscordStage) -> None:
    """Handshakes hang for longer than a greeting may take, and nothing was asked of Discord yet."""
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.discord.hold_gateway()
        await stage.discord.drop_gateway()
        press = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        await until(lambda: _tells(adapter, "did not begin a session"), what="it was given up")
        await stage.discord.hold_gateway(False)
        await pass_time(stage.clock, lambda: bool(inbox.taps), within_s=30, what="the press is in")
        assert await answered(stage, press) == [inbox.answer]
        assert len(await stage.discord.sessions()) == 1


DEAD = "ws://127.0.0.1:9/"


@pytest.mark.parametrize(("url", "sequence", "sessions"), [(DEAD, None, 1), (None, 10**6, 2)])
async def test_a_kept_session_that_cannot_go_on_as_it_was_kept(
    stage: DiscordStage, url: str | None, sequence: int | None, sessions: int
) -> None:
    """Its address is gone: the general one resumes it too. Discord knows no such sequence: a new one begins."""
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
    kept = msgspec.json.decode((await inbox.load("session") or "").encode(), type=Resumable)
    changed = Resumable(kept.session_id, sequence or kept.sequence, url or kept.url)
    await inbox.save("session", msgspec.json.encode(changed).decode())
    adapter = stage.adapter()
    task = asyncio.create_task(adapter.run(inbox))
    try:
        await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=30, what="it is ready")
        press = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        assert await answered(stage, press) == [inbox.answer]
        assert len(await stage.discord.sessions()) == sessions
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await adapter.aclose()


async def test_a_press_replayed_too_late_is_decided_and_told_in_the_chat(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    inbox.answer = Answer("Timeout: it expired.", lost=True)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.discord.hold_gateway()
        await stage.discord.drop_gateway()
        await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        await stage.discord.advance_clock(5)
        await stage.discord.hold_gateway(False)
        await pass_time(stage.clock, lambda: bool(inbox.untold), within_s=30, what="the core was told")
    ((tap, answer),) = inbox.untold
    assert (tap.token, answer) == ("t-approve", inbox.answer)


async def test_a_press_while_the_gateway_was_down_comes_after_the_restart(stage: DiscordStage) -> None:
    first = RecordingInbox()
    async with running(stage, first) as adapter:
        posted = await adapter.post(stage.group, card())
    press = await stage.press(stage.person, stage.group, posted.message_id, "t-deny")
    second = RecordingInbox(first)
    async with running(stage, second):
        assert await answered(stage, press) == [second.answer]
    assert first.taps == []
    assert [tap.token for tap in second.taps] == ["t-deny"]


async def test_a_crash_resumes_before_what_was_not_settled(stage: DiscordStage) -> None:
    """What is kept is never later than the first press in hand, so nothing is lost when the process is killed now."""
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await until_shown(lambda: _kept(inbox), what="the session is kept")
        inbox.held.add(stage.group.chat_id)
        await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        await until(lambda: bool(inbox.taps), what="the tap is in")
        (session,) = await stage.discord.sessions()
        await stage.say(stage.person, stage.direct, "/pending")
        await until(lambda: bool(inbox.messages), what="the message is in")
        kept = msgspec.json.decode((await inbox.load("session") or "").encode())
        assert kept["sequence"] < session.sequence


async def _kept(inbox: RecordingInbox) -> bool:
    return await inbox.load("session") is not None


async def test_malformed_dispatches_are_left_out_and_told(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.discord.malform_next()
        odd = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        assert await answered(stage, odd) == [inbox.answer]  # the library's parser would have ended the connection
        await stage.discord.dispatch("INTERACTION_CREATE", {"id": 7, "type": None})
        await stage.discord.dispatch("GUILD_CREATE", {"nothing": "of a guild"})
        await stage.discord.dispatch("MESSAGE_CREATE", {"id": "5", "channel_id": {}, "content": 3})
        press = await stage.press(stage.person, stage.group, posted.message_id, "t-deny")
        assert await answered(stage, press) == [inbox.answer]
        assert _tells(adapter, "left out a INTERACTION_CREATE")
        assert _tells(adapter, "left out a MESSAGE_CREATE")
        assert len(await stage.discord.sessions()) == 1
        assert not _tells(adapter, "degraded")


async def test_a_quiet_connection_is_kept_alive_and_kept(stage: DiscordStage) -> None:
    """The gateway asks for a heartbeat every 41 s; ours come more often, or silence could not be noticed in time."""
    async with running(stage, RecordingInbox()) as adapter:
        await until_shown(lambda: _beats(stage, 6), what="six heartbeats came")
        assert not _tells(adapter, "degraded")
        assert [each.resumes for each in await stage.discord.sessions()] == [0]


async def _beats(stage: DiscordStage, count: int) -> bool:
    return sum(each.heartbeats for each in await stage.discord.sessions()) >= count


@pytest.mark.parametrize("code", [4004, 4013, 4014])
async def test_a_close_that_only_an_operator_can_mend_ends_the_run(stage: DiscordStage, code: int) -> None:
    adapter = stage.adapter()
    task = asyncio.create_task(adapter.run(RecordingInbox()))
    await adapter.ready()
    await stage.discord.close_gateway(code)
    await pass_time(stage.clock, task.done, within_s=30, what="the run has ended")
    with pytest.raises(AdapterFatal):
        task.result()
    assert adapter.health().state == "stopped"
    await adapter.aclose()


async def test_a_wrong_token_ends_the_run_and_names_the_setting(stage: DiscordStage) -> None:
    config = msgspec.structs.replace(config_for("gateway", *stage.urls, stage.key), token="WRONG")
    adapter = DiscordAdapter(config, clock=stage.clock, profile="ops")
    task = asyncio.create_task(adapter.run(RecordingInbox()))
    await pass_time(stage.clock, task.done, within_s=60, what="the run has ended")
    with pytest.raises(AdapterFatal, match=r"platforms\.discord\.token"):
        task.result()
    await adapter.aclose()


async def test_it_refuses_to_start_beside_an_interactions_url(stage: DiscordStage) -> None:
    await stage.discord.set_interactions_url("https://old.example/hooks", validate=False)
    adapter = stage.adapter()
    task = asyncio.create_task(adapter.run(RecordingInbox()))
    with pytest.raises(AdapterFatal, match="General Information page of the Developer Portal") as refused:
        await adapter.ready()
    assert "https://old.example/hooks" in refused.value.message
    assert "\n" not in refused.value.message
    with pytest.raises(AdapterFatal):
        await task
    await adapter.aclose()


async def test_an_interactions_url_set_later_is_told_until_it_is_gone(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await stage.discord.set_interactions_url("https://new.example/hooks", validate=False)
        await stage.clock.advance(31)
        await until(lambda: "https://new.example/hooks" in adapter.health().detail, what="it was noticed")
        assert adapter.health().state == "degraded"
        await stage.discord.set_interactions_url(None)
        await stage.clock.advance(31)
        await until(lambda: adapter.health().state == "ready", what="it is ready")


async def test_two_profiles_with_addresses_of_their_own_do_not_disturb_each_other() -> None:
    known = (discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY)
    async with discord_stage("gateway") as one, discord_stage("gateway") as two:
        for mine in (one, two):
            await mine.discord.add_channel(10, 4711 if mine is one else 4712, "own")
        first, second = RecordingInbox(), RecordingInbox()
        async with running(one, first) as left, running(two, second) as right:
            await _round_trip(one, left, first, "4711")
            await _round_trip(two, right, second, "4712")
        assert (len(first.taps), len(second.taps)) == (1, 1)
        assert [tap.destination.chat_id for tap in (*first.taps, *second.taps)] == ["4711", "4712"]
    assert known == (discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY)


async def _round_trip(stage: DiscordStage, adapter: ChatAdapter, inbox: RecordingInbox, channel: str) -> None:
    """Post in a channel that only this Discord has, connect anew, and press."""
    place = Destination("discord", channel)
    posted = await adapter.post(place, card())
    await stage.discord.reconnect()
    await until(lambda: len(adapter.health().history) > 2, what="it noticed and came back")
    press = await stage.press(stage.person, place, posted.message_id, "t-approve")
    assert await answered(stage, press) == [inbox.answer]


async def test_no_view_of_the_library_ever_exists(
    stage: DiscordStage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The traps of views (a class unregistered for the whole client, leaks, swallowed errors) need a view."""
    made: list[object] = []
    monkeypatch.setattr(discord.ui.View, "__init__", lambda self, *args, **kwargs: made.append(self))
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        cards = [await adapter.post(stage.group, card(f"number {n}")) for n in range(3)]
        await adapter.update(stage.group, cards[0].message_id, card("ended", rows=()))
        # A press of a button that is not in the message any more is heard and answered, as is one of another card.
        for message_id in (cards[0].message_id, cards[1].message_id):
            press = await stage.press(stage.person, stage.group, message_id, "t-approve")
            assert await answered(stage, press) == [inbox.answer]
        client = adapter._link._client  # type: ignore[attr-defined]
        assert not client._connection._view_store._views
        assert len(client.cached_messages) == len(client.guilds) == 0
    assert made == []
    assert not [record for record in caplog.records if record.name.startswith("discord.ui")]


async def test_sessions_keep_a_distance_that_spares_the_days_budget(stage: DiscordStage) -> None:
    config = msgspec.structs.replace(config_for("gateway", *stage.urls, stage.key), identify_gap_s=5.0)
    link = DiscordAdapter(config, clock=FakeClock(), profile="ops")._link
    assert link.gap_s() == 0.0
    now = asyncio.get_running_loop().time()
    link._identified.append(now)
    assert 4.0 < link.gap_s() <= 5.0
    link._identified.extend([now] * 250)
    assert link.gap_s() > 100
    assert (86400 / link.gap_s()) + 250 < 1500
    await link.aclose()


async def test_no_log_line_holds_the_token(stage: DiscordStage, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        inbox = RecordingInbox()
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(Destination("discord", str(GROUP)), card())
            await stage.discord.fault("500", call="callback", times=5)
            await stage.press(str(ANA), stage.group, posted.message_id, "t-approve")
            await until(lambda: bool(inbox.untold), what="the failed answer was noticed")
            await stage.discord.drop_gateway()
            await until(lambda: _tells(adapter, "degraded"), what="it noticed")
            token = (await stage.discord.payload(int(inbox.taps[0].tap_id)))["token"]
    lines = [f"{record.name} {record.getMessage()}" for record in caplog.records if record.name != "aiohttp.access"]
    mine = [line for line in lines if not line.startswith("tests")]
    assert mine
    assert not [line for line in mine if TOKEN in line or token in line]


def _tells(adapter: ChatAdapter, words: str) -> bool:
    return any(words in line for line in adapter.health().history)


async def test_no_thread_of_the_library_beats(stage: DiscordStage) -> None:
    """A thread could outlive the loop that it sends to."""
    before = set(threading.enumerate())
    async with running(stage, RecordingInbox()):
        await until_shown(lambda: _beats(stage, 2), what="two heartbeats came")
        assert {each.name for each in set(threading.enumerate()) - before if "keep-alive" in each.name} == set()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "discord-heart"]

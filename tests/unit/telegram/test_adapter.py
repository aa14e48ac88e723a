"""What is Telegram's own: tokens, webhooks, topics, formatting that an older server refuses."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Literal

import aiohttp
import msgspec
import pytest
from tests.contract.test_adapters import ANA, FORUM, GROUP, TOKEN, TelegramStage, telegram_stage
from tests.platforms.telegram import rules

from signoff.errors import AdapterFatal, ConfigError, SendRefused
from signoff.grammar import VERBS
from signoff.model import Answer, Block, Button, Card, Destination, Span
from signoff.ports import ChatAdapter
from signoff.testing.adapter_stage import POISON, RecordingInbox, card, pass_time, running, until
from signoff.testing.clock import FakeClock
from signoff_adapters.telegram import TelegramAdapter, TelegramConfig
from signoff_adapters.telegram.adapter import COMMANDS

SECRET = {"X-Telegram-Bot-Api-Secret-Token": "hook-secret"}


@pytest.fixture
async def stage() -> AsyncIterator[TelegramStage]:
    async with telegram_stage("polling") as stage:
        yield stage


@pytest.fixture
async def hooked() -> AsyncIterator[TelegramStage]:
    async with telegram_stage("webhook") as stage:
        yield stage


async def test_a_wrong_token_ends_the_run_and_names_the_setting(stage: TelegramStage) -> None:
    config = TelegramConfig(token="123456:WRONG", api_base_url=stage.url)
    adapter = TelegramAdapter(config, clock=stage.clock, profile="ops")
    task = asyncio.create_task(adapter.run(RecordingInbox()))
    await pass_time(stage.clock, task.done, within_s=60, what="the run has ended")
    with pytest.raises(AdapterFatal, match=r"platforms\.telegram\.token"):
        task.result()
    assert adapter.health().state == "stopped"
    assert any("platforms.telegram.token" in line for line in adapter.health().history)
    await adapter.aclose()


async def test_a_malformed_token_is_told_but_may_be_a_proxys_doing(stage: TelegramStage) -> None:
    adapter = TelegramAdapter(TelegramConfig(token="bad", api_base_url=stage.url), clock=stage.clock, profile="ops")
    task = asyncio.create_task(adapter.run(RecordingInbox()))
    await until(lambda: adapter.health().state == "degraded", what="it was noticed")
    await stage.clock.advance(120)
    assert not task.done()
    assert "platforms.telegram.token" in adapter.health().detail
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await adapter.aclose()


async def test_a_second_poller_is_named(stage: TelegramStage) -> None:
    async with running(stage, RecordingInbox()) as adapter, stage.traps["second_client"]():
        assert "another program polls this bot's updates" in adapter.health().detail


async def test_a_webhook_left_behind_is_removed_and_what_waits_is_kept(hooked: TelegramStage) -> None:
    stage, inbox = hooked, RecordingInbox()
    async with aiohttp.ClientSession() as session:
        left = {"url": "http://127.0.0.1:9/nowhere", "allowed_updates": ["message"]}
        await session.post(f"{stage.url}/bot{TOKEN}/setWebhook", json=left)
    await stage.say(str(ANA), stage.direct, "/pending")
    stage.mode = "polling"
    async with running(stage, inbox) as adapter:
        await until(lambda: bool(inbox.messages), what="the message is in")
        posted = await adapter.post(stage.direct, card())
        press = await stage.press(str(ANA), stage.direct, posted.message_id, "t-deny")
        await stage.telegram.answer_of(press)


async def test_the_menu_and_the_kinds_of_updates(stage: TelegramStage) -> None:
    async with running(stage, RecordingInbox()):
        await stage.telegram.wait_for_log(bool, method="setMyCommands")
        polls = await stage.telegram.log(method="getUpdates")
    assert [each["command"] for each in (await stage.telegram.commands())["default"]] == [name for name, _ in COMMANDS]
    assert {name for name, _ in COMMANDS} <= set(VERBS)
    assert "yolo" in {name for name, _ in COMMANDS}
    assert polls[0].parameters["allowed_updates"] == ["message", "edited_message", "callback_query", "my_chat_member"]
    assert str(polls[0].parameters["timeout"]) == "0"


async def test_the_general_topic_is_sent_to_without_its_id(stage: TelegramStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await adapter.post(Destination("telegram", str(FORUM), "1"), card())
        (sent,) = await stage.telegram.log(method="sendMessage")
    assert "message_thread_id" not in sent.parameters
    assert sent.parameters["link_preview_options"] == {"is_disabled": True}
    assert "parse_mode" not in sent.parameters


async def test_a_server_without_clocks_is_remembered(stage: TelegramStage) -> None:
    when = datetime(2026, 1, 5, 9, 5, tzinfo=UTC)
    spans = (Span("Low", "bold"), Span(" until "), Span("09:05 UTC", "clock", at=when))
    timed = Card(blocks=(Block("text", spans), Block("quote", (Span("claim"),))))
    rules.ENTITY_TYPES = rules.ENTITY_TYPES - {"date_time"}
    async with running(stage, RecordingInbox()) as adapter:
        await adapter.post(stage.direct, timed)
        await adapter.post(stage.direct, timed)
        sent = await stage.telegram.log(method="sendMessage")
        seen = await stage.telegram.messages(ANA)
    assert [entry.outcome for entry in sent] == ["refused", "done", "done"]
    assert [[each["type"] for each in message.entities] for message in seen] == [["bold", "blockquote"]] * 2


async def test_formatting_that_is_refused_altogether_leaves_the_code(stage: TelegramStage) -> None:
    rules.ENTITY_TYPES = rules.ENTITY_TYPES - {"date_time", "bold"}
    async with running(stage, RecordingInbox()) as adapter:
        await adapter.post(stage.direct, card())
        (seen,) = await stage.telegram.messages(ANA)
    assert [each["type"] for each in seen.entities] == ["pre"]
    assert [button.label for button in seen.buttons] == ["Approve once", "Deny"]


async def test_an_update_without_change_is_one_call_and_keeps_the_looks(stage: TelegramStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.direct, card())
        await adapter.update(stage.direct, posted.message_id, card())
        (seen,) = await stage.telegram.messages(ANA)
        assert len(await stage.telegram.log(method="editMessageText")) == 1
    assert [each["type"] for each in seen.entities] == ["bold", "pre"]


async def test_a_press_on_a_message_too_old_to_be_shown(stage: TelegramStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await stage.telegram.press(ANA, GROUP, int(posted.message_id), "t-deny", inaccessible=True)
        await stage.telegram.answer_of(press)
    assert [(tap.message_id, tap.token) for tap in inbox.taps] == [(posted.message_id, "t-deny")]


async def test_an_answer_that_comes_too_late_is_counted(stage: TelegramStage) -> None:
    inbox = RecordingInbox()
    inbox.held.add(stage.group.chat_id)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.press(str(ANA), stage.group, posted.message_id, "t-deny")
        await until(lambda: bool(inbox.taps), what="the tap is in")
        await stage.telegram.advance_clock(20)
        inbox.release()
        assert isinstance(adapter, TelegramAdapter)
        telegram = adapter
        await until(lambda: telegram.failed_answers == 1, what="the failure is counted")
        assert adapter.health().state == "ready"


async def test_sends_that_hang_do_not_hold_up_answers(stage: TelegramStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.direct, card())
        await stage.telegram.fault("stall", method="sendMessage", times=100)
        sends = [asyncio.create_task(adapter.post(stage.group, card())) for _ in range(100)]
        press = await stage.press(str(ANA), stage.direct, posted.message_id, "t-deny")
        answer = await stage.telegram.answer_of(press)
        assert answer.text == inbox.answer.text
        # Behind the sends it would come after the last of them, which has waited for a place while the others hung.
        assert not all(task.done() for task in sends)
        await asyncio.gather(*sends, return_exceptions=True)


async def test_commands_for_another_bot_are_not_ours(stage: TelegramStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox):
        for text in ("/approve@other_bot", "/deny@ops_signoff_bot 7Q2MK no"):
            await stage.telegram.say(ANA, GROUP, text)
        await stage.telegram.say(ANA, GROUP, "/stop", anonymous=True)
        await stage.telegram.say(ANA, GROUP, "/stop", forward=True)
        await stage.telegram.say(ANA, GROUP, "/stop", edited=True)
        await until(lambda: len(inbox.messages) == 4, what="all are in")
    first, *others = inbox.messages
    assert (first.text, first.addressed, first.unattributable) == ("/deny 7Q2MK no", True, False)
    assert [message.unattributable for message in others] == [True, True, True]


async def test_people_who_cannot_be_reached_are_refused_with_the_reason(stage: TelegramStage) -> None:
    await stage.telegram.block_bot(ANA)
    async with running(stage, RecordingInbox()) as adapter:
        with pytest.raises(SendRefused, match="the person blocked the bot"):
            await adapter.post(stage.direct, card())


async def test_the_token_is_not_logged(stage: TelegramStage, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with running(stage, RecordingInbox()) as adapter:
            await adapter.post(stage.direct, card())
            await stage.telegram.fault("500", method="getUpdates")
            await until(lambda: adapter.health().state == "degraded", what="a failure was logged")
    assert TOKEN.partition(":")[2] not in caplog.text
    assert "sendMessage" in caplog.text


@pytest.mark.parametrize("status", ["kicked", "left"])
async def test_a_group_that_we_were_removed_from_is_told(
    stage: TelegramStage, status: Literal["kicked", "left"]
) -> None:
    inbox = RecordingInbox()
    bot = int(TOKEN.partition(":")[0])
    async with running(stage, inbox):
        await stage.telegram.set_member(GROUP, bot, "administrator")
        await stage.telegram.set_member(GROUP, bot, status)
        await until(lambda: bool(inbox.places_left), what="the gateway was told")
    assert inbox.places_left == [(Destination("telegram", str(GROUP)), "the bot was removed from the chat")]


@pytest.mark.parametrize("place", [("@ops", None), ("ana", None), ("user:5", None), (str(FORUM), "x")])
async def test_what_is_no_number_is_refused_and_not_sent(stage: TelegramStage, place: tuple[str, str | None]) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        with pytest.raises(SendRefused, match="ids are numbers") as refused:
            await adapter.post(Destination("telegram", *place), card())
        assert refused.value.facts["reason"] == "chat_not_found"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({}, b"{}", 403),
        ({"X-Telegram-Bot-Api-Secret-Token": "hook-secreT"}, b"{}", 403),
        ({"X-Telegram-Bot-Api-Secret-Token": "\xfc"}, b"{}", 403),
        (SECRET, b"{", 400),
        (SECRET, b"[]", 400),
        (SECRET, b'{"update_id": 1}', 200),
        (SECRET | {"Content-Type": "application/json; charset=utf-8"}, b'{"update_id": 2}', 200),
        (SECRET, b'{"update_id": 3, "x": "' + b"x" * 1024 * 1024 + b'"}', 413),
    ],
)
async def test_what_the_webhook_takes(hooked: TelegramStage, headers: dict[str, str], body: bytes, status: int) -> None:
    async with (
        running(hooked, RecordingInbox()),
        aiohttp.ClientSession() as session,
        session.post(hook_url(hooked), data=io.BytesIO(body), headers=headers) as response,
    ):
        assert response.status == status


async def test_a_failed_update_is_answered_500_and_parked_at_the_third_delivery(hooked: TelegramStage) -> None:
    inbox = RecordingInbox()
    message = {"message_id": 1, "chat": {"id": ANA, "type": "private"}, "from": {"id": ANA}, "text": POISON}
    body = msgspec.json.encode({"update_id": 5, "message": message})
    statuses = []
    async with running(hooked, inbox), aiohttp.ClientSession() as session:
        for _ in range(4):
            async with session.post(hook_url(hooked), data=body, headers=SECRET) as response:
                statuses.append(response.status)
    assert statuses == [500, 500, 200, 200]
    assert (inbox.tries, len(inbox.alarms)) == (3, 1)


async def test_before_the_run_the_webhook_asks_to_come_again(hooked: TelegramStage) -> None:
    adapter = hooked.adapter()
    async with (
        hooked.serve(adapter.hooks()),
        aiohttp.ClientSession() as session,
        session.post(hook_url(hooked), data=b'{"update_id": 1}', headers=SECRET) as response,
    ):
        assert response.status == 503
    await adapter.aclose()


async def test_a_webhook_that_telegram_cannot_reach_is_told(hooked: TelegramStage) -> None:
    adapter: ChatAdapter = hooked.adapter()
    task = asyncio.create_task(adapter.run(RecordingInbox()))
    await adapter.ready()
    await hooked.say(str(ANA), hooked.direct, "/pending")
    await pass_time(
        hooked.clock, lambda: "cannot deliver" in adapter.health().detail, within_s=120, what="the trouble is told"
    )
    assert adapter.health().state == "degraded"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await adapter.aclose()


@pytest.mark.parametrize("broken", [{"token": ""}, {"api_base_url": "api.telegram.org"}, {"unknown": 1}])
def test_settings_that_cannot_work(broken: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"token": "1:x"} | broken, TelegramConfig)


def test_settings_do_not_print_their_secrets() -> None:
    assert "secret" not in repr(TelegramConfig(token="1:secret", hook_secret="secret"))


@pytest.mark.parametrize("missing", ["hooks_url", "hook_secret"])
def test_webhook_mode_needs_address_and_secret(missing: Literal["hooks_url", "hook_secret"]) -> None:
    given = {"token": "1:x", "mode": "webhook", "hooks_url": "https://x.example", "hook_secret": "s"}
    del given[missing]
    with pytest.raises(ConfigError):
        TelegramAdapter(msgspec.convert(given, TelegramConfig), clock=FakeClock(), profile="ops")


async def test_buttons_are_coloured_and_prompts_are_selective_only_in_groups(stage: TelegramStage) -> None:
    why = Card(blocks=(Block("text", (Span("Why not?"),)),), prompt="The agent reads this.")
    async with running(stage, RecordingInbox()) as adapter:
        await adapter.post(stage.direct, why)
        await adapter.post(stage.group, why)
        await adapter.post(stage.direct, card(rows=((Button("More…", "m"),),)))
        sent = await stage.telegram.log(method="sendMessage")
    assert [entry.parameters["reply_markup"].get("selective", False) for entry in sent] == [False, True, False]
    assert "style" not in sent[2].parameters["reply_markup"]["inline_keyboard"][0][0]


async def test_a_long_answer_is_cut_with_a_sign(stage: TelegramStage) -> None:
    inbox = RecordingInbox()
    inbox.answer = Answer("x" * 201)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.direct, card())
        press = await stage.press(str(ANA), stage.direct, posted.message_id, "t-deny")
        assert (await stage.telegram.answer_of(press)).text == "x" * 199 + "…"


def hook_url(stage: TelegramStage) -> str:
    return f"http://127.0.0.1:{stage.hooks_port}/hooks/ops/telegram"

"""The loopback Telegram behaves as the real one where it matters, seen through the real python-telegram-bot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from telegram import (
    Bot,
    BotCommand,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
    Update,
)
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, RetryAfter
from telegram.ext import Application, CallbackQueryHandler, CommandHandler, ContextTypes

from tests.platforms.telegram import TelegramPlatform, TelegramServer, telegram_process

TOKEN = "123456:TESTTOKEN"
BOT_ID = 123456
ANA, BO = 81234567, 81230000
GROUP, FORUM = -4001, -1001234567890
TOPIC = 2493
BUTTONS = InlineKeyboardMarkup(
    [[InlineKeyboardButton("Run once", callback_data="once"), InlineKeyboardButton("Deny", callback_data="deny")]]
)
EPOCH = datetime.fromtimestamp(0, UTC)


async def furnish(telegram: TelegramPlatform) -> None:
    """A bot, two people, a group and a forum with a topic."""
    await telegram.add_bot(TOKEN, "ops_signoff_bot")
    await telegram.add_user(ANA, "Ana", username="ana")
    await telegram.add_user(BO, "Bo", started=False)
    await telegram.add_group(GROUP, "ops", members=[ANA, BO])
    await telegram.add_group(FORUM, "deploys", members=[ANA], admins=[BO], forum=True)
    await telegram.add_topic(FORUM, "prod", thread_id=TOPIC)


@asynccontextmanager
async def bot_of(telegram: TelegramPlatform, token: str = TOKEN) -> AsyncIterator[Bot]:
    """The real client, pointed at the loopback server."""
    async with Bot(token, base_url=await telegram.base_url(), base_file_url=await telegram.base_file_url()) as bot:
        yield bot


@pytest.fixture(autouse=True)
def _waits_are_timedeltas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this switch the library warns whenever it makes a RetryAfter, and warnings are errors here."""
    monkeypatch.setenv("PTB_TIMEDELTA", "1")


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as running:
        await furnish(running.platform)
        yield running


@pytest.fixture
def telegram(server: TelegramServer) -> TelegramPlatform:
    return server.platform


@pytest.fixture
async def bot(telegram: TelegramPlatform) -> AsyncIterator[Bot]:
    async with bot_of(telegram) as client:
        yield client


@pytest.fixture(params=["same process", "own process"])
async def anywhere(request: pytest.FixtureRequest) -> AsyncIterator[TelegramPlatform]:
    """The server in both its forms."""
    if request.param == "same process":
        async with TelegramServer() as running:
            await furnish(running.platform)
            yield running.platform
    else:
        async with telegram_process() as platform:
            await furnish(platform)
            yield platform


async def on_press(update: Update, _context: ContextTypes.DEFAULT_TYPE) -> None:
    """A small gateway: answer, then edit."""
    query = update.callback_query
    assert query is not None
    await query.answer(f"You chose {query.data}.", show_alert=True)
    await query.edit_message_text(f"{query.data} by {query.from_user.id}")


async def on_ask(update: Update, _context: ContextTypes.DEFAULT_TYPE) -> None:
    assert update.effective_message is not None
    await update.effective_message.reply_text("May I?", reply_markup=BUTTONS)


async def test_card_press_answer_and_edit_by_polling(anywhere: TelegramPlatform) -> None:
    application = (
        Application.builder()
        .token(TOKEN)
        .base_url(await anywhere.base_url())
        .base_file_url(await anywhere.base_file_url())
        .build()
    )
    application.add_handler(CommandHandler("ask", on_ask))
    application.add_handler(CallbackQueryHandler(on_press))
    async with application:
        await application.start()
        assert application.updater is not None
        await application.updater.start_polling(timeout=5, allowed_updates=["message", "callback_query"])
        await anywhere.say(ANA, FORUM, "/ask@ops_signoff_bot now", thread_id=TOPIC)
        card = await anywhere.wait_for_message(FORUM, lambda message: bool(message.buttons))
        query = await anywhere.press(BO, FORUM, card.message_id, "Run once")
        answer = await anywhere.answer_of(query)
        (edited,) = (await anywhere.wait_for(FORUM, lambda messages: messages[-1].edits == 1))[1:]
        await application.updater.stop()
        await application.stop()
    assert (card.thread_id, [button.label for button in card.buttons]) == (TOPIC, ["Run once", "Deny"])
    assert (answer.text, answer.show_alert) == ("You chose once.", True)
    assert (edited.text, edited.buttons) == (f"once by {BO}", [])
    assert [entry.method for entry in await anywhere.log(chat_id=FORUM)] == [
        "sendMessage",
        "answerCallbackQuery",
        "editMessageText",
    ]
    assert await anywhere.pending_count() == 0


async def test_everything_a_card_carries_is_seen(anywhere: TelegramPlatform) -> None:
    text = "🔥 rm -rf ./build\nat 03:19 UTC"
    when = datetime(2026, 11, 29, 3, 19, tzinfo=UTC)
    entities = [
        MessageEntity(MessageEntity.CODE, 3, 14),
        MessageEntity(MessageEntity.DATE_TIME, 18, 12, unix_time=when, date_time_format="r"),
    ]
    async with bot_of(anywhere) as bot:
        sent = await bot.send_message(
            FORUM,
            text,
            entities=entities,
            message_thread_id=TOPIC,
            disable_notification=True,
            link_preview_options=LinkPreviewOptions(is_disabled=True),
            reply_markup=InlineKeyboardMarkup(
                [
                    [InlineKeyboardButton("Deny", callback_data="d", style="danger")],
                    [InlineKeyboardButton("Open", url="http://127.0.0.1:8787/r/7Q2MK")],
                ]
            ),
        )
        await bot.send_document(
            FORUM,
            InputFile(b"whole command\n", filename="7Q2MK.txt"),
            caption="all of it",
            reply_parameters=ReplyParameters(sent.message_id),
        )
        asked = await bot.send_message(ANA, "Why not?", reply_markup=ForceReply(input_field_placeholder="Why not?"))
        seen, file = await anywhere.messages(FORUM, TOPIC)
        assert file.document is not None
        fetched = await (await bot.get_file(file.document.file_id)).download_as_bytearray()
    assert sent.message_thread_id == TOPIC
    assert sent.entities[1].unix_time == when
    assert [entity["type"] for entity in seen.entities] == ["code", "date_time"]
    assert seen.entities[1]["unix_time"] == int(when.timestamp())
    assert [(button.label, button.style, button.row) for button in seen.buttons] == [
        ("Deny", "danger", 0),
        ("Open", None, 1),
    ]
    assert (seen.silent, seen.thread_id, seen.from_bot, seen.text) == (True, TOPIC, True, text)
    assert (file.reply_to, file.text, file.document.file_name) == (seen.message_id, "all of it", "7Q2MK.txt")
    assert file.document.content == bytes(fetched) == b"whole command\n"
    (asking,) = await anywhere.messages(ANA)
    assert (asking.force_reply, asking.placeholder, asking.message_id) == (True, "Why not?", asked.message_id)
    drawn = await anywhere.render_text(FORUM)
    assert "in prod · silent" in drawn
    assert "[! Deny ]\n[ Open ]" in drawn


def keyboard(rows: list[int]) -> InlineKeyboardMarkup:
    """Rows of so many buttons."""
    return InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data="x")] * count for count in rows])


def data_button(data: str) -> InlineKeyboardMarkup:
    return InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data=data)]])


CODE = MessageEntity.CODE


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"text": "x" * 4097}, "Message is too long"),
        ({"text": " \n "}, "Message text is empty"),
        ({"text": "x", "reply_markup": data_button("é" * 33)}, "Button_data_invalid"),
        ({"text": "x", "reply_markup": data_button("x" * 65)}, "Button_data_invalid"),
        ({"text": "x", "reply_markup": keyboard([9])}, "too many buttons in a row"),
        ({"text": "x", "reply_markup": keyboard([8] * 12 + [5])}, "Reply markup is too long"),
        ({"text": "x", "entities": [MessageEntity(CODE, 0, 1)] * 101}, "Too many entities"),
        ({"text": "🔥", "entities": [MessageEntity(CODE, 0, 3)]}, "after the end of the text"),
        ({"text": "🔥🔥", "entities": [MessageEntity(CODE, 0, 1)]}, "inside a character"),
        ({"text": "x", "entities": [MessageEntity("shiny", 0, 1)]}, "unsupported type"),
        ({"text": "x", "entities": [MessageEntity("date_time", 0, 1)]}, "unix_time"),
        ({"text": "x", "parse_mode": "HTML"}, "parse_mode"),
        ({"text": "x", "reply_markup": ForceReply(input_field_placeholder="x" * 65)}, "1-64"),
        ({"text": "x", "reply_parameters": ReplyParameters(999)}, "Message to be replied not found"),
    ],
)
async def test_oversized_and_malformed_messages_are_refused(
    bot: Bot, telegram: TelegramPlatform, arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BadRequest, match=problem):
        await bot.send_message(ANA, **arguments)
    assert await telegram.messages(ANA) == []


async def test_messages_at_their_limits_are_taken(bot: Bot, telegram: TelegramPlatform) -> None:
    await bot.send_message(ANA, "🔥" * 4096, entities=[MessageEntity(CODE, 0, 8192)] * 100)
    await bot.send_message(ANA, "x", reply_markup=keyboard([8] * 12 + [4]))
    await bot.send_message(ANA, "x", reply_markup=data_button("é" * 32))
    assert [len(message.buttons) for message in await telegram.messages(ANA)] == [0, 100, 1]
    with pytest.raises(BadRequest, match="caption is too long"):
        await bot.send_document(ANA, InputFile(b"x", filename="x"), caption="x" * 1025)


async def test_edits_are_checked_like_sends(bot: Bot, telegram: TelegramPlatform) -> None:
    card = await bot.send_message(ANA, "May I?", reply_markup=BUTTONS)
    with pytest.raises(BadRequest, match="Message is not modified"):
        await card.edit_text("May I?", reply_markup=BUTTONS)
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await bot.edit_message_text("x", ANA, card.message_id + 1)
    with pytest.raises(BadRequest, match="Message is too long"):
        await card.edit_text("x" * 4097)
    await card.edit_reply_markup(None)
    with pytest.raises(BadRequest, match="Message is not modified"):
        await card.edit_reply_markup(None)
    await card.edit_text("Approved")
    (seen,) = await telegram.messages(ANA)
    assert (seen.text, seen.buttons, seen.edits) == ("Approved", [], 2)
    await card.delete()
    assert (await telegram.messages(ANA))[0].deleted
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await card.edit_text("Too late")


async def test_what_people_wrote_cannot_be_edited_and_old_cards_cannot_be_deleted(
    bot: Bot, telegram: TelegramPlatform
) -> None:
    said = await telegram.say(ANA, GROUP, "hello")
    with pytest.raises(BadRequest, match="can't be edited"):
        await bot.edit_message_text("x", GROUP, said)
    card = await bot.send_message(ANA, "May I?")
    await telegram.advance_clock(49 * 3600)
    with pytest.raises(BadRequest, match="can't be deleted"):
        await card.delete()


async def test_a_query_is_answered_once_and_soon(bot: Bot, telegram: TelegramPlatform) -> None:
    card = await bot.send_message(ANA, "May I?", reply_markup=BUTTONS)
    first = await telegram.press(ANA, ANA, card.message_id, "once")
    with pytest.raises(BadRequest, match="Message_too_long"):
        await bot.answer_callback_query(first, "x" * 201)
    await bot.answer_callback_query(first, "x" * 200)
    with pytest.raises(BadRequest, match="Query is too old and response timeout expired or query id is invalid"):
        await bot.answer_callback_query(first, "again")
    assert (await telegram.answer_of(first)).text == "x" * 200
    late = await telegram.press(ANA, ANA, card.message_id, "Deny")
    await telegram.advance_clock(16)
    with pytest.raises(BadRequest, match="Query is too old"):
        await bot.answer_callback_query(late, "late")
    with pytest.raises(BadRequest, match="Query is too old"):
        await bot.answer_callback_query("made-up")
    with pytest.raises(TimeoutError):
        await telegram.answer_of(late, timeout_s=0)


async def test_presses_come_as_telegram_sends_them(bot: Bot, telegram: TelegramPlatform) -> None:
    card = await bot.send_message(GROUP, "May I?", reply_markup=BUTTONS)
    plain = await telegram.press(BO, GROUP, card.message_id, "Run once")
    old = await telegram.press(ANA, GROUP, card.message_id, "deny", inaccessible=True)
    await telegram.press_forged(ANA, GROUP, 77, "so:forged")
    await telegram.duplicate_press(plain)
    updates = await bot.get_updates()
    queries = [update.callback_query for update in updates]
    assert all(queries)
    whole, bare, made_up, twin = (query for query in queries if query is not None)
    assert whole.message is not None
    assert whole.message.is_accessible
    assert (whole.from_user.id, whole.data, whole.id) == (BO, "once", plain)
    assert bare.message is not None
    assert not bare.message.is_accessible
    assert (bare.id, bare.message.date) == (old, EPOCH)
    assert (made_up.data, twin.id) == ("so:forged", plain)
    assert updates[0].update_id != updates[3].update_id
    with pytest.raises(LookupError, match="no button 'once_all'"):
        await telegram.press(ANA, GROUP, card.message_id, "once_all")
    with pytest.raises(LookupError, match="no part in private chat"):
        await telegram.press(BO, ANA, 1, "once")


async def test_topics_are_where_they_are(bot: Bot, telegram: TelegramPlatform) -> None:
    for missing in (TOPIC + 1, 1):
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(FORUM, "x", message_thread_id=missing)
    with pytest.raises(BadRequest, match="Message thread not found"):
        await bot.send_message(GROUP, "x", message_thread_id=TOPIC)
    await bot.send_message(FORUM, "to General")
    await bot.send_message(FORUM, "to prod", message_thread_id=TOPIC)
    assert [message.text for message in await telegram.messages(FORUM, 1)] == ["to General"]
    assert [message.text for message in await telegram.messages(FORUM, TOPIC)] == ["to prod"]
    await telegram.close_topic(FORUM, TOPIC)
    with pytest.raises(BadRequest, match="Topic_closed"):
        await bot.send_message(FORUM, "x", message_thread_id=TOPIC)
    await telegram.delete_topic(FORUM, TOPIC)
    with pytest.raises(BadRequest, match="Message thread not found"):
        await bot.send_message(FORUM, "x", message_thread_id=TOPIC)


async def test_places_the_bot_may_not_write_in(bot: Bot, telegram: TelegramPlatform) -> None:
    with pytest.raises(Forbidden, match="bot can't initiate conversation with a user"):
        await bot.send_message(BO, "x")
    await telegram.say(BO, BO, "/start")
    await bot.send_message(BO, "x")
    await telegram.block_bot(BO)
    with pytest.raises(Forbidden, match="bot was blocked by the user"):
        await bot.send_message(BO, "x")
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.send_message(-999, "x")
    await telegram.set_member(FORUM, BOT_ID, "kicked")
    with pytest.raises(Forbidden, match="bot was kicked from the supergroup chat"):
        await bot.send_message(FORUM, "x")
    new_id = await telegram.migrate(GROUP)
    with pytest.raises(ChatMigrated) as moved:
        await bot.send_message(GROUP, "x")
    assert moved.value.new_chat_id == new_id
    await bot.send_message(new_id, "x")
    updates = await bot.get_updates()
    assert [update.my_chat_member.new_chat_member.status for update in updates if update.my_chat_member] == ["kicked"]
    assert [update.message.migrate_to_chat_id for update in updates if update.message][1:] == [new_id, None]
    await telegram.remove_chat(new_id)
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.send_message(new_id, "x")


async def test_people_are_heard_as_they_write(bot: Bot, telegram: TelegramPlatform) -> None:
    await telegram.say(ANA, GROUP, "small talk, which privacy mode keeps from the bot")
    await telegram.say(ANA, GROUP, "/stop@other_bot")
    card = await bot.send_message(GROUP, "Why not?")
    await telegram.say(ANA, GROUP, "because", reply_to=card.message_id, forward=True)
    await telegram.say(ANA, GROUP, "/stop", anonymous=True)
    await telegram.say(ANA, GROUP, "/deny@ops_signoff_bot", via_bot=BOT_ID, is_bot=True)
    await telegram.say(ANA, GROUP, "/approve", edited=True)
    said = await telegram.say(ANA, ANA, "/pending")
    await telegram.edit_said(ANA, ANA, said, "/pending all")
    reply, hidden, inline, late, private, changed = await bot.get_updates()
    assert reply.message is not None
    assert reply.message.reply_to_message is not None
    assert reply.message.reply_to_message.message_id == card.message_id
    assert reply.message.forward_origin is not None
    assert hidden.message is not None
    assert hidden.message.from_user is not None
    assert (hidden.message.from_user.username, hidden.message.sender_chat) == ("GroupAnonymousBot", hidden.message.chat)
    assert inline.message is not None
    assert inline.message.via_bot is not None
    assert inline.message.from_user is not None
    assert inline.message.from_user.is_bot
    assert late.edited_message is not None
    assert private.message is not None
    assert private.message.entities[0].type == MessageEntity.BOT_COMMAND
    assert changed.edited_message is not None
    assert changed.edited_message.text == "/pending all"


async def test_account_and_place_lookups(bot: Bot, telegram: TelegramPlatform) -> None:
    assert (await bot.get_me()).username == "ops_signoff_bot"
    await bot.set_my_commands([BotCommand("pending", "What waits")])
    assert await telegram.commands() == {"default": [{"command": "pending", "description": "What waits"}]}
    with pytest.raises(BadRequest, match="Bot_command_invalid"):
        await bot.set_my_commands([BotCommand("Pending", "What waits")])
    assert (await bot.get_chat(FORUM)).is_forum
    assert (await bot.get_chat(ANA)).first_name == "Ana"
    assert [member.user.id for member in await bot.get_chat_administrators(FORUM)] == [BO]
    assert (await bot.get_chat_member(GROUP, BO)).status == "member"
    await telegram.set_member(GROUP, BO, "left")
    assert (await bot.get_chat_member(GROUP, BO)).status == "left"
    with pytest.raises(BadRequest, match="Participant_id_invalid"):
        await bot.get_chat_member(GROUP, 5)
    assert await bot.send_chat_action(ANA, "typing")
    with pytest.raises(InvalidToken):
        async with bot_of(telegram, "123456:WRONG"):
            pass


async def test_budgets_bite_and_are_counted(bot: Bot, telegram: TelegramPlatform) -> None:
    await telegram.freeze_clock()
    for _ in range(3):
        await bot.send_message(ANA, "x")
    with pytest.raises(RetryAfter) as flood:
        await bot.send_message(ANA, "x")
    assert flood.value.retry_after == timedelta(seconds=1)
    await telegram.advance_clock(1)
    await bot.send_message(ANA, "x")
    assert (await telegram.limit_report()).counts == {"chat": 1}
    await telegram.reset_limits()
    await telegram.set_limits(chat_burst=1000)
    cards = [await bot.send_message(GROUP, "x") for _ in range(20)]
    with pytest.raises(RetryAfter) as flood:
        await bot.send_message(GROUP, "x")
    assert flood.value.retry_after == timedelta(seconds=60)
    await telegram.advance_clock(1)
    for number in range(20):
        await cards[number].edit_text("y")
    with pytest.raises(RetryAfter):
        await cards[0].edit_text("z")
    await telegram.advance_clock(60)
    for _ in range(30):
        await bot.send_message(ANA, "x")
    with pytest.raises(RetryAfter):
        await bot.send_message(ANA, "x")
    report = await telegram.limit_report()
    assert report.counts == {"group": 1, "group_edits": 1, "overall": 1}
    assert (report.total, report.latest[1].method) == (3, "editMessageText")


async def test_limits_can_count_without_refusing(bot: Bot, telegram: TelegramPlatform) -> None:
    await telegram.set_limits(mode="count")
    for _ in range(4):
        await bot.send_message(ANA, "x")
    assert (await telegram.limit_report()).counts == {"chat": 1}
    await telegram.set_limits(mode="off")
    await bot.send_message(ANA, "x")
    assert (await telegram.limit_report()).total == 1


async def test_only_text_outside_code_is_clickable(bot: Bot, telegram: TelegramPlatform) -> None:
    text = "@everybody and @root_of_all"
    await bot.send_message(GROUP, text, entities=[MessageEntity(MessageEntity.PRE, 0, 10)])
    (seen,) = await telegram.messages(GROUP)
    assert seen.links == ["@root_of_all"]


async def test_json_bodies_query_strings_and_odd_addresses(telegram: TelegramPlatform) -> None:
    base = f"{await telegram.base_url()}{TOKEN}"
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{base}/SENDMESSAGE", json={"chat_id": ANA, "text": "x"}) as answer:
            assert answer.headers["Content-Type"] == "application/json"
            assert (answer.status, (await answer.json())["result"]["text"]) == (200, "x")
        for path, body, status in [
            ("sendMessage", b"{", 400),
            ("sendMessage", b"[]", 400),
            ("noSuchMethod", b"{}", 404),
            ("getMe", b"", 200),
        ]:
            headers = {"Content-Type": "application/json"}
            async with session.post(f"{base}/{path}", data=body, headers=headers) as answer:
                assert answer.status == status, path
        async with session.post(f"{base}/sendMessage", data=b"x", headers={"Content-Type": "multipart/x"}) as answer:
            assert answer.status == 400
        async with session.get(f"{base}/sendMessage?chat_id={ANA}&text=y") as answer:
            assert answer.status == 200
        async with session.get(f"{await telegram.base_url()}nonsense/getMe") as answer:
            assert answer.status == 404

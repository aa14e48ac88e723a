"""Another's reading of Telegram, by the package tg-auto-test (Python 3.12 and later), agrees with our loopback's."""

from __future__ import annotations

from typing import Any

import pytest

from signoff.model import Card
from signoff.testing.adapter_stage import RecordingInbox, card, running
from signoff_adapters.telegram.render import keyboard, render
from tests.contract.test_adapters import telegram_stage

pytest.importorskip("tg_auto_test", reason="it needs Python 3.12")

ANA = 9001
ENDED = card("Approved once by Ana", rows=())


async def theirs(shown: Card) -> tuple[Any, Any, list[str]]:
    """The card as their client sees it, what it became after a press, and what the press sent."""
    from telegram import Update
    from telegram.ext import Application, CallbackQueryHandler, CommandHandler, ContextTypes
    from tg_auto_test.test_utils.serverless_telegram_client import ServerlessTelegramClient

    pressed: list[str] = []

    async def start(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
        first = render(shown)
        await context.bot.send_message(ANA, first.text, entities=first.entities, reply_markup=keyboard(shown))

    async def press(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
        query = update.callback_query
        assert query is not None
        pressed.append(query.data or "")
        await query.answer("Approved once. The agent is told.")
        last = render(ENDED)
        await query.edit_message_text(last.text, entities=last.entities)

    def build(builder: Any) -> Application[Any, Any, Any, Any, Any, Any]:
        application: Application[Any, Any, Any, Any, Any, Any] = builder.build()
        application.add_handler(CommandHandler("start", start))
        application.add_handler(CallbackQueryHandler(press))
        return application

    client = ServerlessTelegramClient(build, user_id=ANA)
    await client.connect()
    try:
        async with client.conversation(ANA) as talk:
            await talk.send_message("/start")
            posted = await talk.get_response()
            told = await posted.click(0)
            edited = await talk.get_edit()
    finally:
        await client.disconnect()
    assert told.message == "Approved once. The agent is told."
    return posted, edited, pressed


async def test_a_card_is_read_alike() -> None:
    shown = card("Low: lists <files> & more, `now`")
    posted, edited, pressed = await theirs(shown)
    async with telegram_stage("polling") as stage, running(stage, RecordingInbox()) as adapter:
        sent = await adapter.post(stage.direct, shown)
        [ours] = await stage.seen(stage.direct)
        await adapter.update(stage.direct, sent.message_id, ENDED)
        [after] = await stage.seen(stage.direct)
    assert posted.text == ours.text
    assert [each.text for row in posted.buttons for each in row] == [each.label for each in ours.buttons]
    assert [each.data.decode() for row in posted.buttons for each in row] == [each.token for each in ours.buttons]
    assert pressed == [ours.buttons[0].token]
    assert (edited.text, bool(edited.buttons)) == (after.text, bool(after.buttons))

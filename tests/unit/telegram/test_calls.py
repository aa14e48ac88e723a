"""What Telegram's refusals mean, and what must not be logged."""

from __future__ import annotations

import asyncio
import logging

import httpx
import pytest
from aiohttp import web
from telegram.error import BadRequest, ChatMigrated, Forbidden, TelegramError

from signoff.errors import (
    AdapterError,
    AdapterUnavailable,
    ChatMoved,
    MessageGone,
    RateLimited,
    SendAmbiguous,
    SendRefused,
)
from signoff_adapters.telegram.calls import (
    AnswerLost,
    HideToken,
    NotSent,
    Rejected,
    ServerTrouble,
    Throttled,
    Transport,
    as_edit_error,
    as_send_error,
    known,
)
from signoff_adapters.telegram.config import TelegramConfig


@pytest.mark.parametrize(
    ("error", "send", "edit"),
    [
        (NotSent("ConnectError"), AdapterUnavailable, AdapterUnavailable),
        (AnswerLost("ReadTimeout"), SendAmbiguous, AdapterUnavailable),
        (ServerTrouble("Telegram answered 502"), SendAmbiguous, AdapterUnavailable),
        (TelegramError("Invalid server response"), SendAmbiguous, AdapterUnavailable),
        (Rejected(401), AdapterUnavailable, AdapterUnavailable),
        (Throttled(7), RateLimited, RateLimited),
        (ChatMigrated(-1009), ChatMoved, ChatMoved),
        (BadRequest("Message to edit not found"), MessageGone, MessageGone),
        (BadRequest("MESSAGE_ID_INVALID"), MessageGone, MessageGone),
        (BadRequest("whatever"), SendRefused, SendRefused),
    ],
)
def test_what_a_failure_means(error: TelegramError, send: type[AdapterError], edit: type[AdapterError]) -> None:
    assert type(as_send_error(error)) is send
    assert type(as_edit_error(error)) is edit


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (Forbidden("Forbidden: bot was blocked by the user"), "blocked", "the person blocked the bot"),
        (Forbidden("Forbidden: bot can't initiate conversation with a user"), "not_started", "has not started"),
        (Forbidden("Forbidden: user is deactivated"), "deactivated", "account is gone"),
        (Forbidden("Forbidden: bot was kicked from the supergroup chat"), "bot_removed", "bot was removed"),
        (Forbidden("Forbidden: bot is not a member of the channel chat"), "bot_removed", "not a member"),
        (BadRequest("Chat not found"), "chat_not_found", "chat was not found"),
        (BadRequest("Message thread not found"), "thread_not_found", "topic was not found"),
        (BadRequest("TOPIC_CLOSED"), "thread_closed", "topic is closed"),
        (BadRequest("Not enough rights to send text messages to the chat"), "no_rights", "may not write"),
        (BadRequest("Can't parse entities: unsupported type"), "refused", "parse entities"),
    ],
)
def test_a_refusal_has_a_reason_for_programs_and_one_for_people(error: TelegramError, reason: str, words: str) -> None:
    refused = as_send_error(error)
    assert isinstance(refused, SendRefused)
    assert refused.facts["reason"] == reason
    assert words in refused.message


def test_only_refusals_without_a_reason_are_worth_another_form() -> None:
    assert known(BadRequest("Chat not found"))
    assert known(BadRequest("Message to edit not found"))
    assert not known(BadRequest("Can't parse entities: unsupported type"))


def test_a_request_that_never_left_was_not_refused() -> None:
    assert as_send_error(NotSent("ConnectError")).message == "Telegram could not be reached: ConnectError."
    assert as_edit_error(AnswerLost("no answer in time")).message == "Telegram did not take it: no answer in time."


def test_whether_the_server_answered_is_told() -> None:
    assert as_send_error(ServerTrouble("Telegram answered 500")).facts["answered"] is True
    assert as_send_error(AnswerLost("ReadTimeout")).facts["answered"] is False


async def test_a_call_waits_for_its_turn_as_long_as_for_a_connection() -> None:
    """When more people press at once than there are connections, the answers to the last of them are not dropped."""
    came, go = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        came.set()
        await go.wait()
        return web.json_response({"ok": True, "result": True})

    app = web.Application()
    app.router.add_post("/", slow)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    calls = Transport(1, TelegramConfig(token="t", connect_timeout_s=30.0), httpx.create_ssl_context())
    await calls.initialize()
    first = asyncio.create_task(calls.do_request(url, "POST"))
    await came.wait()
    second = asyncio.create_task(calls.do_request(url, "POST"))
    # Time itself is the story: the SDK's own limit is 1 s.
    done, _ = await asyncio.wait({first, second}, timeout=1.3)
    go.set()
    assert not done
    assert [status for status, _ in await asyncio.gather(first, second)] == [200, 200]
    await calls.shutdown()
    await runner.cleanup()


def test_the_token_is_kept_out_of_the_http_librarys_lines(caplog: pytest.LogCaptureFixture) -> None:
    hide = HideToken("123456:SECRET")
    logger = logging.getLogger("httpx")
    hide.attach()
    try:
        with caplog.at_level(logging.INFO, logger="httpx"):
            logger.info("HTTP Request: %s %s", "POST", "https://api.telegram.org/bot123456:SECRET/getMe")
    finally:
        hide.detach()
    assert "SECRET" not in caplog.text
    assert "/bot<token>/getMe" in caplog.text
    assert hide not in logger.filters

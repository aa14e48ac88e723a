"""Updates, webhooks, faults and outages of the loopback Telegram, seen through the real python-telegram-bot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import ClientSession, web
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.request import HTTPXRequest

from tests.platforms.telegram import TelegramPlatform, TelegramServer, telegram_process

TOKEN = "123456:TESTTOKEN"
OTHER_TOKEN = "654321:OTHER"
ANA, GROUP = 81234567, -4001
SECRET = "a-secret_1"
BUTTONS = InlineKeyboardMarkup([[InlineKeyboardButton("Run once", callback_data="once")]])


async def furnish(telegram: TelegramPlatform) -> None:
    """A bot, a person, and a group with both."""
    await telegram.add_bot(TOKEN, "ops_signoff_bot")
    await telegram.add_user(ANA, "Ana")
    await telegram.add_group(GROUP, "ops", members=[ANA])
    await telegram.set_limits(mode="off")


@asynccontextmanager
async def bot_of(telegram: TelegramPlatform, token: str = TOKEN, *, read_timeout_s: float = 5.0) -> AsyncIterator[Bot]:
    """The real client, pointed at the loopback server."""
    bot = Bot(token, base_url=await telegram.base_url(), request=HTTPXRequest(read_timeout=read_timeout_s))
    async with bot:
        yield bot


@pytest.fixture(autouse=True)
def _waits_are_timedeltas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this switch the library warns whenever it makes a RetryAfter, and warnings are errors here."""
    monkeypatch.setenv("PTB_TIMEDELTA", "1")


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramPlatform]:
    async with TelegramServer() as server:
        await furnish(server.platform)
        yield server.platform


@pytest.fixture
async def bot(telegram: TelegramPlatform) -> AsyncIterator[Bot]:
    async with bot_of(telegram) as client:
        yield client


@pytest.fixture(params=["same process", "own process"])
async def anywhere(request: pytest.FixtureRequest) -> AsyncIterator[TelegramPlatform]:
    """The server in both its forms."""
    if request.param == "same process":
        async with TelegramServer() as server:
            await furnish(server.platform)
            yield server.platform
    else:
        async with telegram_process() as platform:
            await furnish(platform)
            yield platform


class Hook:
    """A webhook receiver that answers with the given statuses, then 200, and can hold its answers back."""

    def __init__(self, *statuses: int) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.statuses = list(statuses)
        self.release = asyncio.Event()
        self.release.set()
        self.under_way = 0
        self._more = asyncio.Condition()

    async def handle(self, request: web.Request) -> web.Response:
        async with self._more:
            self.bodies.append(await request.json())
            self.headers.append(dict(request.headers))
            self.under_way += 1
            self._more.notify_all()
        await self.release.wait()
        self.under_way -= 1
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    async def received(self, count: int) -> list[dict[str, Any]]:
        """The first `count` bodies, as soon as they are there."""
        async with asyncio.timeout(15), self._more:
            await self._more.wait_for(lambda: len(self.bodies) >= count)
        return self.bodies

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Its address."""
        app = web.Application()
        app.router.add_post("/hook", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        finally:
            self.release.set()
            await runner.cleanup()


async def drained(telegram: TelegramPlatform) -> None:
    """Return once every update has been delivered and confirmed."""
    await telegram.until(telegram.pending_count, lambda count: count == 0)


# Polling


@pytest.mark.quick
async def test_updates_wait_until_they_are_confirmed(bot: Bot, telegram: TelegramPlatform) -> None:
    for text in ("/one", "/two", "/three"):
        await telegram.say(ANA, ANA, text)
    first = await bot.get_updates(limit=2)
    assert [update.message.text for update in first if update.message] == ["/one", "/two"]
    again = await bot.get_updates(offset=first[0].update_id)
    assert [update.update_id for update in again][:2] == [update.update_id for update in first]
    rest = await bot.get_updates(offset=first[-1].update_id + 1)
    assert [update.message.text for update in rest if update.message] == ["/three"]
    assert await telegram.pending_count() == 1
    assert await bot.get_updates(offset=rest[-1].update_id + 1) == ()
    assert await telegram.pending_count() == 0
    await telegram.redeliver(first[0].update_id)
    (repeated,) = await bot.get_updates(offset=rest[-1].update_id + 1)
    assert repeated == first[0]
    assert await bot.get_updates(offset=rest[-1].update_id + 1) == ()


async def test_a_negative_offset_keeps_only_the_last_updates(bot: Bot, telegram: TelegramPlatform) -> None:
    for text in ("/one", "/two", "/three"):
        await telegram.say(ANA, ANA, text)
    (last,) = await bot.get_updates(offset=-1)
    assert last.message is not None
    assert last.message.text == "/three"
    assert await telegram.pending_count() == 1


async def test_updates_are_forgotten_after_a_day(bot: Bot, telegram: TelegramPlatform) -> None:
    await telegram.say(ANA, ANA, "/old")
    await telegram.advance_clock(24 * 3600 + 1)
    await telegram.say(ANA, ANA, "/new")
    (left,) = await bot.get_updates()
    assert left.message is not None
    assert left.message.text == "/new"


async def test_allowed_updates_stay_as_they_were_set(bot: Bot, telegram: TelegramPlatform) -> None:
    await bot.get_updates(allowed_updates=["callback_query"])
    await bot.get_updates()
    await telegram.say(ANA, ANA, "/unheard")
    assert await bot.get_updates() == ()
    await bot.get_updates(allowed_updates=[])
    await telegram.say(ANA, ANA, "/heard")
    assert len(await bot.get_updates()) == 1


async def test_a_long_poll_returns_when_something_comes(bot: Bot, telegram: TelegramPlatform) -> None:
    poll = asyncio.create_task(bot.get_updates(timeout=20))
    await telegram.wait_for_log(lambda polls: polls[-1:] != [] and polls[-1].outcome == "pending", method="getUpdates")
    await telegram.raw_update({"message_of_tomorrow": {"x": 1}})
    (strange,) = await poll
    assert strange.api_kwargs == {"message_of_tomorrow": {"x": 1}}


async def test_the_older_of_two_pollers_is_thrown_out(anywhere: TelegramPlatform) -> None:
    async with bot_of(anywhere) as first, bot_of(anywhere) as second:
        older = asyncio.create_task(first.get_updates(timeout=20))
        await anywhere.wait_for_log(lambda polls: len(polls) == 1, method="getUpdates")
        newer = asyncio.create_task(second.get_updates(timeout=20))
        with pytest.raises(Conflict, match="terminated by other getUpdates request"):
            await older
        await anywhere.say(ANA, ANA, "/hello")
        assert len(await newer) == 1


async def test_polling_and_webhook_exclude_each_other(bot: Bot, telegram: TelegramPlatform) -> None:
    poll = asyncio.create_task(bot.get_updates(timeout=20))
    await telegram.wait_for_log(lambda polls: len(polls) == 1, method="getUpdates")
    await bot.set_webhook("http://127.0.0.1:9/hook")
    with pytest.raises(Conflict, match="terminated by setWebhook request"):
        await poll
    with pytest.raises(Conflict, match="while webhook is active"):
        await bot.get_updates()
    await bot.delete_webhook()
    assert await bot.get_updates() == ()


async def test_each_bot_has_its_own_updates_and_dialogues(bot: Bot, telegram: TelegramPlatform) -> None:
    other_id = await telegram.add_bot(OTHER_TOKEN, "other_bot")
    await telegram.say(ANA, ANA, "/mine")
    await telegram.say(ANA, ANA, "/others", bot_id=other_id)
    async with bot_of(telegram, OTHER_TOKEN) as other:
        (heard,) = await other.get_updates()
        sent = await other.send_message(ANA, "hello")
    assert heard.message is not None
    assert heard.message.text == "/others"
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await bot.edit_message_text("x", ANA, sent.message_id)
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.get_chat(-1)
    assert len(await telegram.messages(ANA, bot_id=other_id)) == 2


# Webhook


@pytest.mark.quick
async def test_webhook_delivers_until_it_is_taken(anywhere: TelegramPlatform) -> None:
    hook = Hook(500, 403)
    async with hook.listening() as url, bot_of(anywhere) as bot:
        await bot.set_webhook(url, secret_token=SECRET, max_connections=7, allowed_updates=["callback_query"])
        card = await bot.send_message(ANA, "May I?", reply_markup=BUTTONS)
        query_id = await anywhere.press(ANA, ANA, card.message_id, "once")
        bodies = await hook.received(3)
        await drained(anywhere)
        info = await bot.get_webhook_info()
    assert [body["update_id"] for body in bodies] == [bodies[0]["update_id"]] * 3
    update = Update.de_json(bodies[2], bot)
    assert update.callback_query is not None
    assert update.callback_query.id == query_id
    assert hook.headers[2]["Content-Type"] == "application/json"
    assert hook.headers[2]["X-Telegram-Bot-Api-Secret-Token"] == SECRET
    assert (info.max_connections, info.allowed_updates, info.pending_update_count) == (7, ("callback_query",), 0)
    assert info.last_error_message == "Wrong response from the webhook: 403"


async def test_webhook_survives_a_receiver_that_is_away(telegram: TelegramPlatform, bot: Bot) -> None:
    await bot.set_webhook("http://127.0.0.1:9/hook")
    await telegram.say(ANA, ANA, "/one")
    hook = Hook()
    async with hook.listening() as url:
        await bot.set_webhook(url)
        await telegram.fault("drop_before", method="webhook")
        await telegram.fault("drop_after", method="webhook")
        bodies = await hook.received(2)
        await drained(telegram)
        await telegram.redeliver(bodies[0]["update_id"])
        await hook.received(3)
    assert [body["message"]["text"] for body in hook.bodies] == ["/one"] * 3
    assert await telegram.faults_left() == 0


async def test_webhook_keeps_the_order_of_a_chat_and_serves_chats_at_once(telegram: TelegramPlatform, bot: Bot) -> None:
    hook = Hook()
    async with hook.listening() as url:
        await bot.set_webhook(url, max_connections=2)
        hook.release.clear()
        for text in ("/one", "/two", "/three"):
            await telegram.say(ANA, ANA, text)
            await telegram.say(ANA, GROUP, text)
        await telegram.raw_update({"poll": {}})
        await hook.received(2)
        assert hook.under_way == 2
        hook.release.set()
        await hook.received(7)
    for chat_id in (ANA, GROUP):
        texts = [
            body["message"]["text"]
            for body in hook.bodies
            if body.get("message", {}).get("chat", {}).get("id") == chat_id
        ]
        assert texts == ["/one", "/two", "/three"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"url": "ftp://127.0.0.1/"}, "(?i)https url must be provided"),
        ({"url": "http://127.0.0.1/", "secret_token": "no spaces"}, "unallowed characters"),
        ({"url": "http://127.0.0.1/", "max_connections": 101}, "between 1 and 100"),
    ],
)
async def test_bad_webhooks_are_refused(bot: Bot, arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        await bot.set_webhook(**arguments)
    assert (await bot.get_webhook_info()).url == ""


# Faults

NOTHING_DONE: list[tuple[dict[str, Any], type[TelegramError]]] = [
    ({"kind": "429", "retry_after_s": 7}, RetryAfter),
    ({"kind": "500"}, NetworkError),
    ({"kind": "502"}, NetworkError),
    ({"kind": "401"}, InvalidToken),
    ({"kind": "404"}, InvalidToken),
    ({"kind": "409"}, Conflict),
    ({"kind": "drop_before"}, NetworkError),
    ({"kind": "stall"}, TimedOut),
    ({"kind": "chat_gone"}, BadRequest),
    ({"kind": "kicked"}, Forbidden),
    ({"kind": "migrate", "migrate_to": -1009}, ChatMigrated),
]
DONE: list[tuple[dict[str, Any], type[TelegramError]]] = [
    ({"kind": "drop_after"}, NetworkError),
    ({"kind": "error_after"}, NetworkError),
    ({"kind": "bad_json"}, TelegramError),
    ({"kind": "stall", "after_s": 5.0}, TimedOut),
]


@pytest.mark.parametrize(
    ("fault", "error", "effect"),
    [(*case, False) for case in NOTHING_DONE] + [(*case, True) for case in DONE],
    ids=lambda value: value["kind"] + str(value.get("after_s", "")) if isinstance(value, dict) else "",
)
async def test_faults_strike_once_and_say_what_they_did(
    telegram: TelegramPlatform, fault: dict[str, Any], error: type[TelegramError], effect: bool
) -> None:
    async with bot_of(telegram, read_timeout_s=30.0) as bot:
        await telegram.fault(method="sendmessage", chat_id=GROUP, **fault)
        await bot.send_message(ANA, "another chat is spared")
        # Only what gets no answer is given up soon.
        within_s = 1.0 if error is TimedOut else 30.0
        with pytest.raises(error) as struck:
            await bot.send_message(GROUP, "first", read_timeout=within_s)
        await bot.send_message(GROUP, "second")
    assert [message.text for message in await telegram.messages(GROUP)] == ["first"] * effect + ["second"]
    first, second = await telegram.log(method="sendMessage", chat_id=GROUP)
    assert (first.outcome, first.effect) == (f"fault:{fault['kind']}", effect)
    assert (second.outcome, second.status, second.effect) == ("done", 200, True)
    if isinstance(struck.value, RetryAfter):
        assert struck.value.retry_after == timedelta(seconds=7)
    if isinstance(struck.value, ChatMigrated):
        assert struck.value.new_chat_id == -1009


async def test_a_slow_answer_still_comes(bot: Bot, telegram: TelegramPlatform) -> None:
    await telegram.fault("stall", after_s=0.1)
    began = time.monotonic()
    await bot.send_message(ANA, "slow")
    assert time.monotonic() - began >= 0.1


async def test_a_fault_hits_the_answer_to_a_press_by_its_chat(bot: Bot, telegram: TelegramPlatform) -> None:
    card = await bot.send_message(GROUP, "May I?", reply_markup=BUTTONS)
    query_id = await telegram.press(ANA, GROUP, card.message_id, "Run once")
    await telegram.fault("500", chat_id=GROUP, times=2)
    with pytest.raises(NetworkError):
        await bot.answer_callback_query(query_id)
    assert await telegram.faults_left() == 1
    await telegram.clear_faults()
    await bot.answer_callback_query(query_id, "Done.")
    assert (await telegram.answer_of(query_id)).text == "Done."
    assert [entry.status for entry in await telegram.log(method="answerCallbackQuery")] == [500, 200]


async def test_a_request_is_logged_with_its_parameters(bot: Bot, telegram: TelegramPlatform) -> None:
    await bot.send_message(ANA, "May I?", reply_markup=BUTTONS)
    (entry,) = await telegram.log(method="sendMessage")
    assert entry.parameters["reply_markup"]["inline_keyboard"][0][0]["callback_data"] == "once"
    assert (entry.chat_id, entry.bot_id, entry.number) == (ANA, 123456, 2)
    await telegram.clear_log()
    assert await telegram.log() == []


# Outages


async def test_down_and_up_keep_port_and_state(anywhere: TelegramPlatform) -> None:
    address = await anywhere.base_url()
    async with bot_of(anywhere) as bot:
        await bot.send_message(ANA, "before")
        poll = asyncio.create_task(bot.get_updates(timeout=20))
        await anywhere.wait_for_log(lambda polls: len(polls) == 1, method="getUpdates")
        await anywhere.down()
        with pytest.raises(NetworkError):
            await poll
        with pytest.raises(NetworkError, match="ConnectError"):
            await bot.send_message(ANA, "lost")
        await anywhere.say(ANA, ANA, "/said while it was down")
        await anywhere.up()
        assert await anywhere.base_url() == address
        await bot.send_message(ANA, "after")
        assert len(await bot.get_updates()) == 1
    texts = [message.text for message in await anywhere.messages(ANA)]
    assert texts == ["before", "/said while it was down", "after"]


async def test_a_black_hole_takes_everything_and_gives_nothing(anywhere: TelegramPlatform) -> None:
    async with bot_of(anywhere, read_timeout_s=30.0) as bot:
        await anywhere.blackhole()
        with pytest.raises(TimedOut):
            await bot.send_message(ANA, "lost", read_timeout=1.0)
        await anywhere.up()
        await bot.send_message(ANA, "after")
    assert [message.text for message in await anywhere.messages(ANA)] == ["after"]


async def test_no_webhook_is_called_during_an_outage(telegram: TelegramPlatform, bot: Bot) -> None:
    hook = Hook()
    async with hook.listening() as url:
        await bot.set_webhook(url)
        await telegram.down()
        await telegram.say(ANA, ANA, "/hello")
        assert await telegram.pending_count() == 1
        await telegram.up()
        await hook.received(1)
        await drained(telegram)


# Control


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda telegram: telegram.press(ANA, ANA, 5, "x"), LookupError),
        (lambda telegram: telegram.add_bot("nonsense", "x_bot"), ValueError),
        (lambda telegram: telegram.fault("no such kind"), ValueError),
        (lambda telegram: telegram.migrate(ANA), ValueError),
    ],
)
async def test_mistakes_in_tests_are_told_alike(
    anywhere: TelegramPlatform, act: Callable[[TelegramPlatform], Awaitable[object]], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await act(anywhere)


@pytest.mark.quick
async def test_control_is_closed_unless_asked_for(telegram: TelegramPlatform) -> None:
    url = (await telegram.where()).url
    async with ClientSession() as session, session.post(f"{url}/_control/up", json={}) as answer:
        assert answer.status == 404


async def test_control_answers_on_the_bot_api_port_too() -> None:
    async with telegram_process("--limits", "off") as telegram:
        where = await telegram.where()
        by_main_port = await TelegramPlatform.connect(where.url)
        try:
            assert await by_main_port.where() == where
        finally:
            await by_main_port.aclose()
        async with ClientSession() as session:
            async with session.post(f"{where.url}/_control/nothing", json={}) as answer:
                assert (answer.status, (await answer.json())["error"]) == (400, "lookup")
            async with session.post(f"{where.url}/_control/up", data=b"{") as answer:
                assert (answer.status, (await answer.json())["error"]) == (400, "value")

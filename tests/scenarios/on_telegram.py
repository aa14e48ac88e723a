"""Telegram as a transport: the loopback Bot API in a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Literal, Self

from tests.platforms.telegram import SeenMessage, TelegramPlatform, telegram_process
from tests.platforms.telegram.presses import ANSWER_WITHIN_S
from tests.scenarios.transport import APPROVERS, PEOPLE, WAIT_S, Person, Seen, Transport, Trouble

TOKEN = "123456:TESTTOKEN"
IDS: dict[Person, int] = {"ana": 111, "bo": 222, "eve": 333}
LIMITED_S = 6


class _Telegram(Transport):
    short = "tg"
    groups_move = True
    server: TelegramPlatform
    mode: Literal["polling", "webhook"]

    def __init__(self, server: TelegramPlatform, url: str) -> None:
        super().__init__()
        self.server = server
        self._url = url
        self._groups = -1001

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[Self]:
        """A fresh server with the bot and everybody."""
        async with telegram_process() as server:
            await server.add_bot(TOKEN, "ops_signoff_bot")
            for person in PEOPLE:
                await server.add_user(IDS[person], person.capitalize(), username=person)
            await server.set_limits(mode="count")
            yield cls(server, (await server.where()).url)

    def config(self, approvers: Sequence[Person] = APPROVERS, *, hooks: bool = True) -> str:
        listed = ", ".join(f'"{IDS[person]}"' for person in approvers)
        mode = self.mode if hooks else "polling"
        return (
            f'[platforms.telegram]\ntoken = "{TOKEN}"\napprovers = [{listed}]\n'
            f'api_base_url = "{self._url}"\nmode = "{mode}"\n'
        )

    def user_id(self, person: Person) -> str:
        return str(IDS[person])

    # places

    async def group(self) -> str:
        return f"telegram:{await self._group(forum=False)}"

    async def _group(self, *, forum: bool) -> int:
        self._groups -= 1
        number = self._groups
        await self.server.add_group(number, "ops", members=list(IDS.values()), supergroup=forum, forum=forum)
        return number

    async def topics(self, count: int) -> list[str]:
        forum = await self._group(forum=True)
        topics = [await self.server.add_topic(forum, f"topic {number}") for number in range(count)]
        return [f"telegram:{forum}/{topic}" for topic in topics]

    def direct(self, person: Person) -> str:
        return f"telegram:{IDS[person]}"

    async def moving(self) -> str:
        return await self.group()

    async def move(self, place: str) -> str:
        return f"telegram:{await self.server.migrate(_chat(place))}"

    # what people see and do

    async def seen(self, place: str, viewer: Person | None = None) -> list[Seen]:
        return [_seen(place, message) for message in await self.server.messages(_chat(place), _thread(place))]

    async def press(self, person: Person, message: Seen, button: str) -> str:
        return await self.server.press(IDS[person], _chat(message.place), int(message.message_id), button)

    async def answer(self, tap: str, timeout_s: float = WAIT_S) -> str:
        return (await self.server.answer_of(tap, timeout_s)).text

    async def insist(self, tap: str, timeout_s: float = WAIT_S) -> str:
        """A press can be answered for a short time only. One that waited for longer, for a gateway to come up, is
        delivered all the same: its answer is refused, and its card tells what it did."""
        waited = datetime.now(UTC) - (await self.server.press_state(tap)).pressed_at
        try:
            return await self.answer(tap, max(0.0, ANSWER_WITHIN_S - waited.total_seconds()))
        except TimeoutError:
            await self.server.wait_for_log(
                lambda calls: any(call.parameters.get("callback_query_id") == tap for call in calls),
                method="answerCallbackQuery",
                timeout_s=timeout_s,
            )
            _, message, _ = self._pressed[tap]
            return (await self.becomes(message, "", timeout_s)).text

    async def token(self, message: Seen, button: str) -> str:
        for each in await self.server.messages(_chat(message.place)):
            if str(each.message_id) == message.message_id:
                return each.button(button).callback_data or ""
        raise LookupError(f"message {message.message_id} is not there")

    async def forge(self, person: Person, message: Seen, token: str) -> str:
        return await self.server.press_forged(IDS[person], _chat(message.place), int(message.message_id), token)

    async def replay(self, tap: str) -> None:
        state = await self.server.press_state(tap)
        await self.server.redeliver(state.update_id)
        await self.server.duplicate_press(tap)

    async def type(
        self, person: Person, place: str, text: str, *, reply_to: Seen | None = None, forward: bool = False
    ) -> Seen:
        replied = int(reply_to.message_id) if reply_to else None
        number = await self.server.say(
            IDS[person], _chat(place), text, thread_id=_thread(place), reply_to=replied, forward=forward
        )
        return Seen(place=place, message_id=str(number), text=text, by_bot=False, said_by=person)

    async def panel(self, person: Person, card: Seen, text: str) -> Seen:
        return await self.reply(card, text)

    async def give_reason(self, person: Person, card: Seen, panel: Seen, reason: str) -> None:
        await self.tapped(person, panel, "Type it…")
        prompt = await self.reply(card, f"{person.capitalize()} · ")
        await self.type(person, card.place, reason, reply_to=prompt)

    # troubles

    async def trouble(self, kind: Trouble, place: str, *, times: int = 1) -> None:
        chat, server = _chat(place), self.server
        if kind == "refused":
            await server.fault("chat_gone", method="sendMessage", chat_id=chat, times=times)
        elif kind == "kicked":
            await server.fault("kicked", method="sendMessage", chat_id=chat, times=times)
        elif kind == "answer_lost":
            await server.fault("drop_after", method="sendMessage", chat_id=chat, times=times)
        elif kind == "never_answered":
            await server.fault("stall", method="sendMessage", chat_id=chat, times=times)
        elif kind == "limited":
            await server.fault("429", method="sendMessage", chat_id=chat, times=times, retry_after_s=LIMITED_S)
        else:
            await server.fault("500", method="editMessageText", chat_id=chat, times=times)

    async def slow(self, place: str, seconds: float) -> None:
        await self.server.fault("stall", method="sendMessage", chat_id=_chat(place), after_s=seconds)

    async def odd_updates(self) -> None:
        await self.server.raw_update({"message_of_tomorrow": {"x": 1}})
        await self.server.raw_update({"callback_query": {"id": "7", "from": {"id": "x"}, "data": 5}})
        await self.server.raw_update({"message": {"message_id": None, "chat": []}})

    async def settled(self) -> None:
        await self.server.until(self.server.pending_count, lambda count: count == 0, timeout_s=WAIT_S)


class TelegramPoll(_Telegram):
    """Updates are asked for."""

    name = "telegram-poll"
    mode = "polling"


class TelegramWebhook(_Telegram):
    """Updates are posted to the hooks listener."""

    name = "telegram-webhook"
    mode = "webhook"


def _chat(place: str) -> int:
    return int(place.partition(":")[2].partition("/")[0])


def _thread(place: str) -> int | None:
    thread = place.partition("/")[2]
    return int(thread) if thread else None


def _seen(place: str, message: SeenMessage) -> Seen:
    return Seen(
        place=place,
        message_id=str(message.message_id),
        text=message.text,
        buttons=tuple(button.label for button in message.buttons),
        deleted=message.deleted,
        edits=message.edits,
        reply_to=str(message.reply_to) if message.reply_to else None,
        clickable=tuple(message.links),
        file=message.document.content if message.document else None,
        by_bot=message.from_bot,
    )

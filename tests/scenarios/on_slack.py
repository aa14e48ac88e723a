"""Slack as a transport: the loopback workspace in a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Literal, Self

from tests.platforms.slack import Answer, FaultKind, PressState, SeenMessage, SlackPlatform, slack_process
from tests.scenarios.transport import APPROVERS, PEOPLE, WAIT_S, Person, Seen, Transport, Trouble

BOT_TOKEN, APP_TOKEN, SECRET = "xoxb-TEST-token", "xapp-TEST-token", "signing-secret"
IDS: dict[Person, str] = {"ana": "U0ANA", "bo": "U0BO", "eve": "U0EVE"}
LIMITED_S = 6
NEUTRAL = "Received."
SPOILED: dict[Trouble, tuple[FaultKind, str, str | None]] = {
    "refused": ("error", "chat.postMessage", "channel_not_found"),
    "kicked": ("error", "chat.postMessage", "not_in_channel"),
    "answer_lost": ("drop_after", "chat.postMessage", None),
    "never_answered": ("stall", "chat.postMessage", None),
    "limited": ("429", "chat.postMessage", None),
    "edit_refused": ("500", "chat.update", None),
}


class _Slack(Transport):
    short = "slack"
    server: SlackPlatform
    mode: Literal["socket", "http"]

    def __init__(self, server: SlackPlatform, url: str, direct: Mapping[Person, str]) -> None:
        super().__init__()
        self.server = server
        self._url, self._direct = url, direct
        self._channels, self._written = count(1), count()

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[Self]:
        """A fresh workspace with the app and everybody."""
        async with slack_process() as server:
            await server.add_bot(BOT_TOKEN, APP_TOKEN, signing_secret=SECRET)
            for person in PEOPLE:
                await server.add_user(IDS[person], person, display_name=person.capitalize())
            await server.set_limits(mode="count")
            direct = {person: await server.add_dm(IDS[person]) for person in PEOPLE}
            yield cls(server, (await server.where()).url, direct)

    def config(self, approvers: Sequence[Person] = APPROVERS, *, hooks: bool = True) -> str:
        listed = ", ".join(f'"{IDS[person]}"' for person in approvers)
        mode = self.mode if hooks else "socket"
        return (
            f'[platforms.slack]\nbot_token = "{BOT_TOKEN}"\napp_token = "{APP_TOKEN}"\nsigning_secret = "{SECRET}"\n'
            f'approvers = [{listed}]\nmode = "{mode}"\napi_base_url = "{self._url}"\n'
        )

    async def serves(self, hooks_url: str) -> None:
        if self.mode == "http":
            await self.server.set_request_url(f"{hooks_url}/hooks/default/slack")

    def user_id(self, person: Person) -> str:
        return IDS[person]

    # places

    async def group(self) -> str:
        return f"slack:{await self._channel()}"

    async def _channel(self) -> str:
        number = next(self._channels)
        return await self.server.add_channel(f"C0OPS{number}", f"ops-{number}", members=list(IDS.values()))

    async def topics(self, count: int) -> list[str]:
        channel = await self._channel()
        roots = [await self.server.start_thread(channel, IDS["eve"], f"topic {number}") for number in range(count)]
        return [f"slack:{channel}/{root}" for root in roots]

    def direct(self, person: Person) -> str:
        return f"slack:{self._direct[person]}"

    async def moving(self) -> str:
        return f"slack:{IDS['ana']}"

    async def move(self, place: str) -> str:
        """The direct chat, which has an id of its own."""
        return next(self.direct(person) for person in PEOPLE if place == f"slack:{IDS[person]}")

    # what people see and do

    async def seen(self, place: str, viewer: Person | None = None) -> list[Seen]:
        sees = IDS[viewer] if viewer else None
        return [_seen(place, each) for each in await self.server.messages(_chat(place), _thread(place), as_user=sees)]

    async def press(self, person: Person, message: Seen, button: str) -> str:
        return await self.server.press(IDS[person], _chat(message.place), message.message_id, button)

    async def answer(self, tap: str, timeout_s: float = WAIT_S) -> str:
        """The result; a word that says only that the press was received when nothing else comes."""
        try:
            state = await self.server.until(
                lambda: self.server.press_state(tap),
                lambda press: any(not each.text.startswith(NEUTRAL) for each in _told(press)),
                timeout_s=timeout_s,
            )
        except TimeoutError:
            state = await self.server.press_state(tap)
            if not _told(state):
                raise
        assert all(each.kind != "message" for each in _told(state)), state
        return next((each.text for each in _told(state) if not each.text.startswith(NEUTRAL)), NEUTRAL)

    async def given_up(self, tap: str, timeout_s: float = WAIT_S) -> bool:
        def known(press: PressState) -> bool:
            return press.timed_out or press.acknowledged_at is not None

        state = await self.server.until(lambda: self.server.press_state(tap), known, timeout_s=timeout_s)
        return state.acknowledged_at is None

    async def token(self, message: Seen, button: str) -> str:
        return (await self._now(message)).button(button).value or ""

    async def _now(self, message: Seen) -> SeenMessage:
        for each in await self.server.messages(_chat(message.place)):
            if each.ts == message.message_id:
                return each
        raise LookupError(f"message {message.message_id} is not there")

    async def forge(self, person: Person, message: Seen, token: str) -> str:
        return await self.server.press_forged(IDS[person], _chat(message.place), message.message_id, token)

    async def replay(self, tap: str) -> None:
        await self.server.redeliver(tap)

    async def type(
        self, person: Person, place: str, text: str, *, reply_to: Seen | None = None, forward: bool = False
    ) -> Seen:
        """A command is a slash command; in a thread, where Slack has none, it begins with `!` or the bot's name."""
        root = reply_to.message_id if reply_to else _thread(place)
        if text.startswith("/") and root is None and not forward:
            press = await self.server.slash(IDS[person], _chat(place), text.removeprefix("/"))
            return Seen(place=place, message_id=press, text=text, by_bot=False, said_by=person, command=True)
        ts = await self._say(person, _chat(place), text, root, forward=forward)
        return Seen(place=place, message_id=ts, text=text, by_bot=False, said_by=person, reply_to=root)

    async def _say(self, person: Person, channel: str, text: str, root: str | None, *, forward: bool) -> str:
        words = text.removeprefix("/")
        if words == text or forward:
            return await self.server.say(IDS[person], channel, text, thread_ts=root, forward=forward)
        if next(self._written) % 2:
            return await self.server.say(IDS[person], channel, f"!{words}", thread_ts=root)
        return await self.server.mention(IDS[person], channel, words, thread_ts=root)

    async def reply(self, message: Seen, text: str, timeout_s: float = WAIT_S) -> Seen:
        """What a slash command is answered with is known by the command, not by any message."""
        if not message.command:
            return await super().reply(message, text, timeout_s)

        def fits(answer: Answer) -> bool:
            return answer.kind != "error" and text in answer.text

        state = await self.server.until(
            lambda: self.server.press_state(message.message_id),
            lambda press: any(map(fits, press.answers)),
            timeout_s=timeout_s,
        )
        ts = next(each.ts for each in state.answers if fits(each))
        return next(each for each in await self.seen(message.place, message.said_by) if each.message_id == ts)

    def answers(self, reply: Seen, message: Seen) -> bool:
        """It came after it in its thread, or in one that it began."""
        threads = (message.reply_to,) if message.reply_to else (None, message.message_id)
        return float(reply.message_id) > float(message.message_id) and reply.reply_to in threads

    async def panel(self, person: Person, card: Seen, text: str) -> Seen:
        def fits(each: SeenMessage) -> bool:
            return each.ephemeral_to == IDS[person] and not each.deleted and bool(each.buttons) and text in each.text

        found: list[SeenMessage] = await self.server.until(
            lambda: self.server.messages(_chat(card.place), as_user=IDS[person]),
            lambda messages: any(map(fits, messages)),
            timeout_s=WAIT_S,
        )
        return _seen(card.place, [each for each in found if fits(each)][-1])

    async def give_reason(self, person: Person, card: Seen, panel: Seen, reason: str) -> None:
        tap = await self.tap(person, panel, "Type it…")
        state = await self.server.until(
            lambda: self.server.press_state(tap),
            lambda press: any(each.kind == "modal" for each in press.answers),
            timeout_s=WAIT_S,
        )
        view_id = next(each.view_id for each in state.answers if each.kind == "modal") or ""
        view = next(each for each in await self.server.views(IDS[person]) if each.view_id == view_id)
        sent = await self.server.submit_view(IDS[person], view_id, {view.fields[0]: reason})
        assert not await self.given_up(sent)

    # troubles

    async def trouble(self, kind: Trouble, place: str, *, times: int = 1) -> None:
        fault, method, error = SPOILED[kind]
        await self.server.fault(
            fault, method=method, channel=_chat(place), times=times, error=error, retry_after_s=LIMITED_S
        )

    async def slow(self, place: str, seconds: float) -> None:
        await self.server.fault("stall", method="chat.postMessage", channel=_chat(place), after_s=seconds)

    async def odd_updates(self) -> None:
        odd: dict[str, Any] = {"type": "message", "channel": ["C"], "ts": 7, "user": {"id": None}}
        await self.server.raw_event({"type": "message_of_tomorrow", "x": 1})
        await self.server.raw_event(odd)
        await self.server.raw_interaction({"type": "block_actions", "user": "Ana", "actions": {}})
        await self.server.raw_frame("{not json")

    async def settled(self) -> None:
        await self.server.until(self.server.pending_count, lambda count: count == 0, timeout_s=WAIT_S)


class SlackSocket(_Slack):
    """Everything comes over sockets that the gateway opens."""

    name = "slack-socket"
    mode = "socket"


class SlackHttp(_Slack):
    """Everything is posted to the hooks listener."""

    name = "slack-http"
    mode = "http"


def _chat(place: str) -> str:
    return place.partition(":")[2].partition("/")[0]


def _thread(place: str) -> str | None:
    return place.partition("/")[2] or None


def _told(press: PressState) -> list[Answer]:
    """What the person was shown by us."""
    return [each for each in press.answers if each.kind != "error"]


def _seen(place: str, message: SeenMessage) -> Seen:
    return Seen(
        place=place,
        message_id=message.ts,
        text=message.text,
        buttons=tuple(button.label for button in message.buttons),
        deleted=message.deleted,
        edits=message.edits,
        reply_to=message.thread_ts,
        clickable=(*message.links, *message.pings),
        file=message.files[0].content if message.files else None,
        by_bot=message.by_bot,
    )

"""Discord as a transport: the loopback Discord in a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal, Self

from signoff.ids import is_short
from tests.platforms.discord import Answer, DiscordPlatform, FaultKind, PressState, SeenMessage, discord_process
from tests.scenarios.transport import APPROVERS, PEOPLE, WAIT_S, Person, Seen, Transport, Trouble

TOKEN = "MTIz.TESTTOKEN.abc"
IDS: dict[Person, int] = {"ana": 111, "bo": 222, "eve": 333}
GUILD = 10
LIMITED_S = 6.0
NEUTRAL = "Received."
UNKNOWN_CHANNEL, NO_ACCESS = 10003, 50001
SPOILED: dict[Trouble, tuple[FaultKind, str, int | None]] = {
    "refused": ("404", "create_message", UNKNOWN_CHANNEL),
    "kicked": ("403", "create_message", NO_ACCESS),
    "answer_lost": ("drop_after", "create_message", None),
    "never_answered": ("stall", "create_message", None),
    "limited": ("429", "create_message", None),
    "edit_refused": ("500", "edit_message", None),
}


class _Discord(Transport):
    short = "dc"
    knows_repeats = True
    server: DiscordPlatform
    mode: Literal["gateway", "http"]

    def __init__(self, server: DiscordPlatform, urls: tuple[str, str], key: str, direct: Mapping[Person, int]) -> None:
        super().__init__()
        self.server = server
        self._urls, self._key, self._direct = urls, key, direct
        self._channels = 1000
        self._hooks_url = ""

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[Self]:
        """A fresh server with the bot, a guild and everybody."""
        async with discord_process() as server:
            await server.add_bot(TOKEN, "ops_signoff_bot")
            for person in PEOPLE:
                await server.add_user(IDS[person], person, display_name=person.capitalize())
            await server.add_guild(GUILD, "Ops", members=list(IDS.values()))
            await server.set_limits(mode="count")
            where = await server.where()
            direct = {person: await server.dm(IDS[person]) for person in PEOPLE}
            yield cls(server, (where.url, where.gateway_url), await server.public_key(), direct)

    def config(self, approvers: Sequence[Person] = APPROVERS, *, hooks: bool = True) -> str:
        listed = ", ".join(f'"{IDS[person]}"' for person in approvers)
        url, gateway_url = self._urls
        mode = self.mode if hooks else "gateway"
        return (
            f'[platforms.discord]\ntoken = "{TOKEN}"\napprovers = [{listed}]\nmode = "{mode}"\n'
            f'api_base_url = "{url}"\ngateway_url = "{gateway_url}"\npublic_key = "{self._key}"\n'
        )

    async def serves(self, hooks_url: str) -> None:
        self._hooks_url = f"{hooks_url}/hooks/default/discord"

    def user_id(self, person: Person) -> str:
        return str(IDS[person])

    # places

    async def group(self) -> str:
        return f"discord:{await self._channel()}"

    async def _channel(self) -> int:
        self._channels += 1
        return await self.server.add_channel(GUILD, self._channels, f"ops-{self._channels}")

    async def topics(self, count: int) -> list[str]:
        channel = await self._channel()
        threads = []
        for number in range(count):
            self._channels += 1
            threads.append(await self.server.add_thread(channel, self._channels, f"topic {number}"))
        return [f"discord:{channel}/{thread}" for thread in threads]

    def direct(self, person: Person) -> str:
        return f"discord:{self._direct[person]}"

    async def moving(self) -> str:
        return f"discord:{IDS['ana']}"

    async def move(self, place: str) -> str:
        """The direct chat, which has an id of its own."""
        return next(self.direct(person) for person in PEOPLE if place == f"discord:{IDS[person]}")

    # what people see and do

    async def seen(self, place: str, viewer: Person | None = None) -> list[Seen]:
        sees = IDS[viewer] if viewer else None
        return [_seen(place, message) for message in await self.server.messages(_channel(place), viewer=sees)]

    async def press(self, person: Person, message: Seen, button: str) -> str:
        return str(await self.server.press(IDS[person], _channel(message.place), int(message.message_id), button))

    async def answer(self, tap: str, timeout_s: float = WAIT_S) -> str:
        """The result; a word that says only that the press was received when nothing else comes."""
        try:
            told = await self.server.until(
                lambda: self.server.answers(int(tap)),
                lambda found: any(not each.text.startswith(NEUTRAL) for each in _told(found)),
                timeout_s=timeout_s,
            )
        except TimeoutError:
            told = await self.server.answers(int(tap))
            if not _told(told):
                raise
        assert all(each.private for each in _told(told)), told
        return next((each.text for each in _told(told) if not each.text.startswith(NEUTRAL)), NEUTRAL)

    async def given_up(self, tap: str, timeout_s: float = WAIT_S) -> bool:
        def known(state: PressState) -> bool:
            return state.failed or state.acknowledged_at is not None

        state = await self.server.until(lambda: self.server.press_state(int(tap)), known, timeout_s=timeout_s)
        return state.acknowledged_at is None

    async def token(self, message: Seen, button: str) -> str:
        for each in await self.server.messages(_channel(message.place)):
            if str(each.message_id) == message.message_id:
                return each.button(button).custom_id or ""
        raise LookupError(f"message {message.message_id} is not there")

    async def forge(self, person: Person, message: Seen, token: str) -> str:
        where = _channel(message.place)
        return str(await self.server.press_forged(IDS[person], where, int(message.message_id), token))

    async def replay(self, tap: str) -> None:
        await self.server.redeliver(int(tap))

    async def type(
        self, person: Person, place: str, text: str, *, reply_to: Seen | None = None, forward: bool = False
    ) -> Seen:
        """A command is a slash command; in reply to a card the bot is named in a message, or without messages the
        request is named by its id."""
        said = Seen(place=place, message_id="", text=text, by_bot=False, said_by=person)
        if forward or not text.startswith("/") or (reply_to is not None and self.hears_messages):
            number = await self.server.say(
                IDS[person],
                _channel(place),
                text.removeprefix("/") if reply_to else text,
                reply_to=int(reply_to.message_id) if reply_to else None,
                mention_bot=reply_to is not None,
                forward=forward,
            )
            return _with_id(said, number)
        name, options = _options(text, reply_to)
        await self.server.until(self.server.commands, bool, timeout_s=WAIT_S)
        return _with_id(said, await self.server.slash(IDS[person], _channel(place), name, options), command=True)

    async def panel(self, person: Person, card: Seen, text: str) -> Seen:
        def fits(each: Seen) -> bool:
            return each.by_bot and not each.deleted and bool(each.buttons) and text in each.text

        async def private() -> list[Seen]:
            shown = await self.server.messages(_channel(card.place), viewer=IDS[person])
            return [_seen(card.place, each) for each in shown if each.viewer == IDS[person]]

        found: list[Seen] = await self.server.until(private, lambda seen: any(map(fits, seen)), timeout_s=WAIT_S)
        return [each for each in found if fits(each)][-1]

    async def give_reason(self, person: Person, card: Seen, panel: Seen, reason: str) -> None:
        tap = await self.tap(person, panel, "Type it…")
        modal = await self.server.modal_of(int(tap), WAIT_S)
        sent = await self.server.submit_modal(int(tap), {modal.fields[0].custom_id: reason})
        await self.answer(str(sent))

    # troubles

    async def lift_limits(self) -> None:
        await self.server.set_limits(mode="off")

    async def trouble(self, kind: Trouble, place: str, *, times: int = 1) -> None:
        fault, call, code = SPOILED[kind]
        await self.server.fault(
            fault, call=call, channel_id=_channel(place), times=times, code=code, retry_after_s=LIMITED_S
        )

    async def slow(self, place: str, seconds: float) -> None:
        await self.server.fault("stall", call="create_message", channel_id=_channel(place), after_s=seconds)

    async def odd_updates(self) -> None:
        if self.mode == "http":
            for odd in ({"id": 7, "type": "three"}, {"id": "8", "type": 3, "channel": [], "data": 5}):
                assert await self.server.post_interaction(self._hooks_url, odd) == 400
            return
        await self.server.dispatch("MESSAGE_OF_TOMORROW", {"x": 1})
        await self.server.dispatch("INTERACTION_CREATE", {"id": 7, "type": "three", "channel": []})
        await self.server.dispatch("MESSAGE_CREATE", {"id": None, "channel_id": []})

    async def settled(self) -> None:
        await self.server.until(self.server.pending_count, lambda count: count == 0, timeout_s=WAIT_S)


class DiscordGateway(_Discord):
    """Everything comes over a connection that the gateway opens."""

    name = "discord-gateway"
    mode = "gateway"


class DiscordHttp(_Discord):
    """Interactions are posted to the hooks listener; messages are not heard."""

    name = "discord-http"
    mode = "http"
    hears_messages = False


def _channel(place: str) -> int:
    chat, _, thread = place.partition(":")[2].partition("/")
    return int(thread or chat)


def _with_id(said: Seen, number: int, *, command: bool = False) -> Seen:
    return Seen(
        place=said.place,
        message_id=str(number),
        text=said.text,
        by_bot=False,
        said_by=said.said_by,
        command=command,
    )


def _options(text: str, card: Seen | None) -> tuple[str, dict[str, str]]:
    """The slash command for a typed line, and what goes into its fields."""
    name, *words = text.removeprefix("/").split()
    options: dict[str, str] = {}
    if words and (is_short(words[0]) or words[0] == "all"):
        options["id"] = words.pop(0)
    elif card is not None and name in ("approve", "deny", "why", "undo"):
        options["id"] = card.short_id
    if words:
        options["scope" if name == "approve" else "reason"] = " ".join(words)
    return name, options


def _told(answers: list[Answer]) -> list[Answer]:
    """What the person was shown."""
    return [each for each in answers if each.refused is None and each.kind not in ("deferred", "deferred_update")]


def _seen(place: str, message: SeenMessage) -> Seen:
    answers = message.reply_to or message.interaction_id
    return Seen(
        place=place,
        message_id=str(message.message_id),
        text=message.text,
        buttons=tuple(button.label for button in message.buttons),
        deleted=message.deleted,
        edits=message.edits,
        reply_to=str(answers) if answers else None,
        clickable=(*message.links, *message.pings),
        file=message.files[0].content if message.files else None,
        by_bot=message.author_bot,
    )

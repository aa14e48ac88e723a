"""What is wrong between us and Telegram, found by calls that change nothing there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

import httpx
import msgspec
from msgspec import Struct
from telegram import ChatMemberAdministrator, ChatMemberRestricted
from telegram.constants import ChatMemberStatus
from telegram.error import ChatMigrated, Conflict, TelegramError

from signoff.errors import AdapterError, AdapterFatal, AdapterUnavailable
from signoff.model import Destination
from signoff.ports import Finding, Introduction

from ..addresses import host_of
from ..findings import nobody, unclear
from .calls import UNREADABLE, HideToken, PollTransport, Rejected, Transport, as_edit_error, bot_of
from .config import TelegramConfig
from .sender import is_group
from .wire import PLATFORM

POLL_S = 2
"""How long one poll is held open to meet another program's. Whoever polls comes again within a second."""
WATCH_S = 3.0
"""How long other programs are looked for."""
TOKEN = "Put the token that @BotFather gave into platforms.telegram.token."  # noqa: S105  # a sentence about one
TO_PASTE = "/newbot\nSignoff\nYOURS_signoff_bot\n"
"""What to send @BotFather, a line at a time: the command, the bot's name, and its user name, which ends in `bot`."""
_Result = TypeVar("_Result")


class _Waiting(Struct, frozen=True):
    result: tuple[msgspec.Raw, ...] = ()


class TelegramCheckup:
    """A `Checkup` for one bot."""

    def __init__(self, config: TelegramConfig) -> None:
        """Connects nowhere yet."""
        self._config = config
        self._hide = HideToken(config.token)
        self._hide.attach()
        self.time_url = config.api_base_url.rstrip("/")
        tls = httpx.create_ssl_context()
        self._calls, self._polls = Transport(4, config, tls), PollTransport(1, config, tls)
        self._bot = bot_of(config, self._calls, self._polls)
        self._me_id = 0

    async def introduce(self) -> Introduction:
        """Ask who we are. Raises `AdapterFatal` for a refused token, else `AdapterUnavailable`."""
        try:
            me = await _read(self._bot.get_me())
        except TelegramError as error:
            raise _about_token(error) from None
        self._me_id = me.id
        name = me.username or str(me.id)
        return Introduction(
            name=f"@{name}",
            user_id=str(me.id),
            chat_url=f"https://t.me/{name}",
            invite_url=f"https://t.me/{name}?startgroup=signoff",
        )

    async def account(self, *, serving: bool) -> list[Finding]:
        """The token, and whether updates come here alone. `serving`: our own gateway polls, so nothing is polled."""
        try:
            me = await self.introduce()
        except AdapterError as error:
            return [nobody(error, PLATFORM, TOKEN)]
        found = [Finding.fine("token", f"Telegram knows the bot as {me.name}.")]
        try:
            found.append(await self._webhook())
            if self._config.mode == "polling" and not serving and found[-1].level == "ok":
                found.append(await self._other_poller())
        except TelegramError as error:
            found.append(_unclear("updates", error))
        return found

    async def _webhook(self) -> Finding:
        info = await _read(self._bot.get_webhook_info())
        if self._config.mode == "polling":
            if not info.url:
                return Finding.fine("webhook", "No webhook is set, as polling needs it.")
            return Finding.problem(
                "webhook",
                f"Updates go to a webhook on {host_of(info.url)}, so another program answers for this bot.",
                "Stop that program or use a bot of its own here; `signoff serve` removes the webhook when it starts.",
            )
        expected = self._config.hooks_url
        if not info.url:
            return Finding.warning(
                "webhook", "No webhook is set, so nothing is received.", "Start `signoff serve`, which sets it."
            )
        if expected is not None and info.url != expected:
            return Finding.problem(
                "webhook",
                f"Updates go to a webhook on {host_of(info.url)}, and not to {host_of(expected)}.",
                "Stop the other program, or use a bot of its own here.",
            )
        if info.last_error_message and info.pending_update_count:
            return Finding.problem(
                "webhook",
                f"Telegram cannot deliver {info.pending_update_count} updates: {info.last_error_message}.",
                "Make gateway.hooks_url reachable from the internet by https.",
            )
        return Finding.fine("webhook", f"Updates go to a webhook on {host_of(info.url)}.")

    async def _other_poller(self) -> Finding:
        """Hold polls open for a while: another program's next poll ends ours with 409. Nothing is confirmed, so
        whatever waits is delivered again to the gateway."""
        until = time.monotonic() + WATCH_S
        try:
            while (left_s := until - time.monotonic()) > 0:
                await self._bot.get_updates(limit=1, timeout=min(POLL_S, max(1, round(left_s))))
                if msgspec.json.decode(self._polls.batch, type=_Waiting).result:
                    # Something waits unfetched, and a poll returns at once: try again until the time is over.
                    await asyncio.sleep(0.25)
        except Conflict:
            return Finding.problem(
                "second poller",
                "Another program polls this bot's updates, so presses get lost to it.",
                "Stop the other program, or make a bot of its own for one of the two with @BotFather.",
            )
        except msgspec.DecodeError:
            return Finding.warning(
                "second poller",
                "The answer to a poll could not be read.",
                "Check platforms.telegram.api_base_url, and try again.",
            )
        return Finding.fine("second poller", "No other program polls this bot's updates.")

    async def place(self, destination: Destination) -> Finding:
        """Whether a card with its file can be posted there."""
        about = f"place {destination}"
        if not destination.chat_id.lstrip("-").isdecimal():
            return Finding.problem(about, "This is no chat id: Telegram's are numbers, below 0 for groups.", _ID)
        try:
            chat = await _read(self._bot.get_chat(int(destination.chat_id)))
            if not is_group(destination):
                return Finding.fine(about, f"The bot may write to {chat.effective_name or destination.chat_id}.")
            if destination.thread_id is not None and not chat.is_forum:
                return Finding.problem(about, f"{chat.title} has no topics.", "Leave out the part after the slash.")
            return await self._group(about, destination, chat.title or destination.chat_id)
        except TelegramError as error:
            return _no_place(about, error, group=is_group(destination))

    async def _group(self, about: str, destination: Destination, title: str) -> Finding:
        if not self._me_id:
            self._me_id = (await _read(self._bot.get_me())).id
        member = await _read(self._bot.get_chat_member(int(destination.chat_id), self._me_id))
        if member.status in (ChatMemberStatus.LEFT, ChatMemberStatus.BANNED):
            return Finding.problem(about, f"The bot is not a member of {title}.", "Add it to the group.")
        if isinstance(member, ChatMemberRestricted) and not (member.can_send_messages and member.can_send_documents):
            return Finding.problem(
                about,
                f"The bot may not send messages and files in {title}.",
                "Lift its restriction in the group's permissions.",
            )
        if not isinstance(member, ChatMemberAdministrator):
            rights = (await _read(self._bot.get_chat(int(destination.chat_id)))).permissions
            if rights is not None and not (rights.can_send_messages and rights.can_send_documents):
                return Finding.problem(
                    about,
                    f"Members of {title} may not send messages and files.",
                    "Allow both in the group's permissions, or make the bot an administrator.",
                )
        return Finding.fine(about, f"The bot is a member of {title} and may post.")

    async def aclose(self) -> None:
        """Close the connections."""
        self._hide.detach()
        for pool in (self._calls, self._polls):
            await pool.shutdown()


_ID = "Write the chat's number: after /start in a chat with the bot, `signoff init` shows it."


def open_checkup(config: TelegramConfig) -> TelegramCheckup:
    """A check-up of the bot in `config`."""
    return TelegramCheckup(config)


async def _read(call: Awaitable[_Result]) -> _Result:
    """The call's answer; one in a shape that the SDK does not know counts as an error of Telegram's."""
    try:
        return await call
    except UNREADABLE as error:
        raise TelegramError(f"the answer could not be read ({type(error).__name__})") from None


def _about_token(error: TelegramError) -> AdapterError:
    if isinstance(error, Rejected):
        return AdapterFatal("Telegram rejects the bot's token.")
    return as_edit_error(error)


def _no_place(about: str, error: TelegramError, *, group: bool) -> Finding:
    if isinstance(error, ChatMigrated):
        moved = f"The group became a supergroup with the id {error.new_chat_id}."
        return Finding.problem(about, moved, f"Write {PLATFORM}:{error.new_chat_id} instead.")
    refused = as_edit_error(error)
    if isinstance(refused, AdapterUnavailable) or "reason" not in refused.facts:
        return _unclear(about, error)
    if group:
        return Finding.problem(about, refused.message, "Add the bot to the group, and check the id.")
    return Finding.problem(
        about, refused.message, "Let the person open a chat with the bot and press Start; check the id."
    )


def _unclear(about: str, error: TelegramError) -> Finding:
    return unclear(about, "Telegram", error)

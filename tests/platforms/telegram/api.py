"""The Bot API by method name: finds the bot, the method and the chat, and runs the method."""

from __future__ import annotations

import re
from collections.abc import Callable

from .account import Account
from .changes import Changes
from .messaging import Messaging
from .params import Parameters
from .polling import get_updates
from .presses import PressBook
from .refusal import Refused
from .world import BotAccount, World

Method = Callable[[BotAccount, Parameters], object]
_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+")
_ID = re.compile(r"-?[0-9]{1,18}")


class BotApi:
    """Answers requests; method names are compared without case, as Telegram does."""

    def __init__(self, world: World, presses: PressBook, changes: Changes) -> None:
        self._world = world
        self._presses = presses
        messaging, account = Messaging(world, presses, changes), Account(world, changes)
        self._methods: dict[str, Method] = {
            "sendmessage": messaging.send_message,
            "senddocument": messaging.send_document,
            "editmessagetext": messaging.edit_message_text,
            "editmessagecaption": messaging.edit_message_caption,
            "editmessagereplymarkup": messaging.edit_message_reply_markup,
            "deletemessage": messaging.delete_message,
            "answercallbackquery": messaging.answer_callback_query,
            "sendchataction": messaging.send_chat_action,
            "getme": account.get_me,
            "setmycommands": account.set_my_commands,
            "getmycommands": account.get_my_commands,
            "deletemycommands": account.delete_my_commands,
            "getchat": account.get_chat,
            "getchatmember": account.get_chat_member,
            "getchatadministrators": account.get_chat_administrators,
            "leavechat": account.leave_chat,
            "getfile": account.get_file,
            "setwebhook": account.set_webhook,
            "deletewebhook": account.delete_webhook,
            "getwebhookinfo": account.get_webhook_info,
        }

    def bot(self, token: str) -> BotAccount:
        """The bot of a token; Refused with 404 for a malformed one and 401 for an unknown one."""
        if not _TOKEN.fullmatch(token):
            raise Refused(404)
        if token not in self._world.bots:
            raise Refused(401)
        return self._world.bots[token]

    def chat_id(self, parameters: Parameters) -> int | None:
        """The chat a request is about, for faults and the log; none when it is about none."""
        raw = parameters.values.get("chat_id")
        if isinstance(raw, str) and _ID.fullmatch(raw):
            return int(raw)
        if isinstance(raw, int):
            return raw
        return self._presses.chat_of(parameters.values.get("callback_query_id"))

    async def call(self, bot: BotAccount, method: str, parameters: Parameters) -> object:
        """The method's result; Refused for everything the Bot API refuses, 404 for unknown methods."""
        if method.lower() == "getupdates":
            return await get_updates(bot, parameters)
        return self.call_now(bot, method, parameters)

    def call_now(self, bot: BotAccount, method: str, parameters: Parameters) -> object:
        """The same for every method but getUpdates, in one step that nothing can interrupt."""
        run = self._methods.get(method.lower())
        if run is None:
            raise Refused(404)
        return run(bot, parameters)

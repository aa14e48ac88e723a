"""Bot API methods about the bot itself, its places and its way of getting updates; getUpdates is in `polling.py`."""

from __future__ import annotations

from .access import chat_for, known_chat
from .changes import Changes
from .model import JsonObject, MemberStatus
from .params import Parameters
from .refusal import bad_request
from .rules import check_text
from .updates import WebhookState
from .world import PRESENT, BotAccount, Chat, World

COMMANDS_MAX = 100
"""Commands in one scope (setMyCommands)."""
COMMAND_MAX = 32
DESCRIPTION_MAX = 256
_RIGHTS = [
    "can_be_edited",
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
]


class Account:
    """Small methods, each checked like the rest."""

    def __init__(self, world: World, changes: Changes) -> None:
        self._world = world
        self._changes = changes

    def get_me(self, bot: BotAccount, _parameters: Parameters) -> JsonObject:
        """getMe."""
        return bot.person.json() | {
            "can_join_groups": True,
            "can_read_all_group_messages": not bot.privacy_mode,
            "supports_inline_queries": False,
        }

    def set_my_commands(self, bot: BotAccount, parameters: Parameters) -> bool:
        """setMyCommands: lower-case names of 1-32 characters, descriptions of 1-256."""
        commands = parameters.parsed("commands")
        if not isinstance(commands, list) or not all(isinstance(each, dict) for each in commands):
            raise bad_request("can't parse commands: expected an Array of BotCommand")
        if len(commands) > COMMANDS_MAX:
            raise bad_request("BOT_COMMANDS_TOO_MUCH")
        for each in commands:
            name = check_text(each.get("command"), 10 * COMMAND_MAX, "command")
            if not 1 <= len(name) <= COMMAND_MAX or not name.replace("_", "a").isalnum() or name != name.lower():
                raise bad_request("BOT_COMMAND_INVALID")
            if not 1 <= len(check_text(each.get("description"), 10 * DESCRIPTION_MAX, "command")) <= DESCRIPTION_MAX:
                raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        bot.commands[_scope(parameters)] = commands
        self._changes.bump()
        return True

    def get_my_commands(self, bot: BotAccount, parameters: Parameters) -> list[JsonObject]:
        """getMyCommands."""
        return bot.commands.get(_scope(parameters), [])

    def delete_my_commands(self, bot: BotAccount, parameters: Parameters) -> bool:
        """deleteMyCommands."""
        bot.commands.pop(_scope(parameters), None)
        self._changes.bump()
        return True

    def get_chat(self, bot: BotAccount, parameters: Parameters) -> JsonObject:
        """getChat."""
        chat = known_chat(self._world, bot, parameters)
        gifts = ["unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"]
        return self._world.chat_json(chat) | {
            "accent_color_id": 0,
            "max_reaction_count": 11,
            "accepted_gift_types": dict.fromkeys(gifts, True),
        }

    def get_chat_member(self, bot: BotAccount, parameters: Parameters) -> JsonObject:
        """getChatMember: strangers to the chat have left, unknown ids are refused."""
        chat = known_chat(self._world, bot, parameters)
        user_id = parameters.required_integer("user_id", "invalid user_id specified")
        if user_id not in self._world.people:
            raise bad_request("PARTICIPANT_ID_INVALID")
        return member_json(self._world, chat, user_id)

    def get_chat_administrators(self, bot: BotAccount, parameters: Parameters) -> list[JsonObject]:
        """getChatAdministrators: without other bots."""
        chat = known_chat(self._world, bot, parameters)
        if chat.kind == "private":
            raise bad_request("there are no administrators in the private chat")
        return [
            member_json(self._world, chat, user_id)
            for user_id, status in chat.members.items()
            if status in ("creator", "administrator") and (user_id == bot.id or not self._world.people[user_id].is_bot)
        ]

    def leave_chat(self, bot: BotAccount, parameters: Parameters) -> bool:
        """leaveChat."""
        chat = chat_for(self._world, parameters)
        if chat.members.get(bot.id) not in PRESENT:
            raise bad_request("chat not found")
        chat.members[bot.id] = "left"
        self._changes.bump()
        return True

    def get_file(self, bot: BotAccount, parameters: Parameters) -> JsonObject:
        """getFile: the path under which the content can be fetched."""
        stored = self._world.files.get(parameters.text("file_id", "") or "")
        if stored is None:
            raise bad_request("invalid file_id")
        return {
            "file_id": stored.file_id,
            "file_unique_id": f"u{stored.file_id}",
            "file_size": stored.size_bytes,
            "file_path": f"documents/{stored.file_id}",
        }

    def set_webhook(self, bot: BotAccount, parameters: Parameters) -> bool:
        """setWebhook; an empty address removes it. Plain http and any port are taken, as loopback needs them."""
        url = parameters.text("url", "") or ""
        if not url:
            return self.delete_webhook(bot, parameters)
        webhook = WebhookState(url, parameters.text("secret_token"), parameters.integer("max_connections"))
        take_allowed(bot, parameters)
        bot.updates.webhook = webhook
        self._after_switch(bot, parameters)
        return True

    def delete_webhook(self, bot: BotAccount, parameters: Parameters) -> bool:
        """deleteWebhook; what waits is kept unless `drop_pending_updates` says otherwise."""
        bot.updates.webhook = None
        self._after_switch(bot, parameters)
        return True

    def _after_switch(self, bot: BotAccount, parameters: Parameters) -> None:
        if parameters.flag("drop_pending_updates"):
            bot.updates.drop_pending()
        bot.updates.changes.bump()
        self._changes.bump()

    def get_webhook_info(self, bot: BotAccount, _parameters: Parameters) -> JsonObject:
        """getWebhookInfo."""
        webhook = bot.updates.webhook
        info: JsonObject = {
            "url": "" if webhook is None else webhook.url,
            "has_custom_certificate": False,
            "pending_update_count": len(bot.updates.pending()),
        }
        if bot.updates.allowed is not None:
            info["allowed_updates"] = bot.updates.allowed
        if webhook is not None:
            info["max_connections"] = webhook.max_connections
            if webhook.last_error is not None and webhook.last_error_at is not None:
                info |= {"last_error_message": webhook.last_error, "last_error_date": int(webhook.last_error_at)}
        return info


def take_allowed(bot: BotAccount, parameters: Parameters) -> None:
    """Remember `allowed_updates`: given once it stays until given again; an empty list means the default kinds."""
    allowed = parameters.parsed("allowed_updates")
    if allowed is None:
        return
    if not isinstance(allowed, list) or not all(isinstance(each, str) for each in allowed):
        raise bad_request("can't parse allowed_updates: expected an Array of String")
    bot.updates.allowed = allowed or None


def member_json(world: World, chat: Chat, user_id: int) -> JsonObject:
    """The `ChatMember` object."""
    status: MemberStatus = chat.members.get(user_id, "left")
    if chat.kind == "private":
        status = "member"
    return status_json(world, user_id, status)


def status_json(world: World, user_id: int, status: MemberStatus) -> JsonObject:
    """The `ChatMember` object for a status."""
    shown: JsonObject = {"user": world.people[user_id].json(), "status": status}
    if status == "creator":
        shown["is_anonymous"] = False
    if status == "administrator":
        shown |= {"is_anonymous": False} | dict.fromkeys(_RIGHTS, True)
    if status == "kicked":
        shown["until_date"] = 0
    return shown


def _scope(parameters: Parameters) -> str:
    """Scope and language a command list is kept under; `default` without either."""
    scope = parameters.parsed("scope")
    names = (
        [str(scope.get(name)) for name in ("type", "chat_id", "user_id") if name in scope]
        if isinstance(scope, dict)
        else []
    )
    language = parameters.text("language_code", "") or ""
    return ":".join([*(names or ["default"]), *([language] if language else [])])

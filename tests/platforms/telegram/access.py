"""Whether a bot may speak in a place, with the errors the Bot API gives when it may not."""

from __future__ import annotations

from .params import Parameters
from .refusal import bad_request, forbidden, upgraded
from .world import PRESENT, BotAccount, Chat, StoredMessage, World


def chat_for(world: World, parameters: Parameters) -> Chat:
    """The chat named by `chat_id`; Refused when there is none or it became a supergroup."""
    raw = parameters.values.get("chat_id")
    if raw is None or raw == "":
        raise bad_request("chat_id is empty")
    if isinstance(raw, str) and not raw.lstrip("-").isdecimal():
        raise bad_request("chat not found")
    chat = world.chats.get(parameters.required_integer("chat_id", "chat_id is empty"))
    if chat is None or chat.gone:
        raise bad_request("chat not found")
    if chat.migrated_to is not None:
        raise upgraded(chat.migrated_to)
    return chat


def known_chat(world: World, bot: BotAccount, parameters: Parameters) -> Chat:
    """A chat the bot can see; Refused as for one that does not exist, or with 403 after it was removed."""
    chat = chat_for(world, parameters)
    if chat.kind == "private":
        if bot.id not in world.person(chat.id).talks_to:
            raise bad_request("chat not found")
        return chat
    status = chat.members.get(bot.id)
    if status == "kicked":
        raise forbidden(f"bot was kicked from the {chat.kind} chat")
    if status not in PRESENT:
        raise forbidden(f"bot is not a member of the {chat.kind} chat") if status else bad_request("chat not found")
    return chat


def open_chat(world: World, bot: BotAccount, parameters: Parameters) -> Chat:
    """A chat the bot may write in; Refused with 403 when the person has not begun, has blocked it, or left."""
    chat = chat_for(world, parameters)
    if chat.kind != "private":
        return known_chat(world, bot, parameters)
    person = world.person(chat.id)
    if person.deactivated:
        raise forbidden("user is deactivated")
    if person.is_bot:
        raise forbidden("bot can't send messages to bots")
    if bot.id in person.blocks:
        raise forbidden("bot was blocked by the user")
    if bot.id not in person.talks_to:
        raise forbidden("bot can't initiate conversation with a user")
    return chat


def thread_for(chat: Chat, thread_id: int | None) -> int | None:
    """The topic to send to; Refused for a chat without topics and an unknown or closed one. General has no id here."""
    if thread_id is None:
        return None
    topic = chat.topics.get(thread_id) if chat.forum else None
    if topic is None:
        raise bad_request("message thread not found")
    if topic.closed:
        raise bad_request("TOPIC_CLOSED")
    return thread_id


def own_message(bot: BotAccount, chat: Chat, message_id: int, missing: str) -> StoredMessage:
    """A message this bot sent; Refused with `missing` when it is not there, or because it is somebody else's."""
    message = chat.standing(message_id)
    if message is None or (chat.kind == "private" and message.bot_id != bot.id):
        raise bad_request(missing)
    if message.sender["id"] != bot.id:
        raise bad_request("message can't be edited")
    return message

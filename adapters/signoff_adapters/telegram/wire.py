"""What Telegram delivers, reduced to the fields that are used, and how it is read as taps and messages.

Updates are read here and not by the SDK: it parses a batch as a whole, so one update in a shape it does not know would
fail every poll from then on.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from signoff.model import Destination, Message, Person, Tap

PLATFORM = "telegram"
ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
"""The server keeps the last list it was given, so it is sent with every poll and webhook."""
_FAR_S = 32_503_680_000
"""The year 3000."""
_ADDRESSED = re.compile(r"(/[A-Za-z0-9_]+)@([A-Za-z0-9_]+)")


class User(Struct, frozen=True):
    """An account; only the id identifies it."""

    id: int
    first_name: str = ""
    last_name: str | None = None
    username: str | None = None
    is_bot: bool = False


class Chat(Struct, frozen=True):
    """A private chat (its id is the person's, above 0), a group or a supergroup (below 0)."""

    id: int
    type: str = ""


class Entity(Struct, frozen=True):
    """A marked run of a text; offset and length in UTF-16 units."""

    type: str
    offset: int
    length: int
    user: User | None = None


class Incoming(Struct, frozen=True):
    """A message. One too old to be shown has only chat, id and date 0."""

    message_id: int
    chat: Chat
    date: int = 0
    from_: User | None = field(default=None, name="from")
    sender_chat: Chat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    reply_to_message: Incoming | None = None
    text: str | None = None
    entities: tuple[Entity, ...] = ()
    forward_origin: Any = None
    via_bot: User | None = None
    migrate_to_chat_id: int | None = None
    migrate_from_chat_id: int | None = None


class Query(Struct, frozen=True):
    """A press of a button."""

    id: str
    from_: User = field(name="from")
    message: Incoming | None = None
    data: str | None = None


class Member(Struct, frozen=True):
    """What somebody is in a chat; `is_member` is said of the restricted alone."""

    status: str = ""
    is_member: bool = True


class Membership(Struct, frozen=True):
    """A change of what the bot is in a chat; in a private one a person has blocked it, or no longer does."""

    chat: Chat
    new_chat_member: Member = Member()


class Update(Struct, frozen=True):
    """One thing that happened; at most one of the fields beside the id is there."""

    update_id: int
    message: Incoming | None = None
    edited_message: Incoming | None = None
    callback_query: Query | None = None
    my_chat_member: Membership | None = None


class _Chatted(Struct, frozen=True):
    chat: Chat | None = None


class _Pressed(Struct, frozen=True):
    message: _Chatted | None = None


class Envelope(Struct, frozen=True):
    """As little of an update as is needed to keep order: its id and its chat."""

    update_id: int
    message: _Chatted | None = None
    edited_message: _Chatted | None = None
    callback_query: _Pressed | None = None
    my_chat_member: _Chatted | None = None

    @property
    def lane(self) -> int:
        """The chat whose updates are handled one after another; 0 for those without a chat."""
        pressed = self.callback_query.message if self.callback_query else None
        about = self.message or self.edited_message or pressed or self.my_chat_member
        return about.chat.id if about is not None and about.chat is not None else 0


class _Identified(Struct, frozen=True):
    update_id: int


class Batch(Struct, frozen=True):
    """The answer to a poll."""

    result: tuple[msgspec.Raw, ...]


class Me(Struct, frozen=True):
    """The bot itself."""

    id: int
    username: str


def read_envelope(raw: bytes | msgspec.Raw) -> Envelope:
    """The id and chat of an update. Raises `msgspec.DecodeError` when not even an id can be read."""
    try:
        return msgspec.json.decode(raw, type=Envelope)
    except msgspec.ValidationError:
        return Envelope(update_id=msgspec.json.decode(raw, type=_Identified).update_id)


def tap_of(query: Query) -> Tap | None:
    """The press as a tap; None for presses that cannot come from a button of ours."""
    if query.data is None or query.message is None:
        return None
    return Tap(
        destination=_place(query.message),
        message_id=str(query.message.message_id),
        person=_person(query.from_),
        token=query.data,
        tap_id=query.id,
        order=query.message.message_id,
    )


def message_of(incoming: Incoming, me: Me, *, edited: bool = False) -> Message | None:
    """The message as typed to us, without our name in it; None when it has no text or is meant for another bot."""
    if incoming.text is None:
        return None
    sender, text, named = incoming.from_, incoming.text, False
    command = _ADDRESSED.match(text)
    if command is not None:
        if command[2].lower() != me.username.lower():
            return None
        text, named = command[1] + text[command.end() :], True
    mention = re.match(rf"@{re.escape(me.username)}\b[\s,:]*", text, re.IGNORECASE)
    if mention is not None:
        text, named = text[mention.end() :], True
    replied = _replied(incoming)
    to_us = replied is not None and replied.from_ is not None and replied.from_.id == me.id
    return Message(
        destination=_place(incoming),
        message_id=str(incoming.message_id),
        order=incoming.message_id,
        person=_person(sender or User(id=incoming.sender_chat.id if incoming.sender_chat else incoming.chat.id)),
        text=text,
        reply_to=str(replied.message_id) if replied is not None else None,
        direct=incoming.chat.type == "private",
        addressed=named or to_us or _mentions(incoming, me),
        unattributable=edited
        or sender is None
        or sender.is_bot
        or any(part is not None for part in (incoming.sender_chat, incoming.forward_origin, incoming.via_bot)),
        at=_written(incoming.date),
    )


def _written(date: int) -> datetime | None:
    """The end of the second that it tells, in seconds since 1970; None for one that is none."""
    return datetime.fromtimestamp(date + 1, UTC) if 0 < date < _FAR_S else None


def move_of(incoming: Incoming) -> tuple[str, str] | None:
    """Old and new chat id when this is the notice that a group became a supergroup; both chats get one."""
    if incoming.migrate_to_chat_id is not None:
        return str(incoming.chat.id), str(incoming.migrate_to_chat_id)
    if incoming.migrate_from_chat_id is not None:
        return str(incoming.migrate_from_chat_id), str(incoming.chat.id)
    return None


def left_of(change: Membership) -> tuple[Destination, str] | None:
    """The chat that we can be answered in no more, and why; None where we still can."""
    member = change.new_chat_member
    if member.status not in ("left", "kicked") and member.is_member:
        return None
    why = "the person blocked the bot" if change.chat.type == "private" else "the bot was removed from the chat"
    return Destination(PLATFORM, str(change.chat.id)), why


def _place(message: Incoming) -> Destination:
    """A thread id counts only in topics: in other groups it names a chain of replies."""
    thread = message.message_thread_id if message.is_topic_message else None
    return Destination(PLATFORM, str(message.chat.id), str(thread) if thread is not None else None)


def _person(user: User) -> Person:
    name = f"{user.first_name} {user.last_name or ''}".strip() or user.username
    return Person(platform=PLATFORM, user_id=str(user.id), name=name)


def _replied(message: Incoming) -> Incoming | None:
    """The message replied to. In a topic every plain message carries the topic's first one as if it were a reply."""
    replied = message.reply_to_message
    if replied is None or (message.is_topic_message and replied.message_id == message.message_thread_id):
        return None
    return replied


def _mentions(message: Incoming, me: Me) -> bool:
    units = (message.text or "").encode("utf-16-le", "surrogatepass")
    for entity in message.entities:
        marked = units[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le", "replace")
        if entity.type == "mention" and marked.lower() == f"@{me.username.lower()}":
            return True
        if entity.type == "text_mention" and entity.user is not None and entity.user.id == me.id:
            return True
    return False

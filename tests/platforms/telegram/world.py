"""The state of the place: people, chats, topics, messages and bots, without any rule about requests."""

from __future__ import annotations

import mimetypes
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from .changes import Changes
from .clock import ServerClock, moment
from .limits import RateLimiter, RateLimits
from .model import JsonObject, MemberStatus, SeenDocument, SeenMessage
from .rules import buttons_of, links_in
from .updates import UpdateQueue

KEPT_MESSAGES = 2000
"""Messages kept in one chat; older ones are forgotten."""
KEPT_FILES_BYTES = 64 * 1024 * 1024
"""Bytes of documents kept over all chats; the oldest contents are forgotten first."""
PRESENT = frozenset({"creator", "administrator", "member", "restricted"})


@dataclass(kw_only=True)
class Person:
    """A Telegram account; `talks_to` and `blocks` hold bot ids; `talks_to_all` adds later bots."""

    id: int
    first_name: str
    last_name: str | None = None
    username: str | None = None
    is_bot: bool = False
    talks_to: set[int] = field(default_factory=set)
    talks_to_all: bool = False
    blocks: set[int] = field(default_factory=set)
    deactivated: bool = False

    def json(self) -> JsonObject:
        """The `User` object."""
        user: JsonObject = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        if self.last_name:
            user["last_name"] = self.last_name
        if self.username:
            user["username"] = self.username
        return user


@dataclass(kw_only=True)
class Topic:
    """A forum topic; its id is the id of the service message that made it."""

    thread_id: int
    name: str
    made_at: float
    closed: bool = False


@dataclass(kw_only=True)
class StoredFile:
    """A document's bytes, as long as they are kept."""

    file_id: str
    file_name: str
    content: bytes
    size_bytes: int

    def json(self) -> JsonObject:
        """The `Document` object."""
        return {
            "file_id": self.file_id,
            "file_unique_id": f"u{self.file_id}",
            "file_name": self.file_name,
            "mime_type": mimetypes.guess_type(self.file_name)[0] or "application/octet-stream",
            "file_size": self.size_bytes,
        }


@dataclass(kw_only=True)
class StoredMessage:
    """One message; `bot_id` names the bot of a private dialogue, or the bot that sent it."""

    message_id: int
    chat_id: int
    sender: JsonObject
    sent_at: float
    text: str = ""
    bot_id: int | None = None
    sender_chat: JsonObject | None = None
    entities: list[JsonObject] = field(default_factory=list)
    keyboard: JsonObject | None = None
    other_markup: JsonObject | None = None
    reply_to: int | None = None
    thread_id: int | None = None
    document: StoredFile | None = None
    deleted: bool = False
    edits: int = 0
    edited_at: float | None = None
    silent: bool = False
    extra: JsonObject = field(default_factory=dict)

    def seen(self) -> SeenMessage:
        """What a person sees of it."""
        document = None
        if self.document is not None:
            document = SeenDocument(
                file_name=self.document.file_name,
                file_id=self.document.file_id,
                size_bytes=self.document.size_bytes,
                content=self.document.content,
            )
        markup = self.other_markup or {}
        return SeenMessage(
            message_id=self.message_id,
            chat_id=self.chat_id,
            from_id=self.sender["id"],
            from_bot=self.sender["is_bot"],
            text=self.text,
            sent_at=moment(self.sent_at),
            bot_id=self.bot_id,
            entities=self.entities,
            buttons=buttons_of(self.keyboard),
            links=links_in(self.text, self.entities),
            reply_to=self.reply_to,
            thread_id=self.thread_id,
            document=document,
            deleted=self.deleted,
            edits=self.edits,
            edited_at=None if self.edited_at is None else moment(self.edited_at),
            silent=self.silent,
            force_reply=bool(markup.get("force_reply")),
            placeholder=markup.get("input_field_placeholder"),
            service=next(iter(self.extra), None) if not self.text and document is None else None,
        )


@dataclass(kw_only=True)
class Chat:
    """A private chat (its id is the person's), group or supergroup; `migrated_to` is set once a group was upgraded."""

    id: int
    kind: str
    title: str = ""
    forum: bool = False
    members: dict[int, MemberStatus] = field(default_factory=dict)
    topics: dict[int, Topic] = field(default_factory=dict)
    messages: OrderedDict[int, StoredMessage] = field(default_factory=OrderedDict)
    next_message_id: int = 1
    migrated_to: int | None = None
    gone: bool = False

    @property
    def is_group(self) -> bool:
        """Whether the group budgets apply."""
        return self.kind != "private"

    def take_message_id(self) -> int:
        """The next free message id."""
        taken = self.next_message_id
        self.next_message_id += 1
        return taken

    def keep(self, message: StoredMessage) -> None:
        """Add a message; the oldest leaves a full chat."""
        self.messages[message.message_id] = message
        if len(self.messages) > KEPT_MESSAGES:
            self.messages.popitem(last=False)

    def standing(self, message_id: int | None) -> StoredMessage | None:
        """The message unless it is unknown or deleted."""
        message = None if message_id is None else self.messages.get(message_id)
        return None if message is None or message.deleted else message


@dataclass(kw_only=True)
class BotAccount:
    """A bot: its token, what waits for it, and how it wants updates."""

    id: int
    token: str
    person: Person
    updates: UpdateQueue
    limiter: RateLimiter
    privacy_mode: bool = True
    commands: dict[str, list[JsonObject]] = field(default_factory=dict)


class World:
    """All of it, with the few ways to find things."""

    def __init__(self, clock: ServerClock, limits: RateLimits, changes: Changes) -> None:
        self.clock = clock
        self.changes = changes
        self.limits = limits
        self.people: dict[int, Person] = {}
        self.chats: dict[int, Chat] = {}
        self.bots: dict[str, BotAccount] = {}
        self.files: OrderedDict[str, StoredFile] = OrderedDict()
        self._file_bytes = 0
        self._files_made = 0

    def add_bot(self, token: str, person: Person, *, privacy_mode: bool) -> BotAccount:
        """A bot under this token; ValueError for a malformed or taken one."""
        number, separator, secret = token.partition(":")
        if not (number.isascii() and number.isdigit() and separator and secret):
            raise ValueError("a bot token is <digits>:<secret>")
        if token in self.bots or person.id in self.people:
            raise ValueError(f"bot {person.id} exists already")
        bot = BotAccount(
            id=person.id,
            token=token,
            person=person,
            updates=UpdateQueue(self.clock, self.changes),
            limiter=RateLimiter(self.clock, self.limits),
            privacy_mode=privacy_mode,
        )
        self.bots[token] = bot
        self.people[person.id] = person
        return bot

    def bot(self, bot_id: int | None) -> BotAccount:
        """The bot with this id, or the first one; LookupError when there is none."""
        for each in self.bots.values():
            if bot_id in (None, each.id):
                return each
        raise LookupError(f"no bot {bot_id}")

    def person(self, user_id: int) -> Person:
        """The account; LookupError when nobody has this id."""
        if user_id not in self.people:
            raise LookupError(f"no user {user_id}")
        return self.people[user_id]

    def chat(self, chat_id: int) -> Chat:
        """The chat; LookupError when there is none."""
        if chat_id not in self.chats:
            raise LookupError(f"no chat {chat_id}")
        return self.chats[chat_id]

    def message(self, chat_id: int, message_id: int) -> StoredMessage:
        """A message that is still there; LookupError otherwise."""
        message = self.chat(chat_id).standing(message_id)
        if message is None:
            raise LookupError(f"no message {message_id} in chat {chat_id}")
        return message

    def bots_in(self, chat: Chat) -> Iterator[BotAccount]:
        """The bots that are members of a group."""
        return (bot for bot in self.bots.values() if chat.members.get(bot.id) in PRESENT)

    def store_file(self, file_name: str, content: bytes) -> StoredFile:
        """Keep a document; the oldest contents are forgotten beyond the limit."""
        self._files_made += 1
        stored = StoredFile(
            file_id=f"doc{self._files_made}", file_name=file_name, content=content, size_bytes=len(content)
        )
        self.files[stored.file_id] = stored
        self._file_bytes += len(content)
        while self._file_bytes > KEPT_FILES_BYTES and len(self.files) > 1:
            _, oldest = self.files.popitem(last=False)
            self._file_bytes -= len(oldest.content)
            oldest.content = b""
        return stored

    def chat_json(self, chat: Chat) -> JsonObject:
        """The `Chat` object."""
        if chat.kind == "private":
            person = self.person(chat.id)
            return {"id": chat.id, "type": "private"} | {
                name: value for name, value in person.json().items() if name not in ("id", "is_bot")
            }
        shown: JsonObject = {"id": chat.id, "type": chat.kind, "title": chat.title}
        if chat.forum:
            shown["is_forum"] = True
        return shown

    def message_json(self, message: StoredMessage, *, nested: bool = False) -> JsonObject:
        """The `Message` object; a message replied to (`nested`) does not show what it replied to itself."""
        chat = self.chats[message.chat_id]
        shown: JsonObject = {
            "message_id": message.message_id,
            "date": int(message.sent_at),
            "chat": self.chat_json(chat),
            "from": message.sender,
        }
        if message.sender_chat is not None:
            shown["sender_chat"] = message.sender_chat
        if message.thread_id is not None:
            shown |= {"message_thread_id": message.thread_id, "is_topic_message": True}
        if message.edited_at is not None:
            shown["edit_date"] = int(message.edited_at)
        if message.keyboard is not None:
            shown["reply_markup"] = message.keyboard
        shown |= _content_json(message)
        replied = None if nested else self._replied_json(chat, message)
        if replied is not None:
            shown["reply_to_message"] = replied
        return shown | message.extra

    def _replied_json(self, chat: Chat, message: StoredMessage) -> JsonObject | None:
        """What it replies to; in a topic every other message replies to the one that made the topic."""
        target = chat.messages.get(message.reply_to or 0)
        if target is not None:
            return self.message_json(target, nested=True)
        topic = chat.topics.get(message.thread_id or 0)
        if topic is None:
            return None
        return {
            "message_id": topic.thread_id,
            "date": int(topic.made_at),
            "chat": self.chat_json(chat),
            "message_thread_id": topic.thread_id,
            "is_topic_message": True,
            "forum_topic_created": {"name": topic.name, "icon_color": 7322096},
        }


def _content_json(message: StoredMessage) -> JsonObject:
    """Text or document with caption, and the formatting."""
    text_name, entities_name = ("text", "entities") if message.document is None else ("caption", "caption_entities")
    content: JsonObject = {} if message.document is None else {"document": message.document.json()}
    if message.text:
        content[text_name] = message.text
    if message.entities:
        content[entities_name] = message.entities
    return content

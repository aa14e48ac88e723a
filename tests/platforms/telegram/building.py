"""Making and changing the place: bots, people, groups, topics, memberships. Names are those of `TelegramPlatform`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .account import status_json
from .changes import Changes
from .model import GENERAL_TOPIC, JsonObject, MemberStatus
from .world import BotAccount, Chat, Person, StoredMessage, Topic, World

ANONYMOUS_ADMIN: JsonObject = {
    "id": 1087968824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}
"""The account under which anonymous administrators write; it is the same in every group."""
SUPERGROUP_BASE = 1_000_000_000_000
"""Supergroup ids begin with -100, followed by the group's own digits."""


class Building:
    """Each method is one change that the bots concerned learn of as on Telegram."""

    def __init__(self, world: World, changes: Changes, *, on_bot: Callable[[BotAccount], None]) -> None:
        self._world = world
        self._changes = changes
        self._on_bot = on_bot

    def add_bot(self, token: str, username: str, first_name: str = "Signoff", privacy_mode: bool = True) -> int:
        """A bot; its id is the number before the colon of its token."""
        digits = token.partition(":")[0]
        if not (digits.isascii() and digits.isdigit()):
            raise ValueError("a bot token is <digits>:<secret>")
        person = Person(id=int(digits), first_name=first_name, username=username, is_bot=True)
        bot = self._world.add_bot(token, person, privacy_mode=privacy_mode)
        for each in self._world.people.values():
            if each.talks_to_all:
                each.talks_to.add(bot.id)
        self._on_bot(bot)
        self._changes.bump()
        return bot.id

    def add_user(
        self,
        *,
        user_id: int,
        first_name: str,
        last_name: str | None = None,
        username: str | None = None,
        started: bool = True,
        is_bot: bool = False,
    ) -> int:
        """A person, with a private chat of the same id; `started` means having begun a chat with every bot."""
        if user_id in self._world.people or user_id in self._world.chats:
            raise ValueError(f"user {user_id} exists already")
        person = Person(
            id=user_id,
            first_name=first_name,
            last_name=last_name,
            username=username,
            is_bot=is_bot,
            talks_to={bot.id for bot in self._world.bots.values()} if started else set(),
            talks_to_all=started,
        )
        self._world.people[user_id] = person
        self._world.chats[user_id] = Chat(id=user_id, kind="private")
        self._changes.bump()
        return user_id

    def rename_user(self, user_id: int, first_name: str, username: str | None = None) -> None:
        """Change the names; the id is what stays."""
        person = self._world.person(user_id)
        person.first_name, person.username = first_name, username
        self._changes.bump()

    def block_bot(self, user_id: int, blocked: bool = True, bot_id: int | None = None) -> None:
        """Block the bot or let it in again."""
        blocks = self._world.person(user_id).blocks
        bot = self._world.bot(bot_id)
        if blocked:
            blocks.add(bot.id)
        else:
            blocks.discard(bot.id)
        self._changes.bump()

    def deactivate_user(self, user_id: int) -> None:
        """The account is deleted."""
        self._world.person(user_id).deactivated = True
        self._changes.bump()

    def add_group(
        self,
        *,
        chat_id: int,
        title: str,
        members: Sequence[int] = (),
        admins: Sequence[int] = (),
        supergroup: bool = False,
        forum: bool = False,
        bots: Sequence[int] | None = None,
    ) -> int:
        """A group (or supergroup, or forum) with these people; `bots` are all unless given."""
        if chat_id >= 0 or chat_id in self._world.chats:
            raise ValueError("a group id is negative and new")
        chat = Chat(id=chat_id, kind="supergroup" if supergroup or forum else "group", title=title, forum=forum)
        chat.members = {self._world.person(each).id: "member" for each in members}
        chat.members |= {self._world.person(each).id: "administrator" for each in admins}
        for bot_id in [bot.id for bot in self._world.bots.values()] if bots is None else bots:
            chat.members.setdefault(self._world.bot(bot_id).id, "member")
        chat.next_message_id = GENERAL_TOPIC + 1
        self._world.chats[chat_id] = chat
        self._changes.bump()
        return chat_id

    def add_topic(self, chat_id: int, name: str, thread_id: int | None = None) -> int:
        """A forum topic; its id, which is a message id of the chat."""
        chat = self._forum(chat_id)
        taken = chat.take_message_id() if thread_id is None else thread_id
        if taken == GENERAL_TOPIC or taken in chat.topics or taken in chat.messages:
            raise ValueError(f"topic id {taken} is taken")
        chat.next_message_id = max(chat.next_message_id, taken + 1)
        chat.topics[taken] = Topic(thread_id=taken, name=name, made_at=self._world.clock.now())
        self._changes.bump()
        return taken

    def close_topic(self, chat_id: int, thread_id: int, closed: bool = True) -> None:
        """Close or reopen a topic; LookupError when there is none."""
        self._forum(chat_id).topics[thread_id].closed = closed
        self._changes.bump()

    def delete_topic(self, chat_id: int, thread_id: int) -> None:
        """Delete a topic with its messages; LookupError when there is none."""
        chat = self._forum(chat_id)
        del chat.topics[thread_id]
        for message in chat.messages.values():
            if message.thread_id == thread_id:
                message.deleted = True
        self._changes.bump()

    def _forum(self, chat_id: int) -> Chat:
        chat = self._world.chat(chat_id)
        if not chat.forum:
            raise ValueError(f"chat {chat_id} has no topics")
        return chat

    def set_member(self, chat_id: int, user_id: int, status: MemberStatus) -> None:
        """Let a person or bot join, leave, be removed or be promoted.

        A bot learns of its own change by `my_chat_member`, of others' by `chat_member` when it asked for these.
        """
        chat, person = self._world.chat(chat_id), self._world.person(user_id)
        if not chat.is_group:
            raise ValueError("a private chat has no members to change")
        old: MemberStatus = chat.members.get(user_id, "left")
        hearers = list(self._world.bots_in(chat))
        chat.members[user_id] = status
        change = {
            "chat": self._world.chat_json(chat),
            "from": ANONYMOUS_ADMIN,
            "date": int(self._world.clock.now()),
            "old_chat_member": status_json(self._world, user_id, old),
            "new_chat_member": status_json(self._world, user_id, status),
        }
        own = [bot for bot in self._world.bots.values() if bot.id == person.id]
        for bot in own:
            bot.updates.add("my_chat_member", change)
        for bot in hearers:
            if bot not in own and chat.members.get(bot.id) == "administrator":
                bot.updates.add("chat_member", change)
        self._changes.bump()

    def remove_chat(self, chat_id: int) -> None:
        """The chat is gone; the Bot API knows it no more."""
        self._world.chat(chat_id).gone = True
        self._changes.bump()

    def migrate(self, chat_id: int) -> int:
        """Upgrade a group to a supergroup; its new id. Messages stay behind in the old chat, out of reach."""
        old = self._world.chat(chat_id)
        if old.kind != "group" or old.migrated_to is not None:
            raise ValueError("only a group can be upgraded, and once")
        new = Chat(id=-(SUPERGROUP_BASE + abs(chat_id)), kind="supergroup", title=old.title, members=dict(old.members))
        self._world.chats[new.id] = new
        self._tell(old, {"migrate_to_chat_id": new.id})
        old.migrated_to = new.id
        self._tell(new, {"migrate_from_chat_id": old.id})
        self._changes.bump()
        return new.id

    def _tell(self, chat: Chat, extra: JsonObject) -> None:
        """A service message, which every bot in the group gets."""
        message = StoredMessage(
            message_id=chat.take_message_id(),
            chat_id=chat.id,
            sender=ANONYMOUS_ADMIN,
            sender_chat=self._world.chat_json(chat),
            sent_at=self._world.clock.now(),
            extra=extra,
        )
        chat.keep(message)
        for bot in self._world.bots_in(chat):
            bot.updates.add("message", self._world.message_json(message))

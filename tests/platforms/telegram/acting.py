"""What people do: write and press; and what they see. Names are those of `TelegramPlatform`."""

from __future__ import annotations

from .building import ANONYMOUS_ADMIN
from .changes import Changes
from .drawing import draw
from .model import GENERAL_TOPIC, JsonObject, PressState, SeenMessage
from .presses import Press, PressBook
from .rules import command_entities
from .world import PRESENT, BotAccount, Chat, StoredMessage, World


class Acting:
    """Each method is one act of a person (or of the network, for repeated updates) and queues what bots get of it."""

    def __init__(self, world: World, presses: PressBook, changes: Changes) -> None:
        self._world = world
        self._presses = presses
        self._changes = changes
        self._next_query = 4_400_000_001

    def messages(self, chat_id: int, thread_id: int | None = None, bot_id: int | None = None) -> list[SeenMessage]:
        """The chat's messages in the order they were sent, deleted ones too; of one topic (1 is General) or all."""
        return [
            message.seen()
            for message in self._world.chat(chat_id).messages.values()
            if (thread_id is None or (message.thread_id or GENERAL_TOPIC) == thread_id)
            and bot_id in (None, message.bot_id)
        ]

    def render_text(self, chat_id: int, thread_id: int | None = None) -> str:
        """The chat as plain text, with the buttons drawn."""
        names = {person.id: person.first_name for person in self._world.people.values()}
        chat = self._world.chat(chat_id)
        title = chat.title or names.get(chat_id, str(chat_id))
        topics = {topic.thread_id: topic.name for topic in chat.topics.values()}
        return draw(title, self.messages(chat_id, thread_id), names, topics)

    def say(
        self,
        *,
        user_id: int,
        chat_id: int,
        text: str,
        reply_to: int | None = None,
        thread_id: int | None = None,
        forward: bool = False,
        edited: bool = False,
        anonymous: bool = False,
        via_bot: int | None = None,
        is_bot: bool = False,
        bot_id: int | None = None,
    ) -> int:
        """Write a message; its id. In a private chat it goes to one bot (`bot_id`, else the first) and begins the chat.

        `edited` makes it arrive as an edit of something the bot never saw; `anonymous` as from an administrator who
        hides; `via_bot` as made by that inline bot; `is_bot` as from a bot account; `forward` as forwarded.
        """
        chat = self._world.chat(chat_id)
        bots = self._hearers(chat, user_id, bot_id)
        sender = self._world.person(user_id).json() | ({"is_bot": True} if is_bot else {})
        now = self._world.clock.now()
        replied = chat.standing(reply_to)
        extra: JsonObject = {}
        if forward:
            extra["forward_origin"] = {"type": "user", "date": int(now), "sender_user": sender}
        if via_bot is not None:
            extra["via_bot"] = self._world.person(via_bot).json()
        message = StoredMessage(
            message_id=chat.take_message_id(),
            chat_id=chat.id,
            sender=ANONYMOUS_ADMIN if anonymous else sender,
            sender_chat=self._world.chat_json(chat) if anonymous else None,
            sent_at=now,
            text=text,
            bot_id=bots[0].id if chat.kind == "private" else None,
            entities=command_entities(text),
            reply_to=reply_to,
            thread_id=self._thread(chat, thread_id, replied),
            edits=1 if edited else 0,
            edited_at=now if edited else None,
            extra=extra,
        )
        chat.keep(message)
        self._spread(chat, message, bots)
        return message.message_id

    def edit_said(self, user_id: int, chat_id: int, message_id: int, text: str) -> None:
        """Change what one wrote; LookupError when it is not there or somebody else's."""
        message = self._world.message(chat_id, message_id)
        if message.sender["id"] != user_id:
            raise LookupError(f"message {message_id} is not by {user_id}")
        message.text, message.entities = text, command_entities(text)
        message.edits += 1
        message.edited_at = self._world.clock.now()
        chat = self._world.chat(chat_id)
        self._spread(chat, message, self._hearers(chat, user_id, message.bot_id))

    def _thread(self, chat: Chat, thread_id: int | None, replied: StoredMessage | None) -> int | None:
        """The topic a person's message goes to; General has no id in messages."""
        if thread_id is None:
            return None if replied is None else replied.thread_id
        if thread_id == GENERAL_TOPIC:
            return None
        if thread_id not in chat.topics:
            raise LookupError(f"no topic {thread_id} in chat {chat.id}")
        return thread_id

    def _hearers(self, chat: Chat, user_id: int, bot_id: int | None) -> list[BotAccount]:
        """The bots a message may reach; writing to a bot begins the chat and ends a block."""
        if chat.kind == "private":
            if user_id != chat.id:
                raise LookupError(f"user {user_id} has no part in private chat {chat.id}")
            bot, person = self._world.bot(bot_id), self._world.person(user_id)
            person.talks_to.add(bot.id)
            person.blocks.discard(bot.id)
            return [bot]
        if chat.members.get(user_id) not in PRESENT:
            raise LookupError(f"user {user_id} is not in chat {chat.id}")
        return list(self._world.bots_in(chat))

    def _spread(self, chat: Chat, message: StoredMessage, bots: list[BotAccount]) -> None:
        kind = "message" if message.edited_at is None else "edited_message"
        for bot in bots:
            if chat.kind == "private" or _hears(bot, chat, message):
                bot.updates.add(kind, self._world.message_json(message))
        self._changes.bump()

    def press(self, user_id: int, chat_id: int, message_id: int, button: str, inaccessible: bool = False) -> str:
        """Press a button that is under the message now, by callback data or label; the query's id.

        `inaccessible` sends the message as one too old to be shown: chat, id and date 0 only. LookupError when there
        is no such message or button, or the button opens an address instead.
        """
        if chat_id > 0 and chat_id != user_id:
            raise LookupError(f"user {user_id} has no part in private chat {chat_id}")
        message = self._world.message(chat_id, message_id)
        seen = message.seen().button(button)
        if seen.callback_data is None or message.bot_id is None:
            raise LookupError(f"button {button!r} sends nothing to a bot")
        bot = self._world.bot(message.bot_id)
        return self._press(user_id, self._about(chat_id, message_id, inaccessible), seen.callback_data, bot)

    def press_forged(
        self,
        *,
        user_id: int,
        chat_id: int,
        message_id: int,
        data: str,
        bot_id: int | None = None,
        inaccessible: bool = False,
    ) -> str:
        """A press with data of one's own making, or of a keyboard that is gone; the query's id."""
        message = self._world.chat(chat_id).messages.get(message_id)
        chosen = bot_id if message is None or message.bot_id is None else message.bot_id
        bot = self._world.bot(chosen)
        return self._press(user_id, self._about(chat_id, message_id, inaccessible), data, bot)

    def _about(self, chat_id: int, message_id: int, inaccessible: bool) -> JsonObject:
        """The pressed message as the bot gets it: whole, or only where it was."""
        chat = self._world.chat(chat_id)
        message = chat.standing(message_id)
        if message is None or inaccessible:
            return {"chat": self._world.chat_json(chat), "message_id": message_id, "date": 0}
        return self._world.message_json(message)

    def _press(self, user_id: int, about: JsonObject, data: str, bot: BotAccount) -> str:
        query_id = str(self._next_query)
        self._next_query += 1
        chat_id = about["chat"]["id"]
        content: JsonObject = {
            "id": query_id,
            "from": self._world.person(user_id).json(),
            "message": about,
            "chat_instance": f"{abs(chat_id)}7",
            "data": data,
        }
        press = Press(
            query_id=query_id,
            bot_id=bot.id,
            user_id=user_id,
            chat_id=chat_id,
            message_id=about["message_id"],
            data=data,
            pressed_at=self._world.clock.now(),
            content=content,
        )
        self._presses.add(press)
        press.update_id = bot.updates.add("callback_query", content) or 0
        self._changes.bump()
        return query_id

    def press_state(self, query_id: str) -> PressState:
        """The press and its answer so far; LookupError for an unknown id."""
        return self._presses.state(query_id)

    def duplicate_press(self, query_id: str) -> int:
        """The same press in a second update: same query id, new update id, which is returned (0: not wanted)."""
        press = self._presses.get(query_id)
        return self._world.bot(press.bot_id).updates.add("callback_query", press.content) or 0

    def redeliver(self, update_id: int, bot_id: int | None = None) -> None:
        """The same update once more, confirmed or not; LookupError for an unknown id."""
        self._world.bot(bot_id).updates.again(update_id)

    def raw_update(self, update: JsonObject, bot_id: int | None = None) -> int:
        """Queue any object as an update; its id, which is the next one unless it brings its own."""
        return self._world.bot(bot_id).updates.put(update)

    def updates(self, bot_id: int | None = None) -> list[JsonObject]:
        """The bot's latest updates, confirmed or not, oldest first."""
        return self._world.bot(bot_id).updates.recent()

    def pending_count(self, bot_id: int | None = None) -> int:
        """How many updates the bot has not confirmed."""
        return len(self._world.bot(bot_id).updates.pending())

    def commands(self, bot_id: int | None = None) -> dict[str, list[JsonObject]]:
        """The command menus set, by scope."""
        return dict(self._world.bot(bot_id).commands)


def _hears(bot: BotAccount, chat: Chat, message: StoredMessage) -> bool:
    """Privacy mode: in groups a bot gets commands not meant for another bot, and replies to its own messages."""
    if message.sender["id"] == bot.id:
        return False
    if not bot.privacy_mode or chat.members.get(bot.id) == "administrator":
        return True
    replied = chat.messages.get(message.reply_to or 0)
    if replied is not None and replied.sender["id"] == bot.id:
        return True
    command = message.text.split(maxsplit=1)[0] if message.text.startswith("/") else ""
    addressed = command.partition("@")[2]
    return bool(command) and addressed.lower() in ("", (bot.person.username or "").lower())

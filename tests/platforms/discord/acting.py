"""What people do: write, press, use commands; and what they see. Names are those of `DiscordPlatform`."""

from __future__ import annotations

import asyncio
from typing import Any

from .callbacks import modal_fields
from .commands import command_data
from .hooks import HookSender
from .interactions import ACKNOWLEDGE_WITHIN_S, Interaction, InteractionBook, Kind
from .markdown import pings_in
from .messaging import Messenger
from .model import Answer, JsonObject, PressState, SeenMessage
from .sessions import SessionBook
from .shapes import seen, seen_buttons
from .world import BotAccount, Channel, StoredMessage, World


class Acting:
    """Each method is one act of a person (or of the network, for repeated deliveries)."""

    def __init__(
        self, world: World, book: InteractionBook, messenger: Messenger, sessions: SessionBook, hooks: HookSender
    ) -> None:
        self._world = world
        self._book = book
        self._messenger = messenger
        self._sessions = sessions
        self._hooks = hooks

    # Seeing

    def messages(self, channel_id: int, viewer: int | None = None) -> list[SeenMessage]:
        """A channel's messages in order, deleted ones too; ephemeral ones only for their viewer."""
        found = self._world.channel(channel_id).messages.values()
        return [seen(self._world, each) for each in found if each.viewer in (None, viewer)]

    def press_state(self, interaction_id: int) -> PressState:
        """An interaction as it stands."""
        return self._book.state(self._book.get(interaction_id))

    def answers(self, interaction_id: int) -> list[Answer]:
        """Everything a bot answered, refused attempts too."""
        return self._book.get(interaction_id).answers

    def pending_count(self, bot_id: int | None = None) -> int:
        """Interactions that may still be acknowledged and are not, and dispatches not sent yet."""
        bot = self._world.bot(bot_id)
        return len(self._book.unanswered(bot.id)) + self._sessions.waiting(bot.id)

    # Writing

    def say(
        self,
        *,
        user_id: int,
        channel_id: int,
        text: str,
        reply_to: int | None = None,
        mention_bot: bool = False,
        forward: bool = False,
        edited: bool = False,
        webhook: bool = False,
        bot_id: int | None = None,
    ) -> int:
        """Write a message; its id. `mention_bot` puts the bot's mention in front; `edited` makes it arrive as an edit.

        `forward` makes it a forwarded message, `webhook` one of a webhook that bears somebody's name.
        """
        channel = self._world.channel(channel_id)
        self._part(user_id, channel)
        content = f"<@{self._world.bot(bot_id).id}> {text}" if mention_bot else text
        message = StoredMessage(
            id=self._world.new_id(),
            channel_id=channel_id,
            author_id=user_id,
            sent_at=self._world.clock.now(),
            content=content,
            reply_to=reply_to,
            pings=self._pings(channel, content, reply_to),
            forwarded=forward,
            webhook=webhook,
            edits=1 if edited else 0,
            edited_at=self._world.clock.now() if edited else None,
        )
        self._messenger.wake(channel)
        channel.keep(message)
        self._messenger.spread_said(message)
        return message.id

    def _pings(self, channel: Channel, content: str, reply_to: int | None) -> list[str]:
        found = [who for who in pings_in(content, None) if who[5:].isdigit()]
        replied = channel.messages.get(reply_to or 0)
        if replied is not None:
            found.append(f"user:{replied.author_id}")
        return [
            who for who in dict.fromkeys(found) if not who.startswith("user:") or int(who[5:]) in self._world.people
        ]

    def edit_said(self, user_id: int, channel_id: int, message_id: int, text: str) -> None:
        """Change what one wrote; LookupError when it is somebody else's."""
        message = self._world.message(channel_id, message_id)
        if message.author_id != user_id:
            raise LookupError(f"message {message_id} is not by {user_id}")
        message.content = text
        message.edits += 1
        message.edited_at = self._world.clock.now()
        self._messenger.spread_said(message)

    def _part(self, user_id: int, channel: Channel) -> None:
        self._world.person(user_id)
        if not self._world.takes_part(user_id, channel):
            raise LookupError(f"user {user_id} is not in channel {channel.id}")

    # Interacting

    def press(self, user_id: int, channel_id: int, message_id: int, button: str) -> int:
        """Press a button that stands there now, by label or custom id; the interaction's id."""
        channel = self._world.channel(channel_id)
        self._part(user_id, channel)
        message = self._world.message(channel_id, message_id)
        if message.viewer not in (None, user_id):
            raise LookupError(f"message {message_id} is not shown to {user_id}")
        wanted = seen(self._world, message).button(button)
        if wanted.custom_id is None:
            raise LookupError(f"button {button!r} opens an address")
        return self._press(user_id, channel, message, wanted.custom_id)

    def press_ephemeral(self, interaction_id: int, button: str) -> int:
        """Press a button of the newest private message that came of an interaction, as the person it was shown to."""
        interaction = self._book.get(interaction_id)
        channel = self._world.channel(interaction.channel_id)
        shown = [
            each
            for each in channel.messages.values()
            if each.viewer == interaction.user_id and each.interaction_id == interaction_id and not each.deleted
        ]
        if not shown:
            raise LookupError(f"interaction {interaction_id} has no private answer with buttons")
        return self.press(interaction.user_id, channel.id, shown[-1].id, button)

    def press_forged(
        self, user_id: int, channel_id: int, message_id: int, custom_id: str, bot_id: int | None = None
    ) -> int:
        """A press of a button that is not there (any more): any custom id, on any message, even a gone one."""
        channel = self._world.channel(channel_id)
        message = channel.messages.get(message_id)
        if message is None:
            author = self._world.bot(bot_id).id
            message = StoredMessage(id=message_id, channel_id=channel_id, author_id=author, sent_at=0.0, deleted=True)
        return self._press(user_id, channel, message, custom_id, bot_id)

    def _press(
        self, user_id: int, channel: Channel, message: StoredMessage, custom_id: str, bot_id: int | None = None
    ) -> int:
        author = message.application_id or message.author_id
        bot = self._world.bot(author if author in self._world.bots else bot_id)
        number = next((each for each in seen_buttons(message.components) if each.custom_id == custom_id), None)
        place = 1 if number is None else 2 + number.row * 6 + number.column
        data = {"custom_id": custom_id, "component_type": 2, "id": place}
        return self._begin("component", bot, user_id, channel, data, message)

    def submit_modal(self, interaction_id: int, values: dict[str, str]) -> int:
        """Fill in the modal that an interaction opened and send it; the new interaction's id.

        ValueError for what a client would not send: a required field left empty, or a text too long or too short.
        """
        opened = self._book.get(interaction_id)
        if opened.modal is None:
            raise LookupError(f"interaction {interaction_id} opened no modal")
        unknown = set(values) - {part["custom_id"] for _, part in modal_fields(opened.modal)}
        if unknown:
            raise LookupError(f"no field {sorted(unknown)[0]!r}")
        filled = []
        for row, part in modal_fields(opened.modal):
            value = values.get(part["custom_id"], part.get("value") or "")
            _check_value(part, value)
            field = {"type": 4, "id": 2, "custom_id": part["custom_id"], "value": value}
            labelled = row.get("type") == 18
            filled.append({"type": 18, "id": 1, "component": field} if labelled else {"type": 1, "components": [field]})
        data = {"custom_id": opened.modal["custom_id"], "components": filled}
        channel, bot = self._world.channel(opened.channel_id), self._world.bot(opened.bot_id)
        return self._begin("modal", bot, opened.user_id, channel, data, opened.message)

    def slash(
        self,
        user_id: int,
        channel_id: int,
        command: str,
        options: dict[str, Any] | None = None,
        bot_id: int | None = None,
    ) -> int:
        """Use a registered command, with subcommands after spaces; the interaction's id."""
        return self._slash("command", user_id, channel_id, command, options or {}, bot_id)

    def autocomplete(
        self,
        user_id: int,
        channel_id: int,
        command: str,
        options: dict[str, Any],
        focused: str,
        bot_id: int | None = None,
    ) -> int:
        """Type into the option `focused` of a command, whose text so far is in `options`; the interaction's id."""
        return self._slash("autocomplete", user_id, channel_id, command, options, bot_id, focused)

    def _slash(
        self,
        kind: Kind,
        user_id: int,
        channel_id: int,
        command: str,
        options: dict[str, Any],
        bot_id: int | None,
        focused: str | None = None,
    ) -> int:
        channel, bot = self._world.channel(channel_id), self._world.bot(bot_id)
        self._part(user_id, channel)
        data = command_data(bot, channel.guild_id, command, options, focused)
        return self._begin(kind, bot, user_id, channel, data)

    def _begin(
        self,
        kind: Kind,
        bot: BotAccount,
        user_id: int,
        channel: Channel,
        data: JsonObject,
        message: StoredMessage | None = None,
    ) -> int:
        interaction = self._book.make(kind, bot, user_id, channel, data, message)
        self._deliver(bot, interaction)
        return interaction.id

    def redeliver(self, interaction_id: int) -> None:
        """The network delivers the same interaction once more."""
        interaction = self._book.get(interaction_id)
        self._deliver(self._world.bot(interaction.bot_id), interaction)

    def _deliver(self, bot: BotAccount, interaction: Interaction) -> None:
        if bot.interactions_url is not None:
            interaction.deliveries += 1
            self._hooks.deliver(bot, interaction)
        elif self._sessions.interaction(bot.id, interaction.payload):
            interaction.deliveries += 1
        self._world.changes.bump()
        asyncio.get_running_loop().call_later(ACKNOWLEDGE_WITHIN_S + 0.01, self._world.changes.bump)

    def payload(self, interaction_id: int) -> JsonObject:
        """The interaction as the bot gets it."""
        return self._book.get(interaction_id).payload


def _check_value(part: JsonObject, value: str) -> None:
    least, most = part.get("min_length") or 0, part.get("max_length") or 4000
    if not value and not part.get("required", True):
        return
    if not max(1 if part.get("required", True) else 0, least) <= len(value) <= most:
        raise ValueError(f"field {part['custom_id']!r} does not take {len(value)} characters")

"""The methods `chat.*`: who may write where, and what becomes of a message."""

from __future__ import annotations

from dataclasses import dataclass

from .blocks import checked_message_blocks
from .events import Events
from .looking import text_of
from .model import JsonObject
from .params import Parameters
from .places import Places
from .presses import PressBook
from .refusal import Refused
from .visible import buttons_of, with_ids
from .world import App, Channel, StoredMessage, World

TEXT_MAX = 40_000
"""Characters of `text` ("Truncating really long messages")."""
METADATA_MAX_BYTES = 16_384


@dataclass(kw_only=True)
class Content:
    """What a message says; `blocks` and `text` are none when they were not given."""

    text: str | None
    blocks: list[JsonObject] | None
    metadata: JsonObject | None = None

    @classmethod
    def read(cls, parameters: Parameters) -> Content:
        """Checked content of a request; Refused for what Slack refuses in it."""
        text = parameters.text("text") if parameters.has("text") else None
        if text is not None and len(text) > TEXT_MAX:
            raise Refused("msg_too_long")
        blocks = parameters.json("blocks", "invalid_blocks_format")
        metadata = parameters.json("metadata", "invalid_metadata_format")
        if metadata is not None:
            _check_metadata(metadata)
        checked = None if blocks is None else with_ids(checked_message_blocks(blocks))
        return cls(text=text, blocks=checked, metadata=metadata)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.text and not self.blocks


def _check_metadata(metadata: object) -> None:
    if not isinstance(metadata, dict) or not isinstance(metadata.get("event_type"), str):
        raise Refused("invalid_metadata_format")
    if not isinstance(metadata.get("event_payload"), dict):
        raise Refused("invalid_metadata_format")
    if len(str(metadata)) > METADATA_MAX_BYTES:
        raise Refused("metadata_too_large")


class Messaging:
    """Writes, edits and deletes messages on behalf of apps."""

    def __init__(self, world: World, places: Places, events: Events, presses: PressBook) -> None:
        self._world = world
        self._places = places
        self._events = events
        self._presses = presses

    def post_message(self, app: App, parameters: Parameters) -> JsonObject:
        """chat.postMessage."""
        channel = self._places.to_write(app, parameters.needed("channel", "channel_not_found"))
        content = Content.read(parameters)
        if content.empty:
            raise Refused("no_text")
        message = self._new(app, channel, content, parameters)
        message.broadcast = parameters.flag("reply_broadcast") and message.thread_ts is not None
        self.keep(message)
        return {"channel": channel.id, "ts": message.ts, "message": self._world.message_json(message)}

    def _new(self, app: App, channel: Channel, content: Content, parameters: Parameters) -> StoredMessage:
        thread_ts = parameters.text("thread_ts") or None
        if thread_ts is not None:
            self._check_thread(channel, thread_ts)
        unfurls = parameters.flag("unfurl_links", default=True) or parameters.flag("unfurl_media", default=True)
        return self.written(app, channel, content, thread_ts=thread_ts, unfurls=unfurls)

    def _check_thread(self, channel: Channel, thread_ts: str) -> None:
        root = channel.messages.get(thread_ts)
        answers = (each for each in channel.messages.values() if each.in_thread == thread_ts and not each.deleted)
        if root is None or (root.deleted and not any(answers)):
            raise Refused("thread_not_found")
        if root.in_thread is not None:
            raise Refused("cannot_reply_to_message")

    def written(
        self,
        app: App,
        channel: Channel,
        content: Content,
        *,
        thread_ts: str | None = None,
        ephemeral_to: str | None = None,
        unfurls: bool = True,
    ) -> StoredMessage:
        """A message by the app's bot that nobody sees yet."""
        return StoredMessage(
            ts=self._world.take_ts(),
            channel=channel.id,
            user=app.bot,
            bot=app.bot,
            bot_id=app.bot_id,
            sent_at=self._world.clock.now(),
            text=content.text or "",
            blocks=content.blocks or [],
            metadata=content.metadata,
            thread_ts=thread_ts,
            ephemeral_to=ephemeral_to,
            unfurls=unfurls,
        )

    def keep(self, message: StoredMessage) -> None:
        """Show a message, and tell the apps unless it is for one person."""
        channel = self._world.channel(message.channel)
        root = channel.messages.get(message.thread_ts or "")
        if root is not None and root.thread_ts is None and message.ephemeral_to is None:
            root.thread_ts = root.ts
        self.note_actions(message)
        channel.keep(message)
        if message.ephemeral_to is None:
            self._events.said(message)
        self._world.changes.bump()

    def note_actions(self, message: StoredMessage) -> None:
        """Remember the actions a message offers, for presses that come after they went."""
        message.had_actions |= {button.action_id for button in buttons_of(message.blocks)}

    def post_ephemeral(self, app: App, parameters: Parameters) -> JsonObject:
        """chat.postEphemeral."""
        channel = self._places.to_write(app, parameters.needed("channel", "channel_not_found"), open_direct=False)
        user = parameters.needed("user", "user_not_in_channel")
        if user not in channel.members:
            raise Refused("user_not_in_channel")
        content = Content.read(parameters)
        if content.empty:
            raise Refused("no_text")
        thread_ts = parameters.text("thread_ts") or None
        message = self.written(app, channel, content, thread_ts=thread_ts, ephemeral_to=user)
        self.keep(message)
        self._presses.ephemeral(user, channel.id, self.reads(message), message.ts, app.bot)
        return {"message_ts": message.ts}

    def reads(self, message: StoredMessage) -> str:
        """What a person reads of it."""
        return text_of(self._world, message.text, message.blocks)

    def update(self, app: App, parameters: Parameters) -> JsonObject:
        """chat.update."""
        channel = self._places.known(app, parameters.needed("channel", "channel_not_found"))
        message = channel.standing(parameters.needed("ts", "message_not_found"))
        if message is None or message.ephemeral_to is not None:
            raise Refused("message_not_found")
        if channel.archived:
            raise Refused("is_archived")
        if message.bot != app.bot:
            raise Refused("cant_update_message")
        content = Content.read(parameters)
        if content.text is None and content.blocks is None and content.metadata is None:
            raise Refused("no_text")
        if content.text is not None and content.empty and not message.files:
            raise Refused("no_text")
        self.change(message, content)
        shown = self._world.message_json(message)
        return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": shown}

    def change(self, message: StoredMessage, content: Content) -> None:
        """Replace what a message says: with a new text alone the old blocks go too."""
        previous = self._world.message_json(message)
        if content.text is not None or content.blocks is not None:
            message.text = content.text if content.text is not None else message.text
            message.blocks = content.blocks or []
        if content.metadata is not None:
            message.metadata = content.metadata
        message.edits += 1
        message.edited_at = self._world.clock.now()
        self.note_actions(message)
        self._events.changed(message, previous)
        self._world.changes.bump()

    def delete(self, app: App, parameters: Parameters) -> JsonObject:
        """chat.delete."""
        channel = self._places.known(app, parameters.needed("channel", "channel_not_found"))
        message = channel.standing(parameters.needed("ts", "message_not_found"))
        if message is None or message.ephemeral_to is not None:
            raise Refused("message_not_found")
        if message.bot != app.bot:
            raise Refused("cant_delete_message")
        self.remove(message)
        return {"channel": channel.id, "ts": message.ts}

    def remove(self, message: StoredMessage) -> None:
        """Let a message go."""
        message.deleted = True
        self._events.gone(message)
        self._world.changes.bump()

    def get_permalink(self, app: App, parameters: Parameters) -> JsonObject:
        """chat.getPermalink."""
        channel = self._places.known(app, parameters.needed("channel", "channel_not_found"))
        message = channel.standing(parameters.needed("message_ts", "message_not_found"))
        if message is None or message.ephemeral_to is not None:
            raise Refused("message_not_found")
        link = f"https://loopback.slack.com/archives/{channel.id}/p{message.ts.replace('.', '')}"
        if message.in_thread is not None:
            link += f"?thread_ts={message.in_thread}&cid={channel.id}"
        return {"channel": channel.id, "permalink": link}

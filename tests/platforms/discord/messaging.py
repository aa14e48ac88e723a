"""Making and changing messages, for channels, interaction answers and follow-ups alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .forms import check_message
from .markdown import pings_in
from .model import JsonObject
from .refusal import coded, invalid
from .shapes import channel_json, message_json
from .world import DM, EPHEMERAL_FLAG, SILENT_FLAG, SUPPRESS_FLAG, BotAccount, Channel, StoredMessage, Upload, World

NONCE_WINDOW_S = 180.0
"""How long a nonce is remembered; the documentation says "the past few minutes"."""
GUILDS_INTENT, GUILD_MESSAGES_INTENT, DM_INTENT, CONTENT_INTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15
SETTABLE_FLAGS = SILENT_FLAG | SUPPRESS_FLAG
Tell = Callable[[int, str, JsonObject, int, JsonObject | None], object]
"""Dispatch an event to a bot's sessions that have this intent; the last is for those without message contents."""


@dataclass(kw_only=True)
class NewFile:
    """A file of a request, with the number of its form field."""

    number: int
    file_name: str
    content: bytes
    content_type: str = "application/octet-stream"


@dataclass(kw_only=True)
class Origin:
    """Who writes, and for an interaction's answer to whom."""

    author_id: int
    viewer: int | None = None
    interaction_id: int | None = None
    application_id: int | None = None
    files: list[NewFile] = field(default_factory=list)


class Messenger:
    """Stores messages and tells sessions of them."""

    def __init__(self, world: World, tell: Tell) -> None:
        self._world = world
        self._tell = tell
        self._nonces: dict[tuple[int, str], tuple[float, StoredMessage]] = {}

    def post(self, bot: BotAccount, channel: Channel, body: JsonObject, files: list[NewFile]) -> StoredMessage:
        """POST to a channel by a bot, with the checks of the place; the message, which may be an older one by nonce."""
        check_message(body, [len(each.content) for each in files])
        self.check_place(channel, bot)
        nonce = body.get("nonce")
        if nonce is not None and body.get("enforce_nonce"):
            known = self._nonces.get((bot.id, str(nonce)))
            if known is not None and self._world.clock.now() - known[0] <= NONCE_WINDOW_S:
                return known[1]
        reply_to = self._reply_target(channel, body.get("message_reference"))
        self.wake(channel)
        origin = Origin(author_id=bot.id, files=files, application_id=bot.id)
        message = self.create(channel, body, origin, reply_to=reply_to)
        if nonce is not None:
            self._nonces[bot.id, str(nonce)] = (self._world.clock.now(), message)
        return message

    def check_place(self, channel: Channel, bot: BotAccount) -> None:
        """Refused where the bot may not write: 50013, 50007, 160005."""
        if channel.kind == DM and self._world.person(channel.members[0]).dms_closed:
            raise coded(50007)
        parent = self._world.channels.get(channel.parent_id or 0)
        if not channel.can_send or (parent is not None and not parent.can_send):
            raise coded(50013)
        if channel.locked and channel.archived:
            raise coded(160005)

    def wake(self, channel: Channel) -> None:
        """A message takes a thread out of the archive."""
        if channel.archived:
            channel.archived = False
            self.tell_all(channel, "THREAD_UPDATE", channel_json(self._world, channel), GUILDS_INTENT)

    def _reply_target(self, channel: Channel, reference: Any) -> int | None:
        if not reference:
            return None
        wanted = int(reference.get("message_id") or 0)
        target = channel.messages.get(wanted)
        if target is not None and not target.deleted and target.viewer is None:
            return wanted
        if reference.get("fail_if_not_exists", True):
            raise invalid(("message_reference",), "MESSAGE_REFERENCE_UNKNOWN_MESSAGE", "Unknown message")
        return None

    def create(
        self, channel: Channel, body: JsonObject, origin: Origin, *, reply_to: int | None = None, loading: bool = False
    ) -> StoredMessage:
        """Store a checked message; Refused 50006 when there is nothing in it."""
        message = StoredMessage(
            id=self._world.new_id(),
            channel_id=channel.id,
            author_id=origin.author_id,
            sent_at=self._world.clock.now(),
            content=(body.get("content") or "").strip(),
            embeds=body.get("embeds") or [],
            components=body.get("components") or [],
            files=[self._upload(each, body) for each in origin.files],
            flags=(int(body.get("flags") or 0) & SETTABLE_FLAGS) | (EPHEMERAL_FLAG if origin.viewer else 0),
            nonce=None if body.get("nonce") is None else str(body["nonce"]),
            reply_to=reply_to,
            viewer=origin.viewer,
            interaction_id=origin.interaction_id,
            application_id=origin.application_id,
            loading=loading,
        )
        if not loading and not (message.content or message.embeds or message.files or message.components):
            raise coded(50006)
        message.pings = self._pings(message, channel, body, reply_to)
        channel.keep(message)
        self._spread("MESSAGE_CREATE", channel, message)
        return message

    def _pings(self, message: StoredMessage, channel: Channel, body: JsonObject, reply_to: int | None) -> list[str]:
        allowed = body.get("allowed_mentions")
        found = pings_in(message.content, allowed)
        replied = None if reply_to is None else channel.messages.get(reply_to)
        if replied is not None and (allowed is None or allowed.get("replied_user")):
            found = list(dict.fromkeys([*found, f"user:{replied.author_id}"]))
        return [who for who in found if not who.startswith("user:") or int(who[5:]) in self._world.people]

    def _upload(self, new: NewFile, body: JsonObject) -> Upload:
        listed = [each for each in body.get("attachments") or [] if str(each.get("id")) == str(new.number)]
        described = listed[0] if listed else {}
        return Upload(
            id=self._world.new_id(),
            file_name=described.get("filename") or new.file_name,
            content=new.content,
            content_type=new.content_type,
            description=described.get("description"),
        )

    def change(self, message: StoredMessage, body: JsonObject, files: list[NewFile]) -> StoredMessage:
        """Edit: what `body` names is replaced, the rest stays; mentions in an edit notify nobody."""
        check_message(body, [len(each.content) for each in files])
        content = message.content if "content" not in body else (body["content"] or "").strip()
        embeds = message.embeds if "embeds" not in body else (body["embeds"] or [])
        components = message.components if "components" not in body else (body["components"] or [])
        kept = message.files
        if "attachments" in body:
            wanted = {str(each.get("id")) for each in body["attachments"] or []}
            kept = [each for each in message.files if str(each.id) in wanted]
        uploads = kept + [self._upload(each, body) for each in files]
        if not (content or embeds or components or uploads):
            raise coded(50006)
        message.content, message.embeds, message.components, message.files = content, embeds, components, uploads
        if body.get("flags") is not None:
            message.flags = (message.flags & ~SUPPRESS_FLAG) | (int(body["flags"]) & SUPPRESS_FLAG)
        message.edits += 0 if message.loading else 1
        message.edited_at = None if message.loading else self._world.clock.now()
        message.loading = False
        self._spread("MESSAGE_UPDATE", self._world.channel(message.channel_id), message)
        return message

    def remove(self, message: StoredMessage) -> None:
        """Delete a message."""
        message.deleted = True
        channel = self._world.channel(message.channel_id)
        shape = {"id": str(message.id), "channel_id": str(channel.id)}
        if channel.guild_id is not None:
            shape["guild_id"] = str(channel.guild_id)
        if message.viewer is None:
            self.tell_all(channel, "MESSAGE_DELETE", shape, _message_intent(channel))
        self._world.changes.bump()

    def spread_said(self, message: StoredMessage) -> None:
        """Tell bots what a person wrote or changed."""
        event = "MESSAGE_CREATE" if message.edits == 0 else "MESSAGE_UPDATE"
        self._spread(event, self._world.channel(message.channel_id), message)

    def _spread(self, event: str, channel: Channel, message: StoredMessage) -> None:
        """Bots without the content intent read their own messages, direct ones and those that mention them."""
        self._world.changes.bump()
        if message.viewer is not None:
            return
        for bot in self._world.bots_in(channel):
            mine = message.author_id == bot.id or channel.kind == DM or f"user:{bot.id}" in message.pings
            full = message_json(self._world, message, for_bot=bot.id)
            bare = full if mine else message_json(self._world, message, for_bot=bot.id, bare=True)
            intent = _message_intent(channel)
            shown, hidden = (_with_member(self._world, channel, message, each) for each in (full, bare))
            self._tell(bot.id, event, shown, intent, hidden)

    def tell_all(self, channel: Channel, event: str, data: JsonObject, intents: int) -> None:
        """Dispatch to every bot that reaches the channel."""
        for bot in self._world.bots_in(channel):
            self._tell(bot.id, event, data, intents, None)
        self._world.changes.bump()


def _message_intent(channel: Channel) -> int:
    return DM_INTENT if channel.kind == DM else GUILD_MESSAGES_INTENT


def _with_member(world: World, channel: Channel, message: StoredMessage, shape: JsonObject) -> JsonObject:
    if channel.guild_id is None or message.webhook:
        return shape
    roles = world.guild(channel.guild_id).members.get(message.author_id, set())
    member = {"roles": [str(role) for role in sorted(roles)], "joined_at": "2025-01-01T00:00:00+00:00"}
    return shape | {"member": member | {"deaf": False, "mute": False, "flags": 0, "nick": None, "avatar": None}}

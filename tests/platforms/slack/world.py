"""The state of the workspace: people, apps, channels, messages, files; without any rule about requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.platforms.telegram.changes import Changes
from tests.platforms.telegram.clock import ServerClock

from .budgets import Budgets, RateLimits
from .model import JsonObject

TEAM = "T0LOOPBACK"
KEPT_MESSAGES = 2000
"""Messages kept in one channel; older ones are forgotten."""
KEPT_FILES_BYTES = 64 * 1024 * 1024
"""Bytes of files kept over all channels; the oldest contents are forgotten first."""


@dataclass(kw_only=True)
class Person:
    """An account, a bot's too."""

    id: str
    name: str
    display_name: str
    team_id: str = TEAM
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    is_bot: bool = False
    deleted: bool = False
    bot_id: str | None = None

    def json(self) -> JsonObject:
        """The `user` object of users.info."""
        profile = {"real_name": self.name, "display_name": self.display_name, "team": self.team_id}
        shown: JsonObject = {
            "id": self.id,
            "team_id": self.team_id,
            "name": self.name.lower().replace(" ", "."),
            "real_name": self.name,
            "deleted": self.deleted,
            "tz": "Etc/UTC",
            "tz_offset": 0,
            "profile": profile | ({"bot_id": self.bot_id} if self.bot_id else {}),
            "is_admin": False,
            "is_owner": False,
            "is_restricted": self.is_restricted,
            "is_ultra_restricted": self.is_ultra_restricted,
            "is_bot": self.is_bot,
            "is_app_user": False,
        }
        if self.team_id != TEAM or self.is_stranger:
            shown["is_stranger"] = self.is_stranger
        return shown


@dataclass(kw_only=True)
class StoredFile:
    """An uploaded file; `content` is none before its bytes have come; `shares` holds (channel, ts)."""

    id: str
    name: str
    title: str
    size_bytes: int
    ticket: str
    owner: str
    made_at: float
    content: bytes | None = None
    completed: bool = False
    shares: list[tuple[str, str]] = field(default_factory=list)


@dataclass(kw_only=True)
class StoredMessage:
    """One message; `ephemeral_to` names the only person who sees it, `bot` is the user id of the bot that wrote it."""

    ts: str
    channel: str
    user: str
    sent_at: float
    text: str = ""
    bot: str | None = None
    bot_id: str | None = None
    blocks: list[JsonObject] = field(default_factory=list)
    thread_ts: str | None = None
    broadcast: bool = False
    ephemeral_to: str | None = None
    files: list[StoredFile] = field(default_factory=list)
    attachments: list[JsonObject] = field(default_factory=list)
    metadata: JsonObject | None = None
    unfurls: bool = True
    subtype: str | None = None
    deleted: bool = False
    edits: int = 0
    edited_at: float | None = None
    had_actions: set[str] = field(default_factory=set)

    @property
    def in_thread(self) -> str | None:
        """The thread it is an answer in."""
        return None if self.thread_ts == self.ts else self.thread_ts


@dataclass(kw_only=True)
class Channel:
    """A channel, private channel or direct conversation (`im`, of `person` with `bot`)."""

    id: str
    kind: str
    name: str = ""
    members: set[str] = field(default_factory=set)
    person: str = ""
    bot: str = ""
    archived: bool = False
    posting_restricted: bool = False
    messages: OrderedDict[str, StoredMessage] = field(default_factory=OrderedDict)

    def keep(self, message: StoredMessage) -> None:
        """Add a message; the oldest leaves a full channel."""
        self.messages[message.ts] = message
        if len(self.messages) > KEPT_MESSAGES:
            self.messages.popitem(last=False)

    def standing(self, ts: str) -> StoredMessage | None:
        """The message unless it is unknown or deleted."""
        message = self.messages.get(ts)
        return None if message is None or message.deleted else message

    def json(self) -> JsonObject:
        """The `channel` object of conversations.info."""
        shown: JsonObject = {
            "id": self.id,
            "created": 0,
            "is_archived": self.archived,
            "is_im": self.kind == "im",
            "is_channel": self.kind == "channel",
            "is_group": self.kind == "group",
            "is_private": self.kind != "channel",
            "is_mpim": False,
            "context_team_id": TEAM,
        }
        if self.kind == "im":
            return shown | {"user": self.person, "is_open": True}
        return shown | {"name": self.name, "name_normalized": self.name, "num_members": len(self.members)}


@dataclass(kw_only=True)
class Usergroup:
    """A user group. A disabled one keeps its members, and is told of only on request."""

    id: str
    name: str
    users: list[str]
    disabled: bool = False


@dataclass(kw_only=True)
class App:
    """An app and its bot, known by the bot's user id."""

    bot: str
    bot_id: str
    app_id: str
    token: str
    app_token: str
    signing_secret: str
    scopes: frozenset[str]
    events: frozenset[str] | None
    budgets: Budgets
    request_url: str | None = None


class World:
    """All of it, with the few ways to find things."""

    def __init__(self, clock: ServerClock, limits: RateLimits, changes: Changes) -> None:
        self.clock = clock
        self.changes = changes
        self.limits = limits
        self.people: dict[str, Person] = {}
        self.channels: dict[str, Channel] = {}
        self.usergroups: dict[str, Usergroup] = {}
        self.apps: dict[str, App] = {}
        self.revoked: set[str] = set()
        self.files: OrderedDict[str, StoredFile] = OrderedDict()
        self._file_bytes = 0
        self._made = 0
        self._last_us = 0

    def take_id(self, letter: str) -> str:
        """A new id with this first letter."""
        self._made += 1
        return f"{letter}{self._made:09d}"

    def take_ts(self) -> str:
        """A timestamp that no other message has, rising, of the present microsecond."""
        self._last_us = max(int(self.clock.now() * 1_000_000), self._last_us + 1)
        return f"{self._last_us // 1_000_000}.{self._last_us % 1_000_000:06d}"

    def app(self, bot: str | None) -> App:
        """The app of this bot, or the first one; LookupError when there is none."""
        for each in self.apps.values():
            if bot in (None, each.bot):
                return each
        raise LookupError(f"no bot {bot}")

    def person(self, user_id: str) -> Person:
        """The account; LookupError when nobody has this id."""
        if user_id not in self.people:
            raise LookupError(f"no user {user_id}")
        return self.people[user_id]

    def usergroup(self, group: str) -> Usergroup:
        """The user group; LookupError when there is none."""
        if group not in self.usergroups:
            raise LookupError(f"no user group {group}")
        return self.usergroups[group]

    def channel(self, channel: str) -> Channel:
        """The channel; LookupError when there is none."""
        if channel not in self.channels:
            raise LookupError(f"no channel {channel}")
        return self.channels[channel]

    def message(self, channel: str, ts: str) -> StoredMessage:
        """A message that is still there; LookupError otherwise."""
        message = self.channel(channel).standing(ts)
        if message is None:
            raise LookupError(f"no message {ts} in channel {channel}")
        return message

    def direct(self, user_id: str, bot: str) -> Channel:
        """The direct conversation of a person and a bot, opened when there is none."""
        for each in self.channels.values():
            if each.kind == "im" and each.person == user_id and each.bot == bot:
                return each
        opened = Channel(id=self.take_id("D"), kind="im", members={user_id, bot}, person=user_id, bot=bot)
        self.channels[opened.id] = opened
        return opened

    def apps_in(self, channel: Channel) -> Iterator[App]:
        """The apps whose bots are members of a channel."""
        return (app for app in self.apps.values() if app.bot in channel.members)

    def keep_content(self, file: StoredFile, content: bytes) -> None:
        """Store a file's bytes; the oldest contents are forgotten beyond the limit."""
        file.content = content
        self._file_bytes += len(content)
        for oldest in list(self.files.values()):
            if self._file_bytes <= KEPT_FILES_BYTES or oldest is file:
                break
            self._file_bytes -= len(oldest.content or b"")
            oldest.content = b""

    def names(self) -> dict[str, str]:
        """What stands for ids in texts: people by display name, channels by name."""
        named = {person.id: person.display_name or person.name for person in self.people.values()}
        return named | {channel.id: channel.name for channel in self.channels.values()}

    def message_json(self, message: StoredMessage) -> JsonObject:
        """The `message` object."""
        shown: JsonObject = {"type": "message", "user": message.user, "ts": message.ts, "text": message.text}
        if message.bot_id is not None:
            shown["bot_id"] = message.bot_id
        if message.bot is not None:
            shown["app_id"] = self.app(message.bot).app_id
        person = self.people.get(message.user)
        shown["team"] = person.team_id if person else TEAM
        if message.subtype is not None:
            shown["subtype"] = message.subtype
        if message.blocks:
            shown["blocks"] = message.blocks
        if message.thread_ts is not None:
            shown["thread_ts"] = message.thread_ts
        if message.attachments:
            shown["attachments"] = message.attachments
        if message.metadata is not None:
            shown["metadata"] = message.metadata
        if message.files:
            shown["files"] = [{"id": each.id, "name": each.name, "title": each.title} for each in message.files]
        if message.edited_at is not None:
            shown["edited"] = {"user": message.user, "ts": f"{message.edited_at:.6f}"}
        return shown

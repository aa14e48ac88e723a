"""The place: people, guilds, channels, threads, messages and bots, without any I/O."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from tests.platforms.telegram.changes import Changes
from tests.platforms.telegram.clock import ServerClock

from .model import JsonObject
from .refusal import coded

EPOCH_MS = 1_420_070_400_000
"""Start of Discord's time, 2015-01-01, in milliseconds since 1970; ids count from there."""
TEXT, DM, PUBLIC_THREAD, PRIVATE_THREAD = 0, 1, 11, 12
THREADS = frozenset({10, PUBLIC_THREAD, PRIVATE_THREAD})
SILENT_FLAG = 1 << 12
EPHEMERAL_FLAG = 1 << 6
SUPPRESS_FLAG = 1 << 2
LOADING_FLAG = 1 << 7
KEPT_MESSAGES = 5_000


@dataclass(kw_only=True)
class Person:
    """A user account, of a person or a bot."""

    id: int
    username: str
    display_name: str | None = None
    is_bot: bool = False
    dms_closed: bool = False

    @property
    def name(self) -> str:
        """What others read."""
        return self.display_name or self.username

    def json(self) -> JsonObject:
        """A user object."""
        return {
            "id": str(self.id),
            "username": self.username,
            "discriminator": "0",
            "global_name": self.display_name,
            "avatar": None,
            "bot": self.is_bot,
            "public_flags": 0,
        }


@dataclass(kw_only=True)
class Upload:
    """A file as uploaded."""

    id: int
    file_name: str
    content: bytes
    content_type: str = "application/octet-stream"
    description: str | None = None


@dataclass(kw_only=True)
class StoredMessage:
    """One message; `viewer` is set for ephemeral ones."""

    id: int
    channel_id: int
    author_id: int
    sent_at: float
    content: str = ""
    embeds: list[JsonObject] = field(default_factory=list)
    components: list[JsonObject] = field(default_factory=list)
    files: list[Upload] = field(default_factory=list)
    flags: int = 0
    nonce: str | None = None
    reply_to: int | None = None
    pings: list[str] = field(default_factory=list)
    deleted: bool = False
    edits: int = 0
    edited_at: float | None = None
    viewer: int | None = None
    interaction_id: int | None = None
    application_id: int | None = None
    webhook: bool = False
    forwarded: bool = False
    loading: bool = False


@dataclass(kw_only=True)
class Channel:
    """A text channel, thread or direct chat; `members` are the two of a direct chat."""

    id: int
    kind: int
    name: str = ""
    guild_id: int | None = None
    parent_id: int | None = None
    members: tuple[int, ...] = ()
    archived: bool = False
    locked: bool = False
    can_view: bool = True
    can_send: bool = True
    messages: OrderedDict[int, StoredMessage] = field(default_factory=OrderedDict)

    @property
    def is_thread(self) -> bool:
        """Whether it hangs on another channel."""
        return self.kind in THREADS

    def keep(self, message: StoredMessage) -> None:
        """Store a message; the oldest leaves a full channel."""
        self.messages[message.id] = message
        if len(self.messages) > KEPT_MESSAGES:
            self.messages.popitem(last=False)


@dataclass(kw_only=True)
class Guild:
    """A server with its members' roles and the bots in it."""

    id: int
    name: str
    members: dict[int, set[int]] = field(default_factory=dict)
    roles: dict[int, str] = field(default_factory=dict)
    bots: set[int] = field(default_factory=set)


@dataclass(kw_only=True)
class BotAccount:
    """An application with its bot user; both have one id. `private_key` signs what goes to its interactions URL."""

    id: int
    token: str
    private_key: bytes
    public_key: str
    content_intent: bool = False
    interactions_url: str | None = None
    description: str = ""
    commands: dict[int | None, list[JsonObject]] = field(default_factory=dict)


class World:
    """Everything that exists; lookups raise LookupError for tests, `api_*` ones raise what the REST API answers."""

    def __init__(self, clock: ServerClock, changes: Changes) -> None:
        self.clock = clock
        self.changes = changes
        self.people: dict[int, Person] = {}
        self.guilds: dict[int, Guild] = {}
        self.channels: dict[int, Channel] = {}
        self.bots: dict[int, BotAccount] = {}
        self._last_id = 0

    def new_id(self) -> int:
        """A fresh snowflake: rising, and carrying the server's time in milliseconds."""
        by_time = (int(self.clock.now() * 1000) - EPOCH_MS) << 22
        self._last_id = max(self._last_id + 1, by_time)
        return self._last_id

    def bot(self, bot_id: int | None) -> BotAccount:
        """A bot, or the first; LookupError when there is none."""
        if bot_id is None and self.bots:
            return next(iter(self.bots.values()))
        if bot_id not in self.bots:
            raise LookupError(f"no bot {bot_id}")
        return self.bots[bot_id]

    def person(self, user_id: int) -> Person:
        """A user; LookupError when there is none."""
        if user_id not in self.people:
            raise LookupError(f"no user {user_id}")
        return self.people[user_id]

    def guild(self, guild_id: int) -> Guild:
        """A guild; LookupError when there is none."""
        if guild_id not in self.guilds:
            raise LookupError(f"no guild {guild_id}")
        return self.guilds[guild_id]

    def channel(self, channel_id: int) -> Channel:
        """A channel; LookupError when there is none."""
        if channel_id not in self.channels:
            raise LookupError(f"no channel {channel_id}")
        return self.channels[channel_id]

    def message(self, channel_id: int, message_id: int) -> StoredMessage:
        """A message that stands; LookupError when it does not."""
        message = self.channel(channel_id).messages.get(message_id)
        if message is None or message.deleted:
            raise LookupError(f"no message {message_id} in channel {channel_id}")
        return message

    def dm_of(self, user_id: int, bot_id: int) -> Channel:
        """The direct chat of a person and a bot, made when new."""
        self.person(user_id)
        for channel in self.channels.values():
            if channel.kind == DM and channel.members == (user_id, bot_id):
                return channel
        channel = Channel(id=self.new_id(), kind=DM, members=(user_id, bot_id))
        self.channels[channel.id] = channel
        return channel

    def takes_part(self, user_id: int, channel: Channel) -> bool:
        """Whether a person is in the direct chat or the guild of a channel."""
        if channel.guild_id is None:
            return user_id in channel.members
        return user_id in self.guild(channel.guild_id).members

    def bots_in(self, channel: Channel) -> list[BotAccount]:
        """The bots that get what happens in a channel."""
        if channel.guild_id is None:
            return [self.bots[member] for member in channel.members if member in self.bots]
        return [bot for bot in self.bots.values() if self.reaches(bot, channel)]

    def api_channel(self, bot: BotAccount, channel_id: int) -> Channel:
        """A channel as a bot may reach it; Refused 10003 or 50001."""
        channel = self.channels.get(channel_id)
        if channel is None:
            raise coded(10003)
        if not self.reaches(bot, channel):
            raise coded(50001)
        return channel

    def reaches(self, bot: BotAccount, channel: Channel) -> bool:
        """Whether the bot is in the channel's guild or direct chat and may look into it."""
        if channel.guild_id is None:
            return bot.id in channel.members
        parent = self.channels.get(channel.parent_id or 0)
        inside = channel.guild_id in self.guilds and bot.id in self.guilds[channel.guild_id].bots
        return inside and channel.can_view and (parent is None or parent.can_view)

    def api_message(self, channel: Channel, message_id: int) -> StoredMessage:
        """A message that stands and that everybody sees; Refused 10008."""
        message = channel.messages.get(message_id)
        if message is None or message.deleted or message.viewer is not None:
            raise coded(10008)
        return message

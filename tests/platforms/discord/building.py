"""Making the place: bots, people, guilds, channels. Names are those of `DiscordPlatform`."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .messaging import GUILDS_INTENT, Messenger
from .model import JsonObject
from .sessions import SessionBook
from .shapes import channel_json, guild_json
from .world import PRIVATE_THREAD, PUBLIC_THREAD, TEXT, BotAccount, Channel, Guild, Person, World


class Building:
    """Each method changes the place and tells the bots concerned."""

    def __init__(
        self, world: World, messenger: Messenger, sessions: SessionBook, on_bot: Callable[[int], None]
    ) -> None:
        self._world = world
        self._messenger = messenger
        self._sessions = sessions
        self._on_bot = on_bot

    def add_bot(self, token: str, username: str, bot_id: int | None = None, content_intent: bool = False) -> int:
        """A bot in every guild there is; its id, which is the application's too."""
        if any(bot.token == token for bot in self._world.bots.values()):
            raise ValueError("this token is taken")
        number = bot_id or self._world.new_id()
        key = Ed25519PrivateKey.generate()
        self._world.people[number] = Person(id=number, username=username, is_bot=True)
        self._world.bots[number] = BotAccount(
            id=number,
            token=token,
            private_key=key.private_bytes_raw(),
            public_key=key.public_key().public_bytes_raw().hex(),
            content_intent=content_intent,
        )
        self._on_bot(number)
        for guild in self._world.guilds.values():
            guild.bots.add(number)
            guild.members[number] = set()
        self._world.changes.bump()
        return number

    def public_key(self, bot_id: int | None = None) -> str:
        """The key with which posts to the interactions URL are checked, in hex."""
        return self._world.bot(bot_id).public_key

    def add_user(self, user_id: int, username: str, display_name: str | None = None, is_bot: bool = False) -> int:
        """A person."""
        self._world.people[user_id] = Person(id=user_id, username=username, display_name=display_name, is_bot=is_bot)
        return user_id

    def rename_user(self, user_id: int, username: str, display_name: str | None = None) -> None:
        """Change somebody's names."""
        person = self._world.person(user_id)
        person.username, person.display_name = username, display_name

    def close_dms(self, user_id: int, closed: bool = True) -> None:
        """Let somebody take no direct messages (50007), or take them again."""
        self._world.person(user_id).dms_closed = closed

    def add_guild(
        self, guild_id: int, name: str, members: list[int] | None = None, bots: list[int] | None = None
    ) -> int:
        """A guild of these members, with all bots or those listed."""
        guild = Guild(id=guild_id, name=name, bots=set(self._world.bots) if bots is None else set(bots))
        for user_id in [*(members or []), *guild.bots]:
            self._world.person(user_id)
            guild.members[user_id] = set()
        self._world.guilds[guild_id] = guild
        self._announce(guild)
        return guild_id

    def _announce(self, guild: Guild) -> None:
        for bot_id in guild.bots:
            data = guild_json(self._world, guild, self._world.bot(bot_id))
            self._sessions.tell(bot_id, "GUILD_CREATE", data, GUILDS_INTENT)

    def add_member(self, guild_id: int, user_id: int) -> None:
        """Let somebody in."""
        self._world.person(user_id)
        self._world.guild(guild_id).members.setdefault(user_id, set())

    def remove_member(self, guild_id: int, user_id: int) -> None:
        """Let somebody leave."""
        self._world.guild(guild_id).members.pop(user_id, None)

    def add_role(self, guild_id: int, role_id: int, name: str, members: list[int] | None = None) -> int:
        """A role of these members."""
        guild = self._world.guild(guild_id)
        guild.roles[role_id] = name
        for user_id in members or []:
            guild.members.setdefault(user_id, set()).add(role_id)
        return role_id

    def add_channel(self, guild_id: int, channel_id: int, name: str) -> int:
        """A text channel."""
        self._world.guild(guild_id)
        channel = Channel(id=channel_id, kind=TEXT, name=name, guild_id=guild_id)
        return self._new(channel, "CHANNEL_CREATE")

    def add_thread(
        self,
        channel_id: int,
        thread_id: int,
        name: str,
        archived: bool = False,
        locked: bool = False,
        private: bool = False,
    ) -> int:
        """A thread of a channel."""
        parent = self._world.channel(channel_id)
        thread = Channel(
            id=thread_id,
            kind=PRIVATE_THREAD if private else PUBLIC_THREAD,
            name=name,
            guild_id=parent.guild_id,
            parent_id=parent.id,
            archived=archived,
            locked=locked,
        )
        return self._new(thread, "THREAD_CREATE")

    def _new(self, channel: Channel, event: str) -> int:
        if channel.id in self._world.channels:
            raise ValueError(f"channel {channel.id} exists")
        self._world.channels[channel.id] = channel
        self._messenger.tell_all(channel, event, channel_json(self._world, channel), GUILDS_INTENT)
        return channel.id

    def set_thread(self, thread_id: int, archived: bool | None = None, locked: bool | None = None) -> None:
        """Archive, unarchive, lock or unlock a thread by hand."""
        thread = self._world.channel(thread_id)
        thread.archived = thread.archived if archived is None else archived
        thread.locked = thread.locked if locked is None else locked
        self._messenger.tell_all(thread, "THREAD_UPDATE", channel_json(self._world, thread), GUILDS_INTENT)

    def thread_state(self, thread_id: int) -> JsonObject:
        """Whether a thread is `archived` and `locked`."""
        thread = self._world.channel(thread_id)
        return {"archived": thread.archived, "locked": thread.locked}

    def delete_channel(self, channel_id: int) -> None:
        """Delete a channel with its threads, or a thread."""
        gone = self._world.channel(channel_id)
        for channel in [each for each in self._world.channels.values() if each.parent_id == channel_id] + [gone]:
            event = "THREAD_DELETE" if channel.is_thread else "CHANNEL_DELETE"
            self._messenger.tell_all(channel, event, channel_json(self._world, channel), GUILDS_INTENT)
            del self._world.channels[channel.id]
        self._world.changes.bump()

    def set_access(self, channel_id: int, view: bool = True, send: bool = True) -> None:
        """Take from bots the right to see a channel (50001) or to write there (50013), or give it back."""
        channel = self._world.channel(channel_id)
        channel.can_view, channel.can_send = view, send

    def remove_bot(self, guild_id: int, bot_id: int | None = None) -> None:
        """Throw the bot out of a guild."""
        guild, bot = self._world.guild(guild_id), self._world.bot(bot_id)
        guild.bots.discard(bot.id)
        guild.members.pop(bot.id, None)
        self._sessions.tell(bot.id, "GUILD_DELETE", {"id": str(guild_id)}, GUILDS_INTENT)

    def invite_bot(self, guild_id: int, bot_id: int | None = None) -> None:
        """Let the bot into a guild again."""
        guild, bot = self._world.guild(guild_id), self._world.bot(bot_id)
        guild.bots.add(bot.id)
        guild.members[bot.id] = set()
        self._sessions.tell(bot.id, "GUILD_CREATE", guild_json(self._world, guild, bot), GUILDS_INTENT)

    def dm(self, user_id: int, bot_id: int | None = None) -> int:
        """The direct chat of a person and the bot; its channel id."""
        return self._world.dm_of(user_id, self._world.bot(bot_id).id).id

    def delete_message(self, channel_id: int, message_id: int) -> None:
        """Delete any message by hand."""
        self._messenger.remove(self._world.message(channel_id, message_id))

    def commands(self, guild_id: int | None = None, bot_id: int | None = None) -> list[JsonObject]:
        """The slash commands registered, global or of a guild."""
        return self._world.bot(bot_id).commands.get(guild_id, [])

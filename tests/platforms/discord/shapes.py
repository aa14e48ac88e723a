"""Discord's JSON objects, made from the world."""

from __future__ import annotations

from tests.platforms.telegram.clock import moment

from .markdown import MENTION_EVERYONE, read
from .model import ButtonStyle, JsonObject, SeenButton, SeenFile, SeenMessage
from .world import (
    DM,
    EPHEMERAL_FLAG,
    LOADING_FLAG,
    SILENT_FLAG,
    SUPPRESS_FLAG,
    BotAccount,
    Channel,
    Guild,
    StoredMessage,
    Upload,
    World,
)

ALL_PERMISSIONS = str((1 << 53) - 1)
JOINED = "2025-01-01T00:00:00+00:00"
STYLES: dict[int, ButtonStyle] = {1: "primary", 2: "secondary", 3: "success", 4: "danger", 5: "link", 6: "premium"}
BUTTON, ACTION_ROW = 2, 1
REPLY = 19


def stamp(unix_s: float) -> str:
    """A time as Discord writes it."""
    return moment(unix_s).isoformat(timespec="microseconds")


def member_json(world: World, guild: Guild, user_id: int, *, with_user: bool = True) -> JsonObject:
    """A guild member."""
    person = world.person(user_id)
    return {
        "roles": [str(role) for role in sorted(guild.members.get(user_id, set()))],
        "joined_at": JOINED,
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "flags": 0,
        "nick": None,
        "avatar": None,
        "pending": False,
        "communication_disabled_until": None,
        "permissions": ALL_PERMISSIONS,
    } | ({"user": person.json()} if with_user else {})


def channel_json(world: World, channel: Channel, *, for_bot: int | None = None) -> JsonObject:
    """A channel, thread or direct chat."""
    last = next(reversed(channel.messages), None)
    shape: JsonObject = {
        "id": str(channel.id),
        "type": channel.kind,
        "last_message_id": None if last is None else str(last),
        "flags": 0,
    }
    if channel.kind == DM:
        others = [member for member in channel.members if member != for_bot]
        return shape | {"recipients": [world.person(member).json() for member in others if member in world.people]}
    shape |= {"guild_id": str(channel.guild_id), "name": channel.name, "permissions": ALL_PERMISSIONS}
    if not channel.is_thread:
        return shape | {
            "position": 0,
            "parent_id": None,
            "topic": None,
            "nsfw": False,
            "rate_limit_per_user": 0,
            "permission_overwrites": [],
        }
    return shape | {
        "parent_id": str(channel.parent_id),
        "owner_id": "1",
        "message_count": len(channel.messages),
        "member_count": 1,
        "total_message_sent": len(channel.messages),
        "rate_limit_per_user": 0,
        "thread_metadata": {
            "archived": channel.archived,
            "locked": channel.locked,
            "auto_archive_duration": 1440,
            "archive_timestamp": stamp(world.clock.now()),
            "create_timestamp": JOINED,
            "invitable": True,
        },
    }


def guild_json(world: World, guild: Guild, bot: BotAccount) -> JsonObject:
    """A guild as GUILD_CREATE gives it: only the bot among the members, as without the members intent."""
    channels = [each for each in world.channels.values() if each.guild_id == guild.id]
    roles = [{"id": str(guild.id), "name": "@everyone"}]
    roles += [{"id": str(role), "name": name} for role, name in guild.roles.items()]
    return {
        "id": str(guild.id),
        "name": guild.name,
        "owner_id": "1",
        "icon": None,
        "features": [],
        "emojis": [],
        "stickers": [],
        "afk_timeout": 300,
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "premium_tier": 0,
        "system_channel_flags": 0,
        "preferred_locale": "en-US",
        "large": False,
        "unavailable": False,
        "joined_at": JOINED,
        "member_count": len(guild.members) + len(guild.bots),
        "members": [member_json(world, guild, bot.id)],
        "presences": [],
        "voice_states": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
        "roles": [
            role
            | {
                "permissions": ALL_PERMISSIONS,
                "position": place,
                "color": 0,
                "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
                "hoist": False,
                "managed": False,
                "mentionable": True,
                "flags": 0,
            }
            for place, role in enumerate(roles)
        ],
        "channels": [channel_json(world, each) for each in channels if not each.is_thread],
        "threads": [channel_json(world, each) for each in channels if each.is_thread and not each.archived],
    }


def file_json(upload: Upload) -> JsonObject:
    """An attachment."""
    return {
        "id": str(upload.id),
        "filename": upload.file_name,
        "size": len(upload.content),
        "url": f"http://127.0.0.1/attachments/{upload.id}/{upload.file_name}",
        "proxy_url": f"http://127.0.0.1/attachments/{upload.id}/{upload.file_name}",
        "content_type": upload.content_type,
        "description": upload.description,
    }


def message_json(
    world: World, message: StoredMessage, *, for_bot: int | None = None, quote: bool = True, bare: bool = False
) -> JsonObject:
    """A message; `bare` leaves out what a bot without the message content intent does not get."""
    channel = world.channels.get(message.channel_id)
    author = world.person(message.author_id).json()
    everyone = "everyone" in message.pings or "here" in message.pings
    shape: JsonObject = {
        "id": str(message.id),
        "channel_id": str(message.channel_id),
        "author": author | ({"bot": True} if message.webhook else {}),
        "content": "" if bare else message.content,
        "timestamp": stamp(message.sent_at),
        "edited_timestamp": None if message.edited_at is None else stamp(message.edited_at),
        "tts": False,
        "mention_everyone": everyone,
        "mentions": [world.person(int(who[5:])).json() for who in message.pings if who.startswith("user:")],
        "mention_roles": [who[5:] for who in message.pings if who.startswith("role:")],
        "attachments": [] if bare else [file_json(each) for each in message.files],
        "embeds": [] if bare else message.embeds,
        "components": [] if bare else message.components,
        "pinned": False,
        "flags": message.flags | (LOADING_FLAG if message.loading else 0),
        "type": 0 if message.reply_to is None else REPLY,
    }
    if message.nonce is not None:
        shape["nonce"] = message.nonce
    if message.webhook or (message.application_id is not None and message.interaction_id is not None):
        shape["webhook_id"] = str(message.application_id or message.author_id)
    if message.application_id is not None:
        shape["application_id"] = str(message.application_id)
    if channel is not None and channel.guild_id is not None:
        shape["guild_id"] = str(channel.guild_id)
    if quote and message.reply_to is not None and channel is not None:
        shape |= _quoted(world, channel, message.reply_to, for_bot)
    if message.forwarded:
        shape["message_reference"] = {"type": 1, "channel_id": str(message.channel_id), "message_id": str(message.id)}
        shape["message_snapshots"] = [{"message": {key: shape[key] for key in SNAPSHOT} | {"content": message.content}}]
        shape["content"] = ""
    return shape


SNAPSHOT = (
    "timestamp", "edited_timestamp", "attachments", "embeds", "components", "flags", "type", "mentions",
    "mention_roles",
)  # fmt: skip


def _quoted(world: World, channel: Channel, reply_to: int, for_bot: int | None) -> JsonObject:
    quoted = channel.messages.get(reply_to)
    reference: JsonObject = {"type": 0, "channel_id": str(channel.id), "message_id": str(reply_to)}
    if channel.guild_id is not None:
        reference["guild_id"] = str(channel.guild_id)
    gone = quoted is None or quoted.deleted
    return {
        "message_reference": reference,
        "referenced_message": None
        if gone or quoted is None
        else message_json(world, quoted, for_bot=for_bot, quote=False),
    }


def seen_buttons(components: list[JsonObject]) -> list[SeenButton]:
    """Buttons of a message's rows."""
    found = []
    for row, each in enumerate(components):
        for column, part in enumerate(each.get("components", [])):
            if part.get("type") == BUTTON:
                emoji = (part.get("emoji") or {}).get("name") or ""
                label = part.get("label") or ""
                found.append(
                    SeenButton(
                        label=label or emoji,
                        custom_id=part.get("custom_id"),
                        style=STYLES[part["style"]],
                        url=part.get("url"),
                        disabled=bool(part.get("disabled")),
                        row=row,
                        column=column,
                    )
                )
    return found


def seen(world: World, message: StoredMessage) -> SeenMessage:
    """A message as a person sees it."""
    reading = read(message.content, name_of=lambda mark: _named(world, mark), now=world.clock.now())
    links = reading.links + (["@everyone"] if {"everyone", "here"} & set(message.pings) else [])
    return SeenMessage(
        message_id=message.id,
        channel_id=message.channel_id,
        author_id=message.author_id,
        author_bot=world.person(message.author_id).is_bot,
        content=message.content,
        text=reading.text,
        sent_at=moment(message.sent_at),
        buttons=seen_buttons(message.components),
        pings=message.pings,
        links=links,
        code=reading.code,
        spoilers=reading.spoilers,
        small=reading.small,
        timestamps=reading.timestamps,
        embeds=message.embeds,
        reply_to=message.reply_to,
        files=[
            SeenFile(
                file_name=each.file_name,
                size_bytes=len(each.content),
                content=each.content,
                spoiler=each.file_name.startswith("SPOILER_"),
            )
            for each in message.files
        ],
        deleted=message.deleted,
        edits=message.edits,
        edited_at=None if message.edited_at is None else moment(message.edited_at),
        silent=bool(message.flags & SILENT_FLAG),
        embeds_suppressed=bool(message.flags & SUPPRESS_FLAG),
        viewer=message.viewer,
        interaction_id=message.interaction_id,
        nonce=message.nonce,
        loading=message.loading,
    )


def _named(world: World, mark: str) -> str | None:
    """The name a mention shows; none for an unknown one, which stays as typed."""
    kind, _, number = mark.partition(":")
    if mark in MENTION_EVERYONE:
        return None
    key = int(number)
    if kind == "user":
        return f"@{world.people[key].name}" if key in world.people else "@unknown-user"
    if kind == "channel":
        return f"#{world.channels[key].name}" if key in world.channels else "#unknown"
    for guild in world.guilds.values():
        if key in guild.roles:
            return f"@{guild.roles[key]}"
    return "@unknown-role"


def is_ephemeral(flags: int) -> bool:
    """Whether message flags ask for an answer that one person sees."""
    return bool(flags & EPHEMERAL_FLAG)

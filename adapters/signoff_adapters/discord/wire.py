"""What Discord delivers, reduced to the fields that are used, and how it is read as taps and messages.

Interactions come as raw objects, from the gateway or posted to us, and are read here and not by the library: its own
parser ends the connection on an object in a shape that it does not know, and its views come with traps of their own.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct, field

from signoff.model import Destination, Message, Person, Tap

from .render import EPHEMERAL

PLATFORM = "discord"
DIRECT_KINDS = frozenset({1, 3})
THREAD_KINDS = frozenset({10, 11, 12})
"""API, channel types."""
PING, COMMAND, COMPONENT, AUTOCOMPLETE, MODAL = 1, 2, 3, 4, 5
"""API, interaction types."""
EPOCH = datetime(2015, 1, 1, tzinfo=UTC)
"""Snowflakes count milliseconds since then, in their upper bits."""
DEFAULT_MESSAGE, REPLY_MESSAGE = 0, 19
"""API, message types that a person writes; the others are notices."""
FORWARD = 1
"""API, message reference types."""


class User(Struct, frozen=True):
    """An account; only the id identifies it."""

    id: str
    username: str = ""
    global_name: str | None = None
    bot: bool = False


class Member(Struct, frozen=True):
    """Somebody in a server, with the ids of their roles."""

    user: User | None = None
    nick: str | None = None
    roles: tuple[str, ...] = ()


class Channel(Struct, frozen=True):
    """A channel, direct chat or thread; a thread names the channel it hangs on."""

    id: str
    type: int = 0
    parent_id: str | None = None
    recipients: tuple[User, ...] = ()

    @property
    def is_thread(self) -> bool:
        """Whether it hangs on another channel."""
        return self.type in THREAD_KINDS and self.parent_id is not None

    @property
    def place(self) -> Destination:
        """Where it is: a thread is a place of its own in its channel."""
        if self.is_thread:
            return Destination(PLATFORM, self.parent_id or "", self.id)
        return Destination(PLATFORM, self.id)


class Reference(Struct, frozen=True):
    """The message that another one replies to or forwards."""

    type: int = 0
    message_id: str | None = None


class Incoming(Struct, frozen=True):
    """A message; what people wrote is there only in direct chats and where the bot is mentioned."""

    id: str
    channel_id: str
    type: int = 0
    content: str = ""
    author: User | None = None
    member: Member | None = None
    guild_id: str | None = None
    webhook_id: str | None = None
    edited_timestamp: str | None = None
    mentions: tuple[User, ...] = ()
    message_reference: Reference | None = None
    referenced_message: Quoted | None = None
    message_snapshots: tuple[Any, ...] = ()


class Quoted(Struct, frozen=True):
    """The message replied to: whose it is."""

    author: User | None = None


class Pressed(Struct, frozen=True):
    """The message whose button was pressed."""

    id: str
    flags: int = 0


class Option(Struct, frozen=True):
    """One value given with a command; `focused` is the one being typed."""

    name: str
    value: str | int | float | bool | None = None
    focused: bool = False


class Data(Struct, frozen=True):
    """What was pressed, typed or sent."""

    custom_id: str = ""
    name: str = ""
    options: tuple[Option, ...] = ()
    components: Any = None


class Interaction(Struct, frozen=True):
    """A press, a command, a half-typed command or a dialog sent."""

    id: str
    type: int
    token: str = ""
    application_id: str = ""
    channel_id: str | None = None
    channel: Channel | None = None
    guild_id: str | None = None
    member: Member | None = None
    user: User | None = None
    message: Pressed | None = None
    data: Data = field(default_factory=Data)

    @property
    def on_panel(self) -> bool:
        """The pressed message is one that only this person sees."""
        return self.message is not None and bool(self.message.flags & EPHEMERAL)


class Me(Struct, frozen=True):
    """The bot itself; the application has an id of its own for old bots."""

    user_id: str
    application_id: str


def read_interaction(data: object) -> Interaction:
    """An interaction of the gateway. Raises `msgspec.ValidationError`."""
    return msgspec.convert(data, Interaction)


def read_message(data: object) -> Incoming:
    """A message of the gateway. Raises `msgspec.ValidationError`."""
    return msgspec.convert(data, Incoming)


def channel_of(interaction: Interaction) -> Channel | None:
    """The channel as the interaction describes it; a thread without its parent must be looked up."""
    channel = interaction.channel
    if channel is None or (channel.type in THREAD_KINDS and channel.parent_id is None):
        return None
    return channel


def channel_id_of(interaction: Interaction) -> str | None:
    """The id of the channel."""
    return interaction.channel.id if interaction.channel is not None else interaction.channel_id


def person_of(interaction: Interaction) -> Person | None:
    """Who it was; None for an interaction that names nobody."""
    member = interaction.member
    user = member.user if member is not None and member.user is not None else interaction.user
    return _person(user, member) if user is not None else None


def tap_of(interaction: Interaction, place: Destination) -> Tap | None:
    """The press, or the dialog sent, as a tap; None for what cannot come from a button of ours."""
    person = person_of(interaction)
    if person is None or not interaction.data.custom_id:
        return None
    # What one person sees is no message of a chat: its id and place tell nothing of the card's.
    message = interaction.message if not interaction.on_panel else None
    return Tap(
        destination=place,
        message_id=message.id if message is not None else None,
        person=person,
        token=interaction.data.custom_id,
        tap_id=interaction.id,
        order=number(message.id) if message is not None else 0,
        text=typed_text(interaction.data.components) if interaction.type == MODAL else None,
    )


def typed_text(parts: Any, depth: int = 0) -> str:
    """The first value in a dialog's fields, in whichever form they are nested; empty without any."""
    if depth > 4:
        return ""
    for part in parts if isinstance(parts, list | tuple) else ():
        if isinstance(part, dict):
            if isinstance(part.get("value"), str):
                return str(part["value"])
            inner = part.get("components") or [part.get("component")]
            if text := typed_text(inner, depth + 1):
                return text
    return ""


def is_talk(incoming: Incoming, me: Me) -> bool:
    """Whether somebody else wrote something that can be read at all."""
    if incoming.author is None or incoming.author.id == me.user_id:
        return False
    return incoming.type in (DEFAULT_MESSAGE, REPLY_MESSAGE) and bool(_text(incoming))


def message_of(incoming: Incoming, place: Destination, me: Me) -> Message | None:
    """The message as typed to us, without our name in it; None when there is nothing to read."""
    author, text = incoming.author, _text(incoming)
    if author is None or not is_talk(incoming, me):
        return None
    mention = re.match(rf"\s*<@!?{re.escape(me.user_id)}>[\s,:]*", text)
    if mention is not None:
        text = text[mention.end() :]
    reference, quoted = incoming.message_reference, incoming.referenced_message
    forwarded = bool(incoming.message_snapshots) or (reference is not None and reference.type == FORWARD)
    to_us = quoted is not None and quoted.author is not None and quoted.author.id == me.user_id
    named = any(user.id == me.user_id for user in incoming.mentions)
    return Message(
        destination=place,
        message_id=incoming.id,
        order=number(incoming.id),
        person=_person(author, incoming.member),
        text=text,
        reply_to=reference.message_id if reference is not None and not forwarded else None,
        direct=incoming.guild_id is None,
        addressed=mention is not None or to_us or named,
        unattributable=forwarded
        or author.bot
        or incoming.webhook_id is not None
        or incoming.edited_timestamp is not None,
        at=written_at(incoming.id),
    )


def command_message(interaction: Interaction, place: Destination, text: str) -> Message | None:
    """A slash command as a typed message; its replies are shown as the answer to it."""
    person = person_of(interaction)
    if person is None:
        return None
    return Message(
        destination=place,
        message_id=interaction.id,
        order=number(interaction.id),
        person=person,
        text=text,
        direct=interaction.guild_id is None,
        addressed=True,
        replies="all",
        at=written_at(interaction.id),
    )


def written_at(snowflake: str) -> datetime | None:
    """The end of the millisecond in which an id was made; None for one that is none."""
    made = number(snowflake) >> 22
    return EPOCH + timedelta(milliseconds=made + 1) if made else None


def number(snowflake: str) -> int:
    """An id as its place in Discord's order; 0 for one that is none."""
    return int(snowflake) if snowflake.isascii() and snowflake.isdigit() and len(snowflake) <= 20 else 0


def _text(incoming: Incoming) -> str:
    """What stands in the message; a forwarded one carries it in a snapshot."""
    if incoming.content or not incoming.message_snapshots:
        return incoming.content
    first = incoming.message_snapshots[0]
    inner = first.get("message") if isinstance(first, dict) else None
    text = inner.get("content") if isinstance(inner, dict) else None
    return text if isinstance(text, str) else ""


def _person(user: User, member: Member | None) -> Person:
    name = (member.nick if member is not None else None) or user.global_name or user.username or None
    roles = tuple(f"role:{role}" for role in member.roles) if member is not None else ()
    return Person(platform=PLATFORM, user_id=user.id, name=name, groups=roles)

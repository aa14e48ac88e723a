"""What Slack delivers, reduced to the fields that are used, and how it is read as taps and messages.

The same payloads come through sockets and signed requests. Each is read on its own, so that one in an unknown shape
fails alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from signoff.model import Destination, Message, Person, Tap

from .render import ACTION, CALLBACK, FIELD, thread_of_row

PLATFORM = "slack"
Kind = Literal["events_api", "interactive", "slash_commands"]
_FAR_US = 32_503_680_000_000_000
"""The year 3000."""
_TALK = frozenset({None, "thread_broadcast", "file_share", "me_message", "bot_message", "message_changed"})
"""Kinds of messages that hold something said; joins, topics and deletions are not."""
_REFERENCE = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")
_TS = re.compile(r"(\d{1,12})\.(\d{1,6})")

Ours = Callable[[str, str], bool]
"""Whether a message, by channel and timestamp, was posted by us."""


class Me(Struct, frozen=True, kw_only=True):
    """The bot itself and its workspace, as `auth.test` tells."""

    user_id: str
    bot_id: str | None = None
    team_id: str = ""
    enterprise_id: str | None = None

    def home(self, team: str | None) -> bool:
        """Whether this workspace is ours; nothing said is no objection."""
        return not team or team in (self.team_id, self.enterprise_id)


class _Named(Struct, frozen=True):
    id: str = ""


class User(Struct, frozen=True):
    """Somebody who acted; only the id identifies."""

    id: str
    name: str | None = None
    username: str | None = None
    team_id: str | None = None


class _Container(Struct, frozen=True):
    message_ts: str | None = None
    channel_id: str | None = None
    thread_ts: str | None = None
    is_ephemeral: bool = False


class _Pressed(Struct, frozen=True):
    ts: str | None = None
    thread_ts: str | None = None


class _Action(Struct, frozen=True):
    action_id: str = ""
    block_id: str = ""
    value: str | None = None
    action_ts: str = ""


class _State(Struct, frozen=True):
    values: dict[str, dict[str, Any]] = {}


class _View(Struct, frozen=True):
    id: str = ""
    callback_id: str = ""
    private_metadata: str = ""
    state: _State = _State()


class Interaction(Struct, frozen=True):
    """A press of a button, or a dialog sent off."""

    type: str
    user: User
    trigger_id: str = ""
    response_url: str | None = None
    channel: _Named | None = None
    container: _Container = _Container()
    message: _Pressed | None = None
    actions: tuple[_Action, ...] = ()
    view: _View | None = None


class Slash(Struct, frozen=True, kw_only=True):
    """A slash command."""

    user_id: str
    channel_id: str
    user_name: str | None = None
    team_id: str | None = None
    text: str = ""
    trigger_id: str = ""
    response_url: str | None = None


class _Attached(Struct, frozen=True):
    is_share: bool = False
    is_msg_unfurl: bool = False
    text: str | None = None


class _Edited(Struct, frozen=True):
    ts: str = ""


class Event(Struct, frozen=True):
    """What happened in a channel. An edit carries the message as it is now and as it was."""

    type: str = ""
    subtype: str | None = None
    channel: Any = None
    channel_type: str | None = None
    user: Any = None
    bot_id: str | None = None
    text: str | None = None
    ts: str | None = None
    event_ts: str | None = None
    thread_ts: str | None = None
    parent_user_id: str | None = None
    team: str | None = None
    user_team: str | None = None
    attachments: tuple[_Attached, ...] = ()
    edited: _Edited | None = None
    message: Event | None = None
    previous_message: Event | None = None


class Callback(Struct, frozen=True):
    """An event's wrapping."""

    event: Event | None = None


class Posted(Struct, frozen=True):
    """As little of a posted JSON body as tells what it is; a challenge comes when a request URL is set."""

    type: str = ""
    challenge: str | None = None


class Frame(Struct, frozen=True):
    """What comes through a socket."""

    type: str = ""
    envelope_id: str | None = None
    payload: msgspec.Raw = field(default_factory=lambda: msgspec.Raw(b"{}"))
    reason: str | None = None


class Handle(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where and to whom the answer to an interaction is shown."""

    channel: str
    user: str
    thread: str | None = None
    response_url: str | None = None
    trigger_id: str = ""
    panel: bool = False
    """It was done on a private panel, whose place the answer takes."""


class Pressed(Struct, frozen=True):
    """A tap and where it is answered. `team` is the person's workspace as the press tells it."""

    tap: Tap
    handle: Handle
    team: str | None
    typed: bool = False
    """It came from a dialog."""


class _Metadata(Struct, frozen=True):
    token: str
    handle: Handle


def metadata(token: str, handle: Handle) -> str:
    """What a dialog must bring back."""
    return msgspec.json.encode(_Metadata(token, msgspec.structs.replace(handle, trigger_id=""))).decode()


def pressed_of(interaction: Interaction) -> Pressed | None:
    """The press or sent dialog as a tap; None for what cannot come from a button or dialog of ours."""
    if interaction.type == "view_submission":
        return _submitted(interaction)
    if interaction.type != "block_actions" or not interaction.actions:
        return None
    action, container = interaction.actions[0], interaction.container
    channel = container.channel_id or (interaction.channel.id if interaction.channel else "")
    if not action.action_id.startswith(ACTION) or action.value is None or not channel:
        return None
    message = interaction.message or _Pressed()
    ts = container.message_ts or message.ts
    root = thread_of_row(action.block_id) or message.thread_ts or container.thread_ts
    thread = root if root != ts else None
    user = interaction.user
    handle = Handle(
        channel=channel,
        user=user.id,
        thread=thread,
        response_url=interaction.response_url,
        trigger_id=interaction.trigger_id,
        panel=container.is_ephemeral,
    )
    tap = Tap(
        destination=Destination(PLATFORM, channel, thread),
        message_id=None if container.is_ephemeral else ts,
        person=Person(platform=PLATFORM, user_id=user.id, name=user.name or user.username),
        token=action.value,
        tap_id=interaction.trigger_id or f"{user.id}:{action.action_ts}",
        order=0 if container.is_ephemeral else order_of(ts),
    )
    return Pressed(tap, handle, user.team_id)


def _submitted(interaction: Interaction) -> Pressed | None:
    view, user = interaction.view, interaction.user
    if view is None or view.callback_id != CALLBACK:
        return None
    try:
        kept = msgspec.json.decode(view.private_metadata, type=_Metadata)
    except msgspec.DecodeError:
        return None
    typed = view.state.values.get(FIELD, {}).get(FIELD)
    text = typed.get("value") if isinstance(typed, dict) else None
    handle = msgspec.structs.replace(kept.handle, user=user.id)
    tap = Tap(
        destination=Destination(PLATFORM, handle.channel, handle.thread),
        message_id=None,
        person=Person(platform=PLATFORM, user_id=user.id, name=user.name or user.username),
        token=kept.token,
        tap_id=interaction.trigger_id or f"{user.id}:{view.id}",
        text=text if isinstance(text, str) else "",
    )
    return Pressed(tap, handle, user.team_id, typed=True)


def command_of(slash: Slash, received: datetime, after: int = 0) -> Message:
    """The slash command as typed. It has no place of its own in the channel's order, so the time of receipt stands in,
    by our clock; `after` is a place that Slack's clock is known to have passed, should ours be behind.

    Slack does not say in which thread it was typed, if any: it is always the channel's main part.
    """
    return Message(
        destination=Destination(PLATFORM, slash.channel_id),
        message_id=slash.trigger_id,
        order=max(int(received.timestamp() * 1_000_000), after + 1),
        person=Person(platform=PLATFORM, user_id=slash.user_id, name=slash.user_name),
        text=f"/signoff {plain(slash.text)}".strip(),
        direct=slash.channel_id.startswith("D"),
        addressed=True,
        replies="all",
    )


def message_of(event: Event, me: Me, ours: Ours) -> Message | None:
    """The message as typed to us, without our name in it; None when nothing was said by anybody else.

    A thread under a card of ours is no place of its own: what is said there replies to the card, in the card's place.
    """
    inner = event if event.message is None else event.message
    edited = event.subtype == "message_changed"
    channel, sender, text = event.channel, inner.user or inner.bot_id, _said(inner)
    if not isinstance(channel, str) or not isinstance(sender, str) or inner.ts is None or not text:
        return None
    if sender in (me.user_id, me.bot_id) or inner.bot_id == (me.bot_id or "-"):
        return None
    if edited and event.previous_message is not None and event.previous_message.text == inner.text:
        return None  # a preview was added, or the message got a thread
    root = inner.thread_ts if inner.thread_ts != inner.ts else None
    under_ours = root is not None and (inner.parent_user_id == me.user_id or ours(channel, root))
    mention = f"<@{me.user_id}>"
    direct = event.channel_type == "im" or channel.startswith("D")
    return Message(
        destination=Destination(PLATFORM, channel, None if under_ours else root),
        message_id=inner.ts,
        order=order_of(inner.ts),
        person=Person(platform=PLATFORM, user_id=sender),
        text=plain(_unaddressed(text, me)),
        reply_to=root if under_ours else None,
        direct=direct,
        addressed=mention in text or f"<@{me.user_id}|" in text or event.type == "app_mention" or under_ours,
        unattributable=edited or inner.bot_id is not None or not inner.user or _shared(inner),
        replies="posted" if direct else "private",
        at=_written(order_of(inner.ts)),
    )


def is_talk(event: Event) -> bool:
    """Whether somebody said something."""
    return event.type == "app_mention" or (event.type == "message" and event.subtype in _TALK)


_LEFT: Mapping[str, str] = {
    "channel_left": "the app was removed from the channel",
    "group_left": "the app was removed from the channel",
    "channel_archive": "the channel was archived",
    "group_archive": "the channel was archived",
    "channel_deleted": "the channel was deleted",
    "group_deleted": "the channel was deleted",
}


def left_of(event: Event) -> tuple[Destination, str] | None:
    """The channel that we can be answered in no more, and why; None for other events."""
    why = _LEFT.get(event.type)
    return (Destination(PLATFORM, event.channel), why) if why and isinstance(event.channel, str) else None


def key_of(event: Event) -> str:
    """What makes the same message the same: a mention comes as two events, a retry with the same ids."""
    inner = event if event.message is None else event.message
    edit = f":{inner.edited.ts}" if event.subtype == "message_changed" and inner.edited else ""
    return f"{event.channel}:{inner.ts}{edit}"


def team_of(event: Event) -> str | None:
    """The workspace of whoever spoke."""
    inner = event if event.message is None else event.message
    return inner.user_team or inner.team


def _written(microseconds: int) -> datetime | None:
    """The instant of a place in a channel; None for one in an unknown form."""
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC) if 0 < microseconds < _FAR_US else None


def order_of(ts: str | None) -> int:
    """A timestamp's place in its channel, in microseconds; 0 for one in an unknown form."""
    found = _TS.fullmatch(ts or "")
    return int(found[1]) * 1_000_000 + int(found[2].ljust(6, "0")) if found else 0


def plain(text: str) -> str:
    """What was typed: references and links by their words, and the three escaped characters as themselves."""
    return _unescape(_REFERENCE.sub(_words, text)).strip()


def _words(reference: re.Match[str]) -> str:
    target, label = reference[1], reference[2]
    if target.startswith("@"):
        return f"@{label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    return label or target


def _unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _unaddressed(text: str, me: Me) -> str:
    return re.sub(rf"^\s*<@{re.escape(me.user_id)}(?:\|[^<>]*)?>[\s,:]*", "", text)


def _said(message: Event) -> str:
    """The text, or what a forwarded message says."""
    shared = next((each.text for each in message.attachments if each.is_share and each.text), None)
    return message.text or shared or ""


def _shared(message: Event) -> bool:
    return any(each.is_share for each in message.attachments)

"""What a person sees, and what a test may ask for: plain values that travel between processes unchanged."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

JsonObject = dict[str, Any]

GENERAL_TOPIC = 1
"""Topic id under which clients know a forum's General topic; the Bot API never takes it in a send."""

MemberStatus = Literal["creator", "administrator", "member", "restricted", "left", "kicked"]

FaultKind = Literal[
    "429",
    "500",
    "502",
    "401",
    "404",
    "409",
    "drop_before",
    "drop_after",
    "error_after",
    "stall",
    "bad_json",
    "chat_gone",
    "kicked",
    "migrate",
]
"""Ways in which a request can go wrong; `faults.py` says what each does."""

LimitsMode = Literal["enforce", "count", "off"]
"""`enforce` answers 429, `count` only counts what would have been refused, `off` does neither."""


class SeenButton(msgspec.Struct, frozen=True, kw_only=True):
    """One inline button as drawn under a message; `row` and `column` count from 0."""

    label: str
    callback_data: str | None = None
    style: str | None = None
    url: str | None = None
    row: int = 0
    column: int = 0


class SeenDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A file as its receiver can open it; `content` is empty once the server has forgotten an old file."""

    file_name: str
    file_id: str
    size_bytes: int
    content: bytes


class SeenMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message in a chat, in its present state, deleted or not.

    `entities` are the formatting as sent (offsets and lengths in UTF-16 units). `links` are the mentions, commands,
    hashtags and addresses that a client makes clickable by itself, which it does not do inside `pre` and `code`.
    `thread_id` is the forum topic, none for the General topic and for chats without topics. `edits` counts changes.
    """

    message_id: int
    chat_id: int
    from_id: int
    from_bot: bool
    text: str
    sent_at: datetime
    bot_id: int | None = None
    entities: list[JsonObject] = []
    buttons: list[SeenButton] = []
    links: list[str] = []
    reply_to: int | None = None
    thread_id: int | None = None
    document: SeenDocument | None = None
    deleted: bool = False
    edits: int = 0
    edited_at: datetime | None = None
    silent: bool = False
    force_reply: bool = False
    placeholder: str | None = None
    service: str | None = None

    def button(self, label_or_data: str) -> SeenButton:
        """The button with this callback data or this label; LookupError when a person could not see one."""
        for wanted in self.buttons:
            if label_or_data in (wanted.callback_data, wanted.label):
                return wanted
        labels = [each.label for each in self.buttons]
        raise LookupError(f"no button {label_or_data!r} under message {self.message_id}; there are {labels}")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the person who pressed was shown: a short toast, or with `show_alert` a box to close."""

    text: str
    show_alert: bool
    at: datetime


class PressState(msgspec.Struct, frozen=True, kw_only=True):
    """One press as the server knows it; `answer` is none until the bot has answered it in time."""

    query_id: str
    update_id: int
    user_id: int
    chat_id: int
    message_id: int
    data: str
    pressed_at: datetime
    answer: Answer | None = None


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One request that reached the server.

    `outcome` is `done`, `refused` (an error by the rules), `pending` (no answer yet) or `fault:<kind>`; `effect` says
    whether the request was carried out, which differs from the answer when an answer is lost.
    """

    number: int
    at: datetime
    bot_id: int | None
    method: str
    parameters: JsonObject
    chat_id: int | None
    status: int
    outcome: str
    description: str
    effect: bool


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One request beyond a budget; `budget` is `overall`, `chat`, `group` or `group_edits`."""

    budget: str
    chat_id: int
    method: str
    at: datetime
    retry_after_s: int


class LimitReport(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests went beyond each budget, and the latest of them (the counts are never cut)."""

    counts: dict[str, int]
    latest: list[Violation]

    @property
    def total(self) -> int:
        """Number of requests beyond any budget since the start or the last reset."""
        return sum(self.counts.values())


class WhereAt(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses of one server: the Bot API's, and the control API's own one that stays up while the other is down."""

    url: str
    control_url: str | None

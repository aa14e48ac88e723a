"""What a person sees, and what a test may ask for: plain values that travel between processes unchanged."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

JsonObject = dict[str, Any]

EnvelopeKind = Literal["events_api", "interactive", "slash_commands"]
DisconnectReason = Literal["warning", "refresh_requested", "link_disabled"]
LimitsMode = Literal["enforce", "count", "off"]
"""`enforce` answers 429, `count` only counts what would have been refused, `off` does neither."""

FaultKind = Literal[
    "429",
    "500",
    "503",
    "error",
    "drop_before",
    "drop_after",
    "error_after",
    "stall",
    "bad_json",
    "no_shares",
    "handshake",
    "deaf",
    "no_hello",
    "no_pong",
    "duplicate",
    "lose",
    "lose_ack",
    "abort",
]
"""Ways in which a request, a socket or a delivery can go wrong; `faults.py` says what each does."""

AnswerKind = Literal["ephemeral", "message", "replaced", "deleted", "modal", "errors", "closed", "error"]


class SeenConfirm(msgspec.Struct, frozen=True, kw_only=True):
    """The dialog a client shows before it sends a press."""

    title: str
    text: str
    confirm: str
    deny: str
    style: str | None = None


class SeenButton(msgspec.Struct, frozen=True, kw_only=True):
    """One button as drawn; `row` counts the message's rows of buttons from 0, `column` the buttons in it."""

    label: str
    value: str | None = None
    action_id: str
    block_id: str
    style: str | None = None
    url: str | None = None
    confirm: SeenConfirm | None = None
    accessibility_label: str | None = None
    row: int = 0
    column: int = 0


class SeenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as its receiver can open it; `content` is empty once the server has forgotten an old file."""

    file_id: str
    name: str
    title: str
    size_bytes: int
    content: bytes


class SeenMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message in its present state, deleted or not.

    `text` is what a person reads: the blocks as plain sentences, or the text when there are no blocks. `fallback` is
    the text as it reads in a notification, `raw_text` the same as sent. `links` are the words that a client makes
    clickable, outside code where it does that by itself. `pings` are those who are notified: user ids, `channel`,
    `here`, `everyone`, user group ids, from the blocks and from the text. `thread_ts` is none in a channel's main part
    and for a message that only began a thread. `ephemeral_to` is the only person who sees it. `edits` counts changes.
    """

    ts: str
    channel: str
    user: str
    by_bot: bool
    text: str
    fallback: str
    raw_text: str
    sent_at: datetime
    bot_id: str | None = None
    blocks: list[JsonObject] = []
    buttons: list[SeenButton] = []
    links: list[str] = []
    pings: list[str] = []
    thread_ts: str | None = None
    broadcast: bool = False
    ephemeral_to: str | None = None
    files: list[SeenFile] = []
    metadata: JsonObject | None = None
    unfurls: bool = True
    deleted: bool = False
    edits: int = 0
    edited_at: datetime | None = None

    def button(self, label_or_value: str) -> SeenButton:
        """The button with this value or this label; LookupError when a person could not see one."""
        for wanted in self.buttons:
            if label_or_value in (wanted.value, wanted.label):
                return wanted
        labels = [each.label for each in self.buttons]
        raise LookupError(f"no button {label_or_value!r} in message {self.ts}; there are {labels}")


class SeenView(msgspec.Struct, frozen=True, kw_only=True):
    """A modal as a person sees it; `errors` are the notes under its fields (by block id) after a refused submission."""

    view_id: str
    user: str
    title: str
    text: str
    submit: str | None
    fields: list[str]
    callback_id: str
    private_metadata: str
    view: JsonObject
    open: bool
    errors: dict[str, str] = {}
    opened_by: str | None = None
    """The press or command whose trigger opened it."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the person who pressed, typed or submitted was shown because of it.

    `ephemeral`: a message for that person alone. `message`: one for everybody. `replaced`, `deleted`: the message with
    the button changed or went away by way of its `response_url`. `modal`: a view opened (`view_id`). `errors`: the
    submission was refused (`text` has the notes). `closed`: the modal closed. `error`: nobody acknowledged, and Slack
    itself says so.
    """

    kind: AnswerKind
    text: str
    at: datetime
    ts: str | None = None
    view_id: str | None = None


class PressState(msgspec.Struct, frozen=True, kw_only=True):
    """One press, slash command or submission as the server knows it.

    `acknowledged_at` stays none for an acknowledgement that came late: it does not count. `attempted` are the answers
    by `response_url` that Slack refused, with their error.
    """

    press_id: str
    kind: Literal["press", "slash", "submission", "closing"]
    user: str
    channel: str | None
    ts: str | None
    value: str | None
    action_ts: str | None
    trigger_id: str
    envelope_id: str
    response_url: str | None
    pressed_at: datetime
    acknowledged_at: datetime | None = None
    timed_out: bool = False
    answers: list[Answer] = []
    attempted: list[str] = []

    @property
    def answer(self) -> Answer | None:
        """What was shown first."""
        return self.answers[0] if self.answers else None


class EnvelopeState(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery to an app. `state` is `pending`, `waiting` (for its next attempt),
    `acknowledged`, `late`, `failed` (nobody took it) or `given_up`.
    """

    envelope_id: str
    kind: EnvelopeKind
    bot: str
    state: str
    attempts: int
    sockets: list[int]
    made_at: datetime
    acknowledged_at: datetime | None = None
    ack_payload: JsonObject | None = None
    next_at: datetime | None = None
    """When the next attempt comes."""
    about: str = ""
    """The event's type, the action's id or the command."""


class SocketState(msgspec.Struct, frozen=True, kw_only=True):
    """One Socket Mode connection; a draining one was told to disconnect and gets nothing new."""

    number: int
    bot: str
    draining: bool
    deaf: bool


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One request that reached the server; `method` is also `response_url`, `upload` or `socket`.

    `outcome` is `done`, `refused` (an error by the rules), `pending` (no answer yet) or `fault:<kind>`; `error` is
    Slack's code. `effect` says whether the request was carried out, which differs from the answer when that is lost.
    """

    number: int
    at: datetime
    bot: str | None
    method: str
    parameters: JsonObject
    channel: str | None
    status: int
    outcome: str
    error: str
    effect: bool


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One request beyond a budget; `budget` is `channel`, `workspace`, or a method's name for the tiers."""

    budget: str
    channel: str | None
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
    """Addresses of one server: Slack's, and the control API's own one that stays up while the other is down."""

    url: str
    control_url: str | None

"""What a person sees, and what a test may ask for: plain values that travel between processes unchanged."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

JsonObject = dict[str, Any]

FaultKind = Literal[
    "401",
    "403",
    "404",
    "429",
    "500",
    "502",
    "503",
    "drop_before",
    "drop_after",
    "error_after",
    "stall",
    "bad_json",
    "wrong_content_type",
]
"""Ways in which a request can go wrong; `faults.py` says what each does."""

LimitsMode = Literal["enforce", "count", "off"]
"""`enforce` answers 429, `count` only counts what would have been refused, `off` does neither and sends no headers."""

AnswerKind = Literal["message", "update", "modal", "choices", "deferred", "deferred_update"]
"""What an interaction was answered with; the deferred kinds show nothing of their own."""

ButtonStyle = Literal["primary", "secondary", "success", "danger", "link", "premium"]


class SeenButton(msgspec.Struct, frozen=True, kw_only=True):
    """One button as drawn under a message; `row` and `column` count from 0."""

    label: str
    custom_id: str | None = None
    style: ButtonStyle = "secondary"
    url: str | None = None
    disabled: bool = False
    row: int = 0
    column: int = 0


class SeenFile(msgspec.Struct, frozen=True, kw_only=True):
    """An attached file as its receiver can open it."""

    file_name: str
    size_bytes: int
    content: bytes
    spoiler: bool = False


class SeenField(msgspec.Struct, frozen=True, kw_only=True):
    """One text field of a modal."""

    custom_id: str
    label: str
    paragraph: bool = False
    required: bool = True
    placeholder: str | None = None
    min_length: int = 0
    max_length: int = 4000
    value: str | None = None


class SeenModal(msgspec.Struct, frozen=True, kw_only=True):
    """A dialog opened for one person."""

    title: str
    custom_id: str
    fields: list[SeenField] = []


class SeenMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message in its present state, deleted or not.

    `content` is what was sent; `text` is what a person reads of it: markup interpreted, mentions by name, `<t:…>` as a
    time in UTC. `links` are the words that the client makes clickable (addresses, masked links, mentions), none of
    them in code. `pings` is who was notified when it was sent: `user:<id>`, `role:<id>`, `everyone`, `here`.
    `code` lists the code blocks, `spoilers` what shows only on a tap, `small` the small lines. `viewer` is the one
    person who sees an ephemeral message. `edits` counts changes.
    """

    message_id: int
    channel_id: int
    author_id: int
    author_bot: bool
    content: str
    text: str
    sent_at: datetime
    buttons: list[SeenButton] = []
    pings: list[str] = []
    links: list[str] = []
    code: list[str] = []
    spoilers: list[str] = []
    small: list[str] = []
    timestamps: list[str] = []
    embeds: list[JsonObject] = []
    reply_to: int | None = None
    files: list[SeenFile] = []
    deleted: bool = False
    edits: int = 0
    edited_at: datetime | None = None
    silent: bool = False
    embeds_suppressed: bool = False
    viewer: int | None = None
    interaction_id: int | None = None
    nonce: str | None = None
    loading: bool = False

    def button(self, label_or_id: str) -> SeenButton:
        """The button with this custom id or label; LookupError when a person could not press one."""
        for wanted in self.buttons:
            if label_or_id in (wanted.custom_id, wanted.label) and not wanted.disabled:
                return wanted
        labels = [each.label for each in self.buttons]
        raise LookupError(f"no button {label_or_id!r} under message {self.message_id}; there are {labels}")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that came of an interaction: its callback, a follow-up, or the edit of a deferred answer.

    `private` when only the person who acted sees it. `refused` is the error code when Discord did not take it (10062:
    too late, 40060: a second one), and then nobody saw it.
    """

    kind: AnswerKind
    at: datetime
    private: bool = False
    text: str = ""
    message_id: int | None = None
    modal: SeenModal | None = None
    choices: list[JsonObject] = []
    refused: int | None = None
    over_http: bool = False


class PressState(msgspec.Struct, frozen=True, kw_only=True):
    """One interaction as Discord knows it. `acknowledged_at` is none until a callback was taken in time.

    `failed` when its three seconds passed without one: the person read "This interaction failed". `deliveries` counts
    how often it went out or was queued for a lost session's resume, `http_status` is what an interactions URL
    answered last (0: nothing).
    """

    interaction_id: int
    kind: Literal["command", "component", "autocomplete", "modal"]
    user_id: int
    channel_id: int
    created_at: datetime
    message_id: int | None = None
    custom_id: str | None = None
    acknowledged_at: datetime | None = None
    failed: bool = False
    deliveries: int = 0
    http_status: int | None = None
    answers: list[Answer] = []


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One request that reached the server. `call` is its name in `routes.py`.

    `outcome` is `done`, `refused` (an error by the rules), `pending` (no answer yet) or `fault:<kind>`; `effect` says
    whether the request was carried out, which differs from the answer when an answer is lost. `code` is Discord's
    error code.
    """

    number: int
    at: datetime
    bot_id: int | None
    method: str
    path: str
    call: str
    body: Any
    file_names: list[str]
    channel_id: int | None
    status: int
    code: int
    outcome: str
    effect: bool


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One request beyond a budget: `global`, `bucket`, `old_edits`, `invalid`, `identify` or `gateway_sends`."""

    budget: str
    channel_id: int | None
    call: str
    at: datetime
    retry_after_s: float


class LimitReport(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests went beyond each budget, and the latest of them (the counts are never cut)."""

    counts: dict[str, int]
    latest: list[Violation]
    invalid_requests: int = 0
    identifies: int = 0

    @property
    def total(self) -> int:
        """Number of requests beyond any budget since the start or the last reset."""
        return sum(self.counts.values())


class SeenSession(msgspec.Struct, frozen=True, kw_only=True):
    """One gateway session: whether a socket holds it, what it was sent, and how many dispatches wait for a resume."""

    session_id: str
    bot_id: int
    connected: bool
    sequence: int
    waiting: int
    resumes: int
    heartbeats: int
    intents: int
    alive: bool


class Ping(msgspec.Struct, frozen=True, kw_only=True):
    """What an interactions URL answered to a PING; status 0 when it could not be reached."""

    signature: Literal["good", "bad", "other_key", "missing", "stale_body"]
    status: int
    accepted: bool


class WhereAt(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses of one server; the control API's own one stays up while the other is down."""

    url: str
    api_base_url: str
    gateway_url: str
    control_url: str | None

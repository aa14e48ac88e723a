"""The words of Signoff as frozen data: what is asked, how it ended, where it is shown.

Times are aware UTC. Ids are strings. A row is replaced, never changed in place
(`msgspec.structs.replace`), so that a change can be run again. Rows form no reference cycles, so the garbage collector
need not track them (`gc=False`): a full collection beside 100,000 pending rows is then ten times shorter.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

RowT = TypeVar("RowT", bound=Struct)
SessionKind = Literal["chat", "cli", "api", "cron", "webhook", "single_query", "worker", "child"]
Outcome = Literal["approved", "denied", "timeout", "cancelled", "notify_failed", "blocked", "staged"]
Severity = Literal["low", "medium", "high", "critical"]
ExecutionState = Literal["none", "claimed", "succeeded", "failed", "not_run", "unknown", "lapsed"]
CopyState = Literal["queued", "sending", "sent", "final", "failed", "ambiguous"]
CopyKind = Literal["card", "digest", "panel", "prompt", "note", "drill", "told", "catch_up"]
Scope = Literal["agent", "approver", "ops", "admin"]
Cause = Literal[
    "turn_ended",
    "session_ended",
    "stop_requested",
    "parent_ended",
    "turn_interrupted",
    "requester_gone",
    "withdrawn",
    "destination_removed",
    "notifier_gone",
    "undone",
    "client_cannot_answer",
    "prompt_failed",
    "no_prompt",
    "prompt_interrupted",
    "superseded",
]
CAUSES: frozenset[str] = frozenset(Cause.__args__)  # type: ignore[attr-defined]  # Literal's members, once
OUTCOMES: frozenset[str] = frozenset(Outcome.__args__)  # type: ignore[attr-defined]  # the same
AGENT_CAUSES: frozenset[str] = frozenset({"turn_ended", "withdrawn", "turn_interrupted", "parent_ended"})
"""The causes an agent may send; all others are implied by what happened, never told by the asker."""
ANSWERING_CAUSES: frozenset[str] = frozenset(
    {"notifier_gone", "client_cannot_answer", "prompt_failed", "no_prompt", "prompt_interrupted"}
)
"""The causes an answering side may give for its going: it never refuses a question in a person's place."""


# --- what an agent wants to do -------------------------------------------------------------------


class Operand(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A file that the action will read or run, as it was when the question was asked."""

    path: str
    sha256: str
    bytes: int


class _Action(
    Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="kind"
):
    """What all actions share: unknown fields are refused, since the digest must cover what was shown."""


class Command(_Action, frozen=True, kw_only=True, tag="command"):
    """A shell command, exactly as it will run."""

    command: str
    cwd: str | None = None
    shell: str | None = None
    env: dict[str, str] | None = None
    operands: tuple[Operand, ...] = ()


class Code(_Action, frozen=True, kw_only=True, tag="code"):
    """A script in a programming language."""

    language: str
    code: str
    cwd: str | None = None


class Tool(_Action, frozen=True, kw_only=True, tag="tool"):
    """A call of a named tool with JSON arguments."""

    name: str
    arguments: dict[str, Any] = {}


class FileWrite(_Action, frozen=True, kw_only=True, tag="file_write"):
    """A change of one file; `diff` is a unified diff where there is one."""

    path: str
    diff: str | None = None


class Elicitation(_Action, frozen=True, kw_only=True, tag="elicitation"):
    """A question that a tool server puts to the person."""

    server: str
    message: str
    schema: dict[str, Any] | None = None
    """The form that it asks to be filled in."""
    url: str | None = None
    """The page that it asks to be opened, instead of a form."""


class Rule(_Action, frozen=True, kw_only=True, tag="rule"):
    """A plugin's own rule wants a person for this tool call."""

    tool: str
    rule_key: str
    reason: str


Action = Command | Code | Tool | FileWrite | Elicitation | Rule


# --- places and people ---------------------------------------------------------------------------


class Destination(Struct, frozen=True, gc=False, order=True):
    """A platform, a chat and perhaps a thread; a thread is a place of its own. Written `platform:chat[/thread]`."""

    platform: str
    chat_id: str
    thread_id: str | None = None

    def __str__(self) -> str:
        text = f"{self.platform}:{self.chat_id}"
        return f"{text}/{self.thread_id}" if self.thread_id else text


class Person(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Somebody on a platform. `user_id` identifies; `name` is only what the platform shows today."""

    platform: str
    user_id: str
    name: str | None = None
    principal: str | None = None
    groups: tuple[str, ...] = ()
    guest: bool = False
    """The platform says that this is a guest or somebody of another workspace, who decides nothing, even if listed."""


class Actor(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Who decided or ended something: a person, a policy rule, a grant or the system itself."""

    type: Literal["person", "policy", "grant", "system", "agent"]
    principal: str | None = None
    platform: str | None = None
    user_id: str | None = None
    name: str | None = None
    rule: str | None = None
    setting: str | None = None
    grant_id: str | None = None
    via: Literal["button", "command", "approve_all", "api", "console", "cli"] | None = None
    key_id: str | None = None


# --- rows ----------------------------------------------------------------------------------------


class Vote(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One person's answer on the way to a decision. With the default threshold of 1 the first vote decides."""

    choice: str
    by: Actor
    at: datetime
    reason: str | None = None


class Execution(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What became of an approved action: a second fact beside the decision."""

    state: ExecutionState = "none"
    cause: str | None = None
    ended_by: Actor | None = None
    claim_id: str | None = None
    claimed_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None


class Covered(Struct, frozen=True, gc=False):
    """The standing approval that answered a request, as it was then."""

    scope: Literal["session", "always", "time_box"]
    label: str
    until: datetime | None = None
    """When its time box ends."""


class Alike(Struct, frozen=True, gc=False):
    """Those that were approved with their leader, on the leader's row: its card tells how all of them went."""

    states: dict[str, int]
    """How many of them stand in each state of execution. The leader itself is not counted."""
    since: int
    """The leader's `card_version` that shows the decision; newer ones show only how the runs go."""


class ApprovalRequest(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One question about one action: the row that every race is decided on."""

    request_id: str
    profile: str
    short_id: str
    session_id: str
    generation: int = 0
    """The session's generation at submit; stop and clear make older ones void."""
    turn_id: str | None = None
    tool_call_id: str | None = None
    agent: str | None = None
    kind: SessionKind = "api"
    requested_by: str | None = None
    """For whom the agent asks: the principal or user its registration or the chat event vouches for."""
    claimed_for: str | None = None
    """For whom the agent says it asks, where nothing vouches for it; shown as a claim."""
    host: str | None = None
    action: Action
    digest: str
    agent_reason: str | None = None
    description: str = ""
    severity: Severity = "medium"
    rule_keys: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    label: str = ""
    """What a grant of this request would cover, for a button: at most 20 characters."""
    breadth: str = ""
    coverage: tuple[str, ...] = ()
    """The names of which standing approvals must cover each; empty: its digest alone."""
    rung: str = ""
    """The step of the ladder that decided."""
    standing: str = ""
    """The name under which a permanent approval of it is kept; empty: its digest."""
    once_only: bool = False
    """No standing approval may cover it, and none may be given."""
    unread_file: str = ""
    """The file whose unknown content is the reason for `once_only`, where one is."""
    review: Literal["", "wanted", "approve", "deny", "escalate"] = ""
    """What the automatic reviewer said, or that it is to be asked before a person is."""
    likeness: str = ""
    """Equal for actions of the same programs that the same rules ask for."""
    denied_like: str | None = None
    """The request about a like action that a person denied not long before."""
    offer_box: bool = False
    """People approved the same so often that the card offers a time box in place of the session."""
    choices: tuple[str, ...] = ("once", "session", "always", "deny")
    destinations: tuple[Destination, ...] = ()
    timeout_s: float | None = None
    threshold: int = 1
    """How many people must agree."""
    created_at: datetime
    expires_at: datetime | None = None
    """The deadline; null until the window starts, and for ever without a deadline."""
    window_by: datetime | None = None
    """The window starts then at the latest, if no copy was sent before; null once it has started."""
    notify_by: datetime | None = None
    """15 s after the first attempt to send: by then a copy must have been accepted."""
    extended: bool = False
    """An opened panel stretches the window once."""
    stretched_s: float = 0.0
    """How much longer than `timeout_s` people let the window last."""
    lease_s: float | None = None
    """How long its agent's turn could be silent, where it was silent for longer."""
    outcome: Outcome | None = None
    choice: str | None = None
    cause: str | None = None
    decided_by: tuple[Actor, ...] = ()
    ended_by: Actor | None = None
    reason: str | None = None
    votes: tuple[Vote, ...] = ()
    decided_at: datetime | None = None
    decided_copy: str | None = None
    """The copy whose tap decided, so that this one need not say where."""
    grant_id: str | None = None
    covered: Covered | None = None
    """Where a standing approval answered: how wide that one is."""
    leader_id: str | None = None
    """Set on a follower: the request whose card it waits on."""
    follow_no: int = 0
    """A follower's place in its leader's queue, from 1; a card counts followers up to a number."""
    last_follow_no: int = 0
    """On a leader: the highest `follow_no` ever given out."""
    waiters: int = 0
    """On a leader: how many followers wait now."""
    asked_runs: int = 1
    """How many runs the card counted when the request ended, its own included."""
    runs: int = 1
    """How many runs the answer allowed or refused, its own included."""
    alike: Alike | None = None
    """On a leader: those that were approved with it."""
    coalesce_key: str = ""
    card_version: int = 0
    """Goes up with each change a card must show."""
    next_of: str | None = None
    """The request whose one-time approval made this follower a leader (`Next of 3: …`)."""
    repeat_of: str | None = None
    """The request about the same action that a person had denied, so that this one was not asked."""
    repeat_short: str = ""
    repeat_at: datetime | None = None
    """Its short id, and when it was denied."""
    asked_after: datetime | None = None
    """On a denied one: when the same was asked first after it, and not shown to anybody."""
    lifted_by: Actor | None = None
    """On a denied one: who let the action be asked again."""
    content: dict[str, Any] | None = None
    """Of a server's question that was accepted: what was filled into its fields."""
    wanted_by: Actor | None = None
    """On one that ended while nobody was there: who wants to be asked about it again."""
    superseded_by: str | None = None
    kept_as: str | None = None
    """On a staged one: the question whether the kept action may run later."""
    kept_short: str = ""
    """Its short id, by which people and texts name the kept action."""
    again_as: str = ""
    """On that question, where a person had the action run once more: the short id of the newer one."""
    again_of: str = ""
    """On that newer one: the short id of the older."""
    stages: str | None = None
    """On that question: the request that was staged. It belongs to no turn, and a stop or end of the session leaves
    it."""
    executor: str | None = None
    """On both: the name of the executor that runs the action once a person approved it."""
    pass_sha256: str = ""
    """The hash of the one-time token with which this very run goes through the tool gate a second time."""
    pass_used_by: str | None = None
    """The request that used it."""
    warnings: tuple[str, ...] = ()
    delivered_to: tuple[Destination, ...] = ()
    delivery_error: str | None = None
    """Why a card could not be delivered, in the words of the platform that was tried last."""
    refused_by: Destination | None = None
    """The place that refused the card with that error; null where none answered."""
    execution: Execution = Execution()
    claim_by: datetime | None = None
    """An unclaimed approval lapses then; a claim without a turn and result becomes unknown then."""

    def __bool__(self) -> bool:
        raise TypeError("an approval has no truth value; use .may_run")

    @property
    def pending(self) -> bool:
        """Nobody and nothing has ended the question yet."""
        return self.outcome is None

    @property
    def may_run(self) -> bool:
        """True only for a claimed approval: a decision alone is never permission to run."""
        return self.outcome == "approved" and self.execution.state == "claimed"


class Session(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One conversation that may ask."""

    profile: str
    session_id: str
    kind: SessionKind
    agent: str | None = None
    destination: Destination | None = None
    user_id: str | None = None
    """The session's own user on its platform; that person may stop it."""
    parent: str | None = None
    parent_turn: str | None = None
    generation: int = 0
    created_at: datetime
    closed_at: datetime | None = None
    cause: str | None = None
    """Why it was closed or last stopped, for what is submitted later."""
    ended_by: Actor | None = None
    """Who closed or stopped it."""
    stopped_at: datetime | None = None
    """When it was last stopped, started anew or closed: a child that was made before is over, also one that asks for
    the first time."""
    bypass_until: datetime | None = None
    """Nothing is asked in it until then."""
    bypass_by: Actor | None = None
    """Who said so."""
    bypass_place: Destination | None = None
    """The chat it was said in."""
    bypass_message: str | None = None
    """The typed message that said so last, also after its end: delivered again, it changes nothing."""
    seen_at: datetime | None = None
    """Where sessions expire: when it, or a child of it, was last used since it started anew."""
    ends_at: datetime | None = None
    """When it is looked at next, whether it has expired."""


class Turn(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One stretch of agent work; its end withdraws what it still asks."""

    profile: str
    turn_id: str
    session_id: str
    generation: int = 0
    lease_s: float = 60.0
    lease_until: datetime
    opened_at: datetime
    ended_at: datetime | None = None
    cause: str | None = None
    ended_by: Actor | None = None


class Notifier(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An answer client or in-process callback that can put a session's requests before a person."""

    profile: str
    session_id: str
    name: str
    principal: str | None = None
    attached_at: datetime
    gone_at: datetime | None = None
    """Its connection dropped; it counts as attached until then."""


class Face(Struct, frozen=True, gc=False, omit_defaults=True):
    """One revision of a copy: what its buttons meant when it was shown."""

    revision: int
    upto: int = 0
    """Followers with a `follow_no` up to this were counted on it."""
    shown: int = 0
    """How many followers it counted."""
    at: datetime | None = None
    """Before this nobody saw it. Null on the first one, which its message's place in the chat tells of."""


class Copy(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One posted (or to be posted) message: a card, a digest, a panel, a prompt or a note, and its sending state.

    A card that is listed on a digest has no message of its own: its state and place in the chat are the digest's.
    """

    copy_id: str
    """12 random bytes, base64url: 16 characters."""
    profile: str
    kind: CopyKind = "card"
    request_id: str | None = None
    destination: Destination
    message_id: str | None = None
    file_id: str | None = None
    """The message that carries the whole text of a clipped action."""
    order: int = 0
    """The message's place in the platform's own order of this chat."""
    state: CopyState = "queued"
    faces: tuple[Face, ...] = ()
    valid_from: int = 0
    """Buttons of older revisions belong to another leader: they are answered 'replaced'."""
    shown_version: int = -1
    """The `card_version` last shown; an edit is due while it is older than the request's."""
    again: bool = False
    """A second copy, posted because the answer to the first send was lost."""
    reposted: bool = False
    """Its doubtful send was repeated once already."""
    whole_shown: bool = True
    """Whether the whole action is in reach on it; without that it bears no approving button."""
    owner_id: str | None = None
    """Panels and prompts obey only this person (platform user id)."""
    owner_name: str | None = None
    private: bool = False
    """A panel that the platform shows to its owner only: it is the answer to a tap, and is never edited or removed."""
    panel: str | None = None
    """Which panel it is: more, because, confirm, why, type."""
    choice: str | None = None
    """The choice that a `confirm` panel would make."""
    parent_copy: str | None = None
    digest: str | None = None
    """On a listed card: the copy id of the digest that shows it."""
    listed: tuple[str, ...] = ()
    """On a digest: the copy ids of the cards it shows, in their order."""
    shown_at: datetime | None = None
    """On a digest: when it was posted or edited last; its edits keep a distance."""
    note: str | None = None
    """A note's content: a `Card` as JSON. A drill's: its state. What a message about an absence tells. Of a card in the
    fallback place: the place that did not take it; of the word told there: where the question is asked."""
    priority: int = 2
    """0 answer, 1 final edit, 2 new card, 3 other edits."""
    due_at: datetime | None = None
    """When the dispatcher should look at it next; null: nothing to do."""
    lease_until: datetime | None = None
    attempts: int = 0
    created_at: datetime
    sent_at: datetime | None = None
    first_attempt_at: datetime | None = None
    error: str | None = None
    limited: bool = False
    """It waits for a rate budget: queued, not failed."""
    remove: bool = False
    """The message is to be deleted (a closed panel)."""


class Grant(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What `session`, `always` or a time box leaves behind."""

    profile: str
    grant_id: str
    scope: Literal["session", "always", "time_box"]
    session_id: str | None = None
    action_kind: str
    digest: str
    coverage: tuple[str, ...] = ()
    """The names it covers; empty: the digest."""
    exact: str | None = None
    """Of a permanent one: the command's exact text, where the text alone decides what it does."""
    filed: bool = False
    """Whether the operator's allowlist file has a line for it."""
    label: str = ""
    shown: str = ""
    """The masked action it was given for, one line."""
    by: Actor
    request_id: str
    created_at: datetime
    expires_at: datetime | None = None
    uses: int = 0
    """How many questions it answered."""
    used_at: datetime | None = None
    """When it last did."""
    revoked_at: datetime | None = None
    revoked_by: Actor | None = None


class AllowlistEntry(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An operator's line of an allowlist, where the store has the lines and not a file."""

    profile: str
    entry_id: str
    """Made of the list and the text, so that a line stands once in its list however often it is added."""
    list: str
    """`commands` or `unattended_commands`; in any other it admits nothing."""
    text: str
    rank: int = 0
    """Its place among the lines that were added in the same commit."""
    source: str = ""
    """The file it was imported from; empty where it was added by itself."""
    by: Actor
    created_at: datetime
    removed_at: datetime | None = None
    removed_by: Actor | None = None


class Key(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An API key: only its hash is kept."""

    key_id: str
    profile: str
    scope: Scope
    secret_sha256: str
    agent: str | None = None
    principal: str | None = None
    created_at: datetime
    revoked_at: datetime | None = None


class Note(Struct, frozen=True, gc=False, kw_only=True):
    """A named value of the gateway itself (heartbeat, an adapter's offset, a hook secret)."""

    name: str
    value: str


class Event(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One line of the event log. `seq` rises by one per profile."""

    profile: str
    type: str
    at: datetime
    seq: int = 0
    session_id: str | None = None
    request_id: str | None = None
    data: dict[str, Any] = {}


class Change(Struct, frozen=True, gc=False):
    """One item of the change feed: the event, and the request as that commit left it."""

    event: Event
    request: ApprovalRequest | None = None


# --- what is shown -------------------------------------------------------------------------------


class Span(Struct, frozen=True, gc=False, omit_defaults=True):
    """A run of text in one style. `at` makes a clock that the reader's app may localise; `href` a link."""

    text: str
    style: Literal["plain", "bold", "code", "link", "relative_time", "clock", "mention"] = "plain"
    href: str | None = None
    at: datetime | None = None


class Block(Struct, frozen=True, gc=False, omit_defaults=True):
    """A paragraph, a code block, a quotation or small print."""

    kind: Literal["text", "code", "quote", "small"]
    spans: tuple[Span, ...] = ()
    language: str | None = None
    fold: bool = False
    """A long quotation that the reader opens, where the platform can fold one."""


class Button(Struct, frozen=True, gc=False, omit_defaults=True):
    """A label and the signed token it carries. `read_as` is what a screen reader says where a platform can."""

    label: str
    token: str
    style: Literal["success", "danger", "neutral"] = "neutral"
    read_as: str | None = None


class Attachment(Struct, frozen=True, gc=False):
    """A file that goes with a card: the whole text when the card shows it clipped."""

    name: str
    content: bytes


class Card(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A platform-neutral message. Renderers escape every span; no text in it is ever markup."""

    blocks: tuple[Block, ...]
    rows: tuple[tuple[Button, ...], ...] = ()
    attachment: Attachment | None = None
    silent: bool = False
    prompt: str | None = None
    """Ask the reader for a typed reply, with this placeholder."""


class Posted(Struct, frozen=True, gc=False):
    """Where a message ended up: its id and its place in the chat's own order."""

    message_id: str
    order: int
    file_id: str | None = None


# --- what comes in -------------------------------------------------------------------------------


class Tap(Struct, frozen=True, gc=False, kw_only=True):
    """A press of one of our buttons, as the platform vouches for it. The token is not yet verified."""

    destination: Destination
    message_id: str | None
    person: Person
    token: str
    tap_id: str
    order: int = 0
    """The pressed message's place in the chat's own order; 0 where it is not known."""
    text: str | None = None
    """What was typed into a dialog, on platforms that have one."""


class Dialog(Struct, frozen=True, gc=False, kw_only=True):
    """A question for one typed line. What is typed comes back as a `Tap` with this token and the text."""

    title: str
    label: str
    placeholder: str
    token: str
    max_units: int
    """UTF-16 units that the field takes."""


class Answer(Struct, frozen=True, gc=False):
    """What the person who tapped is told, privately. `alert` asks for a box that must be closed.

    A press on a private panel is done with it: the answer stands in the panel's place.
    """

    text: str
    alert: bool = False
    lost: bool = False
    """The tap came too late and changed nothing; if this cannot be told privately, it is told in the chat once."""
    panel: Card | None = None
    """On a platform with private panels: the panel to show to this person."""
    dialog: Dialog | None = None
    """On a platform with dialogs: what to ask this person."""


class Message(Struct, frozen=True, gc=False, kw_only=True):
    """A typed message that may be a command."""

    destination: Destination
    message_id: str
    order: int
    person: Person
    text: str
    reply_to: str | None = None
    direct: bool = False
    addressed: bool = False
    """The bot was mentioned or the message is a reply to it."""
    unattributable: bool = False
    """Forwarded, edited, anonymous, or from a bot or webhook: it decides nothing."""
    replies: Literal["posted", "private", "all"] = "posted"
    """Which replies the adapter shows itself: none, those that are for the writer alone, or all (a slash command)."""
    at: datetime | None = None
    """When it was written at the latest, aware UTC by the platform's clock; None where the platform does not say."""


class Reply(Struct, frozen=True, gc=False):
    """The answer to a typed command, handed to the adapter to show. `private`: a list or a refusal, for the writer."""

    card: Card
    private: bool


class Suggestion(Struct, frozen=True, gc=False):
    """A request that a half-typed command may mean."""

    short_id: str
    line: str
    """What it is, masked, in one line."""


class Health(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An adapter's state and what it last heard, for `health/detailed`."""

    state: Literal["starting", "ready", "degraded", "stopped"]
    last_heard_at: datetime | None = None
    detail: str = ""
    history: tuple[str, ...] = ()


def replace(row: RowT, /, **changes: Any) -> RowT:
    """`row` with `changes`; a thin name over msgspec's own."""
    return msgspec.structs.replace(row, **changes)

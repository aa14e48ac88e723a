"""What the core needs from the outside: a store, a chat adapter, a clock. Protocols, not base classes.

**Store.** Every change goes through `Store.transact(change)`. `change` is a pure function of the transaction it is
handed: it reads rows through it, stages rows and events on it, and returns a value. All it staged commits in one
transaction or not at all. It may be run again (a conflict, or an engine that must fetch what the first run asked
for), so it has no other effect. Rows are the single writer: any race has one winner because the loser's change
reads what the winner left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from signoff.model import (
    Answer,
    Card,
    Change,
    Destination,
    Event,
    Health,
    Message,
    Person,
    Posted,
    Reply,
    Suggestion,
    Tap,
)

R = TypeVar("R", bound=Struct)
T = TypeVar("T")


class Clock(Protocol):
    """The time. Tests hand in one that stands still."""

    def now(self) -> datetime:
        """The present instant, aware UTC. It never goes back; it may leap ahead, as after a sleep of the machine."""
        ...

    def wall(self) -> datetime:
        """What others' clocks are compared with, as by a signature's time; it may go back."""
        ...

    def passed(self) -> float:
        """Seconds that passed since some instant, without those by which `now` leapt."""
        ...

    async def sleep_until(self, when: datetime) -> None:
        """Return once `now() >= when`; ends early only by cancellation."""
        ...


class Tx(Protocol):
    """One transaction, as a change sees it. Reads see what the same change already staged."""

    @property
    def now(self) -> datetime:
        """The store's time of this transaction; deadlines are decided by it."""
        ...

    def get(self, row: type[R], key: str) -> R | None:
        """The row of that type with that key (`rows.key_of`), or None."""
        ...

    def find(self, row: type[R], path: str, value: str, *, limit: int | None = None) -> list[R]:
        """The rows whose column `path` equals `value`, in the table's own order (`rows.TABLES`)."""
        ...

    def put(self, row: Struct) -> None:
        """Stage this row, new or changed."""
        ...

    def delete(self, row: Struct) -> None:
        """Stage the removal of this row."""
        ...

    def emit(self, event: Event) -> None:
        """Stage an event; the store gives it the profile's next `seq` at commit."""
        ...


class Store(Protocol):
    """Durable rows, an event log and the change feed. Engines: memory, SQLite and PostgreSQL."""

    @property
    def shared(self) -> bool:
        """Whether several gateways, each on its own machine, may serve this database at once. What they all judge by
        then stands in it, and not in a file of one of them."""
        ...

    async def transact(self, change: Callable[[Tx], T], *, bulk: bool = False) -> T:
        """Run `change` and commit; return its value once durable.

        `change` may be run several times; a run whose outcome is thrown away may be told that rows are missing.
        An exception from `change` rolls back and is raised here. `bulk` says that it may touch thousands of rows,
        so the engine should keep it off the event loop. The commit is shielded from the caller's cancellation.
        Raises `StoreUnavailable` when nothing could be saved, `SaveUnknown` when it is not known.
        """
        ...

    async def get(self, row: type[R], key: str) -> R | None:
        """The committed row, or None."""
        ...

    async def find(
        self, row: type[R], path: str, value: str, *, limit: int | None = None, after: str | None = None
    ) -> list[R]:
        """Committed rows by an indexed column, in the table's order; `after` is the key of the last one seen."""
        ...

    async def due(self, row: type[R], now: datetime, *, limit: int) -> list[R]:
        """Rows whose due time is at or before `now`, most urgent first."""
        ...

    async def next_due(self, row: type[Struct]) -> datetime | None:
        """The earliest due time of that table, or None."""
        ...

    async def events(self, profile: str, after: int, *, limit: int, session_id: str | None = None) -> list[Event]:
        """Committed events of a profile with `seq > after`, in order."""
        ...

    async def last_seq(self, profile: str) -> int:
        """The highest committed `seq` of a profile, 0 before the first."""
        ...

    def subscribe(self, listener: Callable[[Sequence[Change]], None]) -> Callable[[], None]:
        """Call `listener` on the loop with each commit's changes, in commit order; returns how to end it.

        Commits of other processes on the same database arrive too.
        """
        ...

    async def check(self) -> dict[str, Any]:
        """Facts for `health/detailed`; raises `StoreError` when it cannot serve."""
        ...

    async def aclose(self) -> None:
        """Finish what is queued, then close. Idempotent."""
        ...


class Inbox(Protocol):
    """Where an adapter hands in what it received. Each call returns after the effect is durable."""

    async def tap(self, tap: Tap) -> Answer:
        """Verify, authorise, decide; returns what the person is told. Never raises for what a person did."""
        ...

    async def unanswered(self, tap: Tap, answer: Answer) -> None:
        """The platform no longer takes the private answer to this tap. One that lost gets a reply in the chat."""
        ...

    async def message(self, message: Message) -> Reply | None:
        """A typed message. Its reply is posted by the gateway, or returned where `message.replies` says that the
        adapter shows it."""
        ...

    async def pending(self, place: Destination, person: Person) -> Sequence[Suggestion]:
        """What waits in this place, in the order of its cards, for completing a half-typed id; empty for somebody
        who may not decide."""
        ...

    def approvers(self) -> Sequence[str]:
        """The users of this platform who may decide and are named one by one: those whose press is to be expected."""
        ...

    def groups(self) -> Sequence[str]:
        """The `role:` and `group:` ids of this platform whose members may decide. A platform that does not tell them
        with a press is asked for these alone; who is in one has it in `Person.groups`."""
        ...

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """A chat got a new id; open cards are posted anew there."""
        ...

    async def left(self, place: Destination, why: str) -> None:
        """A chat with its threads, or one thread, can be answered in no more: it was deleted, or we were removed. `why`
        is for people, such as "the bot was removed from the chat". What nobody else can answer goes to the fallback."""
        ...

    async def load(self, name: str) -> str | None:
        """A small durable value of the adapter's own (an offset), by name."""
        ...

    async def save(self, name: str, value: str) -> None:
        """Keep such a value."""
        ...

    async def alarm(self, what: str, detail: str) -> None:
        """Something an operator must look at, such as an update that always fails."""
        ...


class AdapterInfo(Struct, frozen=True, kw_only=True):
    """What the core may know about a platform."""

    platform: str
    title: str
    """The platform's name for people."""
    command_prefix: str = "/"
    thread_prefix: str | None = None
    """What stands before a typed command in a thread, where it cannot be typed there as elsewhere."""
    max_text_units: int = 4096
    """UTF-16 units of one message, after rendering."""
    private_panels: bool = False
    """Panels are shown to one person only, as the answer to a tap; otherwise they are replies that all can see."""
    ticks: bool = True
    """A time counts down by itself in a message, in the apps that people have today."""
    dialogs: bool = False
    """A typed reason is asked in a dialog; otherwise by a prompt message. Only with private panels."""
    per_second: float = 30.0
    """Calls a second over the whole bot."""
    per_chat_s: float = 1.0
    """Seconds between two messages to one chat, on average."""
    burst: int = 3
    """Messages to one chat that may follow each other at once: so many in `burst` times `per_chat_s`, whenever that
    begins."""
    group_per_minute: int = 20
    """Messages a minute to one group."""
    resend_ambiguous: bool = True
    """The platform has no idempotency key, so a doubtful send is repeated once, marked. With a key the adapter repeats
    it itself; one that a crash broke off is handed to it again as it was, and must come to the same key."""

    def prefix_at(self, place: Destination, reply_to: str | None = None) -> str:
        """What stands before a command typed there; `reply_to`: below this message, which may have a thread of its
        own."""
        in_thread = place.thread_id is not None or reply_to is not None
        return self.thread_prefix if in_thread and self.thread_prefix is not None else self.command_prefix


class HookRoute(Struct, frozen=True):
    """A route for the hooks listener: mounted at `/hooks/{profile}/{platform}`."""

    method: str
    handler: Callable[[Any], Awaitable[Any]]
    """Takes and returns aiohttp's request and response."""


@runtime_checkable
class ChatAdapter(Protocol):
    """One platform. Sends raise only the `AdapterError` family; what comes in goes to the inbox."""

    info: AdapterInfo

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled; heals by itself; returns or raises `AdapterFatal` only when it must not go on."""
        ...

    async def ready(self) -> None:
        """Return once a proven round with the platform is done; raises `AdapterError` if the first try failed."""
        ...

    def hooks(self) -> HookRoute | None:
        """The route to mount in webhook mode, or None."""
        ...

    def is_group(self, destination: Destination) -> bool:
        """Whether group budgets apply to this place."""
        ...

    async def post(self, destination: Destination, card: Card, *, reply_to: str | None = None) -> Posted:
        """Send once. Raises `RateLimited`, `AdapterUnavailable` (surely not sent), `SendAmbiguous`, `SendRefused`,
        `ChatMoved`."""
        ...

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Rewrite the message; without rows its buttons go. An unchanged message is success. Raises `MessageGone`."""
        ...

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Remove the message; already gone is success."""
        ...

    def health(self) -> Health:
        """State judged by what was received, never by a library's flag."""
        ...

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
        ...


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was examined, in words for an operator. No secret stands in it."""

    level: Literal["ok", "warning", "problem"]
    about: str
    """What was examined, in a word or two: `token`, `rights`, `clock`."""
    text: str
    """What was found, and where it matters why."""
    mend: str = ""
    """How to mend it, in one sentence; empty where all is well."""

    @classmethod
    def fine(cls, about: str, text: str) -> Finding:
        """All is well."""
        return cls(level="ok", about=about, text=text)

    @classmethod
    def warning(cls, about: str, text: str, mend: str) -> Finding:
        """It works, and something will go wrong or could not be examined."""
        return cls(level="warning", about=about, text=text, mend=mend)

    @classmethod
    def problem(cls, about: str, text: str, mend: str) -> Finding:
        """It does not work until it is mended."""
        return cls(level="problem", about=about, text=text, mend=mend)


class Introduction(Struct, frozen=True, kw_only=True):
    """Who the platform says that we are."""

    name: str
    """The bot's or app's name for people."""
    user_id: str
    chat_url: str | None = None
    """Where a person begins a direct chat with it."""
    invite_url: str | None = None
    """By which it is added to a server, with exactly the permissions that it needs."""


@runtime_checkable
class GroupCheckup(Protocol):
    """What a `Checkup` has besides where the platform is asked who is in a group."""

    async def group(self, group: str) -> Finding:
        """Whether the members of this approver, such as `group:S0123ABCD`, can be told. Never raises for what is wrong
        at the platform."""
        ...


class Checkup(Protocol):
    """Examines one platform by calls that change nothing there. It stands in the module `checkup` of an adapter's
    package, opened by its `open_checkup(config)`; an adapter may do without."""

    time_url: str
    """An address of the platform that answers without a key, so that clocks can be compared."""

    async def introduce(self) -> Introduction:
        """Ask who we are. Raises `AdapterError` that says what is wrong and how to mend it."""
        ...

    async def account(self, *, serving: bool) -> list[Finding]:
        """Examine the token, the rights and the way in. `serving` says that a gateway of ours receives right now, so
        that nothing may be received here. Never raises for what is wrong at the platform."""
        ...

    async def place(self, destination: Destination) -> Finding:
        """Whether a card with its file can be posted there. Never raises for what is wrong at the platform."""
        ...

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
        ...

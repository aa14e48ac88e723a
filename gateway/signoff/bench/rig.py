"""A gateway in a temporary folder with a chat that costs nothing, and people who tap at once."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from signoff.broker import Ask
from signoff.config import Config, GatewaySettings, Secret
from signoff.gateway import Gateway
from signoff.model import Card, Command, Destination, Health, Message, Person, Posted, Tap
from signoff.ports import AdapterInfo, HookRoute, Inbox
from signoff.record import Approval
from signoff.runtime import settle_memory
from signoff.settings import Profile

PLATFORM = "bench"
ANN = Person(platform=PLATFORM, user_id="1", name="Ann")
WAVE = 500
"""Questions that are asked at once while a great many are put in place."""
WINDOW_S = 86_400.0
REASON = "the old build blocks the deploy"
T = TypeVar("T")
Posting = Callable[[str, Destination, Card], None]


class BenchAdapter:
    """A `ChatAdapter` without network, budgets or memory: it counts, and tells of each post."""

    def __init__(self) -> None:
        self.info = AdapterInfo(
            platform=PLATFORM, title="Bench", per_second=1e6, per_chat_s=0.0, group_per_minute=10**6
        )
        self.posts = 0
        self.finals = 0
        """Edits that took the buttons away."""
        self.on_post: Posting | None = None
        self.inbox: Inbox
        self._ids = count(1)
        self._running = asyncio.Event()
        self._moved = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once `holds`; looked at after each post and edit."""
        while not holds():
            self._moved.clear()
            await self._moved.wait()

    async def tap(self, message_id: str, place: Destination, token: str) -> None:
        """Ann presses a button."""
        tap = Tap(destination=place, message_id=message_id, person=ANN, token=token, tap_id=str(next(self._ids)))
        await self.inbox.tap(tap)

    async def say(self, place: Destination, text: str) -> None:
        """Ann types a command."""
        order = next(self._ids)
        message = Message(destination=place, message_id=str(order), order=order, person=ANN, text=text, direct=True)
        await self.inbox.message(message)

    # --- ChatAdapter -----------------------------------------------------------------------------

    async def run(self, inbox: Inbox) -> None:
        """Be connected until cancelled."""
        self.inbox = inbox
        self._running.set()
        await asyncio.Event().wait()

    async def ready(self) -> None:
        """Return once running."""
        await self._running.wait()

    def hooks(self) -> HookRoute | None:
        """There is no webhook."""
        return None

    def is_group(self, destination: Destination) -> bool:
        """All chats are direct."""
        return False

    async def post(self, destination: Destination, card: Card, *, reply_to: str | None = None) -> Posted:
        """Count it."""
        order = next(self._ids)
        if card.rows:
            self.posts += 1
            if self.on_post is not None:
                self.on_post(str(order), destination, card)
            self._moved.set()
        return Posted(str(order), order)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Count what ends a card."""
        if not card.rows:
            self.finals += 1
            self._moved.set()

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Nothing is kept."""

    def health(self) -> Health:
        """Always ready."""
        return Health(state="ready")

    async def aclose(self) -> None:
        """Nothing is open."""


def bench_config(folder: Path) -> Config:
    """A gateway's configuration with a durable SQLite store in `folder`."""
    gateway = GatewaySettings(
        state_dir=folder,
        store=Secret(f"sqlite:///{folder / 'bench.sqlite3'}"),
        token_key_file=folder / "token.key",
        port=0,
    )
    return Config(gateway=gateway, profiles={"default": Profile(approvers={PLATFORM: (ANN.user_id,)})})


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Gateway, BenchAdapter]]:
    """A running gateway and its chat, with the interpreter set up as for serving."""
    adapter = BenchAdapter()
    with tempfile.TemporaryDirectory(prefix="signoff-bench-") as folder:
        async with Gateway(bench_config(Path(folder)), adapters={("default", PLATFORM): adapter}) as gateway:
            settle_memory()
            yield gateway, adapter


async def sessions(gateway: Gateway, number: int) -> list[str]:
    """So many chat sessions, each in a chat of its own."""
    names = [f"s{n}" for n in range(number)]
    await asyncio.gather(*(gateway.session(name, kind="chat", destination=f"{PLATFORM}:{name}") for name in names))
    return names


async def pending(
    gateway: Gateway,
    adapter: BenchAdapter,
    names: Sequence[str],
    number: int,
    ask: Callable[[Gateway, str, int], Coroutine[Any, Any, T]],
) -> list[asyncio.Task[T]]:
    """So many different questions `r0`, `r1`... round the sessions, each waited for and its card posted."""
    tasks: list[asyncio.Task[T]] = []
    posted = adapter.posts
    for begin in range(0, number, WAVE):
        wave = range(begin, min(begin + WAVE, number))
        tasks += [asyncio.create_task(ask(gateway, names[n % len(names)], n)) for n in wave]
        await adapter.until(partial(_posted, adapter, posted + len(tasks)))
    await gateway.dispatcher.idle()
    return tasks


def _posted(adapter: BenchAdapter, number: int) -> bool:
    return adapter.posts >= number


def command(number: int) -> Command:
    """A question of a measurement."""
    return Command(command=f"rm -rf build-{number}", cwd="/srv/app")


def requested(gateway: Gateway, name: str, number: int) -> Coroutine[Any, Any, Approval]:
    """An agent that would claim; nothing of the measurement's own around it."""
    return gateway.request(command(number), session_id=name, request_id=f"r{number}", timeout_s=WINDOW_S, reason=REASON)


async def awaited(gateway: Gateway, name: str, number: int) -> float:
    """One that only waits; the time at which it went on."""
    ask = Ask(action=command(number), session_id=name, request_id=f"r{number}", timeout_s=WINDOW_S, reason=REASON)
    await gateway.broker.submit("default", ask)
    await gateway.wait(f"r{number}")
    return time.perf_counter()


def once_token(card: Card) -> str:
    """The token of the button that approves once."""
    return next(button.token for row in card.rows for button in row if button.label.startswith("Approve once"))

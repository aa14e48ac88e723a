"""A core built of the real use cases, a server in front of it, and clients that speak HTTP to it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
from tests.unit.allowlist.sharing import opened

from signoff.allowlist_rows import follower
from signoff.broker import Broker
from signoff.catching_up import CatchUps, Listening
from signoff.clock import SystemClock
from signoff.executing import Executing
from signoff.executors import Executors
from signoff.keys import Keys
from signoff.model import Scope
from signoff.ports import ChatAdapter, Clock, Store
from signoff.server import Bound, serve
from signoff.sessions import Sessions
from signoff.settings import AgentSettings, Profile
from signoff.staged import Staged
from signoff.stores.open import open_store
from signoff.telemetry import Telemetry

COMMAND = {"kind": "command", "command": "git push origin main"}
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


class FakeCore:
    """What the gateway gives its server, without platforms."""

    def __init__(self, store: Store, clock: Clock, profiles: Mapping[str, Profile]) -> None:
        self.store = store
        self.clock = clock
        self.profiles = profiles
        self.broker = Broker(store, clock, profiles, lambda _profile: frozenset())
        self.sessions = Sessions(store, profiles, lambda _profile: frozenset())
        self.executing = Executing(store, clock, Executors(profiles, clock))
        self.staged = Staged(store, self.broker, self.executing, clock)
        self.keys = Keys(store, profiles)
        self.allowlisting = follower(store, clock, dict(profiles), Path("/nowhere"))
        self.telemetry = Telemetry()
        self.adapters: dict[tuple[str, str], ChatAdapter] = {}
        self.ready = True
        self.started_at: datetime = clock.now()
        self.listening: list[Listening] = []
        self.catch_ups = CatchUps(store, clock, profiles, self.adapters, listening=self.listening)

    def pages_open(self) -> None:
        """The console's place is there from the start."""

    async def health(self) -> dict[str, Any]:
        """The store's facts, and the adapters'."""
        states = {f"{name}/{of}": {"state": each.health().state} for (name, of), each in self.adapters.items()}
        return {"store": await self.store.check(), "platforms": states}


@dataclass
class Answer:
    """A response that was read."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        """The error's code."""
        assert set(self.body["error"]) == {"message", "type", "code", "param"}, self.body
        return str(self.body["error"]["code"])


@dataclass
class Client:
    """Calls with one key."""

    http: aiohttp.ClientSession
    base: str
    key: str | None
    headers: dict[str, str] = field(default_factory=dict)

    async def __call__(self, method: str, path: str, body: Any = None, **extra: Any) -> Answer:
        headers = {**self.headers, **({"Authorization": f"Bearer {self.key}"} if self.key else {})}
        headers.update(extra.pop("headers", {}))
        if body is not None:
            raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
            extra["data"] = io.BytesIO(raw) if raw else raw
        async with self.http.request(method, self.base + path, headers=headers, **extra) as response:
            got = await response.read()
            kind = response.headers.get("Content-Type", "")
            parsed = json.loads(got) if kind == "application/json" and got else got
            return Answer(response.status, parsed, response.headers)

    async def ask(self, session: str = "s1", **facts: Any) -> dict[str, Any]:
        """Ask in a session; returns the record."""
        answer = await self("POST", "/v1/approvals", {"session_id": session, "action": COMMAND, **facts})
        assert answer.status == 201, answer
        return dict(answer.body)

    @asynccontextmanager
    async def events(self, query: str = "", **headers: str) -> AsyncIterator[Reader]:
        """An open event stream."""
        asked = {"Authorization": f"Bearer {self.key}", **headers}
        async with self.http.get(f"{self.base}/v1/events{query}", headers=asked) as response:
            assert response.status == 200, await response.text()
            yield Reader(response)


class Reader:
    """Reads server-sent events."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.last_id = ""

    async def next(self, within_s: float = 10.0) -> dict[str, Any]:
        """The next event with data."""
        async with asyncio.timeout(within_s):
            while True:
                event = await self._one()
                if event is not None:
                    return event

    async def _one(self) -> dict[str, Any] | None:
        data = ""
        while True:
            line = await self.response.content.readline()
            if not line:
                raise EOFError
            text = line.decode().rstrip("\n")
            if not text:
                return dict(json.loads(data)) if data else None
            name, _, value = text.partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "data":
                data += value


@dataclass
class World:
    """A running server and its core."""

    core: FakeCore
    bound: Bound
    http: aiohttp.ClientSession

    async def client(
        self, scope: Scope, *, profile: str = "default", agent: str | None = None, principal: str | None = None
    ) -> Client:
        """A client with a new key; approvers are `ann` unless told otherwise."""
        if scope == "approver" and principal is None:
            principal = "ann"
        made = await self.core.keys.create(profile, scope, agent=agent, principal=principal)
        return Client(self.http, self.bound.api, made.text)

    async def pair(self) -> tuple[Client, Client]:
        """An agent with session s1 that can be answered, and an approver."""
        agent, approver = await self.client("agent", agent="builder"), await self.client("approver")
        assert (await agent("PUT", "/v1/sessions/s1", {"kind": "api"})).status == 200
        assert (await approver("PUT", "/v1/sessions/s1/notifiers/desk")).status == 200
        return agent, approver


def profiles() -> dict[str, Profile]:
    """Two tenants with an agent each that may ask from anywhere."""
    every = AgentSettings(kinds=("api", "chat", "cli"))
    return {name: Profile(name=name, agents={"builder": every, "other": every}) for name in ("default", "second")}


@asynccontextmanager
async def world_on(
    url: str, *, clock: Clock | None = None, state_dir: Path | None = None, shared: bool = False, **knobs: Any
) -> AsyncIterator[World]:
    """A core over that store with a server in front; `shared` says that other gateways may serve its database too."""
    clock = clock or SystemClock()
    store = opened(url) if shared else open_store(url, clock)
    core = FakeCore(store, clock, profiles())
    stop = await core.telemetry.follow(store, core.profiles)
    try:
        async with (
            serve(core, state_dir=state_dir, **knobs) as bound,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
        ):
            yield World(core, bound, http)
    finally:
        stop()
        core.broker.waiters.close()
        await store.aclose()


async def until(true: Callable[[], bool | Awaitable[bool]], within_s: float = 10.0) -> None:
    """Return once the condition holds; fail after `within_s`."""
    async with asyncio.timeout(within_s):
        while True:
            found = true()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)

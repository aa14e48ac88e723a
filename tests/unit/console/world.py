"""A console in front of a real server, and people at it who speak HTTP as browsers do."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from tests.unit.server.world import Client, FakeCore, profiles

from signoff.clock import SystemClock
from signoff.console import Console
from signoff.console_adapter import ConsoleAdapter
from signoff.model import Scope
from signoff.ports import Clock, Store
from signoff.server import serve
from signoff.stores.open import open_store

_FORM = re.compile(r'<form [^>]*action="([^"]+)".*?</form>', re.DOTALL)
_FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


@dataclass
class Page:
    """An answer of the console."""

    status: int
    text: str
    headers: Mapping[str, str]
    url: str

    @property
    def data(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.text)

    def fields(self, action: str, about: str = "") -> dict[str, str]:
        """The hidden fields of the first form with that action that names `about`."""
        for found in _FORM.finditer(self.text):
            if found[1] == action and about in found[0]:
                return {name: html.unescape(value) for name, value in _FIELD.findall(found[0])}
        raise AssertionError(f"no form for {action} about {about!r}")


@dataclass
class Person:
    """A browser. It keeps cookies, and says where its posts come from."""

    base: str
    http: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str, **headers: str) -> Page:
        """Load a page."""
        async with self.http.get(self.base + path, headers=headers) as answer:
            return Page(answer.status, await answer.text(), answer.headers, str(answer.url))

    async def post(self, path: str, form: Mapping[str, Any] | list[tuple[str, str]], **headers: str) -> Page:
        """Send a form."""
        given = {"Origin": self.base, **headers}
        sent = {name: value for name, value in given.items() if value}
        async with self.http.post(self.base + path, data=form, headers=sent, allow_redirects=False) as answer:
            return Page(answer.status, await answer.text(), answer.headers, str(answer.url))

    async def script(self, path: str, form: Mapping[str, Any] | list[tuple[str, str]]) -> Any:
        """Send a form as the page's script does; the answer."""
        return (await self.post(path, form, Accept="application/json")).data

    async def decide(self, record: Mapping[str, Any], choice: str, **more: str) -> Any:
        """Answer a question with what the page shows of it now."""
        page = await self.get("/console")
        form = {**page.fields("/console/decide", record["request_id"]), "choice": choice, **more}
        return await self.script("/console/decide", form)


@dataclass
class Place:
    """A running server with a console."""

    core: FakeCore
    console: Console
    base: str
    http: aiohttp.ClientSession
    _people: list[aiohttp.ClientSession] = field(default_factory=list)

    async def client(self, scope: Scope, **facts: Any) -> Client:
        """A client of the API with a new key."""
        if scope == "approver":
            facts.setdefault("principal", "ann")
        made = await self.core.keys.create(facts.pop("profile", "default"), scope, **facts)
        return Client(self.http, self.base, made.text)

    async def agent(self, profile: str = "default") -> Client:
        """An agent with session s1, whose questions can be answered."""
        agent = await self.client("agent", agent="builder", profile=profile)
        assert (await agent("PUT", "/v1/sessions/s1", {"kind": "api"})).status == 200
        approver = await self.client("approver", profile=profile)
        assert (await approver("PUT", "/v1/sessions/s1/notifiers/desk")).status == 200
        return agent

    def stranger(self) -> Person:
        """Somebody who is not logged in."""
        http = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        self._people.append(http)
        return Person(self.base, http)

    async def person(self, scope: Scope = "approver", *, profile: str = "default", **facts: Any) -> Person:
        """Somebody who logged in by a key; approvers are `ann` unless told otherwise."""
        if scope == "approver":
            facts.setdefault("principal", "ann")
        made = await self.core.keys.create(profile, scope, **facts)
        person = self.stranger()
        answer = await person.post("/console/login", {"key": made.text})
        assert answer.status == 303, answer.text
        return person

    async def close(self) -> None:
        """Let go of connections."""
        for http in self._people:
            await http.close()


@asynccontextmanager
async def place_on(store: Store, clock: Clock, *, public: str | None = None, port: int = 0) -> AsyncIterator[Place]:
    """A console over that store."""
    core = FakeCore(store, clock, profiles())
    core.adapters = {(name, "console"): ConsoleAdapter(clock) for name in core.profiles}
    console = Console(core, url=public, keepalive_s=0.2)
    names = ("signoff.example.org",) if public else ()
    async with (
        serve(core, pages=console, host_names=names, port=port) as bound,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
    ):
        console.opened(bound.api)
        place = Place(core, console, bound.api, http)
        try:
            yield place
        finally:
            await place.close()
            core.broker.waiters.close()


@asynccontextmanager
async def place(url: str = "memory://", clock: Clock | None = None, **facts: Any) -> AsyncIterator[Place]:
    """A console over a new store."""
    clock = clock or SystemClock()
    store = open_store(url, clock)
    try:
        async with place_on(store, clock, **facts) as made:
            yield made
    finally:
        await store.aclose()

"""People's browsers in front of the web console: log-ins, forms, and a page that stays open and changes by itself."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any, Literal

import aiohttp
from msgspec import Struct

from tests.scenarios.gateways import GatewayProcess
from tests.scenarios.markup import Element, form_of, parse, words
from tests.scenarios.transport import Person

GONE = (aiohttp.ClientError, ConnectionError)
"""What a browser shows as an error of its own: nobody listens, or the connection broke."""
FOUND_AGAIN_S = 30.0
"""How long a person loads a page again that does not come."""

Spoiled = Literal["cut", "swallowed"]
"""`cut`: the connection breaks behind the next question, before the page could note how far it is. `swallowed`: it
breaks before it."""


class Page(Struct, frozen=True, kw_only=True):
    """An answer of the console."""

    status: int
    text: str
    location: str = ""

    @property
    def tree(self) -> Element:
        """The page, read."""
        return parse(self.text)


class Browser:
    """One log-in. A browser with `script` sends forms as the page's own script does; others load the next page."""

    def __init__(self, gateway: GatewayProcess, person: Person, *, decides: bool, script: bool, url: str = "") -> None:
        """`url`: under which other name of the machine the console is opened."""
        self.gateway = gateway
        self.person = person
        self.decides = decides
        self.script = script
        self.url = url or gateway.url
        self.csrf = ""
        self.http = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True),
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, connect=5),
        )
        self._entering = asyncio.Lock()
        self._one_page = asyncio.Lock()
        """Without a script a page goes away when a form is sent, so nobody sends two at once."""

    async def aclose(self) -> None:
        """Close the window."""
        await self.http.close()

    async def link(self) -> str:
        """A one-time link for this person, as the operator makes it on the gateway's machine; its path."""
        body = {"principal": self.person, "view": not self.decides}
        connector = aiohttp.UnixConnector(path=str(self.gateway.socket))
        async with (
            aiohttp.ClientSession(connector=connector) as http,
            http.post("http://local/console/links", json=body) as answer,
        ):
            assert answer.status == 201, await answer.text()
            return str((await answer.json())["path"])

    async def enter(self) -> None:
        """Log in, once: open the link, press its button, read the form token of the page that follows."""
        async with self._entering:
            if self.csrf:
                return
            opened = await self.get(await self.link())
            form = form_of(opened.tree.one("form"))
            came = await self.send(form.action, form.pressed("Log in"))
            assert (came.status, came.location) == (303, "/console"), came
            body = (await self.get("/console")).tree.one("body")
            self.csrf = body["data-csrf"]

    async def get(self, path: str, **headers: str) -> Page:
        """Load a page."""
        async with self.http.get(self.url + path, headers=headers, allow_redirects=False) as answer:
            return Page(status=answer.status, text=await answer.text(), location=answer.headers.get("Location", ""))

    async def look(self, path: str) -> Element:
        """Load a page of somebody who is logged in, and read it. Without a script that is the page on which the
        person is told of the form before, so it is not loaded between a form and its answer."""
        await self.enter()
        if self.script:
            return (await self.get(path)).tree
        async with self._one_page:
            return (await self.get(path)).tree

    async def send(self, path: str, fields: Sequence[tuple[str, str]], **headers: str) -> Page:
        """Send a form; the answer itself, whatever it is."""
        given = {"Origin": self.url, **headers}
        sent = {name: value for name, value in given.items() if value}
        async with self.http.post(self.url + path, data=list(fields), headers=sent, allow_redirects=False) as answer:
            return Page(status=answer.status, text=await answer.text(), location=answer.headers.get("Location", ""))

    def own(self, fields: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """The fields of a form as this browser's own page has them."""
        return [(name, self.csrf if name == "csrf" else value) for name, value in fields]

    async def deed(self, action: str, fields: Sequence[tuple[str, str]]) -> str:
        """Send a form of one's own pages, take the second step where there is one, and read what one is told: a line
        each. Empty where the page that follows says nothing, since another one showed it before."""
        await self.enter()
        if self.script:
            return await self._by_script(action, self.own(fields))
        async with self._one_page:
            return await self._by_page(action, self.own(fields))

    async def _by_script(self, action: str, fields: Sequence[tuple[str, str]]) -> str:
        page = await self.send(action, fields, Accept="application/json")
        told = json.loads(page.text)
        if told["how"] == "confirm":
            form = form_of(parse(told["html"]).one("form"))
            return await self._by_script(form.action, form.pressed(form.buttons[0].label))
        return "\n".join([told["text"], *told.get("lines", ())])

    async def _by_page(self, action: str, fields: Sequence[tuple[str, str]]) -> str:
        page = await self.send(action, fields)
        if page.status == 303:
            return _said((await self._following(page.location)).tree)
        tree = page.tree
        steps = tree.all("form", "class", "step")
        if steps:
            form = form_of(steps[0])
            return await self._by_page(form.action, form.pressed(form.buttons[0].label))
        return words(tree.one("p", "role", "status"))

    async def _following(self, path: str) -> Page:
        """The next page: loaded again while nobody answers, as people do."""
        async with asyncio.timeout(FOUND_AGAIN_S):
            while True:
                try:
                    return await self.get(path)
                except GONE:
                    await asyncio.sleep(0.2)


def _said(tree: Element) -> str:
    found = [each for each in tree.all("div") if "data-said" in each.attributes]
    return "\n".join(words(line) for line in found[0].all("p"))


class Frame(Struct, frozen=True, kw_only=True):
    """One message of a stream."""

    event: str = ""
    data: str = ""
    id: str = ""


async def frames(content: aiohttp.StreamReader) -> AsyncIterator[Frame]:
    """What comes over an open stream of events."""
    found: dict[str, str] = {}
    buffer = b""
    async for chunk in content.iter_any():
        buffer += chunk
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            if line:
                name, _, value = line.decode().partition(":")
                found[name] = value.removeprefix(" ")
                continue
            if "event" in found:
                yield Frame(event=found["event"], data=found.get("data", ""), id=found.get("id", ""))
            found = {}


class Drawn(Struct, frozen=True, kw_only=True, eq=False):
    """A question as the page shows it; who asked it, where and when."""

    article: Element
    session: str
    places: tuple[str, ...]
    asked_at: datetime


class OpenPage:
    """The pending page of one browser, left open: it comes back by itself whenever it lost the gateway.

    It keeps what was answered, as somebody does who looks it up again."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.spoil: deque[Spoiled] = deque()
        self.drawn: dict[str, Drawn] = {}
        self.waited: dict[str, Drawn] = {}
        """The questions as they stood last while they waited."""
        self.live = False
        """The stream stands."""
        self.refused = 0
        """How often the page was refused a stream."""
        self.changed = asyncio.Event()
        self._asked: dict[str, dict[str, Any]] = {}
        """Records as they were when they were first read: what is asked where stays so."""
        self._last = ""
        self._task = asyncio.create_task(self._stay_open())

    async def aclose(self) -> None:
        """Close it."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.live = False

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once `holds` is true of what is shown."""
        while not holds():
            self.changed.clear()
            await self._or_broken()

    async def _or_broken(self) -> None:
        waiting = asyncio.create_task(self.changed.wait())
        try:
            await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._task.done():
            self._task.result()

    async def _stay_open(self) -> None:
        while True:
            try:
                await self.browser.enter()
                if not self._last:
                    await self._load()
                await self._listen()
            except GONE:
                self.live = False
            await asyncio.sleep(0.5)  # the page's own script waits a second

    async def _load(self) -> None:
        """Load the pages of what waits, and look up what stood there before."""
        seen: set[str] = set()
        path, last = "/console", ""
        while path:
            tree = (await self.browser.get(path)).tree
            last = last or tree.one("body")["data-seq"]
            for article in tree.all("article"):
                seen.add(article["data-id"])
                await self._show(article)
            path = next((each["href"] for each in tree.all("a", "rel", "next")), "")
        for request_id in set(self.drawn) - seen:
            page = await self.browser.get(f"/console/card/{request_id}")
            await self._show(page.tree.one("article"))
        self._last = last

    async def _show(self, article: Element) -> None:
        request_id = article["data-id"]
        if request_id not in self._asked:
            page = await self.browser.get(f"/console/r/{request_id}/record.json")
            self._asked[request_id] = json.loads(page.text)["approval"]
        record = self._asked[request_id]
        drawn = self.drawn[request_id] = Drawn(
            article=article,
            session=record["session_id"],
            places=tuple(record["destinations"]),
            asked_at=datetime.fromisoformat(record["created_at"]),
        )
        if article["data-pending"] == "1":
            self.waited[request_id] = drawn
        self.changed.set()

    async def _listen(self) -> None:
        """Read the stream until it ends."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": self._last}
        url = f"{self.browser.url}/console/events?kind=cards&after={self._last}"
        async with self.browser.http.get(url, headers=headers) as answer:
            if answer.status != 200:
                self.refused += 1
                self.changed.set()
                return
            self.live = True
            self.changed.set()
            async for frame in frames(answer.content):
                if not await self._take(frame):
                    break
        self.live = False

    async def _take(self, frame: Frame) -> bool:
        """Show what a message says; whether the stream goes on."""
        if frame.event == "card":
            data: dict[str, Any] = json.loads(frame.data)
            spoiled = self.spoil.popleft() if self.spoil and data["pending"] else None
            if spoiled != "swallowed":
                await self._show(parse(data["html"]).one("article"))
            return spoiled is None
        if frame.event in ("over", "reload"):
            self._last = "" if frame.event == "reload" else self._last
            return False
        if frame.event == "count":  # what came before it is shown now
            self._last = frame.id
        return True

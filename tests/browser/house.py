"""A gateway as a process would run it, an agent that asks through its API, and browsers in front of its console."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
from playwright.async_api import Browser, Page, async_playwright, expect

from signoff.config import load_config
from signoff.serving import Addresses, run_gateway

CHROMIUM = Path("/usr/bin/chromium")
WITHIN_MS = 20_000
"""How long a page may take for what must show; generous, since the machine may be busy."""
expect.set_options(timeout=WITHIN_MS)


class House:
    """One gateway over a file, which can be stopped and started again on the same port."""

    def __init__(self, folder: Path, *, gateway: str = "", more: str = "") -> None:
        """`gateway` is put into the settings of the gateway itself, `more` after them."""
        self.folder = folder
        self.settings = gateway, more
        self.api = ""
        self._file = folder / "signoff.toml"
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._keys: dict[str, str] = {}
        self._http: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Open the gateway; the first time on a free port, then on the same."""
        self.configure()
        self._stop = asyncio.Event()
        ready: asyncio.Future[Addresses] = asyncio.get_running_loop().create_future()
        config = load_config(self._file, {})
        self._task = asyncio.create_task(run_gateway(config, on_ready=ready.set_result, stop=self._stop))
        both: list[asyncio.Future[Any]] = [self._task, ready]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()
        self.api = ready.result().api

    def configure(self) -> Path:
        """Write the settings; their file."""
        port = self.api.rpartition(":")[2] or "0"
        gateway, more = self.settings
        self._file.write_text(
            f'[gateway]\nstate_dir = "{self.folder}/state"\nport = {port}\n{gateway}\n'
            f'[agents.deploy-bot]\nkinds = ["chat", "api", "cron", "child"]\n{more}\n'
        )
        return self._file

    async def stop(self) -> None:
        """Stop it as SIGTERM would."""
        self._stop.set()
        if self._task is not None:
            await self._task

    async def close(self) -> None:
        """Stop it and let go of connections."""
        if self._http is not None:
            await self._http.close()
        await self.stop()

    async def local(self, method: str, path: str, body: Any = None) -> Any:
        """A call over the local socket."""
        connector = aiohttp.UnixConnector(path=str(self.folder / "state" / "admin.sock"))
        async with (
            aiohttp.ClientSession("http://localhost", connector=connector) as http,
            http.request(method, path, json=body) as answer,
        ):
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def link(self, principal: str | None = "ana", *, view: bool = False) -> str:
        """A one-time link."""
        made = await self.local("POST", "/console/links", {"principal": principal, "view": view})
        return str(made["url"])

    async def key(self, scope: str, **facts: str) -> str:
        """A new API key."""
        return str((await self.local("POST", "/v1/keys", {"scope": scope, **facts}))["key"])

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """A call of the agent."""
        if "agent" not in self._keys:
            self._keys["agent"] = await self.key("agent", agent="deploy-bot")
        if self._http is None:
            self._http = aiohttp.ClientSession()
        headers = {"Authorization": f"Bearer {self._keys['agent']}"}
        async with self._http.request(method, self.api + path, json=body, headers=headers) as answer:
            found = await answer.json()
            assert answer.status < 300, found
            return found

    async def session(self, name: str = "nightly-fix", **facts: Any) -> None:
        """A session whose cards go to the console."""
        given = {"kind": "chat", "platform": "console", "chat_id": "main", **facts}
        await self.call("PUT", f"/v1/sessions/{name}", given)

    async def ask(self, command: str, *, session: str = "nightly-fix", **facts: Any) -> dict[str, Any]:
        """Ask for a command; the record as it was stored."""
        action = facts.pop("action", {"kind": "command", "command": command, "cwd": "/srv/app"})
        body = {"session_id": session, "action": action, "host": "prod-db-1", **facts}
        return dict(await self.call("POST", "/v1/approvals", body))

    async def record(self, request_id: str, wait_s: float = 0) -> dict[str, Any]:
        """The record as it stands, or once it ended."""
        return dict(await self.call("GET", f"/v1/approvals/{request_id}?wait={wait_s:g}"))


@contextlib.asynccontextmanager
async def open_house(folder: Path, **settings: str) -> AsyncIterator[House]:
    """A gateway with one session that asks in the console."""
    house = House(folder, **settings)
    await house.start()
    try:
        await house.session()
        yield house
    finally:
        await house.close()


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Debian's Chromium."""
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


async def enter(
    browser: Browser, house: House, *, view: bool = False, principal: str | None = "ana", **look: Any
) -> Page:
    """A browser of its own, logged in by a one-time link, on the first page."""
    context = await browser.new_context(**look)
    context.set_default_timeout(WITHIN_MS)
    page = await context.new_page()
    await page.goto(await house.link(principal, view=view))
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url("**/console")
    return page

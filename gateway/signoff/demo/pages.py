"""The web console of the demonstration: opened on a free loopback port, and shown in the person's browser."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from signoff.console import Console
from signoff.console.visit import PATH
from signoff.demo.terminal import YOU
from signoff.gateway import Gateway
from signoff.server.serve import serve


class Pages:
    """The console while it is open. `link` logs the person in, once, within 10 minutes."""

    def __init__(self, console: Console, link: str) -> None:
        self._console = console
        self.link = link

    @property
    def watched(self) -> bool:
        """Whether a page is open somewhere and hears of changes."""
        return len(self._console.desk.live) > 0


@asynccontextmanager
async def open_pages(gateway: Gateway) -> AsyncIterator[Pages]:
    """Serve the console of an open gateway until the block is left. Raises `ConfigError` where no port is free."""
    console = Console(gateway)
    async with serve(gateway, pages=console) as bound:
        console.opened(bound.api)
        token = await console.desk.seats.make_link(profile="default", principal=YOU.user_id, view=False)
        yield Pages(console, f"{bound.api}{PATH}/link/{token}")


def has_display(environ: Mapping[str, str] | None = None, platform: str = sys.platform) -> bool:
    """Whether a browser that this process starts could be seen: there is a display, or `BROWSER` names a program."""
    environ = os.environ if environ is None else environ
    if environ.get("BROWSER"):
        return True
    if platform in ("darwin", "win32"):
        return not environ.get("SSH_CONNECTION")
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def show(url: str) -> None:
    """Open the address in the person's browser. Some browsers hold their caller up until they are closed, so a thread
    waits that does not keep the process from ending."""
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True, name="demo-browser").start()

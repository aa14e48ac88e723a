"""`signoff demo` with the web console: by a person who reads its pages and sends its forms, over HTTP alone."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import signal
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path

import aiohttp
import pytest
from tests.unit.demo.test_demo import COMMAND, environment

from signoff.demo.pages import has_display

WITHIN_S = 30.0
FIRST_CARD_WITHIN_S = 10.0
"""A few seconds on a machine that has nothing else to do."""


class Demo:
    """The running demonstration, and a person in front of its pages."""

    def __init__(self, process: asyncio.subprocess.Process, http: aiohttp.ClientSession) -> None:
        self.process = process
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.link = ""
        self._http = http

    async def until(self, words: str) -> str:
        """What was printed up to these words."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            while words not in self.seen:
                chunk = await self.process.stdout.read(65536)
                assert chunk, f"no {words!r} in:\n{self.seen}"
                self.seen += self._decoder.decode(chunk)
        return self.seen

    async def enter(self) -> None:
        """Log in by the printed link."""
        await self.until("/console/link/")
        await self.until("Ctrl-C ends.")
        [self.link] = re.findall(r"^(http://127\.0\.0\.1:\d+/console/link/\S+)$", self.seen, re.MULTILINE)
        headers = {"Origin": self.link.partition("/console")[0], "Content-Type": "application/x-www-form-urlencoded"}
        async with self._http.post(self.link, headers=headers) as page:
            assert page.status == 200, await page.text()

    async def card(self, words: str) -> str:
        """The card with these words, once it waits on the page."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                async with self._http.get(f"{self.link.partition('/link')[0]}") as page:
                    text = await page.text()
                for card in re.findall(r"<article.*?</article>", text, re.DOTALL):
                    if words in unescape(card) and 'data-pending="1"' in card:
                        return str(card)
                await asyncio.sleep(0.02)

    async def answer(self, card: str, choice: str) -> None:
        """Send the card's own form with that button."""
        [form] = re.findall(r'<form[^>]*class="main-answers".*?</form>', card, re.DOTALL)
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
        assert f'value="{choice}"' in form
        origin = self.link.partition("/console")[0]
        data = {**{name: unescape(value) for name, value in fields.items()}, "choice": choice}
        async with self._http.post(f"{origin}/console/decide", data=data, headers={"Origin": origin}) as page:
            assert page.status == 200, await page.text()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
        """A page that is open; what it gives tells whether another page can be read beside it."""
        console = self.link.partition("/link")[0]

        async def still_open() -> bool:
            async with self._http.get(f"{console}/history") as page:
                return page.status == 200

        async with self._http.get(f"{console}/events") as stream:
            assert stream.status == 200
            await stream.content.readline()
            yield still_open


@asynccontextmanager
async def demo(folder: Path, *arguments: str, **environ: str) -> AsyncIterator[Demo]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        env=environment(folder, PYTHONUNBUFFERED="1", **environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address, as a browser keeps them
    try:
        async with aiohttp.ClientSession(cookie_jar=jar) as http:
            yield Demo(process, http)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_a_link_a_tap_and_the_agent_goes_on(tmp_path: Path) -> None:
    began = time.monotonic()
    async with demo(tmp_path, "--no-browser") as shown:
        await shown.enter()
        card = await shown.card("rm -rf ./build")
        assert time.monotonic() - began < FIRST_CARD_WITHIN_S
        await shown.answer(card, "deny")
        await shown.until("I leave the build as it is")
        await shown.answer(await shown.card("web-1.example"), "once")
        await shown.until("Approved once. Run exactly this action, once, now.")
        await shown.answer(await shown.card("2 identical requests wait."), "once_all")
        await shown.answer(await shown.card("DROP TABLE"), "deny")
        await shown.until("I ask for the same once more")
        await shown.until("so it was not asked again")
        out = await shown.until("Next: signoff init")
        assert out.index("What the record says") < out.index("Nothing was run.")
        assert "So is the file" not in " ".join(out.split()), "the console's cards name no file"
        assert await asyncio.wait_for(shown.process.wait(), WITHIN_S) == 0
    assert not os.listdir(tmp_path)


async def answered_through(shown: Demo) -> None:
    """Every card, as quickly as they come."""
    for words, choice in (
        ("rm -rf ./build", "once"),
        ("web-1.example", "once"),
        ("2 identical requests wait.", "once_all"),
        ("DROP TABLE", "deny"),
    ):
        await shown.answer(await shown.card(words), choice)


async def test_the_pages_stay_while_somebody_looks_at_them(tmp_path: Path) -> None:
    async with demo(tmp_path, "--no-browser") as shown:
        await shown.enter()
        async with shown.watching() as still_open:
            await answered_through(shown)
            await shown.until("The pages stay for 30 s")
            assert await still_open(), "the pages answer after the script is over"
            assert shown.process.returncode is None
        await shown.until("Next: signoff init")
        assert await asyncio.wait_for(shown.process.wait(), WITHIN_S) == 0


async def test_ctrl_c_withdraws_what_is_asked_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with demo(tmp_path, "--no-browser") as shown:
        await shown.enter()
        await shown.card("rm -rf ./build")
        shown.process.send_signal(signal.SIGINT)
        out = await shown.until("Nothing was run.")
        assert "Ended early. Withdrawn, not run: " in out
        assert await asyncio.wait_for(shown.process.wait(), WITHIN_S) == 130
    assert not os.listdir(tmp_path)


async def test_a_link_works_once(tmp_path: Path) -> None:
    async with demo(tmp_path, "--no-browser") as shown:
        await shown.enter()
        async with shown._http.get(f"{shown.link.partition('/link')[0]}/grants") as page:
            assert ">you</span>" in (text := await page.text()) and "profile" not in text
        async with aiohttp.ClientSession() as other, other.get(shown.link) as page:
            assert page.status == 403


async def test_the_browser_is_opened_at_the_link(tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    os.mkfifo(opened)
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    async with demo(tmp_path, BROWSER=str(browser)) as shown:
        out = await shown.until("Ctrl-C ends.")
        assert "Your browser opens this page." in out and "press Log in there:" in " ".join(out.split())
        address = await asyncio.wait_for(asyncio.to_thread(opened.read_text), WITHIN_S)
        assert address.strip() in out


@pytest.mark.parametrize(
    ("environ", "platform", "seen"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"BROWSER": "firefox"}, "linux", True),
        ({}, "darwin", True),
        ({"SSH_CONNECTION": "1 2 3 4"}, "darwin", False),
    ],
)
def test_whether_a_browser_could_be_seen(environ: dict[str, str], platform: str, seen: bool) -> None:
    assert has_display(environ, platform) is seen

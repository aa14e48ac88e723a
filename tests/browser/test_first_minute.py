"""The first minute of a newcomer: the README's own first command in a place where nothing of ours is, then a browser.

The place is a copy of the checkout, a fresh virtual environment and an empty home folder. Where the tests run as root,
and an interpreter is there that everybody may run, it belongs to a user who owns nothing else.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.house import WITHIN_MS
from tests.docs.pages import ROOT, blocks

NEEDED = ("gateway", "adapters", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
NEWCOMER = 54_321
"""A user id that nothing on the machine belongs to; it needs no entry in the list of users."""
INSTALLED_WITHIN_S, WITHIN_S = 100.0, 30.0
FIRST_CARD_WITHIN_S = 10.0
"""A few seconds on a machine that has nothing else to do."""
HANDED_ON = ("PIP_", "SSL_", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Of the environment: how this machine reaches the package index."""


def first_command() -> str:
    """What the README says first."""
    return next(block.text.strip() for block in blocks(ROOT / "README.md") if block.language == "sh")


class Place:
    """A folder of a newcomer's own. `become` goes before a command to run it as that user."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.tmp = folder, folder / "home", folder / "tmp"
        self.checkout, self.venv = folder / "signoff", folder / "venv"
        self.python, self.become = _interpreter()

    def build(self) -> None:
        """Copy the checkout and make the environment."""
        for made in (self.home, self.tmp, self.checkout):
            made.mkdir()
        for name in NEEDED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, self.checkout)
        if self.become:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, NEWCOMER, NEWCOMER)
        subprocess.run(
            [*self.become, self.python, "-m", "venv", str(self.venv)], env=self.environ(), check=True, timeout=60
        )

    def environ(self) -> dict[str, str]:
        """Nothing of ours, nor a display."""
        handed_on = {name: value for name, value in os.environ.items() if name.startswith(HANDED_ON)}
        return {
            **handed_on,
            "PATH": f"{self.venv}/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "LANG": "C.UTF-8",
        }


def _interpreter() -> tuple[str, list[str]]:
    """A Python, and how to be the newcomer with it; empty for as ourselves."""
    own = str(getattr(sys, "_base_executable", sys.executable))
    # What is run by `env` has lost root's rights; what setpriv itself starts is still found with them.
    become = ["setpriv", f"--reuid={NEWCOMER}", f"--regid={NEWCOMER}", "--clear-groups", "env"]
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return own, []
    fits = "import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"
    for python in (own, *(f"/usr/bin/python3.{minor}" for minor in (11, 12, 13))):
        done = subprocess.run([*become, python, "-c", fits], capture_output=True, check=False, timeout=20)
        if done.returncode == 0:
            return python, become
    return own, []


@contextmanager
def newcomers_place() -> Iterator[Place]:
    """A folder that the newcomer may reach: pytest's own belong to us alone."""
    with tempfile.TemporaryDirectory(prefix="signoff-first-minute-") as name:
        place = Place(Path(name))
        place.build()
        yield place


class Output:
    """What a command says."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def until(self, pattern: str, within_s: float = WITHIN_S) -> re.Match[str]:
        """Read up to the pattern."""
        assert self.process.stdout is not None
        async with asyncio.timeout(within_s):
            while (found := re.search(pattern, self.seen, re.MULTILINE)) is None:
                chunk = await self.process.stdout.read(65536)
                assert chunk, f"no {pattern!r} in:\n{self.seen}"
                self.seen += self._decoder.decode(chunk)
        return found


@asynccontextmanager
async def typed(place: Place, command: str) -> AsyncIterator[Output]:
    """The command as the newcomer types it, in the checkout, on a machine without a display."""
    process = await asyncio.create_subprocess_exec(
        *place.become,
        "bash",
        "-c",
        command,
        cwd=place.checkout,
        env={**place.environ(), "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield Output(process)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()


@pytest.mark.heavy
@pytest.mark.timeout(180)
async def test_the_first_command_shows_a_card_and_a_tap_lets_the_agent_go_on(browser: Browser) -> None:
    with newcomers_place() as place:
        async with typed(place, first_command()) as said:
            await said.until("Successfully installed", INSTALLED_WITHIN_S)
            began = time.monotonic()
            link = (await said.until(r"^http://127\.0\.0\.1:\d+/console/link/\S+$"))[0]
            context = await browser.new_context()
            context.set_default_timeout(WITHIN_MS)
            page = await context.new_page()
            await page.goto(link)
            await page.get_by_role("button", name="Log in").click()
            card = page.get_by_role("article").filter(has_text="rm -rf ./build")
            await expect(card).to_be_visible()
            assert time.monotonic() - began < FIRST_CARD_WITHIN_S
            await said.until("2 of 5")
            assert "Approved once" not in said.seen, "the harmless one ran without a question"
            await card.get_by_role("button", name="Approve once, request").click()
            await said.until("Approved once. Run exactly this action, once, now.")
            await said.until("3 of 5")
            await expect(card).to_contain_text("Approved once by you in the console")
            await expect(page.get_by_role("article").filter(has_text="nightly maintenance")).to_be_visible()
            os.killpg(said.process.pid, signal.SIGINT)
            await said.until("Nothing was run. The store and its folder are removed.")
            async with asyncio.timeout(WITHIN_S):
                assert await said.process.wait() == 130
        assert os.listdir(place.tmp) == []
        assert set(os.listdir(place.home)) <= {".cache"}, "pip keeps what it downloaded"

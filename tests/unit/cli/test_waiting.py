"""What stands on standard error while a question of `run` waits."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.cli.test_cli import Shell, record
from tests.unit.client.fake_gateway import FakeGateway

from signoff.cli.asking import told
from signoff.cli.waiting import answer_line, waiting_line

pytestmark = pytest.mark.skipif(os.name != "posix", reason="terminals and signals")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize("live", [False, pytest.param(True, marks=pytest.mark.heavy)])
async def test_an_outage_is_told_once_and_so_is_its_end(shell: Shell, live: bool) -> None:
    fake = FakeGateway()
    await fake.up()
    shell.environ |= {"SIGNOFF_URL": fake.url, "SIGNOFF_KEY": "sk_a_b"}
    reader, writer = pty.openpty() if live else os.pipe()
    process = await shell.start("run", "echo", "hello", stderr=writer)
    os.close(writer)
    loop = asyncio.get_running_loop()
    shown = ""

    async def until(words: str) -> None:
        nonlocal shown
        async with asyncio.timeout(30):
            while words not in shown:
                shown += (await loop.run_in_executor(None, os.read, reader, 4096)).decode()

    request_id = await fake.asked()
    await until("asking K7M2Q")
    await fake.down()
    await until("signoff: the gateway does not answer; it is tried again.")
    await fake.up()
    await until("signoff: the gateway answers again.")
    await fake.decide(request_id, "approved")
    async with asyncio.timeout(30):
        assert await process.wait() == 0
    os.close(reader)
    assert shown.count("the gateway ") == 2
    await fake.down()


async def test_a_terminal_shows_the_question_and_the_countdown(shell: Shell) -> None:
    gateway = FakeGateway()
    await gateway.up(shell.folder / "admin.sock")
    reader, writer = pty.openpty()
    process = await shell.start("run", "true", stderr=writer)
    os.close(writer)
    request_id = await gateway.asked()
    loop = asyncio.get_running_loop()
    shown = ""
    async with asyncio.timeout(30):
        while "Waiting for an answer to K7M2Q" not in shown:
            shown += (await loop.run_in_executor(None, os.read, reader, 4096)).decode()
    assert "signoff: asking K7M2Q: true. Waiting" in shown
    assert "signoff: answer it by `signoff approve K7M2Q` or `signoff deny K7M2Q` on the gateway's machine." in shown
    await gateway.decide(request_id, "approved")
    async with asyncio.timeout(30):
        assert await process.wait() == 0
    os.close(reader)
    await gateway.down()


def test_the_countdown_line() -> None:
    waiting = record(short_id="K7M2Q", destinations=["telegram:5"], expires_at="2026-01-01T00:04:30Z")
    until = f"{waiting.expires_at.astimezone():%H:%M}" if waiting.expires_at else ""
    assert waiting_line(waiting, waiting.created_at) == (
        f"Waiting for an answer to K7M2Q in telegram:5: 4 min left, until {until}"
    )
    soon = record(short_id="K7M2Q", timeout_s=270.0)
    assert waiting_line(soon, soon.created_at) == f"Waiting for an answer to K7M2Q: 4 min left, until about {until}"
    assert waiting_line(record(short_id="K7M2Q"), soon.created_at) == "Waiting for an answer to K7M2Q"


def test_where_it_is_answered_is_told() -> None:
    """An agent may read what is piped, so nothing in it says how to answer from a shell."""
    waiting = record(short_id="K7M2Q", destinations=["telegram:5", "console:main"])
    page = "http://127.0.0.1:8787/console"
    assert answer_line(waiting, page, commands=False) == f"people answer it in telegram:5, at {page}/r/K7M2Q."
    assert answer_line(waiting, None, commands=False) == "people answer it in telegram:5, in console:main."
    typed = answer_line(waiting, page, commands=True)
    assert typed.startswith(f"answer it in telegram:5, or at {page}/r/K7M2Q, or by `signoff approve K7M2Q` or `signoff")
    assert "`signoff console --principal NAME`" in typed
    assert "console" not in answer_line(record(short_id="K7M2Q", destinations=["telegram:5"]), page, commands=True)
    assert answer_line(record(short_id="K7M2Q"), page, commands=False) == ""


@pytest.mark.parametrize(("live", "more"), [(True, True), (False, False)])
def test_whoever_sits_at_a_terminal_is_told_what_to_do_after_a_timeout(
    monkeypatch: pytest.MonkeyPatch, live: bool, more: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: live))
    said = told(record(outcome="timeout", user_summary="Timeout after 5 min."))
    assert said.startswith("Timeout after 5 min.")
    assert ("Ask again with --timeout to wait longer" in said) is more

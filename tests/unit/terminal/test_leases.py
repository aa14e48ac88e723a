"""A terminal is there while it can be asked on, and once it cannot, nothing says so any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from signoff.cli.here import Here
from signoff.client import Client
from signoff.config import load_config
from signoff.errors import StoreError
from signoff.gateway import Gateway
from signoff.model import Command, Notifier
from signoff.rows import session_key
from signoff.terminal import TerminalPrompt
from signoff.terminal.lease import LEASE_S, RENEW_S
from signoff.testing.clock import FakeClock, settle
from signoff.testing.fake_adapter import FakeAdapter

NOWHERE = "/nonexistent/tty"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def still(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Gateway]:
    """A gateway whose clock stands still, with a session `mine`."""
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}
    async with Gateway(load_config(None, environ), clock=clock, adapters={}) as made:
        await made.session("mine", kind="cli")
        yield made


async def attached(gateway: Gateway) -> list[Notifier]:
    """What is said to put the session's questions before a person."""
    return await gateway.store.find(Notifier, "session", session_key("default", "mine"))


async def test_a_living_prompt_goes_on_being_there(still: Gateway, clock: FakeClock, terminal: str) -> None:
    async with TerminalPrompt(still, "mine", path=terminal):
        for _ in range(3):
            await clock.advance(LEASE_S - 1)
            assert len(await attached(still)) == 1
    assert await attached(still) == []


async def test_a_prompt_that_is_gone_never_comes_back(still: Gateway, clock: FakeClock) -> None:  # 2.8.3
    async with TerminalPrompt(still, "mine", path=NOWHERE) as prompt:
        first = await still.request(Command(command="rm -rf ./one"), session_id="mine")
        assert (first.outcome, first.cause, prompt.gone) == ("cancelled", "no_prompt", "no_prompt")
        await clock.advance(RENEW_S * 3)
        assert await attached(still) == []
        later = await still.request(Command(command="rm -rf ./two"), session_id="mine")
        assert later.outcome == "blocked"
    assert await attached(still) == []


async def test_a_store_that_fails_as_the_prompt_ends_keeps_no_question(
    still: Gateway, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it cannot answer any more is withdrawn for that cause as soon as the store takes it."""
    detach = still.sessions.detach
    failed: list[str] = []

    async def failing(*facts: object) -> None:
        if not failed:
            failed.append("once")
            raise StoreError("the disk is full")
        await detach(*facts)  # type: ignore[arg-type]  # handed on as they are

    monkeypatch.setattr("signoff.terminal.prompt.RETRY_S", 0.01)
    monkeypatch.setattr(still.sessions, "detach", failing)
    async with TerminalPrompt(still, "mine", path=NOWHERE), asyncio.timeout(30):
        row = await still.request(Command(command="rm -rf ./one"), session_id="mine")
    assert (failed, row.outcome, row.cause) == (["once"], "cancelled", "no_prompt")


async def test_a_command_whose_prompt_is_gone_waits_in_the_chat_alone(
    gateway: Gateway, chat: FakeAdapter, clock: FakeClock
) -> None:
    """`--here` that gave no answer does not count as somebody who could, for as long as the chat is waited for."""
    async with Client(socket=gateway.config.gateway.admin_socket) as door:
        await door.session("mine", kind="cli", destination="fake:5")
        async with Here(door, "mine", clock=clock, path=NOWHERE).attached() as here:
            await settle()
            assert clock.sleeping == 1
            asked = asyncio.create_task(
                here.ask(lambda seen: door.request(Command(command="rm -rf ./x"), session_id="mine", seen=seen))
            )
            async with asyncio.timeout(30):
                while await attached(gateway) or not chat.messages:  # noqa: ASYNC110  # the other side of the socket tells nobody
                    await asyncio.sleep(0.01)
            assert clock.sleeping == 0, "nothing is left that would say that it is there"
            await chat.press("Deny", name="Ana")
            assert (await asked).outcome == "denied"

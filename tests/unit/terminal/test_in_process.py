"""`TerminalPrompt`: a library user's own process asks at its terminal."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.terminal.typist import READY, Typist

from signoff.authorize import local_actor
from signoff.errors import InvalidInput, SessionNotFound, StoreError
from signoff.gateway import Gateway
from signoff.model import Notifier
from signoff.terminal import TerminalPrompt
from signoff.terminal.tty import Tty

PROGRAM = Path(__file__).with_name("embedded.py")


def program(folder: Path, action: str) -> tuple[str, ...]:
    return (sys.executable, str(PROGRAM), str(folder / "embedded"), action)


async def result(typist: Typist) -> dict[str, Any]:
    """What the program printed."""
    code, out, errors = await typist.ended()
    assert code == 0, errors
    found: dict[str, Any] = json.loads(out)
    return found


async def test_its_questions_and_its_childrens_come_one_by_one(folder: Path, typist: Typist) -> None:
    await typist.start(*program(folder, "commands"))
    assert "rm -rf ./one" in await typist.sees(READY)
    typist.type("a\n")
    shown = await typist.sees(READY, 2)
    assert "rm -rf ./two" in shown
    assert "child of here" in shown
    typist.type("\n")
    assert await result(typist) == {
        "told": [["approved", None, ["local"]], ["denied", None, ["local"]]],
        "gone": None,
    }


@pytest.mark.parametrize(("keys", "gone"), [("\x04", "prompt_interrupted"), ("\x03", "prompt_interrupted")])
async def test_what_ends_the_prompt_ends_the_question_undenied(  # 2.8.3 #22992
    folder: Path, typist: Typist, keys: str, gone: str
) -> None:
    """The next one finds nobody: the prompt is gone."""
    await typist.start(*program(folder, "commands"))
    await typist.sees(READY)
    typist.type(keys)
    found = await result(typist)
    assert found["told"][0] == ["cancelled", gone, []]
    assert found["told"][1][0] == "blocked"
    assert found["gone"] == gone


async def test_without_a_terminal_the_question_ends_undenied(folder: Path, environ: dict[str, str]) -> None:  # 2.8.3
    process = await asyncio.create_subprocess_exec(
        *program(folder, "commands"),
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    async with asyncio.timeout(60):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors
    found = json.loads(out)
    assert (found["told"][0], found["gone"]) == (["cancelled", "no_prompt", []], "no_prompt")


async def test_a_servers_question_is_filled_in(folder: Path, typist: Typist) -> None:  # 1.5.5
    await typist.start(*program(folder, "question"))
    shown = await typist.sees(READY)
    assert "Question from jira (MCP server)" in shown
    assert "▏ Which project?" in shown
    assert "Accept" in shown
    assert "This session" not in shown
    typist.type("a\n")
    await typist.sees("project: ")
    typist.type("nothing\n")
    await typist.sees("That does not fit")
    await typist.sees("project: ", 2)  # what is typed before it is asked again is thrown away
    typist.type("web\n")
    await typist.sees("days: ")
    typist.type("3\n")
    assert (await result(typist))["told"] == ["accept", {"project": "web", "days": 3}]


@pytest.mark.parametrize(("keys", "action"), [("d\n", "decline"), ("\x04", "cancel")])
async def test_a_servers_question_is_declined_only_by_a_person(  # 1.5.2 1.5.3 #22992
    folder: Path, typist: Typist, keys: str, action: str
) -> None:
    await typist.start(*program(folder, "question"))
    await typist.sees(READY)
    typist.type(keys)
    assert (await result(typist))["told"] == [action, None]


async def test_it_is_for_cli_sessions_and_leaves_nothing_behind(gateway: Gateway) -> None:
    await gateway.session("talk", kind="api")
    with pytest.raises(InvalidInput, match="kind cli"):
        async with TerminalPrompt(gateway, "talk"):
            pass
    with pytest.raises(SessionNotFound):
        async with TerminalPrompt(gateway, "nowhere"):
            pass
    await gateway.session("mine", kind="cli")
    async with TerminalPrompt(gateway, "mine"):
        assert len(await gateway.store.find(Notifier, "session", "default\x1fmine")) == 1
    assert await gateway.store.find(Notifier, "session", "default\x1fmine") == []


async def test_a_prompt_that_cannot_be_shown_ends_the_question_undenied(  # 2.8.3
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, terminal: str, ours: Callable[[], None]
) -> None:
    """A defect in the drawing neither answers nor hangs."""
    ours()
    monkeypatch.setattr("signoff.terminal.talking.Drawing.card", _broken)
    await gateway.session("mine", kind="cli")
    async with TerminalPrompt(gateway, "mine", path=terminal) as prompt:
        row = await gateway.request({"kind": "command", "command": "rm -rf ./x"}, session_id="mine")
        assert (row.outcome, row.cause, row.decided_by) == ("cancelled", "prompt_failed", ())
        assert row.message.startswith("BLOCKED: cancelled (prompt_failed).")
        assert prompt.gone == "prompt_failed"


def _broken(*_arguments: object) -> None:
    raise RuntimeError("a defect")


async def test_a_store_that_fails_once_leaves_no_question_before_nobody(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, terminal: str, ours: Callable[[], None]
) -> None:
    ours()
    find = gateway.store.find
    failed: list[str] = []

    async def failing(row: Any, index: str, *rest: Any, **facts: Any) -> Any:
        if index == "parent" and not failed:
            failed.append(index)
            raise StoreError("the disk is full")
        return await find(row, index, *rest, **facts)

    monkeypatch.setattr("signoff.terminal.prompt.RETRY_S", 0.01)
    monkeypatch.setattr("signoff.terminal.talking.Drawing.card", _broken)
    await gateway.session("mine", kind="cli")
    monkeypatch.setattr(gateway.store, "find", failing)
    async with TerminalPrompt(gateway, "mine", path=terminal):
        row = await gateway.request({"kind": "command", "command": "rm -rf ./x"}, session_id="mine")
    assert failed
    assert (row.outcome, row.cause) == ("cancelled", "prompt_failed")  # it was asked


async def test_a_terminal_that_is_held_up_holds_nothing_else_up(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, ours: Callable[[], None]
) -> None:
    """Ctrl-S at the terminal is no Ctrl-S for the gateway."""
    ours()
    asking = asyncio.Event()
    ask = Tty.ask

    async def told(tty: Tty, text: str) -> str:
        asking.set()
        return await ask(tty, text)

    monkeypatch.setattr(Tty, "ask", told)
    monkeypatch.setattr("signoff.terminal.tty.LAST_WORDS_S", 0.1)
    master, slave = pty.openpty()
    os.write(master, b"\x13")
    async with asyncio.timeout(60):
        while select.select([], [slave], [], 0)[1]:  # noqa: ASYNC110  # the kernel tells nobody
            await asyncio.sleep(0)
    release = threading.Timer(60.0, os.write, (master, b"\x11"))  # what would hang for ever fails instead
    release.start()
    await gateway.session("mine", kind="cli")
    async with TerminalPrompt(gateway, "mine", path=os.ttyname(slave)) as prompt:
        request = gateway.request({"kind": "command", "command": "rm -rf ./x"}, session_id="mine", request_id="one")
        asked = asyncio.create_task(request)
        await asking.wait()
        await gateway.broker.decide("default", "one", "deny", local_actor(os.getuid()))
        assert (await asked).outcome == "denied"
        assert prompt.gone is None
    assert release.is_alive()
    release.cancel()
    os.close(slave)
    os.close(master)

"""Executors that are programs or addresses: what they are handed, and what is made of every way they can end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.leaping import leap
from tests.ports import free_port
from tests.unit.core.harness import BY_ANN
from tests.unit.gate.kept import MAIL, KeptWorld, profile_with
from tests.unit.gate.receiver import SECRET, Receiver, receiver

from signoff.clock import SystemClock
from signoff.config import load_config
from signoff.errors import InvalidInput
from signoff.executors import Call, Executors, checked_executor, program_environment
from signoff.gate_pass import read_pass
from signoff.gateway import Gateway
from signoff.model import replace
from signoff.settings import ExecutorSettings, Profile
from signoff.staged import state_of
from signoff.testing.clock import settle

__all__ = ["receiver"]

CALL = Call(id="kept_1", profile="default", executor="x", action=MAIL, digest="d", session_id="job", gate_token="sgt_t")


LIMIT_S = 30.0
"""For what is to end by itself, or by the leap of a test, and in no case because the machine stands still."""


def executors(settings: ExecutorSettings) -> Executors:
    """One executor `x`."""
    return Executors({"default": Profile(executors={"x": settings})}, SystemClock())


def program(script: str, *more: str) -> tuple[str, ...]:
    """A Python program as argv."""
    return (sys.executable, "-c", script, *more)


# --- programs --------------------------------------------------------------------------------------


async def test_a_program_reads_the_call_as_json_and_no_shell_reads_its_words(tmp_path: Path) -> None:
    script = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read()); open(sys.argv[2], 'w')"
    argv = program(script, str(tmp_path / "call"), str(tmp_path / "$(touch x); *"))
    ran = await executors(ExecutorSettings(tools=("*",), command=argv)).run(CALL)
    assert (ran.state, ran.exit_code) == ("succeeded", 0)
    found = json.loads((tmp_path / "call").read_bytes())
    assert found["action"] == {"kind": "tool", "name": "send_email", "arguments": MAIL.arguments}
    assert (found["object"], found["id"], found["gate_token"]) == ("signoff.call", "kept_1", "sgt_t")
    assert (tmp_path / "$(touch x); *").exists()


async def test_the_log_says_whose_lines_stand_in_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="signoff.executors")
    settings = ExecutorSettings(tools=("*",), command=program("raise SystemExit(3)"), timeout_s=LIMIT_S)
    await executors(settings).run(CALL)
    assert [record.getMessage() for record in caplog.records] == [
        "executor x runs call kept_1; what it writes stands here as it is",
        "executor x: call kept_1 ended: failed, exit code 3",
    ]


@pytest.mark.parametrize(
    ("script", "state", "code", "cause"),
    [
        ("pass", "succeeded", 0, None),
        ("raise SystemExit(3)", "failed", 3, None),
        ("import os; os.kill(os.getpid(), 9)", "unknown", 137, "executor_stopped"),
        ("import sys; sys.stdin.close()", "succeeded", 0, None),
    ],
)
async def test_how_a_program_ends(script: str, state: str, code: int | None, cause: str | None) -> None:
    settings = ExecutorSettings(tools=("*",), command=program(script), timeout_s=LIMIT_S)
    ran = await executors(settings).run(replace(CALL, session_id="x" * 200_000))
    assert (ran.state, ran.exit_code, ran.cause) == (state, code, cause)


async def test_a_program_that_leaves_a_child_has_ended_all_the_same(tmp_path: Path) -> None:
    """The child holds the program's standard input, and the call is longer than a pipe."""
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))"
    )
    settings = ExecutorSettings(tools=("*",), command=program(script), timeout_s=LIMIT_S)
    ran = await executors(settings).run(replace(CALL, session_id="x" * 900_000))
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (ran.state, ran.exit_code) == ("succeeded", 0)


async def test_a_program_that_does_not_exist_was_not_run() -> None:
    ran = await executors(ExecutorSettings(tools=("*",), command=("/nowhere/mailer",))).run(CALL)
    assert (ran.state, ran.cause) == ("not_run", "executor_unreachable")


async def test_a_program_that_runs_for_too_long_is_stopped_with_its_children(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\ntime.sleep(60)"
    )
    settings = ExecutorSettings(tools=("*",), command=program(script), timeout_s=LIMIT_S)
    running = asyncio.create_task(executors(settings).run(CALL))
    written = tmp_path / "pid"
    async with asyncio.timeout(60):
        while not (written.exists() and written.read_text()):  # noqa: ASYNC110  # another process tells nobody
            await asyncio.sleep(0.01)
    leap(LIMIT_S)
    ran = await running
    assert (ran.state, ran.exit_code, ran.cause) == ("unknown", None, "executor_timed_out")
    async with asyncio.timeout(60):
        while _lives(int(written.read_text())):  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_does_not_inherit_the_gateways_settings() -> None:
    environ = {"PATH": "/bin", "SIGNOFF_KEY": "k", "SIGNOFF_GATEWAY__STORE": "s"}
    assert program_environment(environ) == {"PATH": "/bin"}


async def test_a_program_does_not_inherit_what_a_secret_was_read_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its own profile's nor another one's."""
    names = ("BOT_TOKEN_OF_LAB", "RUNNER_SECRET", "SMTP_HOST")
    for name in names:
        monkeypatch.setenv(name, "whsec_" + "c2VjcmV0" * 5)
    script = "import json, os, sys; json.dump(sorted(os.environ), open(sys.argv[1], 'w'))"
    file = tmp_path / "signoff.toml"
    file.write_text(
        f'[gateway]\nstate_dir = "{tmp_path}/state"\nstore = "memory://"\n[executors.x]\ntools = ["*"]\n'
        f"command = {json.dumps(program(script, str(tmp_path / 'seen')))}\n"
        '[executors.runner]\nkinds = ["command"]\nurl = "https://r.example"\nsecret_env = "RUNNER_SECRET"\n'
        '[profiles.lab.platforms.fake]\ntoken_env = "BOT_TOKEN_OF_LAB"\n'
    )
    async with Gateway(load_config(file, {**os.environ}, platforms=["fake"]), adapters={}) as gateway:
        assert (await gateway.executors.run(CALL)).state == "succeeded"
    assert set(names) & set(json.loads((tmp_path / "seen").read_text())) == {"SMTP_HOST"}


async def test_a_function_that_takes_too_long_leaves_unknown() -> None:
    async def slow(_call: Call) -> None:
        await asyncio.sleep(60)

    found = executors(ExecutorSettings(tools=("*",), timeout_s=0.05))
    found.register("default", "x", slow)
    ran = await found.run(CALL)
    assert (ran.state, ran.cause) == ("unknown", "executor_timed_out")


async def test_a_function_with_a_time_limit_of_its_own_fails_by_that() -> None:
    async def impatient(_call: Call) -> None:
        raise TimeoutError

    found = executors(ExecutorSettings(tools=("*",)))
    found.register("default", "x", impatient)
    assert (await found.run(CALL)).state == "failed"


async def _exits(_call: Call) -> None:
    raise SystemExit(1)


async def _gives_up(_call: Call) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("run", [_exits, _gives_up, lambda _call: sys.exit(1), lambda _call: next(iter(()))])
async def test_a_function_that_would_end_the_gateway_fails(run: Callable[[Call], Any]) -> None:
    found = executors(ExecutorSettings(tools=("*",)))
    found.register("default", "x", run)
    assert (await found.run(CALL)).state == "failed"


async def test_functions_that_hang_leave_the_threads_of_the_loop_alone() -> None:
    over = threading.Event()
    found = executors(ExecutorSettings(tools=("*",), timeout_s=0.05))
    found.register("default", "x", lambda _call: over.wait(30))
    try:
        runs = await asyncio.gather(*(found.run(CALL) for _ in range(40)))
        assert {ran.cause for ran in runs} == {"executor_timed_out"}
        async with asyncio.timeout(25):
            assert await asyncio.to_thread(lambda: "answered") == "answered"
    finally:
        over.set()


# --- addresses -------------------------------------------------------------------------------------


async def test_a_call_is_posted_signed_under_its_id(receiver: Receiver) -> None:
    ran = await executors(receiver.settings()).run(CALL)
    assert ran.state == "succeeded"
    ((headers, body),) = receiver.calls
    assert headers["Idempotency-Key"] == headers["webhook-id"] == "kept_1"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert receiver.is_signed(headers, body)
    assert not receiver.is_signed(headers, body + b" ")
    assert json.loads(body)["action"]["arguments"] == MAIL.arguments


@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        (lambda: web.Response(status=204), "succeeded", None),
        (lambda: web.Response(text="OK"), "succeeded", None),
        (lambda: web.json_response({"status": "failed", "exit_code": 4}), "failed", 4),
        (lambda: web.json_response({"status": "not_run"}), "not_run", None),
        (lambda: web.json_response({"status": "perhaps"}), "unknown", None),
        (lambda: web.json_response({"status": None}), "unknown", None),
        (lambda: web.json_response({"status": "failed", "exit_code": "4"}), "failed", None),
        (lambda: web.json_response({"status": "failed", "exit_code": 10**30}), "failed", None),
        (lambda: web.Response(text="x" * (2 * 1024**2)), "unknown", None),
        (lambda: web.Response(status=400), "failed", None),
        (lambda: web.Response(status=500), "failed", None),
        (lambda: web.Response(status=502), "unknown", None),
        (lambda: web.Response(status=504), "unknown", None),
        (lambda: web.Response(status=307, headers={"Location": "/run"}), "failed", None),
        (lambda: None, "unknown", None),
    ],
)
async def test_what_an_answer_means(
    receiver: Receiver, answer: Callable[[], web.StreamResponse | None], state: str, code: int | None
) -> None:
    receiver.answer = answer
    ran = await executors(receiver.settings()).run(CALL)
    assert (ran.state, ran.exit_code) == (state, code)
    assert len(receiver.calls) == 1  # whatever was answered, it is sent once


async def test_an_answer_that_comes_in_pieces_is_read_to_its_end() -> None:
    answered = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b'{"status": "fai', b'led", "exit_code": 4}', b""):
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await settle()  # the reader is in this loop: it has this piece before the next
        writer.close()
        await writer.wait_closed()
        answered.set()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        ran = await executors(ExecutorSettings(tools=("*",), url=url, secret=SECRET, timeout_s=LIMIT_S)).run(CALL)
        await answered.wait()
    assert (ran.state, ran.exit_code) == ("failed", 4)


async def test_an_answer_that_does_not_come_leaves_unknown(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.hold_s = 10 * LIMIT_S
    url = f"http://127.0.0.1:{receiver.port}/run?token=hunter2"
    running = asyncio.create_task(executors(receiver.settings(url=url, timeout_s=LIMIT_S)).run(CALL))
    async with asyncio.timeout(60):
        await receiver.called.wait()
    leap(LIMIT_S)
    ran = await running
    assert (ran.state, ran.cause) == ("unknown", "answer_lost")
    assert len(receiver.calls) == 1
    assert "executor x: the answer to kept_1 was lost: no answer in time" in caplog.text
    assert "token" not in caplog.text


async def test_where_nobody_listens_nothing_was_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("signoff.executors.CONNECT_PAUSES_S", (0.01,))
    url = f"http://127.0.0.1:{free_port()}/run?token=hunter2"
    ran = await executors(ExecutorSettings(tools=("*",), url=url, secret=SECRET, timeout_s=LIMIT_S)).run(CALL)
    assert (ran.state, ran.cause) == ("not_run", "executor_unreachable")
    assert "executor x cannot be reached for kept_1: nothing answers at 127.0.0.1:" in caplog.text
    assert "token" not in caplog.text


async def test_where_no_connection_stands_in_time_nothing_was_run(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody listens and says nothing, so that TLS is never agreed on and the call never sent."""
    called, over = asyncio.Event(), asyncio.Event()

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        await over.wait()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/?token=hunter2"
        settings = ExecutorSettings(tools=("*",), url=url, secret=SECRET, timeout_s=LIMIT_S)
        running = asyncio.create_task(executors(settings).run(CALL))
        async with asyncio.timeout(2 * LIMIT_S):
            await called.wait()
        leap(LIMIT_S)
        ran = await running
        over.set()
    assert (ran.state, ran.cause) == ("not_run", "executor_unreachable")
    assert "token" not in caplog.text


async def test_a_kept_call_is_run_by_an_address(make: Callable[..., KeptWorld], receiver: Receiver) -> None:
    profile = replace(profile_with(), executors={"mailer": receiver.settings(tools=("send_email",))})
    world = make(profile=profile)
    await world.job()
    world.start()
    kept = await world.keep()
    await world.staged.approve("default", kept.request_id, BY_ANN)
    async with asyncio.timeout(60):
        while state_of(await world.row(kept)) in ("approved", "running"):  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.01)
    assert state_of(await world.row(kept)) == "succeeded"
    ((_, body),) = receiver.calls
    assert read_pass(json.loads(body)["gate_token"]).request_id == kept.request_id


# --- which there are ---------------------------------------------------------------------------------


def test_an_executor_is_known_where_it_can_be_run() -> None:
    profile = Profile(
        executors={
            "program": ExecutorSettings(tools=("a",), command=("true",)),
            "address": ExecutorSettings(tools=("b",), url="http://127.0.0.1:1", secret=SECRET),
            "function": ExecutorSettings(tools=("c",)),
        }
    )
    found = Executors({"default": profile}, SystemClock())
    assert found.known() == [("default", "program"), ("default", "address")]
    found.register("default", "function", print)
    assert found.has("default", "function")
    assert not found.has("other", "function")
    assert not found.has("default", "nobody")
    assert found.function_for("default", "c") is print
    assert found.function_for("other", "c") is None


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("new", ExecutorSettings()),
        ("mailer", ExecutorSettings(tools=("other",))),
        ("new", ExecutorSettings(tools=("send_email",))),
    ],
)
def test_an_executor_that_clashes_is_refused(name: str, settings: ExecutorSettings) -> None:
    with pytest.raises(InvalidInput):
        checked_executor(profile_with(), name, settings)

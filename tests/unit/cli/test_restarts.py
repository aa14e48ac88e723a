"""`run` while the gateway is away: before it is asked, while it waits, and after the command ran."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.forked import Forked
from tests.unit.cli.test_cli import Shell
from tests.unit.client.fake_gateway import FakeGateway

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the gateway's socket and signals")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
async def gateway(shell: Shell) -> AsyncIterator[FakeGateway]:
    """A gateway on the local socket of the configuration, which approves."""
    fake = FakeGateway()
    fake.outcome = "approved"
    await fake.up(shell.folder / "admin.sock")
    yield fake
    await fake.down()


async def claimed(shell: Shell, gateway: FakeGateway) -> tuple[Forked, str]:
    """A command that runs until it is given a line, and then ends with 4; and the id of its question."""
    process = await shell.start("run", "--shell", "read x; exit 4", stdin=asyncio.subprocess.PIPE)
    request_id = await gateway.asked()
    await gateway.until(lambda: gateway.count(f"POST /v1/approvals/{request_id}/claim") == 1)
    return process, request_id


async def told(process: Forked, words: str) -> None:
    """Wait until its standard error says so."""
    assert process.stderr is not None
    async with asyncio.timeout(30):
        while words not in (line := (await process.stderr.readline()).decode()):
            assert line, f"it ended without: {words}"


@pytest.mark.quick
async def test_a_gateway_that_ran_here_is_waited_for(shell: Shell) -> None:
    """It takes its socket away when it ends, so a restart looks like no gateway at all."""
    (shell.folder / "token.key").touch(mode=0o600)
    process = await shell.start("run", "echo", "hello")
    await told(process, "signoff: no gateway runs here now; it is waited for.")
    gateway = FakeGateway()
    gateway.outcome = "approved"
    await gateway.up(shell.folder / "admin.sock")
    done = await shell.end(process)
    await gateway.down()
    assert (done.code, done.out) == (0, "hello\n"), done


@pytest.mark.heavy
async def test_a_result_is_told_until_the_gateway_takes_it(shell: Shell, gateway: FakeGateway) -> None:
    """With seven failures it takes longer than a question looks for a gateway."""
    process, request_id = await claimed(shell, gateway)
    gateway.fail += [(f"POST /v1/approvals/{request_id}/result", 503)] * 7
    process.give(b"go\n")
    done = await shell.end(process)
    assert (done.code, gateway.approvals[request_id]["execution"]["state"]) == (4, "failed"), done


@pytest.mark.quick
async def test_a_result_that_is_interrupted_changes_no_exit_code(shell: Shell, gateway: FakeGateway) -> None:
    process, request_id = await claimed(shell, gateway)
    gateway.fail += [(f"POST /v1/approvals/{request_id}/result", 503)] * 100
    process.give(b"go\n")
    await told(process, "signoff: the gateway does not answer; it is tried again.")
    process.send_signal(signal.SIGINT)
    done = await shell.end(process)
    assert done.code == 4, done
    assert "signoff: interrupted; the result is not reported." in done.err


async def test_run_survives_a_restart_of_the_gateway(shell: Shell) -> None:
    fake = FakeGateway()
    await fake.up()
    shell.environ |= {"SIGNOFF_URL": fake.url, "SIGNOFF_KEY": "sk_a_b"}
    process = await shell.start("run", "echo", "hello")
    request_id = await fake.asked()
    await fake.down()
    fake.end(request_id, "approved")
    await fake.up()
    done = await shell.end(process)
    assert (done.code, done.out) == (0, "hello\n")
    assert fake.headers["Authorization"] == "Bearer sk_a_b"
    await fake.down()

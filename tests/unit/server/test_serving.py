"""A program that serves its own gateway: its functions run what people approve over every door."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.unit.cli.conftest import front
from tests.unit.cli.front import Front

from signoff import Client, Gateway, load_config, loopback, serve
from signoff.errors import ConfigError
from signoff.executors import Call
from signoff.serving import Addresses

SETTINGS = """\
[gateway]
state_dir = "{state}"
port = 0
[approvals.tool_gate]
require_approval = ["send_email"]
default_mode = "deferred"
"""

__all__ = ["front"]


class Program:
    """What the program's own function ran."""

    def __init__(self, gateway: Gateway, addresses: Addresses) -> None:
        self.gateway, self.addresses = gateway, addresses
        self.ran: list[str] = []

    async def keep(self) -> str:
        """Keep a mail for a later yes; its id."""
        await self.gateway.gate.call("send_email", {"to": "ben@example.com"}, session_id="weekly-mail")
        return (await self.gateway.actions())[-1].id

    async def until_run(self, action: str) -> None:
        """Return once the function has run it."""
        async with asyncio.timeout(20):
            while action not in self.ran:  # noqa: ASYNC110  # the function tells nobody
                await asyncio.sleep(0.01)


@asynccontextmanager
async def program(front: Front) -> AsyncIterator[Program]:
    """A program with an executor of its own, served; the state folder's path must be short."""
    with tempfile.TemporaryDirectory(prefix="so-") as folder:
        front.write("signoff.toml", SETTINGS.format(state=Path(folder) / "state"))
        gateway = Gateway(load_config(front.folder / "signoff.toml", {}))
        made: list[Program] = []
        gateway.executor("mailer", tools=("send_email",), run=lambda call: _ran(made[0], call))
        async with serve(gateway, port=0) as addresses:
            made.append(Program(gateway, addresses))
            await gateway.session("weekly-mail", kind="cron")
            yield made[0]


def _ran(program: Program, call: Call) -> None:
    program.ran.append(call.id)


async def test_the_command_line_reaches_it(front: Front) -> None:
    async with program(front) as there:
        action = await there.keep()
        listed = await asyncio.to_thread(lambda: front("actions"))
        assert "send_email" in listed
        await asyncio.to_thread(lambda: front("actions", "approve", action))
        await there.until_run(action)


async def test_http_and_the_console_reach_it(front: Front) -> None:
    async with program(front) as there:
        action = await there.keep()
        async with Client(socket=there.addresses.socket, environ={}) as admin:
            key = (await admin.create_key("approver", principal="ana"))["key"]
        async with Client(there.addresses.api, key, environ={}) as people:
            await people.approve_action(action)
        await there.until_run(action)
        async with aiohttp.ClientSession() as http, http.get(f"{there.addresses.api}/console") as page:
            assert page.status in (200, 401, 403)
            assert "text/html" in page.headers["Content-Type"]


async def test_it_is_closed_with_the_block(front: Front) -> None:
    async with program(front) as there:
        gateway, socket, api = there.gateway, there.addresses.socket, there.addresses.api
    assert gateway.opened
    assert socket is not None
    assert not socket.exists()
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get(f"{api}/health")
    with pytest.raises(RuntimeError, match="opened already"):
        async with serve(gateway):
            raise AssertionError("it is not served twice")


async def test_a_taken_port_leaves_nothing_open(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "ANSWERS_WITHIN_S", 60.0)
    async with program(front) as there:
        port = int(there.addresses.api.rpartition(":")[2])
        with tempfile.TemporaryDirectory(prefix="so-") as folder:
            other = Gateway(load_config(environ={"SIGNOFF_GATEWAY__STATE_DIR": folder}))
            told = rf"^Another Signoff gateway listens on 127\.0\.0\.1:{port}; stop it, or set gateway\.port\.$"
            with pytest.raises(ConfigError, match=told):
                async with serve(other, port=port):
                    raise AssertionError("the port is taken")
            async with serve(Gateway(other.config), port=0) as addresses:
                assert addresses.api != there.addresses.api

"""`signoff console` and the settings of the console, with a gateway as a process would run it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from signoff.cli.app import run_command
from signoff.config import load_config
from signoff.serving import Addresses, run_gateway


@asynccontextmanager
async def running(folder: Path, *settings: str) -> AsyncIterator[tuple[Addresses, Path]]:
    """A gateway with these lines in `[gateway]`."""
    file = folder / "signoff.toml"
    lines = ["[gateway]", f'state_dir = "{folder}/state"', 'store = "memory://"', "port = 0", *settings]
    file.write_text("\n".join([*lines, "[approvals]", 'also_to = ["console:main"]', ""]))
    stop = asyncio.Event()
    ready: asyncio.Future[Addresses] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run_gateway(load_config(file, {}), on_ready=ready.set_result, stop=stop))
    try:
        yield await ready, file
    finally:
        stop.set()
        await task


async def run(*arguments: str) -> int:
    return await asyncio.to_thread(run_command, list(arguments))


async def test_the_link_lets_one_person_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(tmp_path) as (bound, file):
        assert await run("console", "--principal", "ana", "--config", str(file)) == 0
        link = capsys.readouterr().out.strip()
        assert link.startswith(f"{bound.api}/console/link/")
        assert await run("console", "--view", "--json", "--config", str(file)) == 0
        assert json.loads(capsys.readouterr().out)["url"].startswith(bound.api)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            async with http.post(link, data={}, headers={"Origin": bound.api}) as answer:
                assert answer.url.path == "/console"
                assert "Nothing waits." in await answer.text()
            async with http.get(f"{bound.api}/console/here") as answer:
                assert answer.status == 204


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((), 2, "name the person with --principal"),
        (("--principal", "a b"), 2, "principal must be"),
        (("--principal", "ana", "--profile", "nope"), 2, "There is no profile"),
    ],
)
async def test_what_a_link_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, told: str
) -> None:
    async with running(tmp_path) as (_, file):
        assert await run("console", *arguments, "--config", str(file)) == code
        assert told in capsys.readouterr().err


async def test_without_a_gateway_there_is_no_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "signoff.toml"
    file.write_text(f'[gateway]\nstate_dir = "{tmp_path}/state"\n')
    assert await run("console", "--view", "--config", str(file)) == 75
    assert "signoff serve" in capsys.readouterr().err


async def test_the_console_can_be_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(tmp_path, "console = false") as (bound, file), aiohttp.ClientSession(bound.api) as http:
        for path in ("/", "/console", "/console/login"):
            async with http.get(path) as answer:
                assert answer.status == 404
        assert await run("console", "--view", "--config", str(file)) == 2
        assert "gateway.console = true" in capsys.readouterr().err


async def test_the_public_address_is_served_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(tmp_path, 'console_url = "https://signoff.example.org/"') as (bound, file):
        assert await run("console", "--view", "--config", str(file)) == 0
        assert capsys.readouterr().out.startswith("https://signoff.example.org/console/link/")
        async with aiohttp.ClientSession(bound.api) as http:
            for host, status in (("signoff.example.org", 200), ("evil.example", 421)):
                async with http.get("/console/login", headers={"Host": host}) as answer:
                    assert answer.status == status

"""`signoff serve` as a process, with the other commands beside it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.forked import Forked
from tests.unit.cli.test_cli import Shell, one_line

from signoff.client import Client

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the gateway runs on POSIX")


@asynccontextmanager
async def serving(shell: Shell) -> AsyncIterator[tuple[Forked, str]]:
    """A gateway and its address. It must end by SIGTERM with exit code 0."""
    process = await shell.start("serve", "--config", "signoff.toml")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("listening on http://127.0.0.1:"), (line, (await shell.end(process)).err)
        yield process, line.removeprefix("listening on ").strip()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        done = await shell.end(process)
    assert done.code == 0, done


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    # What runs inside the gateway's own folder is blocked, so the folder is not the one commands run in.
    (tmp_path / "signoff.toml").write_text('[gateway]\nstate_dir = "state"\nport = 0\nhooks_port = 0\n')
    return shell


async def test_serve_keys_and_a_question_end_to_end(shell: Shell) -> None:
    with (shell.folder / "signoff.toml").open("a") as file:
        file.write('[profiles.free.approvals]\nmode = "off"\n')
    before = json.loads((await shell("key", "create", "--scope", "agent", "--agent", "ci", "--json")).out)
    async with serving(shell) as (_, url):
        beside = json.loads((await shell("key", "create", "--scope", "approver", "--principal", "ann", "--json")).out)
        listed = json.loads((await shell("key", "list", "--json")).out)["data"]
        assert [row["id"] for row in listed] == [before["id"], beside["id"]]
        async with Client(url, before["key"], environ={}) as agent, Client(url, beside["key"], environ={}) as ann:
            await agent.session("s")
            task = asyncio.create_task(agent.request({"kind": "command", "command": "rm -rf build"}, session_id="s"))
            record = await task
            # Nobody is attached and no platform is set up, so nobody could be asked.
            assert record.outcome == "blocked"
            assert await ann.pending() == []
        nobody = await shell("run", "--shell", "rm -rf /srv/app/build")
        assert nobody.code == 75, nobody
        assert one_line(nobody).endswith(
            "There is no place to ask: set approvals.fallback_destination, or name one with --to."
        )
        allowed = await shell("run", "--profile", "free", "echo", "hello")
        assert (allowed.code, allowed.out) == (0, "hello\n"), allowed
        assert (await shell("key", "revoke", before["id"])).code == 0
    assert not (shell.folder / "state" / "admin.sock").exists()
    assert (await shell("pending")).code == 75


async def test_ctrl_c_ends_it_gracefully_too(shell: Shell) -> None:
    async with serving(shell) as (process, _):
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(30):
            assert await process.wait() == 0


async def test_a_second_gateway_on_the_same_folder_is_refused_in_one_line(shell: Shell) -> None:
    async with serving(shell):
        done = await shell("serve", "--config", "signoff.toml")
        assert done.code == 2, done
        assert "already" in one_line(done)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[gateway]\nprot = 1\n", "signoff.toml: gateway.prot is not a setting; did you mean gateway.port?"),
        ('[platforms.telegram]\ntoken_env = "MISSING"\n', "the environment variable MISSING is not set"),
        ("[gateway\n", "line 1"),
    ],
)
async def test_a_wrong_configuration_is_one_line(shell: Shell, content: str, said: str) -> None:
    (shell.folder / "signoff.toml").write_text(content)
    done = await shell("serve", "--config", "signoff.toml")
    assert (done.code, done.out) == (2, "")
    assert said in one_line(done)


@pytest.mark.parametrize("mode", ["polling", "webhook"])
async def test_an_empty_approver_list_is_told_and_a_dead_platform_does_not_stop_the_start(
    shell: Shell, mode: str
) -> None:
    with (shell.folder / "signoff.toml").open("a") as file:
        file.write('[platforms.telegram]\ntoken = "123456:secret-token"\napi_base_url = "http://127.0.0.1:9"\n')
        file.write(f'mode = "{mode}"\n')
    process = await shell.start("serve", "--config", "signoff.toml")
    assert process.stdout is not None
    async with asyncio.timeout(60):
        line = (await process.stdout.readline()).decode()
    process.send_signal(signal.SIGTERM)
    done = await shell.end(process)
    assert line.startswith("listening on"), done
    assert done.out.startswith("hooks on http://127.0.0.1:") is (mode == "webhook")
    assert done.code == 0
    assert "platforms.telegram.approvers is empty: nobody can decide there" in done.err
    assert "`signoff console --principal NAME` prints a link to log in" in done.err
    assert "secret-token" not in done.err


async def test_a_gateway_on_every_address_warns_and_hands_out_links_that_work(shell: Shell) -> None:
    with (shell.folder / "signoff.toml").open("a") as file:
        file.write('host = "0.0.0.0"\n[principals.ana]\naccounts = ["console:ana"]\n[agents.bot]\nacts_for = "anna"\n')
    process = await shell.start("serve", "--config", "signoff.toml")
    assert process.stdout is not None
    async with asyncio.timeout(60):
        line = (await process.stdout.readline()).decode()
    assert line.startswith("listening on http://0.0.0.0:")
    port = int(line.rpartition(":")[2])
    link = await shell("console", "--principal", "ana")
    stranger = await shell("console", "--principal", "zoe")
    key = await shell("key", "create", "--scope", "approver", "--principal", "zoe")
    async with aiohttp.ClientSession() as http, http.get(link.out.strip()) as page:
        assert page.status == 200
    asked = await shell("run", "--shell", "rm -rf /srv/hidden/build")
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer sk_hidden"}) as http:
        for _ in range(3):
            async with http.get(f"http://127.0.0.1:{port}/v1/capabilities") as refused:
                assert refused.status == 401
    process.send_signal(signal.SIGTERM)
    served = await shell.end(process)
    assert asked.code == 75
    assert re.search(r" INFO signoff\.decisions: default: \w+ blocked by \S.* in ", served.err), served.err
    assert "refused GET /v1/capabilities from 127.0.0.1: invalid_api_key\n" in served.err
    assert "hidden" not in served.err
    assert link.out.startswith(f"http://127.0.0.1:{port}/console/link/")
    assert link.err == ""
    for done in (stranger, key):
        assert done.code == 0
        assert one_line(done).startswith("'zoe' is no principal of the settings (there are: ana);")
    assert "gateway.host: 0.0.0.0 lets other machines call the API" in served.err
    assert "agents.bot.acts_for: It names 'anna', which is no principal of the settings (there are: ana)." in served.err
    assert "profile default: no place can ask anybody now (no platform is set up" in served.err

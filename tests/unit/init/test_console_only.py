"""`signoff init --console`: from nothing to a first approval without any chat, by what the commands say themselves."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.unit.cli.test_cli import Shell
from tests.unit.console.world import Person
from tests.unit.server.world import until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes and signals")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    (tmp_path / "signoff.toml").unlink()
    shell.environ["SIGNOFF_GATEWAY__PORT"] = "0"
    return shell


@asynccontextmanager
async def serving(shell: Shell) -> AsyncIterator[str]:
    """A gateway by what `init` wrote; its address."""
    process = await shell.start("serve")
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
        yield line.split()[-1]
    finally:
        process.terminate()
        async with asyncio.timeout(30):
            await process.communicate()


async def test_from_nothing_to_a_first_approval(shell: Shell) -> None:
    done = await shell("init", "--console", "--yes")
    assert done.code == 0, done
    assert "Next: `signoff serve`, then `signoff console --principal NAME`" in done.out
    file = shell.folder / "signoff.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert 'fallback_destination = "console:main"' in file.read_text()
    assert re.search(r"# .*cards.*\n# console_url = ", file.read_text()), "what cards link to is there to be found"
    build = shell.folder / "build"
    build.mkdir()
    async with serving(shell) as base, aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        link = (await shell("console", "--principal", "ana")).out.strip().removeprefix(base)
        running = asyncio.create_task(shell("run", "--", "rm", "-rf", str(build)))
        ana = Person(base, http)
        opened = await ana.get(link)
        assert (await ana.post(link, opened.fields(link))).status == 303

        async def asked() -> bool:
            return "rm -rf" in (await ana.get("/console")).text

        await until(asked, 60)
        page = await ana.get("/console")
        told = await ana.script("/console/decide", {**page.fields("/console/decide"), "choice": "once"})
        assert told["how"] == "done", told
        ended = await running
        assert ended.code == 0, ended
        assert not build.exists()
        request_id = page.fields("/console/decide")["id"]
        assert "Approved once by ana" in (await shell("why", request_id)).out


async def test_it_may_stand_beside_a_chat_and_says_what_it_takes(shell: Shell) -> None:
    done = await shell("init", "--yes")
    assert (done.code, "--platform, or --console" in done.err) == (2, True), done
    done = await shell("init", "--console", "--yes", "--fallback", "telegram:5")
    assert (done.code, "telegram is not among the platforms; choose one of console." in done.err) == (2, True), done
    done = await shell("init", "--console", "--yes", "--fallback", "console:ops", "--json")
    assert json.loads(done.out)["fallback_destination"] == "console:ops"


async def test_what_force_replaces_is_kept_and_what_it_drops_is_named(shell: Shell) -> None:
    file = shell.folder / "signoff.toml"
    mine = '# mine\n[gateway]\nport = 9001\n[approvals]\ndeny = ["rm -rf *"]\ntimeout_s = 300\n'
    file.write_text(mine)
    file.chmod(0o600)
    done = await shell("init", "--console", "--yes", "--force")
    assert done.code == 0, done
    kept = shell.folder / "signoff.toml.bak"
    assert (kept.read_text(), stat.S_IMODE(kept.stat().st_mode)) == (mine, 0o600)
    assert (
        "signoff.toml.bak, the file that was here. Not taken over from it: gateway.port, approvals.deny.\n" in done.out
    )
    done = await shell("init", "--console", "--yes", "--force")
    assert (kept.read_text(), "Not taken over" in done.out) == (mine, False), "the first copy is never written over"
    assert (shell.folder / "signoff.toml.bak2").read_text() == file.read_text()

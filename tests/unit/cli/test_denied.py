"""What a person denied is not asked again by `ask` and `run`, whose every question has a session of its own."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
from pathlib import Path

import pytest
from tests.forked import fork_module
from tests.unit.cli.test_cli import Done, Shell
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the gateway runs on POSIX")

DENIED = ("ask", "rm -rf build")
TOOL = ("ask", "--tool", "send_email", "--arguments", '{"to": "ben@example.com"}')


class Asker:
    """Somebody who types commands in a folder, perhaps with a key."""

    def __init__(self, shell: Shell, name: str, **environ: str) -> None:
        self.shell, self.folder = shell, shell.folder / name
        self.folder.mkdir(exist_ok=True)
        self.environ = shell.environ | environ
        self.config = () if "SIGNOFF_KEY" in environ else ("--config", str(shell.folder / "signoff.toml"))

    async def ends(self, verb: str, *arguments: str, answer: tuple[str, ...] | None = None) -> tuple[str | None, Done]:
        """Type it; who is asked is answered so, or the command is interrupted. The question's id, None for none."""
        process = await fork_module("signoff", verb, *self.config, *arguments, cwd=self.folder, env=self.environ)
        assert process.stderr is not None
        async with asyncio.timeout(30):
            said = (await process.stderr.readline()).decode()
        asked = said.split()[2] if said.startswith("signoff: asking ") else None
        if asked is not None and answer is not None:
            done = await self.shell(answer[0], asked, *answer[1:])
            assert done.code == 0, done
        elif asked is not None:
            process.send_signal(signal.SIGINT)
        ended = await self.shell.end(process)
        ended.err = said + ended.err
        return asked, ended

    async def sees(self, *arguments: str) -> str:
        """Type it at a terminal, which keeps what it says; the short id of the newest question."""
        reader, writer = pty.openpty()
        process = await fork_module(
            "signoff", *arguments, *self.config, cwd=self.folder, env=self.environ, stderr=writer
        )
        os.close(writer)
        self.seen = (await self.shell.end(process)).out
        os.close(reader)
        return self.seen.partition("signoff approve ")[2].partition(" ")[0]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    (tmp_path / "signoff.toml").write_text(
        '[gateway]\nstate_dir = "state"\nport = 0\nhooks_port = 0\n[approvals]\nfallback_destination = "console:main"\n'
    )
    return shell


async def test_a_denial_holds_for_the_same_user_in_the_same_folder(shell: Shell) -> None:
    async with serving(shell):
        here, elsewhere = Asker(shell, "here"), Asker(shell, "elsewhere")
        asked, first = await here.ends(*DENIED, answer=("deny", "not", "now"))
        assert (asked is None, first.code) == (False, 77)
        for verb, words in (("ask", ["rm -rf build"]), ("run", ["rm", "-rf", "build"])):
            again, done = await here.ends(verb, *words)
            assert (again, done.code) == (None, 77), done
            assert f"({asked}), not asked again, not run." in done.err + done.out
            assert "ask_again" not in done.err + done.out, "whoever reads this through a pipe may be an agent"
        assert (await here.ends("ask", "rm -rf other"))[0], "another action is asked"
        assert (await elsewhere.ends(*DENIED))[0], "the same in another folder is asked"
        assert (await here.ends(*TOOL, answer=("deny",)))[1].code == 77
        assert (await here.ends(*TOOL))[0] is None
        assert (await elsewhere.ends(*TOOL))[0], "so is a tool call, which names no folder"
        assert f"signoff approve {await here.sees(*DENIED)} --choice ask_again" in here.seen
        let = await shell("approve", str(asked), "--choice", "ask_again")
        assert (let.code, let.out) == (0, f"{asked}: this may be asked again. Nothing was approved.\n")
        assert (await here.ends(*DENIED))[0]


async def test_a_denial_is_its_agents_own(shell: Shell) -> None:
    async with serving(shell) as (_, url):
        one, two = [await with_key(shell, url, agent) for agent in ("one", "two")]
        assert (await one.ends(*DENIED, answer=("deny",)))[1].code == 77
        assert (await one.ends(*DENIED))[0] is None
        assert (await two.ends(*DENIED, answer=("approve",)))[1].code == 0
        assert (await one.ends(*DENIED))[0] is None


async def test_an_answer_for_a_session_is_offered_where_there_is_one_and_reaches_no_other(shell: Shell) -> None:
    async with serving(shell) as (_, url):
        asker = await with_key(shell, url, "one")
        night, day = ("--session", "night"), ("--session", "day")
        process = await fork_module("signoff", *DENIED, cwd=asker.folder, env=asker.environ)
        assert process.stderr is not None
        asked = (await process.stderr.readline()).decode().split()[2]
        refused = await shell("approve", asked, "--choice", "session")
        assert (refused.code, "is not on offer" in refused.err) == (1, True), refused
        assert (await shell("approve", asked)).code == 0
        assert (await shell.end(process)).code == 0
        assert (await asker.ends(*DENIED, *night, answer=("approve", "--choice", "session")))[1].code == 0
        assert (await asker.ends(*DENIED, *night))[0] is None
        assert (await asker.ends(*DENIED, *day))[0], "another session"
        assert (await asker.ends(*DENIED))[0], "none at all"


async def with_key(shell: Shell, url: str, agent: str) -> Asker:
    made = await shell("key", "create", "--scope", "agent", "--agent", agent, "--json")
    return Asker(shell, "here", SIGNOFF_URL=url, SIGNOFF_KEY=json.loads(made.out)["key"])

"""The command line on a system that is not POSIX, as far as one that is can play it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.unit.client.fake_gateway import FakeGateway

ELSEWHERE = """
import asyncio, os, socket, subprocess, sys, tempfile
import platformdirs

for name in ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp"):
    sys.modules[name] = None
for name in ("getuid", "geteuid", "getpgrp", "tcgetpgrp", "fchmod", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
    delattr(os, name)

from signoff.cli.app import LazyGroup, cli, run_command

def imported(group):
    for name in group.list_commands(None):
        found = group.get_command(None, name)
        if isinstance(found, LazyGroup):
            imported(found)

imported(cli)
for line in sys.argv[1:]:
    print(f"{line}: {run_command(line.split())}", file=sys.stderr)
"""
"""Without the modules and names that Python has on POSIX alone, each command is imported, and some are run."""


@pytest.mark.quick
async def test_the_client_needs_nothing_of_posix(tmp_path: Path) -> None:
    gateway = FakeGateway()
    await gateway.up()
    gateway.outcome = "approved"
    (tmp_path / "signoff.toml").write_text('[gateway]\nstate_dir = "state"\n')
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "allowlist.toml").write_text('commands = ["make"]\n')
    lines = ("check make", "policy rules force", "pending", "grants", "ask make")
    environ = {"HOME": str(tmp_path), "SIGNOFF_URL": gateway.url, "SIGNOFF_KEY": "sk_a_b"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ELSEWHERE, *lines),
        cwd=tmp_path,
        env=environ,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        _, told = await process.communicate()
    await gateway.down()
    assert [line for line in told.decode().splitlines() if line] == [f"{line}: 0" for line in lines]

"""Commands whose streams are closed or full, or who may not read what they need: a line, a code, and no traceback."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.client.fake_gateway import FakeGateway

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the gateway's socket and file modes")


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[FakeGateway]:
    (tmp_path / "signoff.toml").write_text('[gateway]\nstate_dir = "."\n')
    fake = FakeGateway()
    await fake.up(tmp_path / "admin.sock")
    yield fake
    await fake.down()


async def typed(folder: Path, line: str) -> tuple[int, str, str]:
    """A line of a shell, in which `signoff` is the command; its code, output and errors."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    script = f'signoff() {{ {sys.executable} -m signoff "$@"; }}; {line}'
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", script),
        cwd=folder,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_closed_streams_change_nothing(tmp_path: Path, gateway: FakeGateway) -> None:
    gateway.outcome = "approved"
    # What is run writes into its own output, and never into a connection that took the number of it.
    closed = await typed(tmp_path, "signoff run sh -c 'echo said; echo ran > made' <&- >&-")
    assert closed == (0, "", "")
    assert (tmp_path / "made").read_text() == "ran\n"
    assert await typed(tmp_path, "signoff nothing 2>&-") == (2, "", "")
    code, out, err = await typed(tmp_path, "signoff ask --code - <&-")
    assert (code, out) == (2, "")
    assert err.startswith("signoff: The text is empty, so there is nothing to ask about.")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is played by /dev/full")
@pytest.mark.parametrize("line", ["signoff pending > /dev/full", "signoff grants --json > /dev/full"])
async def test_a_full_disk_is_named(tmp_path: Path, gateway: FakeGateway, line: str) -> None:
    assert await typed(tmp_path, line) == (1, "", "signoff: The output cannot be written: No space left on device.\n")


@pytest.mark.heavy
async def test_the_state_folder_of_another_user(tmp_path: Path) -> None:
    able = "" if os.geteuid() else "setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-all "
    if able and shutil.which("setpriv") is None:
        pytest.skip("whoever may read everything needs setpriv to lose that")
    (tmp_path / "signoff.toml").write_text('[gateway]\nstate_dir = "state"\n')
    state = tmp_path / "state"
    state.mkdir(mode=0o000)
    try:
        for verb in ("pending", "run true", "key list"):
            code, out, err = await typed(tmp_path, f"{able}{sys.executable} -m signoff {verb}")
            assert (code, out, err.count("\n")) == (75, "", 1), err
            assert "may not be read or written by this user. Run this as the gateway's own user" in err
    finally:
        state.chmod(0o700)

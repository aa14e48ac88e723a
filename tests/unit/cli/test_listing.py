"""Lists as people read them: a line each, as wide as the terminal, and whole with --json."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click import unstyle
from rich.cells import cell_len
from tests.tables import every
from tests.unit.cli.test_cli import Shell, record
from tests.unit.client.fake_gateway import FakeGateway

from signoff.cli.lengths import seconds_of
from signoff.cli.summaries import summary

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the gateway's socket and terminals")

LONG = "rm -rf build; " + "echo word; " * 60 + "文" * 40
MAIL = ("--tool", "send_email", "--arguments", json.dumps({"to": "ben@example.com", "body": "hello " * 20, "n": 3}))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    del shell.environ["COLUMNS"]
    return shell


@pytest.fixture
async def gateway(shell: Shell) -> AsyncIterator[FakeGateway]:
    fake = FakeGateway()
    await fake.up(shell.folder / "admin.sock")
    yield fake
    await fake.down()


async def on_terminal(shell: Shell, columns: int, *arguments: str, **environ: str) -> list[str]:
    """The lines that a command writes on a terminal of that width."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shell.environ |= environ
    process = await shell.start(*arguments, stdout=writer)
    os.close(writer)
    told, loop = b"", asyncio.get_running_loop()
    async with asyncio.timeout(30):
        while True:
            try:
                part = await loop.run_in_executor(None, os.read, reader, 65536)
            except OSError:  # what Linux says at the end
                break
            told += part
            if not part:
                break
    os.close(reader)
    assert (await shell.end(process)).code == 0
    return told.decode().splitlines()


async def test_what_waits_is_a_line_each(shell: Shell, gateway: FakeGateway) -> None:
    asking = [await shell.start("ask", *words) for words in ((LONG,), MAIL)]
    await gateway.until(lambda: len(gateway.approvals) == 2)
    piped = (await shell("pending")).out.splitlines()
    assert len(piped) == 3
    assert any('send_email(to="ben@example.com", body="hello hello' in line and "n=3)" in line for line in piped)
    [cut] = [line for line in piped if "rm -rf build; echo word;" in line]
    assert "…  " in cut and "文" not in cut
    whole = json.loads((await shell("pending", "--json")).out)["data"]
    assert {each["action"].get("command") for each in whole} == {LONG, None}
    for columns in (40, 60, 80, 200):
        lines = await on_terminal(shell, columns, "pending", NO_COLOR="1")
        assert [cell_len(line) <= columns for line in lines] == [True] * 3, lines
        assert all("…" in line for line in lines[1:] if columns < 100)
        assert "EXPIRES IN" in lines[0] and ("SESSION" in lines[0]) is (columns == 200)
        assert "\x1b" not in "".join(lines)
    assert "\x1b[1m" in (await on_terminal(shell, 80, "pending", NO_COLOR=""))[0]
    for request_id in list(gateway.approvals):
        await gateway.decide(request_id, "denied")
    for process in asking:
        assert (await shell.end(process)).code == 77


@pytest.mark.quick
async def test_a_kept_action_is_told_from_others(shell: Shell, gateway: FakeGateway) -> None:
    process = await shell.start("ask", "--tool", "send_email")
    asked = await gateway.asked()
    kept = "kept: its executor runs it as soon as it is approved."
    assert kept not in (await shell("pending")).out
    gateway.approvals[asked] |= {"stages": "req_1", "executor": "mailer"}
    listed = (await shell("pending")).out
    assert "kept: send_email()" in listed and listed.rstrip().endswith(kept)
    assert (await shell("approve", "K7M2Q")).out == (
        "K7M2Q: Approved by Ana. It was kept: executor mailer runs it now, once; `signoff actions` tells how it goes.\n"
    )
    await shell.end(process)


async def test_a_narrow_terminal_has_a_line_for_each_cell(shell: Shell, gateway: FakeGateway) -> None:
    wide, narrow = [await on_terminal(shell, columns, "grants", NO_COLOR="1") for columns in (120, 40)]
    assert unstyle(wide[0]).split()[0] == "GRANT" and wide[1].split()[0] == "G1"
    assert narrow[0].split() == ["GRANT", "G1"]
    assert [line.split()[0] for line in narrow[:4]] == ["GRANT", "SCOPE", "SESSION", "COVERS"]


@every(
    "action, said",
    [
        ({"kind": "command", "command": "a\n  b   c"}, "a ⏎ b c"),
        ({"kind": "command", "command": "x sk⟨40 masked⟩89"}, "x sk⟨40 masked⟩89"),
        ({"kind": "command", "command": "a\u202eb \x1b[31m"}, "a⟨U+202E⟩b ⟨ESC⟩[31m"),
        ({"kind": "code", "code": "import os\nos.remove(1)"}, "import os ⏎ os.remove(1)"),
        ({"kind": "tool", "name": "t"}, "t()"),
        (
            {"kind": "tool", "name": "t", "arguments": {"a": [{"b": None}], "c": "\n"}},
            't(a=[{"b":null}], c="\\n")',
        ),
        ({"kind": "tool", "name": "t", "arguments": {"a": "x" * 99}}, f't(a="{"x" * 38}…")'),
        ({"kind": "file_write", "path": "/etc/hosts"}, "/etc/hosts"),
        ({"kind": "elicitation", "server": "s", "message": "Which?"}, "Which?"),
    ],
    ids=str,
)
def test_the_short_form_of_an_action(action: dict[str, Any], said: str) -> None:
    assert summary(record(action=action)) == said


@every(
    "text, seconds",
    [
        ("90", 90), ("90s", 90), ("1.5", 1.5), ("5m", 300), ("5min", 300), ("2h", 7200), ("1d", 86400),
        ("1h30m", 5400), ("1h 30m 5s", 5405), ("90 S", 90), ("30 seconds", 30), ("0", 0),
        ("", None), ("soon", None), ("-1", None), ("nan", None), ("inf", None), ("1e3", None), ("5x", None),
        ("m", None), ("30m1h", None), ("1:30", None), ("٣", None),
    ],
    ids=str,
)  # fmt: skip
def test_a_length_of_time_has_these_forms(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds

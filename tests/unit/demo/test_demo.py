"""`signoff demo` as a person runs it: in a terminal, with its output piped, and with a real chat's server."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from tests.platforms.telegram import TelegramServer

COMMAND = (sys.executable, "-m", "signoff", "demo")


def environment(folder: Path, **more: str) -> dict[str, str]:
    looks = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    plain = {name: value for name, value in os.environ.items() if name not in looks}
    return {**plain, "TMPDIR": str(folder), "TERM": "xterm-256color", **more}


def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(folder, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


class Terminal:
    """A pseudo-terminal with the demonstration in it."""

    def __init__(self, folder: Path, *, columns: int = 80) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            COMMAND, env=environment(folder, COLUMNS=str(columns)), stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        self.seen = ""
        self._read_to = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def until(self, words: str, *, within_s: float = 40.0) -> str:
        """What was printed since the last such call, up to the words."""
        while (at := self.seen.find(words, self._read_to)) < 0:
            ready, _, _ = select.select([self.master], [], [], within_s)
            try:
                chunk = os.read(self.master, 65536) if ready else b""
            except OSError:  # Linux says so where the other end is closed
                chunk = b""
            assert chunk, f"no {words!r} in:\n{self.seen}"
            self.seen += self._decoder.decode(chunk)
        before, self._read_to = self._read_to, at + len(words)
        return self.seen[before : self._read_to]

    def type(self, line: str) -> None:
        os.write(self.master, f"{line}\n".encode())

    def insist(self, line: str, words: str) -> None:
        """Type it until it works: a reason counts from when the gateway has stored where it asked for it."""
        for _ in range(20):
            self.type(line)
            try:
                self.until(words, within_s=1.0)
            except AssertionError:
                continue
            return
        self.until(words)

    def end(self) -> int:
        """Read to the end; the exit code."""
        with pytest.raises(AssertionError):
            self.until("\0never printed\0")
        return self.process.wait(60)


@contextmanager
def terminal(folder: Path, **settings: int) -> Iterator[Terminal]:
    made = Terminal(folder, **settings)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()
        os.close(made.master)


@pytest.mark.quick
def test_it_plays_by_itself_plainly_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = run(tmp_path, "--auto")
    assert (done.returncode, done.stderr) == (0, "")
    out = done.stdout
    assert "\x1b" not in out
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    assert re.search(
        r"The whole text \([\d,]+ characters\) is in this file until the demo ends:\n"
        r"┃ .*/signoff-demo-\S+/\w{5}\.txt\n",
        out,
    )
    assert "So is the file that a card named." in " ".join(out.split())
    assert "2 identical requests wait." in out
    assert out.count("Approved once for all 2 by you") >= 2
    record = out[out.index("What the record says") :]
    assert record.count("git push --force") == 1, "one answer, told once"
    assert re.search(
        r"^\w{5}, \w{5} git push --force origin main\n +Approved once for all 2 by you", record, re.MULTILINE
    )
    assert out.count("reports that it did not start it.") == 3
    assert 'Reason given: "wrong target". Do not retry it' in " ".join(out.split())
    assert "You said “wrong target”." in out
    assert "\n5 of 5" in out
    assert out.count("DROP TABLE users_old") == 3, "asked once, and both in the record"
    assert out.count("Denied by you, not run") == 1
    assert out.count("not asked again, not run") == 1
    assert "Next: signoff init" in out
    assert not list(tmp_path.iterdir())


def test_every_line_of_a_card_has_its_bar_on_a_narrow_terminal(tmp_path: Path) -> None:
    lines = run(tmp_path, "--auto", COLUMNS="40").stdout.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("┃ The whole text"))
    card = lines[at : lines.index("", at)]
    assert len(card) > 10
    assert [line for line in card if not line.startswith("┃") and "›" not in line and "→" not in line] == []


def test_each_card_says_the_verdict_before_the_agent_reads_it(tmp_path: Path) -> None:
    out = run(tmp_path, "--auto").stdout
    assert out.index("✅ Approved once by you") < out.index("deploy-bot reads", out.index("2 of 5"))


def test_without_a_terminal_it_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "--terminal")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "signoff: --terminal needs a terminal to type in; --auto lets it press the buttons by itself.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--chat", "1"), "--chat goes with --platform"),
        (("--platform", "telegram", "--chat", "1"), "needs --token-env, --approver"),
        (("--platform", "telegram", "--chat", "1", "--approver", "1", "--token-env", "NOT_SET"), "NOT_SET is not set"),
        (("--terminal", "--no-browser"), "--terminal and --no-browser name different places"),
        (("--auto", "--no-browser"), "--auto presses buttons in the terminal"),
    ],
)
def test_wrong_usage_is_named(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_person_answers_by_numbers_and_by_commands(tmp_path: Path) -> None:
    with terminal(tmp_path) as shown:
        shown.until("Approved by rule")
        shown.until("2 of 5")
        shown.until("[1]")
        shown.until("› ")
        shown.type("")
        shown.until("Enter alone decides nothing.")
        shown.type("99")
        shown.until("No button has the number 99 now; nothing was decided.")
        shown.type("ok")
        shown.until("“ok” decides nothing here.")
        for line in ("foo", "foo", f"what is {'x' * 90}"):
            shown.type(line)
            shown.until(f"“{line[:39]}")
            shown.until("decides nothing here.")
        shown.type("/pending")
        shown.until("1 waits here")
        shown.type("2")
        shown.until("I leave the build as it is")
        shown.until("3 of 5")
        shown.until("More…")
        shown.type("/deny one machine first")
        shown.until("You said “one machine first”.")
        shown.until("Approve 1 of 2")
        shown.type("1")
        shown.until("The other one asks again.")
        shown.until("Next of 2")
        shown.until("[1]")
        shown.type("3")
        shown.until("Type it…")
        shown.type("9")
        shown.until("Type it and press Enter.")
        shown.insist("main is frozen", "You said “main is frozen”.")
        shown.until("5 of 5")
        shown.until("[2]")
        shown.type("2")
        shown.until("I ask for the same once more")
        shown.until("so it was not asked again")
        shown.until("What the record says")
        assert shown.end() == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("how", "code"), [(None, 0), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_can_be_ended_at_any_time_and_says_what_was_withdrawn(tmp_path: Path, how: int | None, code: int) -> None:
    with terminal(tmp_path) as shown:
        card = shown.until("[1]")
        short_id = re.findall(r"([0-9A-Z]{5}) · [0-9a-f]{8}", card)[-1]
        shown.until("› ")
        if how is None:
            os.write(shown.master, b"\x04")
        else:
            shown.process.send_signal(how)
        shown.until("Cancelled")
        shown.until(f"Ended early. Withdrawn, not run: {short_id}")
        shown.until("Nothing was run.")
        assert shown.end() == code
        assert "So is the file" not in " ".join(shown.seen.split()), "no card named one"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [("--terminal",), ("--no-browser",)])
def test_a_terminal_that_is_closed_leaves_nothing_behind(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(tmp_path),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # its own terminal, as from a shell
    ) as process:
        os.close(slave)
        seen = b""
        while b"2 of 5" not in seen:
            seen += os.read(master, 65536)
        assert len(list(tmp_path.iterdir())) == 1
        os.close(master)
        assert process.wait(60) == 129
    assert not list(tmp_path.iterdir())


@pytest.mark.heavy
def test_narrow_terminals_and_no_colour_are_respected(tmp_path: Path) -> None:
    with terminal(tmp_path, columns=60) as shown:
        shown.until("[1]")
        shown.until("› ")
        unprompted = re.sub(r"[^\n]*\x1b\[2K", "", shown.seen)
        lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", unprompted).replace("\r", "").split("\n")
        assert [line for line in lines if len(line) > 60] == []
        assert "\x1b[33m" in shown.seen
    done = run(tmp_path, "--auto", NO_COLOR="1", FORCE_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", done.stdout)


@asynccontextmanager
async def in_chat(server: TelegramServer, token: str, tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    where = await server.platform.where()
    options = ("--platform", "telegram", "--token-env", "BOT", "--chat", "111", "--approver", "111")
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *options,
        "--api-base-url",
        where.url,
        env=environment(tmp_path, BOT=token),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_the_same_in_a_real_chat(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        telegram = server.platform
        await telegram.add_bot("123456:TEST", "demo_bot")
        await telegram.add_user(111, "Ana")
        async with in_chat(server, "123456:TEST", tmp_path) as process:
            card = await telegram.wait_for_message(111, lambda m: "rm -rf ./build" in m.text, timeout_s=40)
            await telegram.press(111, 111, card.message_id, "Deny")
            await telegram.wait_for_message(111, lambda m: "web-1.example" in m.text, timeout_s=40)
            process.send_signal(signal.SIGINT)
            out, _ = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 130
            assert "I leave the build as it is" in out.decode()
            assert "Withdrawn, not run" in out.decode()
            assert "⏹ Cancelled" in await telegram.render_text(111)
    assert not os.listdir(tmp_path)


async def test_a_chat_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    async with TelegramServer() as server, in_chat(server, "999999:WRONG", tmp_path) as process:
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 75
        assert "Telegram cannot be reached: Telegram answered 401" in out.decode()


def test_a_reader_that_goes_away_gets_no_traceback() -> None:
    command = f"{sys.executable} -m signoff demo --auto | head -3"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout.startswith("Signoff asks people")
    assert done.stderr == ""

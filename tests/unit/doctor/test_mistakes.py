"""Typical mistakes: `signoff serve` refuses each in one line that names the mend, and `signoff doctor` tells it too."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.cli.test_cli import Shell, one_line

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the gateway runs on POSIX")

TOKEN = "123456:very-secret-token"
TELEGRAM = f'[platforms.telegram]\ntoken = "{TOKEN}"\n'
STATE = '[gateway]\nstate_dir = "state"\nport = 0\nhooks_port = 0\n'

Prepare = Callable[[Path], None]

SETTINGS: list[tuple[str, str]] = [
    # a slip of the pen
    ("[gateway\nport = 0\n", "line 1: this is not TOML"),
    ("[approvals]\nmode = manual\n", "text stands in quotes"),
    ("[approvals]\ntimeout_s = 300\ntimeout_s = 60\n", "line 3"),
    ("[gateway]\nprot = 8787\n", "did you mean gateway.port?"),
    ("[aproval]\ntimeout_s = 5\n", "did you mean approvals.timeout_s?"),
    ("timeout_s = 5\n", "did you mean approvals.timeout_s?"),
    (TELEGRAM + 'aprovers = ["1"]\n', "did you mean platforms.telegram.approvers?"),
    ('[platforms.telegramm]\ntoken = "x"\n', "did you mean platforms.telegram.token?"),
    # a value of another kind
    ('[approvals]\ntimeout_s = "5m"\n', "must be a number of seconds without quotes or unit"),
    ('[gateway]\nport = "8787"\n', "must be a port number without quotes"),
    ("[gateway]\nport = 87870\n", "must be a port from 0"),
    (TELEGRAM + "approvers = [123]\n", 'ids are text: write "123" in quotes'),
    (TELEGRAM + 'approvers = "123"\n', "must be a list in brackets"),
    (TELEGRAM + 'approvers = ["@ana"]\n', "is neither a numeric user id nor a principal"),
    ('[approvals]\nmode = "auto"\n', 'must be "manual", "smart" or "off"'),
    ('[approvals]\nmode = "smart"\n', "approvals.smart.base_url is missing: it says where the reviewer is asked"),
    ('[grants]\ntool = ["once"]\n', 'must contain "deny"'),
    ("[approvals]\ntimeout_s = 600\nmax_timeout_s = 60\n", "raise the one or lower the other"),
    ('[gateway]\nhost = "http://localhost"\n', "write a host name or an IP address alone"),
    ("[gateway]\nport = 9000\nhooks_port = 9000\n", "give one of them another port"),
    # tokens and secrets
    ("[platforms.telegram]\n", "give token, token_env or token_file"),
    ('[platforms.telegram]\ntoken_env = "NO_SUCH"\n', "NO_SUCH is not set; set it"),
    ('[platforms.telegram]\ntoken_file = "nowhere"\n', "create it or mend the path"),
    ('[platforms.telegram]\ntoken = "a"\ntoken_env = "HOME"\n', "give only one of token, token_env and token_file"),
    ('[platforms.telegram]\ntoken = ""\n', "is empty; give it the token"),
    ('[platforms.slack]\nbot_token = "xapp-1"\n', "that begins with xoxb-"),
    ('[platforms.slack]\nbot_token = "xoxb-1"\n', 'platforms.slack.app_token is missing in mode "socket"'),
    ('[platforms.discord]\ntoken = "x"\nmode = "http"\n', "public_key is missing"),
    # places and people
    ('[approvals]\nfallback_destination = "-100123"\n', "write platform:chat"),
    ('[approvals]\nfallback_destination = "slack:C1"\n', "set platforms.slack or name another place"),
    ('[principals.ana]\naccounts = ["123"]\n', "write platform:user_id"),
    ("[profiles.team.gateway]\nport = 1\n", "move it there"),
    # where things are kept
    ('[gateway]\nstore = "/var/lib/signoff.db"\n', "write for example sqlite:///absolute/path.db"),
    ('[gateway]\nstore = "mysql://db/x"\n', "which no installed engine serves"),
    ('[approvals]\ncron_mode = "later"\n', '"deny", "approve" or "defer"'),
]
"""What stands in signoff.toml, and a part of what is said."""


def problems(out: str) -> list[dict[str, str]]:
    """The problems of a report in JSON; each names its mend."""
    found = [row for row in json.loads(out)["data"] if row["level"] == "problem"]
    assert all(row["mend"] and "\n" not in row["text"] + row["mend"] for row in found), found
    return found


def told(rows: list[dict[str, str]]) -> str:
    return " ".join(f"{row['text']} {row['mend']}" for row in rows)


@pytest.mark.parametrize(("content", "said"), SETTINGS, ids=range(len(SETTINGS)))
async def test_a_wrong_setting(tmp_path: Path, content: str, said: str) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "signoff.toml").write_text(content)
    serve, doctor = await asyncio.gather(shell("serve", "--config", "signoff.toml"), shell("doctor", "--json"))
    assert (serve.code, serve.out) == (2, ""), serve
    assert said in one_line(serve)
    assert doctor.code == 1
    # The mend begins a sentence of its own in the report.
    assert said.lower().replace("; ", ". ") in told(problems(doctor.out)).lower()
    assert TOKEN not in serve.err + doctor.out


def _open_secret(folder: Path) -> None:
    (folder / "bot.token").write_text(TOKEN)
    (folder / "bot.token").chmod(0o644)
    (folder / "signoff.toml").write_text(f'{STATE}[platforms.telegram]\ntoken_file = "bot.token"\n')


def _open_key(folder: Path) -> None:
    (folder / "state").mkdir(mode=0o700)
    (folder / "state" / "token.key").write_text("{}")
    (folder / "state" / "token.key").chmod(0o644)


def _state_is_a_file(folder: Path) -> None:
    (folder / "state").write_text("")


def _foreign_database(folder: Path) -> None:
    (folder / "state").mkdir(mode=0o700)
    with sqlite3.connect(folder / "state" / "signoff.db") as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()


def _newer_database(folder: Path) -> None:
    _foreign_database(folder)
    with sqlite3.connect(folder / "state" / "signoff.db") as db:
        db.execute(f"PRAGMA application_id = {0x5369676E}")
        db.execute("PRAGMA user_version = 9999")
    db.close()


def _no_database(folder: Path) -> None:
    (folder / "state").mkdir(mode=0o700)
    (folder / "state" / "signoff.db").write_text("no database at all, but long enough to be read as one" * 20)


AROUND: list[tuple[Prepare, str, str]] = [
    (_open_secret, "run: chmod 600", "run: chmod 600"),
    (_open_key, "run: chmod 600", "run: chmod 600"),
    (_state_is_a_file, "is not a folder; name a folder", "name a folder"),
    (_foreign_database, "another program's database", "Point gateway.store elsewhere"),
    (_newer_database, "was written by a newer Signoff", "Install that version"),
    (_no_database, "damaged", "restore a backup"),
]
"""What is wrong around a sound file: what `serve` says, and what `doctor` says."""


@pytest.mark.parametrize(
    ("prepare", "serve_says", "doctor_says"), AROUND, ids=lambda each: getattr(each, "__name__", "")
)
async def test_wrong_files(tmp_path: Path, prepare: Prepare, serve_says: str, doctor_says: str) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "signoff.toml").write_text(STATE)
    prepare(tmp_path)
    doctor = await shell("doctor", "--json")
    serve = await shell("serve", "--config", "signoff.toml")
    assert serve.code != 0
    assert serve_says.lower() in one_line(serve).lower()
    assert doctor.code == 1
    assert doctor_says.lower() in told(problems(doctor.out)).lower()


@contextmanager
def taken() -> Iterator[int]:
    """A port on which another program listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


async def test_a_port_that_is_taken(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with taken() as port:
        (tmp_path / "signoff.toml").write_text(f'[gateway]\nstate_dir = "state"\nport = {port}\n')
        serve, doctor = await asyncio.gather(shell("serve"), shell("doctor", "--json"))
    assert serve.code == 2
    assert "Set gateway.port" in one_line(serve)
    assert problems(doctor.out)[0]["mend"] == "Stop it, or set gateway.port."


async def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for command in ("serve", "doctor"):
        done = await shell(command, "--config", "nowhere.toml")
        assert done.code == (2 if command == "serve" else 1)
        assert "create it or name another with --config" in (done.err if command == "serve" else done.out).lower()

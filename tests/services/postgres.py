"""A PostgreSQL server of the tests' own: made in a temporary folder when first asked for, gone with the run."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from tests.ports import free_port

from signoff.rows import TABLES

FOLDER = "SIGNOFF_TESTS_POSTGRES_FOLDER"
"""Where this run has its server: the workers of one run share it."""
NEEDED = "SIGNOFF_TESTS_NEED_POSTGRES"
PASSWORD = "p4ss/wörd%"
USER = "signoff"
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "autovacuum": "off",
    "jit": "off",
    "timezone": "Asia/Kolkata",  # nothing may depend on it
}


def programs() -> Path | None:
    """The folder of the server's programs: of the newest version of Debian's, or where PATH finds them."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = str(debian[-1]) if debian else shutil.which("initdb")
    return Path(found).resolve().parent if found else None


class Server:
    """One server in a folder. It listens on a socket there, where nobody needs a password, and on a loopback port."""

    def __init__(self, folder: Path, programs: Path, settings: dict[str, str] | None = None) -> None:
        """`settings` of the server go before the usual ones of the tests."""
        self.folder = folder
        self._programs = programs
        self._settings = _SETTINGS | (settings or {})
        self._data = folder / "data"
        # PostgreSQL does not run as root.
        self._owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None

    @property
    def port(self) -> int:
        """Where it listens on loopback."""
        return int((self.folder / "port").read_text())

    def url(self, database: str, *, user: str = USER) -> str:
        """By the socket."""
        return f"postgresql:///{database}?host={quote(str(self.folder), safe='')}&port={self.port}&user={user}"

    def tcp_url(self, database: str, *, password: str = PASSWORD, port: int | None = None) -> str:
        """By loopback, with a password."""
        return f"postgresql://{USER}:{quote(password, safe='')}@127.0.0.1:{port or self.port}/{database}"

    def make(self) -> None:
        """Make and start it."""
        if self._owner is not None:
            os.chown(self.folder, self._owner.pw_uid, self._owner.pw_gid)
        self.folder.chmod(0o755)
        (self.folder / "port").write_text(str(free_port()))
        secret = self.folder / "password"
        secret.write_text(PASSWORD, "utf-8")
        secret.chmod(0o644)
        self._run(
            "initdb", "--pgdata", self._data, "--username", USER, "--pwfile", secret, "--auth-local=trust",
            "--auth-host=scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions",
        )  # fmt: skip
        lines = [f"{name} = '{value}'" for name, value in self._settings.items()]
        lines += [f"port = {self.port}", f"unix_socket_directories = '{self.folder}'", "listen_addresses = '127.0.0.1'"]
        config = self._data / "postgresql.conf"
        config.write_text(config.read_text("utf-8") + "\n".join(lines) + "\n", "utf-8")
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._run("pg_ctl", "--pgdata", self._data, "--log", self.folder / "log", "--wait", "--silent", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: `immediate` as if the machine lost its power, `fast` with goodbyes."""
        self._run("pg_ctl", "--pgdata", self._data, "--mode", mode, "--wait", "--silent", "stop")

    def promote(self) -> None:
        """Start it, which is stopped, as a standby that takes over at once."""
        signal = self._data / "standby.signal"
        signal.touch()
        if self._owner is not None:
            os.chown(signal, self._owner.pw_uid, self._owner.pw_gid)
        self.start()
        self._run("pg_ctl", "--pgdata", self._data, "--wait", "--silent", "promote")

    @property
    def running(self) -> bool:
        """It was started and not stopped."""
        return (self._data / "postmaster.pid").exists()

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as the administrator."""
        with psycopg.connect(self.url(database), autocommit=True) as db:
            cursor = db.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [str(self._programs / program), *map(str, arguments)],
            user=self._owner.pw_uid if self._owner else None,
            group=self._owner.pw_gid if self._owner else None,
            extra_groups=[] if self._owner else None,
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode(errors='replace')}")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _found() -> Path:
    """The programs. Skips the test where there are none, unless there must be."""
    found = programs()
    if found is None:
        if os.environ.get(NEEDED) == "1":
            pytest.fail(f"no PostgreSQL is installed, though {NEEDED}=1")
        pytest.skip("no PostgreSQL is installed")
    return found


def server() -> Server:
    """The run's server, started by whoever asks first. Skips the test where none is installed, unless it must be."""
    folder = Path(os.environ[FOLDER])
    ours = Server(folder, _found())
    with _alone(folder):
        if not (folder / "port").exists():
            ours.make()
    return ours


@contextmanager
def own_server(settings: dict[str, str] | None = None) -> Iterator[Server]:
    """A server of one test's own, which may stop it. Skips the test where none is installed."""
    with tempfile.TemporaryDirectory(prefix="signoff-pg-") as folder:  # where its own user may come in
        ours = Server(Path(folder), _found(), settings)
        ours.make()
        try:
            yield ours
        finally:
            if ours.running:
                ours.stop()


class Database:
    """One database of the run's server, with our schema in it from its first store on."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        self.url = server.url(name)

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement."""
        return self.server.execute(sql, self.name)

    def empty(self) -> None:
        """Remove all rows, if there is a schema."""
        names = [*(table.name for table in TABLES), "events"]
        wipe = "".join(f"DELETE FROM signoff.{name}; " for name in names)
        self.execute(
            f"DO $$ BEGIN IF to_regclass('signoff.head') IS NOT NULL THEN {wipe} UPDATE signoff.head SET pos = 0;"
            " END IF; END $$"
        )

    def break_connections(self) -> int:
        """Cut every other connection to this database; how many there were."""
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        return len(self.execute(f"{cut} AND pid <> pg_backend_pid()"))

    def wait_for(self, condition: str) -> None:
        """Return once this SQL expression is true; fails after 60 s."""
        until = time.monotonic() + 60
        while not self.execute(f"SELECT {condition}")[0][0]:
            assert time.monotonic() < until, condition
            time.sleep(0.01)


_WORKER: dict[str, Database] = {}


def worker_database() -> Database:
    """An empty database of this worker's own, made once and emptied at each call."""
    found = _WORKER.get("")
    if found is None:
        found = _WORKER[""] = fresh_database()
    else:
        found.empty()
    return found


def fresh_database() -> Database:
    """A new database."""
    ours = server()
    name = f"signoff_{os.getpid()}_{time.monotonic_ns()}"
    ours.execute(f"CREATE DATABASE {name}")
    return Database(ours, name)


@pytest.fixture
def database() -> Database:
    """This worker's database, emptied."""
    return worker_database()


_AFTER_THE_RUN = """
read -r _
if pid=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null) && [ "$pid" -gt 0 ]; then
    kill -QUIT "$pid"
    tries=0
    while kill -0 "$pid" 2>/dev/null && [ $tries -lt 200 ]; do tries=$((tries + 1)); sleep 0.05; done
fi
rm -rf "$0"
"""
"""Ends the server, if a test has asked for one, once nobody can write to this script's input any more: the run is over,
or was killed. A number below zero there is of a server that is still being made, and fails without its folder."""


class PostgresRun:
    """The plugin that gives a run its folder and ends its server. Only in the process that starts the workers."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="signoff-pg-")
        os.environ[FOLDER] = folder
        # In a session of its own: Ctrl-C is for the run.
        command = ["sh", "-c", _AFTER_THE_RUN, folder]
        self._end = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def pytest_unconfigure(self) -> None:
        """End the server."""
        self._end.communicate()
        os.environ.pop(FOLDER, None)

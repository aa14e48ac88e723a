"""A gateway as a process: started, killed at will, started again on the same state folder; its logs are kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from tests.forked import Forked, fork_module
from tests.ports import free_port
from tests.scenarios.leaping import FILE, READ
from tests.scenarios.transport import WAIT_S
from tests.services.postgres import fresh_database

ROOT = Path(__file__).resolve().parents[2]
STARTS_WITHIN_S = 90.0
"""A second where nothing else runs; the stories of kills start a dozen at once beside those of another worker."""
ENDS_WITHIN_S = 30.0
DEFECTS = ("ended in an error", "never retrieved", "was destroyed", "never awaited")

LOGS: list[Path] = []
"""Log files of the story under way, printed when it fails."""


async def soon(holds: Callable[[], Awaitable[bool]], within_s: float = WAIT_S) -> None:
    """Return once `holds` is true, `TimeoutError` otherwise: another process tells nobody of its files and rows."""
    async with asyncio.timeout(within_s):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class GatewayProcess:
    """One configuration and state folder, and the process that serves them now."""

    def __init__(self, folder: Path, settings: str, *, store: str = "", python_path: str = "") -> None:
        """`settings` are the sections beside `[gateway]`. `store` is its URL; without one it is a file of its own, or
        with SIGNOFF_TESTS_STORE=postgresql a database. `python_path` is its PYTHONPATH."""
        folder.mkdir(parents=True, exist_ok=True)
        self.python_path = python_path
        self.folder = folder
        self.state = folder / "state"
        self.config = folder / "signoff.toml"
        self.armed = folder / "armed"
        self.reached = folder / "reached"
        port = free_port()  # a constant one: clients must find a restarted gateway where the first one was
        self.url = f"http://127.0.0.1:{port}"
        hooks_port = free_port()
        self.hooks_url = f"http://127.0.0.1:{hooks_port}"
        if not store and os.environ.get("SIGNOFF_TESTS_STORE") == "postgresql":
            store = fresh_database().url
        kept = f'store = "{store}"\n' if store else ""
        self.config.write_text(
            f'[gateway]\nport = {port}\nhooks_port = {hooks_port}\nstate_dir = "{self.state}"\n{kept}{settings}'
        )
        self._process: Forked | asyncio.subprocess.Process | None = None
        self.starts = 0
        """How often it was started."""
        self._ahead_s = 0.0

    @property
    def socket(self) -> Path:
        """The local administration socket."""
        return self.state / "admin.sock"

    @property
    def process(self) -> Forked | asyncio.subprocess.Process:
        """The process; `AssertionError` before the first start."""
        assert self._process is not None, "the gateway was not started"
        return self._process

    async def start(self) -> None:
        """Run `signoff serve` and return once it listens."""
        await self._start("signoff", "serve", "--log-level", "warning")

    async def launch(self, *arguments: str) -> None:
        """Run it through the launcher, which can kill it at a named hop and lift its send budgets."""
        await self._start("tests.scenarios.launcher", *arguments)

    async def _start(self, module: str, *arguments: str) -> None:
        self.starts += 1
        log = self.folder / f"gateway-{self.starts}.log"
        LOGS.append(log)
        with log.open("wb") as errors:
            self._process = await self._launched(errors, module, *arguments, "--config", str(self.config))
        assert self._process.stdout is not None
        async with asyncio.timeout(STARTS_WITHIN_S):
            line = (await self._process.stdout.readline()).decode()
        assert line.startswith("listening on "), f"the gateway did not start: {line!r}\n{log.read_text()}"

    async def _launched(self, errors: BinaryIO, *command: str) -> Forked | asyncio.subprocess.Process:
        environment = clean_environment()
        if not self.python_path:
            return await fork_module(*command, cwd=ROOT, env=environment, stderr=errors)
        # What a process is forked from has imported everything already, from its own path.
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *command),
            cwd=ROOT,
            env={**environment, "PYTHONPATH": self.python_path},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=errors,
        )

    async def leap(self, seconds: float) -> None:
        """Move its clock on, and return once it goes by that; it was launched with `--leaps`."""
        self._ahead_s += seconds
        # Whenever it reads, it reads a whole number.
        whole = self.folder / f"{FILE}.whole"
        whole.write_text(str(self._ahead_s))
        whole.replace(self.folder / FILE)
        self.process.send_signal(signal.SIGUSR1)
        told, ahead = self.folder / READ, str(self._ahead_s)

        async def goes_by_it() -> bool:
            return told.exists() and told.read_text() == ahead

        await soon(goes_by_it)

    def now(self) -> datetime:
        """What its clock says."""
        return datetime.now(UTC) + timedelta(seconds=self._ahead_s)

    async def stop(self) -> int:
        """End it by SIGTERM; its exit code."""
        self.terminate()
        return await self.ended()

    def terminate(self) -> None:
        """Send SIGTERM and wait for nothing."""
        self.process.send_signal(signal.SIGTERM)

    async def kill(self) -> None:
        """End it by SIGKILL."""
        if self.process.returncode is None:
            self.process.kill()
        await self.ended()

    async def ended(self) -> int:
        """Its exit code, once it has ended; -9 after SIGKILL."""
        async with asyncio.timeout(ENDS_WITHIN_S):
            await self.process.communicate()
        code = self.process.returncode
        assert code is not None
        return code

    async def aclose(self) -> None:
        """Leave nothing running."""
        if self._process is not None and self._process.returncode is None:
            await self.kill()

    def defects(self) -> list[str]:
        """Lines of its logs that tell of a defect it healed from or a task that was lost."""
        lines = [line for log in sorted(self.folder.glob("gateway-*.log")) for line in log.read_text().splitlines()]
        return [line for line in lines if any(sign in line for sign in DEFECTS)]

    def logged(self, text: str) -> bool:
        """Whether a line of its logs has that in it."""
        return any(text in log.read_text() for log in self.folder.glob("gateway-*.log"))

    def arm(self) -> None:
        """From now on the launcher acts at its hop."""
        self.armed.touch()

    def disarm(self) -> None:
        """Let what was held go on."""
        self.armed.unlink()

    async def stands(self) -> bool:
        """Whether the launcher has come to its hop."""
        return self.reached.exists()

    def arrivals(self) -> int:
        """How many calls have come to the launcher's hop since it was armed."""
        arrivals = self.folder / "arrivals"
        return arrivals.stat().st_size if arrivals.exists() else 0

    def left(self) -> dict[str, list[str]]:
        """Tasks, threads and files that a launched gateway left behind when it ended."""
        left: dict[str, list[str]] = json.loads((self.folder / "left").read_text())
        return left


def clean_environment() -> dict[str, str]:
    """Ours without any setting of Signoff's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SIGNOFF_")}


def log_sections(logs: Sequence[Path]) -> list[tuple[str, str]]:
    """The end of each log, for a report."""
    there = [log for log in logs if log.exists()]
    return [(f"log {log.parent.name}/{log.name}", log.read_text(errors="replace")[-8000:]) for log in there]

"""A person at a real pseudo-terminal in which `signoff` runs, with its standard streams elsewhere."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

WITHIN_S = 60.0
READY = "no answer): "
"""The end of the line that waits for an answer."""
_ON_TTY = """
import fcntl, os, sys, termios
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
os.close(fd)
os.execvp(sys.argv[2], sys.argv[2:])
"""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Typist:
    """Starts one command with a terminal of its own, reads what it shows, and types."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = dict(environ)
        self._master, self._slave = pty.openpty()
        self.resize(40, 100)
        os.set_blocking(self._master, False)
        self._seen = ""
        self._more = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._master, self._read)

    async def start(self, *command: str) -> None:
        """Run it as the leader of a session whose terminal this is; its standard streams are no terminal."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", _ON_TTY, os.ttyname(self._slave), *command),
            cwd=self._folder,
            env=self._environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )

    def resize(self, rows: int, columns: int) -> None:
        """Give the window another size, as a person who drags its corner."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._master, keys.encode())

    async def sees(self, text: str, times: int = 1) -> str:
        """What the terminal shows once `text` stands there so often, without its colours."""
        async with asyncio.timeout(WITHIN_S):
            while self.shown.count(text) < times:
                self._more.clear()
                await self._more.wait()
        return self.shown

    @property
    def shown(self) -> str:
        """All that was shown so far, without colours."""
        return ESCAPE.sub("", self._seen).replace("\r\n", "\n")

    @property
    def raw(self) -> str:
        """All that was shown so far, with every control character."""
        return self._seen

    async def ended(self) -> tuple[int | None, str, str]:
        """Exit code, standard output and standard error."""
        async with asyncio.timeout(WITHIN_S):
            out, errors = await self.process.communicate()
        return self.process.returncode, out.decode(), errors.decode()

    def hang_up(self) -> None:
        """Close the terminal window."""
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._slave)
        os.close(self._master)
        self._master = -1

    async def aclose(self) -> None:
        """Leave nothing running."""
        if hasattr(self, "process") and self.process.returncode is None:
            self.process.kill()
            await self.process.communicate()
        if self._master >= 0:
            self.hang_up()

    def _read(self) -> None:
        try:
            self._seen += os.read(self._master, 65536).decode("utf-8", "replace")
        except (BlockingIOError, OSError):
            return
        self._more.set()

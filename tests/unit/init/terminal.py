"""A command on a terminal of its own, which a test reads and types into as a person does."""

from __future__ import annotations

import asyncio
import codecs
import os
import pty
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.forked import Forked
from tests.unit.cli.test_cli import Shell


class Terminal:
    """What stood on the screen so far, and a keyboard."""

    def __init__(self, process: Forked, descriptor: int) -> None:
        self.process = process
        self.screen = ""
        self._descriptor = descriptor
        self._read_to = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    async def expect(self, text: str, timeout_s: float = 40.0) -> str:
        """What came up to and including `text`, from where the last expectation ended."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                while text not in self.screen[self._read_to :]:
                    more = await loop.run_in_executor(None, os.read, self._descriptor, 4096)
                    self.screen += self._decoder.decode(more)
        except (TimeoutError, OSError) as error:
            raise AssertionError(f"{text!r} did not come: {self.screen[self._read_to :]!r}") from error
        end = self.screen.index(text, self._read_to) + len(text)
        found, self._read_to = self.screen[self._read_to : end], end
        return found

    def type(self, line: str) -> None:
        """A line with Enter."""
        os.write(self._descriptor, line.encode() + b"\n")

    async def type_hidden(self, line: str, timeout_s: float = 40.0) -> None:
        """A line where nothing typed is shown. What stands in the keyboard's buffer is thrown away when the terminal
        stops showing, which is after the question was printed: so this waits until it has stopped."""
        async with asyncio.timeout(timeout_s):
            while termios.tcgetattr(self._descriptor)[3] & termios.ECHO:  # noqa: ASYNC110  # the terminal tells nobody
                await asyncio.sleep(0.01)
        self.type(line)

    async def ended(self, timeout_s: float = 40.0) -> int:
        """The exit code, once everything was read."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    more = await loop.run_in_executor(None, os.read, self._descriptor, 4096)
                except OSError:  # the other end is closed
                    break
                if not more:
                    break
                self.screen += self._decoder.decode(more)
            return await self.process.wait()


@asynccontextmanager
async def on_terminal(shell: Shell, *arguments: str) -> AsyncIterator[Terminal]:
    """Start a command whose standard streams are one terminal."""
    reader, writer = pty.openpty()
    process = await shell.start(*arguments, stdin=writer, stdout=writer, stderr=writer)
    os.close(writer)
    try:
        yield Terminal(process, reader)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(reader)

"""The controlling terminal: opened by its own name whatever the standard streams are, read by whole lines only.

Whoever sits there can hold its output up (Ctrl-S), so it is written to where it is read: on a thread of its own.

What was typed before a question stood there is thrown away, so that no key meant for something else answers it.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import select
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

CONTROLLING = "/dev/tty"
_READ_BYTES = 4096
"""A terminal hands out a line of at most so many bytes."""
LAST_WORDS_S = 2.0
"""So long a terminal that is held up is waited for, once nothing is asked there any more."""

_Found = TypeVar("_Found")


class NoTerminal(Exception):
    """There is no terminal that a person could be asked on."""


class Ended(Exception):
    """Reading ended without an answer: end of input, or the terminal went away."""


class _Words(io.StringIO):
    """What is to stand on the terminal next."""

    def isatty(self) -> bool:
        """Whoever writes here writes to a terminal."""
        return True

    def taken(self) -> bytes:
        """All of it; it is empty then."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text.encode("utf-8", "backslashreplace")


class Tty:
    """An open terminal. Use it in a `with` statement."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._buffer = b""
        self._wake_r, self._wake_w = os.pipe()
        self.out = _Words()
        """What is written here stands on the terminal with the next question, or with `written`."""

    @classmethod
    def open(cls, path: str = CONTROLLING) -> Tty:
        """Open the terminal of this process. Raises `NoTerminal` where there is none, where it is not ours to read
        (a background job), or where a full-screen program holds it."""
        if sys.platform == "win32":
            raise NoTerminal("terminal prompts need a POSIX terminal")
        try:
            fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
        except OSError as error:
            raise NoTerminal(f"{path} cannot be opened: {error.strerror}") from None
        why = _unusable(fd)
        if why:
            os.close(fd)
            raise NoTerminal(f"{path} {why}")
        return cls(fd)

    def __enter__(self) -> Tty:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        for fd in (self._fd, self._wake_r, self._wake_w):
            os.close(fd)

    async def ask(self, text: str) -> str:
        """The next whole line, typed after `text` stood there. Raises `Ended`, and OSError where nothing can be
        written. A caller that is cancelled leaves nothing behind that reads."""
        before, asked = self.out.taken(), text.encode("utf-8", "backslashreplace")

        def talk() -> str:
            self._write(before)
            self._flush()
            self._write(asked)
            return self._line()

        return await self._aside(talk)

    async def written(self) -> None:
        """What was written stands there, or has no place there: a terminal that is held up loses it after
        `LAST_WORDS_S`. Raises OSError where nothing can be written."""
        text, until = self.out.taken(), time.monotonic() + LAST_WORDS_S
        await self._aside(lambda: self._write(text, until))

    async def _aside(self, work: Callable[[], _Found]) -> _Found:
        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            os.write(self._wake_w, b"x")
            await asyncio.wait({working})
            if not working.cancelled():
                working.exception()
            os.read(self._wake_r, 1)
            raise

    def _write(self, text: bytes, until: float | None = None) -> None:
        """Have all of it stand there, as soon as the terminal takes it; what it did not take `until` then is lost."""
        while text:
            left_s = None if until is None else max(0.0, until - time.monotonic())
            woken, ready, _ = select.select([self._wake_r], [self._fd], [], left_s)
            if woken:
                raise Ended("nobody waits for it any more")
            if not ready:
                return
            with contextlib.suppress(BlockingIOError):
                text = text[os.write(self._fd, text) :]

    def _flush(self) -> None:
        """Throw away what was typed already."""
        import termios

        self._buffer = b""
        try:
            termios.tcflush(self._fd, termios.TCIFLUSH)
        except termios.error as error:
            raise Ended(str(error)) from None

    def _line(self) -> str:
        """Wait for a line, on a thread of its own: terminals cannot be watched by every event loop."""
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._fd, self._wake_r], [], [])
            if self._wake_r in ready:
                raise Ended("nobody waits for it any more")
            try:
                found = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:  # somebody else took it
                continue
            except OSError as error:
                raise Ended(f"the terminal went away: {error.strerror}") from None
            if not found:
                raise Ended("end of input")
            self._buffer += found
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", "replace")


def _unusable(fd: int) -> str:
    """Why nobody can be asked on this file; empty where somebody can."""
    import termios

    if not os.isatty(fd):
        return "is no terminal"
    try:
        modes = termios.tcgetattr(fd)[3]
        foreground = os.tcgetpgrp(fd)
    except (termios.error, OSError):
        return "is not the terminal of this process"
    if foreground != os.getpgrp():
        return "belongs to another job; this one runs in the background"
    if not (modes & termios.ICANON and modes & termios.ECHO):
        return "is held by a full-screen program"
    return ""

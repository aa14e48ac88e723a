"""Lines that a person types, without holding up the event loop or the end of the process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator


async def typed_lines() -> AsyncIterator[str]:
    """Standard input line by line, until it ends or its terminal goes away.

    A daemon thread reads the descriptor itself: it may still be waiting when the process ends, and a thread that
    waits inside Python's own buffer would then keep the interpreter from closing it.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read(descriptor: int) -> None:
        rest = b""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            with contextlib.suppress(OSError):
                while chunk := os.read(descriptor, 4096):
                    *whole, rest = (rest + chunk).split(b"\n")
                    for line in whole:
                        loop.call_soon_threadsafe(lines.put_nowait, line.decode("utf-8", "replace"))
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, args=(sys.stdin.fileno(),), daemon=True, name="demo-keyboard").start()
    while (line := await lines.get()) is not None:
        yield line

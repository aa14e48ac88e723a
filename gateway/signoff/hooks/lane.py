"""A thread of its own for a function that may block: what it does holds up neither the loop nor the process's end."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Returned(Struct, frozen=True):
    """What a call gave, or what it raised."""

    value: Any = None
    error: BaseException | None = None


_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Returned]", Any]


class Lane:
    """Calls one function, one call after the other. The thread begins with the first call and is a daemon, since a
    function that never returns cannot be ended."""

    def __init__(self, name: str, fn: Callable[[Any], Any]) -> None:
        self._name, self._fn = name, fn
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def call(self, argument: Any) -> asyncio.Future[Returned]:
        """Begin a call; the future never has an exception. A closed lane calls nothing."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Returned] = loop.create_future()
        if self._closed:
            future.set_result(Returned())
            return future
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put((loop, future, argument))
        return future

    def close(self) -> None:
        """Let the thread end after the call that it makes. Idempotent; any thread may call it."""
        self._closed = True
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, argument = job
            try:
                returned = Returned(value=self._fn(argument))
            except BaseException as error:  # the thread's outer edge: sys.exit in a hook must not end it either
                returned = Returned(error=error)
            with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, future, returned)


def _settle(future: asyncio.Future[Returned], returned: Returned) -> None:
    if not future.done():
        future.set_result(returned)

"""From a thread into a running event loop and back: the one way in which blocking code calls asynchronous code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from signoff.errors import SignoffError

T = TypeVar("T")

CHECK_S = 0.5
"""How often a waiting thread looks whether the loop still runs; a loop that stopped wakes nobody."""
INTERRUPT_S = 10.0
"""How long an interrupted call may take to undo what it began."""


class DoorClosed(SignoffError):
    """The event loop behind this object has stopped, so it can do nothing any more. Make a new one."""

    code = "door_closed"
    status = 503


class LoopDoor:
    """Hands coroutines to `loop` and waits for them. `what` names the owner in errors."""

    def __init__(self, loop: asyncio.AbstractEventLoop, what: str) -> None:
        self._loop, self._what = loop, what
        self._closed = False

    def close(self) -> None:
        """Refuse further calls; those under way end by themselves."""
        self._closed = True

    def call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `make()` on the loop, in a copy of the caller's context, and return its value or raise its error.

        An interrupt (Ctrl-C) cancels it, waits until it has cleaned up and is raised then. Raises `DoorClosed`, and
        `RuntimeError` on the loop's own thread, which would wait for itself for ever.
        """
        self._check()
        done: concurrent.futures.Future[T] = concurrent.futures.Future()
        tasks: list[asyncio.Task[None]] = []
        context = contextvars.copy_context()

        def start() -> None:
            tasks.append(self._loop.create_task(_into(done, make), context=context))

        def interrupt() -> None:
            for task in tasks:
                task.add_done_callback(lambda _: _cancelled(done))  # one that had not begun says nothing itself
                task.cancel()
            if not tasks:  # interrupted before it was handed over
                _cancelled(done)

        # One block from the handing over on: an interrupt may come at any line, also before the wait has begun.
        try:
            self._hand_over(start)
            return self._wait(done)
        except DoorClosed:
            raise
        except BaseException:
            if not done.done() and self._loop.is_running():
                self._loop.call_soon_threadsafe(interrupt)
                concurrent.futures.wait([done], timeout=INTERRUPT_S)
            raise

    def _hand_over(self, start: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(start)
        except RuntimeError:
            raise self._stopped() from None

    def _check(self) -> None:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            raise RuntimeError(
                f"{self._what} was called on its own event loop's thread, where it would wait for itself for ever. "
                "Await the asynchronous one there, or call this from another thread (asyncio.to_thread)."
            )
        if self._closed or self._loop.is_closed() or not self._loop.is_running():
            raise self._stopped()

    def _wait(self, done: concurrent.futures.Future[T]) -> T:
        while True:
            concurrent.futures.wait([done], timeout=CHECK_S)
            if done.done():
                return done.result()
            if self._loop.is_closed() or not self._loop.is_running():
                raise self._stopped()

    def _stopped(self) -> DoorClosed:
        return DoorClosed(f"{self._what} was stopped, so it can do nothing any more. Make a new one.")


def _cancelled(done: concurrent.futures.Future[T]) -> None:
    """Tell the waiting thread that nothing comes any more."""
    if not done.done():
        done.cancel()
        done.set_running_or_notify_cancel()


async def _into(done: concurrent.futures.Future[T], make: Callable[[], Coroutine[Any, Any, T]]) -> None:
    """Await `make()` and put what comes of it into `done`, whatever it is: the waiting thread raises it."""
    try:
        value = await make()
    except asyncio.CancelledError:
        _cancelled(done)
        raise
    except BaseException as error:
        done.set_exception(error)
        if not isinstance(error, Exception):
            raise
    else:
        done.set_result(value)

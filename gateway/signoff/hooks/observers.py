"""Hooks in the gateway's own process: callables that are told, and that can change or hold up nothing.

Each reads the event log at its own pace, one call after the other. A hook that is slow gets its calls late, and none is
lost while the process lives; what is ahead of it stays in the log, not in memory.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from signoff.errors import InvalidInput, StoreError
from signoff.hooks.lane import Lane
from signoff.hooks.payloads import HOOK_OF, Payload
from signoff.hooks.reading import PAGE, load
from signoff.model import Change, Event
from signoff.ports import Store
from signoff.settings import HOOK_NAMES, HookName

log = logging.getLogger("signoff.hooks")

TIMEOUT_S = 5.0
"""After so long a call counts as hanging: an observer has little to do, and a person answers in minutes."""
MAX_HOOKS = 32
"""Each may need a thread of its own."""
DRAIN_S = 0.5
"""How long a stop waits for hooks that still have something to hear."""
RETRY_S = 1.0

Observer = Callable[[Any], Awaitable[Any] | Any]


def _uncounted(_hook: str, _outcome: str) -> None:
    """Nobody counts."""


class Hooks:
    """The hooks of one gateway: `remove = hooks.on("agent_end", fn)`."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S, counted: Callable[[str, str], None] = _uncounted) -> None:
        """`counted` is told the hook's name and `ok`, `raised`, `timeout` or `skipped` of each call."""
        self._timeout_s, self._counted = timeout_s, counted
        self._readers: set[_Reader] = set()
        self._store: Store | None = None
        self._unsubscribe: Callable[[], None] = _nothing

    def on(self, hook: HookName, fn: Observer, *, profile: str = "default") -> Callable[[], None]:
        """Have `fn` called with each payload of that hook from now on; the returned call removes it.

        Call it on the gateway's event loop, or before the gateway is opened. A coroutine function runs on the loop and
        must not block it; any other callable runs in a thread of its own. What it raises or returns is of no effect.
        Raises `InvalidInput` for a name that is none, and beyond `MAX_HOOKS`.
        """
        if hook not in HOOK_NAMES:
            raise InvalidInput(f"There is no hook {hook!r}; there are: {', '.join(HOOK_NAMES)}.", param="hook")
        if len(self._readers) >= MAX_HOOKS:
            raise InvalidInput(f"A gateway has at most {MAX_HOOKS} hooks in its process; remove one.", param="hook")
        reader = _Reader(hook, fn, profile, self._timeout_s, self._counted)
        self._readers.add(reader)

        def remove() -> None:
            self._readers.discard(reader)
            reader.leave()

        return remove

    def follow(self, store: Store) -> None:
        """Begin: hear of every commit from now on."""
        self._store = store
        self._unsubscribe = store.subscribe(self.heard)

    def heard(self, changes: Sequence[Change]) -> None:
        """A commit's changes. Whatever hooks do begins in tasks of their own."""
        if self._store is None:
            return
        for reader in tuple(self._readers):
            for change in changes:
                if change.event.profile == reader.profile:
                    reader.told(change.event, self._store)

    async def aclose(self) -> None:
        """Tell what is left for at most `DRAIN_S`, then end. Idempotent."""
        self._unsubscribe()
        self._store = None
        tasks = [reader.task for reader in self._readers if reader.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=DRAIN_S)
        for reader in self._readers:
            reader.close()
        if tasks:
            # A hook that swallows its cancellation is left behind.
            await asyncio.wait(tasks, timeout=DRAIN_S)


class _Reader:
    """One hook's place in its profile's log."""

    def __init__(
        self, hook: HookName, fn: Observer, profile: str, timeout_s: float, counted: Callable[[str, str], None]
    ) -> None:
        self.profile = profile
        self.task: asyncio.Task[None] | None = None
        self._hook, self._fn = hook, fn
        self._timeout_s, self._counted = timeout_s, counted
        self._position: int | None = None
        self._latest = 0
        self._closed = False
        self._lane = None if _is_async(fn) else Lane(f"signoff-hook-{hook}", fn)

    def told(self, event: Event, store: Store) -> None:
        """A commit has this event."""
        if self._closed:
            return
        if self._position is None:
            self._position = event.seq - 1
        self._latest = max(self._latest, event.seq)
        if HOOK_OF.get(event.type) != self._hook:
            if self.task is None and self._position == event.seq - 1:
                self._position = event.seq
            return
        if self.task is None:
            # An empty context: a hook is nobody's session, whoever's call it was that made the commit.
            reading = self._read(store)
            loop, context = asyncio.get_running_loop(), contextvars.Context()
            self.task = loop.create_task(reading, name=f"signoff-hook-{self._hook}", context=context)

    def leave(self) -> None:
        """No further calls; the one that is being made goes on. Any thread may call this, a hook itself too."""
        self._closed = True
        if self._lane is not None:
            self._lane.close()

    def close(self) -> None:
        """As `leave`, and the call that is being made is cancelled where that is possible."""
        self.leave()
        if self.task is not None:
            self.task.cancel()

    async def _read(self, store: Store) -> None:
        try:
            while not self._closed and (position := self._position or 0) < self._latest:
                try:
                    page = await store.events(self.profile, position, limit=PAGE)
                    for event in page:
                        if self._closed:
                            return
                        await self._hear(store, event)
                        self._position = event.seq
                except StoreError as error:
                    log.error("hook.unread %s: %s", self._hook, error)
                    await asyncio.sleep(RETRY_S)
                    continue
                if not page:
                    return
        finally:
            self.task = None

    async def _hear(self, store: Store, event: Event) -> None:
        if HOOK_OF.get(event.type) != self._hook:
            return
        try:
            payload = await load(store, event)
        except StoreError:
            raise
        except Exception:  # one event's outer edge: what cannot be masked is not told, and the next one is
            log.exception("hook.skipped %s: event %d of %s", self._hook, event.seq, self.profile)
            self._counted(self._hook, "skipped")
            return
        if payload is None:
            self._counted(self._hook, "skipped")
            return
        if self._lane is None:
            await self._await(lambda: self._fn(payload))
        else:
            await self._in_lane(self._lane, payload)

    async def _await(self, call: Callable[[], Awaitable[Any]]) -> None:
        """A call on the loop, which is cancelled when it is late."""
        late = asyncio.timeout(self._timeout_s)
        try:
            async with late:
                await call()
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._raised(error)
        except (Exception, SystemExit) as error:  # the hook's outer edge: it only observes
            if late.expired():
                log.warning("hook.late %s: no return within %g s; it was cancelled", self._hook, self._timeout_s)
                self._counted(self._hook, "timeout")
            else:
                self._raised(error)
        else:
            self._counted(self._hook, "ok")

    async def _in_lane(self, lane: Lane, payload: Payload) -> None:
        """A call in a thread. One that hangs cannot be ended: the next call waits for its return."""
        future = lane.call(payload)
        done, _ = await asyncio.wait({future}, timeout=self._timeout_s)
        if not done:
            log.warning("hook.late %s: no return within %g s; the next call waits", self._hook, self._timeout_s)
            self._counted(self._hook, "timeout")
            await asyncio.wait({future})
            return
        returned = future.result()
        if returned.error is not None:
            self._raised(returned.error)
        elif inspect.isawaitable(returned.value):
            value = returned.value
            await self._await(lambda: value)
        else:
            self._counted(self._hook, "ok")

    def _raised(self, error: BaseException) -> None:
        log.warning("hook.raised %s: %s: %.200s", self._hook, type(error).__name__, error)
        self._counted(self._hook, "raised")


def _is_async(fn: Observer) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004  # its kind is asked, not whether there is one


def _nothing() -> None:
    """Nobody has subscribed."""

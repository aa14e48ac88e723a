"""Keeps the sockets: several at once, each replaced before it goes where that is known beforehand.

An address from `apps.connections.open` works once, so each try asks for a new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from signoff.errors import AdapterFatal, AdapterUnavailable
from signoff.ports import Clock

from ..failures import CallFailed
from ..tasks import Jobs, drain, logged, sleep, within
from ..watching import Pause
from .calls import FATAL, Refused, Throttled, Web
from .config import SlackConfig
from .socket import ASKED, Socket
from .watch import Watch
from .wire import PLATFORM, Frame

SHORT_LIFE_S = 5.0
"""A socket that ends sooner counts as a failed try, so that we do not spin."""
LONG_PAUSE_S = 15.0
TURN = "turn"
_IDLE = ASKED | {"idle", TURN}
_WORDS = {
    "link_disabled": "Socket Mode is switched off for the app; switch it on, or set platforms.slack.mode to http",
    "too_many_websockets": "the app has too many connections; another program uses its app-level token",
}
_log = logging.getLogger(__name__)


class Links:
    """All sockets of one adapter."""

    def __init__(
        self,
        web: Web,
        clock: Clock,
        config: SlackConfig,
        watch: Watch,
        envelope: Callable[[Socket, Frame], None],
    ) -> None:
        self._web = web
        self._clock = clock
        self._config = config
        self._watch = watch
        self._envelope = envelope
        self._open: set[Socket] = set()
        self._doubtful: set[Socket] = set()
        """Replaced because nothing may come through them; Slack must not choose them any more."""
        self._readers = Jobs(failed=logged(PLATFORM))
        self._refused = 0

    async def keep(self, number: int) -> None:
        """Hold one socket open until cancelled. Raises `AdapterFatal` when Slack refuses the app-level token twice."""
        source, pause = f"socket {number}", Pause()
        while True:
            try:
                socket = await self._opened()
            except CallFailed as error:
                await self._failed(source, error, pause)
                continue
            self._watch.works(source)
            for doubtful in list(self._doubtful):
                if not doubtful.brought_late:
                    await doubtful.close()
            since = self._clock.now()
            reason = await asyncio.shield(socket.leaving)
            self._left(source, reason)
            await self._rest(reason, since, pause)

    def renew(self, reason: str) -> None:
        """Replace all sockets; the old ones are read on for a while."""
        for socket in list(self._open):
            socket.leave(reason)

    async def take_turns(self, waits: Callable[[], bool]) -> None:
        """While something `waits` for a press, renew the quietest socket now and then, until cancelled."""
        every_s = self._config.turn_every_s
        while True:
            await sleep(self._clock, every_s)
            quiet = [socket for socket in self._open if socket.idle_s() >= every_s]
            if quiet and waits():
                max(quiet, key=Socket.idle_s).leave(TURN)

    async def aclose(self) -> None:
        """Hang up everywhere. What runs here ends."""
        await drain(lambda: set(self._readers), 0.0)

    async def _opened(self) -> Socket:
        """A socket that said hello, being read by a task of its own. Raises `CallFailed`."""
        url = await self._web.socket_url(self._config.app_token or "")
        self._refused = 0
        ws = await self._web.connect(url)
        socket = Socket(ws, self._clock, self._config, heard=self._watch.heard, envelope=self._envelope)
        self._open.add(socket)
        reader = self._readers.spawn(self._read(socket))
        try:
            await socket.greeted()
        except BaseException:
            reader.cancel()
            raise
        return socket

    async def _read(self, socket: Socket) -> None:
        """Read to the end; a socket that was replaced is hung up after a while, a doubtful one after the next hello."""
        reading = asyncio.create_task(socket.run())
        try:
            either: set[asyncio.Future[Any]] = {reading, socket.leaving}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            self._open.discard(socket)
            if socket.leaving.done() and socket.leaving.result() not in ASKED:
                self._doubtful.add(socket)
            await self._linger(reading)
        finally:
            self._open.discard(socket)
            self._doubtful.discard(socket)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _linger(self, reading: asyncio.Task[None]) -> None:
        await within(self._clock, reading, self._config.linger_s)

    def _left(self, source: str, reason: str) -> None:
        if reason == TURN:
            # So often that in the history it would drive out all else.
            _log.debug("slack: %s is renewed in its turn", source)
        elif reason in _IDLE:
            why = "it was idle for long" if reason == "idle" else f"Slack asked for it ({reason})"
            self._watch.note(f"{source} is renewed: {why}")
        else:
            self._watch.fails(source, AdapterUnavailable(_WORDS.get(reason, reason)))

    async def _rest(self, reason: str, since: datetime, pause: Pause) -> None:
        """A socket that lived is replaced at once."""
        if reason in _WORDS:
            await sleep(self._clock, LONG_PAUSE_S)
        elif (self._clock.now() - since).total_seconds() < SHORT_LIFE_S and reason not in _IDLE:
            if pause.failures:
                await sleep(self._clock, pause.next_s())
            else:
                pause.failures = 1
        else:
            pause.reset()

    async def _failed(self, source: str, error: CallFailed, pause: Pause) -> None:
        """Note what went wrong and wait; `AdapterFatal` when only an operator can mend it."""
        if isinstance(error, Refused) and error.code in FATAL:
            self._refused += 1
            if self._refused >= 2:
                fatal = AdapterFatal(
                    f"Slack rejects the app-level token ({error.code}). Put the right one, which begins with xapp- and "
                    "has the scope connections:write, into platforms.slack.app_token."
                )
                self._watch.fails(source, fatal)
                raise fatal
        self._watch.fails(source, AdapterUnavailable(f"Socket Mode could not be opened ({error})"))
        least_s = error.retry_after_s if isinstance(error, Throttled) else 0.0
        await sleep(self._clock, max(least_s, pause.next_s()))

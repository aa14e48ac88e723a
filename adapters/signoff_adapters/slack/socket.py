"""One Socket Mode connection: a single-use address, a hello, envelopes in, acknowledgements out, signs of life."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from aiohttp import ClientWebSocketResponse, WSMessage, WSMsgType

from signoff.ports import Clock

from ..failures import AnswerLost
from .config import SlackConfig
from .wire import Frame

ASKED = frozenset({"warning", "refresh_requested"})
"""Reasons with which Slack wants a connection renewed while it still works."""
_ENDED = frozenset({WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR})
_LOST = (ConnectionError, RuntimeError)
"""What a write to a connection that just went raises."""
_log = logging.getLogger(__name__)


class Socket:
    """`run` reads until the connection ends. `leaving` is done, with the reason, once it should be replaced."""

    def __init__(
        self,
        ws: ClientWebSocketResponse,
        clock: Clock,
        config: SlackConfig,
        *,
        heard: Callable[[], None],
        envelope: Callable[[Socket, Frame], None],
    ) -> None:
        self._ws = ws
        self._clock = clock
        self._config = config
        self._heard = heard
        self._envelope = envelope
        self._frame_came = asyncio.Event()
        self._greeted = asyncio.Event()
        self._brought_at: datetime = clock.now()
        self.brought_late = False
        """It brought something after it was to be replaced, so it is not deaf."""
        self.leaving: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def greeted(self) -> None:
        """Return once Slack said hello. Raises `AnswerLost` when it does not, or the connection ends before."""
        hello = asyncio.ensure_future(self._greeted.wait())
        either: set[asyncio.Future[Any]] = {hello, self.leaving}
        try:
            limit_s = self._config.answer_timeout_s
            await asyncio.wait(either, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hello.cancel()
        if not self._greeted.is_set():
            why = self.leaving.result() if self.leaving.done() else "no hello came"
            raise AnswerLost(f"the socket was opened, but {why}")

    async def run(self) -> None:
        """Read until the connection ends."""
        pings = asyncio.create_task(self._keep_alive())
        try:
            while True:
                message = await self._ws.receive()
                if message.type in _ENDED:
                    self.leave("the connection was closed")
                    return
                self._heard()
                self._frame_came.set()
                await self._take(message)
        finally:
            self.leave("the connection was closed")
            pings.cancel()
            await asyncio.gather(pings, return_exceptions=True)
            await self._ws.close()

    async def close(self) -> None:
        """Hang up; `run` then ends."""
        await self._ws.close()

    def idle_s(self) -> float:
        """Seconds since it last brought something, or was opened."""
        return (self._clock.now() - self._brought_at).total_seconds()

    def leave(self, reason: str) -> None:
        """It is to be replaced; the first reason counts."""
        if not self.leaving.done():
            self.leaving.set_result(reason)

    async def acknowledge(self, envelope_id: str, payload: dict[str, Any] | None) -> bool:
        """Tell Slack that an envelope is settled; whether that could be sent."""
        answer = {"envelope_id": envelope_id} | ({"payload": payload} if payload else {})
        try:
            await self._ws.send_str(msgspec.json.encode(answer).decode())
        except _LOST as error:
            _log.info("slack socket: an acknowledgement was not sent: %s", type(error).__name__)
            return False
        return True

    async def _take(self, message: WSMessage) -> None:
        if message.type is WSMsgType.PING:
            await self._send_quietly(self._ws.pong, message.data)
            return
        if message.type is not WSMsgType.TEXT:
            return
        try:
            frame = msgspec.json.decode(message.data, type=Frame)
        except msgspec.DecodeError:
            _log.error("slack socket: a frame could not be read; it is left out")
            return
        if frame.type == "hello":
            self._greeted.set()
        elif frame.type == "disconnect":
            self.leave(frame.reason or "disconnect")
        elif frame.envelope_id is not None:
            self._brought_at = self._clock.now()
            self.brought_late = self.leaving.done()
            self._envelope(self, frame)

    async def _keep_alive(self) -> None:
        """Ask for a sign of life; one that does not come, or a long idle time, ends the connection's service."""
        while not self.leaving.done():
            await self._clock.sleep_until(self._clock.now() + timedelta(seconds=self._config.ping_every_s))
            self._frame_came.clear()
            await self._send_quietly(self._ws.ping, b"signoff")
            try:
                async with asyncio.timeout(self._config.answer_timeout_s):
                    await self._frame_came.wait()
            except TimeoutError:
                self.leave(f"no sign of life within {self._config.answer_timeout_s:g} s")
                await self._ws.close()
                return
            if self.idle_s() >= self._config.renew_after_s:
                self.leave("idle")

    @staticmethod
    async def _send_quietly(send: Callable[[bytes], Any], data: bytes) -> None:
        try:
            await send(data)
        except _LOST:
            return  # the reader notices the end

"""Connections to the server: how many may be open, and how long one may say nothing.

All of this comes before a key is looked at, so it is what keeps strangers from holding the server's connections.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from signoff.server.bounds import Bounds, fitting
from signoff.server.faults import BadRequest, ErrorAnswer, ErrorFacts

log = logging.getLogger("signoff.server")

_TOLD_EVERY_S = 60.0
"""Between two log lines about refused connections, however many there are."""
_encode = msgspec.json.Encoder().encode
JSON_HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


class Connection(RequestHandler):
    """aiohttp's connection, with a deadline for its first request and with errors in our own form."""

    def __init__(self, server: BoundedServer, *, loop: asyncio.AbstractEventLoop, **settings: Any) -> None:
        super().__init__(server, loop=loop, **settings)
        self._server = server
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether no request is being answered and none waits to be."""
        return self._current_request is None and not self._messages and self._waiter is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected: it is let in or turned away."""
        if not self._server.room():
            super().connection_made(transport)
            self.force_close()
            return
        super().connection_made(transport)
        self._deadline = self._loop.call_later(self._server.bounds.head_within_s, self._late)

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        super().data_received(data)
        if self._deadline is not None and self._request_count:
            self._deadline.cancel()
            self._deadline = None

    def connection_lost(self, exc: BaseException | None) -> None:
        """The client has gone, or was cut."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        super().connection_lost(exc)

    def _late(self) -> None:
        self._deadline = None
        log.debug("server.no_request within %g s", self._server.bounds.head_within_s)
        self.force_close()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What could not be parsed is a 400 as any other; what it was stays out of the answer and of the log."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun already")
        facts = ErrorFacts(message=BadRequest().message, type="invalid_request_error", code=BadRequest.code, param=None)
        if status >= 500:
            log.error("server.protocol_defect", exc_info=exc)
            facts = ErrorFacts(message="Something went wrong.", type="server_error", code="internal_error", param=None)
        response = web.Response(status=status, body=_encode(ErrorAnswer(error=facts)), headers=JSON_HEADERS)
        response.force_close()
        return response


class BoundedServer(web.Server):
    """A low-level server with a bounded number of connections, whose every answer has the API's form."""

    def __init__(self, handler: Any, *, bounds: Bounds, **settings: Any) -> None:
        settings["keepalive_timeout"] = bounds.idle_s
        super().__init__(handler, handler_cancellation=True, **settings)
        self.bounds = bounds
        self._most = fitting(bounds.connections)
        self._settings = settings
        self._told_at = -_TOLD_EVERY_S

    def __call__(self) -> RequestHandler:
        """A new connection."""
        return Connection(self, loop=asyncio.get_running_loop(), **self._settings)

    def room(self) -> bool:
        """Whether one more connection fits; if need be, the idle one that was opened first is closed for it."""
        open_now = [found for found in self.connections if found.transport is not None]
        if len(open_now) < self._most:
            return True
        for found in open_now:
            if isinstance(found, Connection) and found.idle:
                found.force_close()
                return True
        now = asyncio.get_running_loop().time()
        if now - self._told_at >= _TOLD_EVERY_S:
            self._told_at = now
            log.warning("server.full: all %d connections are busy, so new ones are refused", self._most)
        return False

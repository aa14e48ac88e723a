"""Interactions that Discord posts to us: proved by signature, answered in the same request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import MultipartWriter, web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from signoff.model import Attachment

from ..bodies import fresh, read_body
from .intake import Intake
from .wire import PING

ANSWER_WITHIN_S = 2.5
"""3 s after its own sending Discord tells the person that it failed, and reads no answer. A late one must not count as
read, so we are the first to end it."""
_log = logging.getLogger(__name__)


class Hook:
    """The route's handler."""

    def __init__(
        self,
        public_key: str,
        intake: Callable[[], Intake | None],
        heard: Callable[[], None],
        *,
        within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        """`heard` is told of each interaction; one that is not answered after `within_s` is given up."""
        self._key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        self._intake = intake
        self._heard = heard
        self._within_s = within_s

    async def respond(self, request: web.Request) -> web.Response:
        """401 for what Discord did not sign, which it tests by sending such requests, or signed long ago; else the
        answer."""
        body = await read_body(request)
        if body is None:
            return web.Response(status=413, text="body too large")
        if not self.signed(request.headers, body):
            return web.Response(status=401, text="invalid request signature")
        try:
            data = msgspec.json.decode(body)
        except msgspec.DecodeError:
            return web.Response(status=400, text="not an interaction")
        if isinstance(data, dict) and data.get("type") == PING:
            return _json({"type": 1})
        return await self._handle(data)

    def signed(self, headers: Any, body: bytes) -> bool:
        """Whether Discord signed the time and the body within the last five minutes. A missing or odd header is a wrong
        signature."""
        stamp = headers.get("X-Signature-Timestamp", "")
        if not fresh(stamp):
            return False
        try:
            self._key.verify(bytes.fromhex(headers.get("X-Signature-Ed25519", "")), stamp.encode() + body)
        except (ValueError, InvalidSignature):
            return False
        return True

    async def _handle(self, data: Any) -> web.Response:
        intake = self._intake()
        if intake is None:
            return web.Response(status=503, text="not running")
        answer: asyncio.Future[web.Response] = asyncio.get_running_loop().create_future()

        async def first(payload: dict[str, Any], file: Attachment | None) -> bool:
            """An answer to a request that is over would be read by nobody."""
            if answer.done():
                return False
            answer.set_result(_json(payload) if file is None else _with_file(payload, file))
            return True

        try:
            begun = intake.interaction(data, first=first)
        except msgspec.ValidationError:
            return web.Response(status=400, text="not an interaction")
        self._heard()
        if begun is None:
            return web.Response(status=409, text="delivered before")
        try:
            async with asyncio.timeout(self._within_s):
                return await answer
        except TimeoutError:
            _log.info("discord interaction %s was not answered in time", begun.interaction.id)
            return web.Response(status=504, text="not answered in time")
        finally:
            answer.cancel()


def _json(payload: dict[str, Any]) -> web.Response:
    return web.Response(body=msgspec.json.encode(payload), content_type="application/json")


def _with_file(payload: dict[str, Any], file: Attachment) -> web.Response:
    writer = MultipartWriter("form-data")
    fields = writer.append(msgspec.json.encode(payload).decode(), {"Content-Type": "application/json"})
    fields.set_content_disposition("form-data", name="payload_json")
    content = writer.append(file.content, {"Content-Type": "text/plain; charset=utf-8"})
    content.set_content_disposition("form-data", quote_fields=False, name="files[0]", filename=file.name)
    return web.Response(body=writer)

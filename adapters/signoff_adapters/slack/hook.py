"""The request URL: one address for events, interactivity and slash commands, each request signed by Slack."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import msgspec
from slack_sdk.signature import SignatureVerifier

from signoff.errors import AdapterError

from ..bodies import fresh, read_body
from .intake import Intake
from .wire import Kind, Posted

if TYPE_CHECKING:
    from aiohttp import web

_log = logging.getLogger(__name__)


class Hook:
    """Answers 200 once the effect is durable, or, for what a person did, within Slack's 3 s."""

    def __init__(
        self,
        signing_secret: str,
        slow_event_s: float,
        intake: Callable[[], Intake | None],
        heard: Callable[[], None],
        misfit: Callable[[], None],
    ) -> None:
        """`heard` is called for each request that Slack signed, `misfit` for one signed just now with another
        secret."""
        self._verifier = SignatureVerifier(signing_secret)
        self._slow_event_s = slow_event_s
        self._intake = intake
        self._heard = heard
        self._misfit = misfit

    async def handle(self, request: web.Request) -> web.Response:
        """401 for a wrong signature or an old one, 400 for what cannot be read, 5xx where Slack should come again."""
        from aiohttp import web

        body = await read_body(request)
        if body is None:
            return web.Response(status=413, text="body too large")
        stamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        if not signed(self._verifier, body, stamp, signature):
            if fresh(stamp) and signature.startswith("v0="):
                self._misfit()
            return web.Response(status=401, text="wrong signature")
        self._heard()
        try:
            if (challenge := _challenge(body)) is not None:
                return web.json_response({"challenge": challenge})
            kind, raw = sort(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return web.Response(status=400, text="not understood")
        return await self._deliver(kind, raw) if kind is not None else web.Response(text="")

    async def _deliver(self, kind: Kind, raw: bytes) -> web.Response:
        from aiohttp import web

        intake = self._intake()
        if intake is None:
            return web.Response(status=503, text="not running")
        try:
            async with asyncio.timeout(self._slow_event_s if kind == "events_api" else None):
                payload = await intake.deliver(kind, raw)
        except TimeoutError:
            return web.Response(status=503, text="not stored yet")
        except msgspec.DecodeError:
            # Repeating it would not make it readable.
            _log.error("slack sent a %s in an unknown shape; it is left out", kind)
            return web.Response(text="")
        except AdapterError as error:
            _log.info("slack: a delivery is refused for now: %s", error.message)
            return web.Response(status=503, text="not stored")
        except Exception:
            # The outermost edge of a request; Slack delivers a message again.
            _log.exception("slack delivery failed")
            return web.Response(status=500, text="not stored")
        return web.json_response(payload) if payload else web.Response(text="")


def signed(verifier: SignatureVerifier, body: bytes, stamp: str, signature: str) -> bool:
    """Whether Slack signed this within the last five minutes. Never raises."""
    if not fresh(stamp) or not signature.isascii():
        return False
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return False
    return verifier.is_valid(text, stamp, signature)


def sort(body: bytes) -> tuple[Kind | None, bytes]:
    """What kind of request it is, and its payload; None for one that wants nothing. Raises `msgspec.DecodeError`."""
    if body.lstrip().startswith(b"{"):
        kind = msgspec.json.decode(body, type=Posted).type
        return ("events_api" if kind == "event_callback" else None), body
    form = dict(parse_qsl(body.decode(), keep_blank_values=True))
    if "payload" in form:
        return "interactive", form["payload"].encode()
    if "command" in form:
        return "slash_commands", msgspec.json.encode(form)
    if form.get("ssl_check"):
        return None, b""
    raise msgspec.DecodeError("neither an event, an interaction nor a command")


def _challenge(body: bytes) -> str | None:
    if not body.lstrip().startswith(b"{"):
        return None
    posted = msgspec.json.decode(body, type=Posted)
    return posted.challenge if posted.type == "url_verification" else None

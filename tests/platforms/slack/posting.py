"""Deliveries by HTTP: signed POST requests to the app's request URL."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from urllib.parse import urlencode

import aiohttp
import msgspec

from .deliveries import NOBODY, TIMED_OUT, Deliveries, Envelope
from .model import JsonObject
from .timeline import Timeline
from .world import App

CALL_TIMEOUT_S = 30.0
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


class Posting:
    """The way of deliveries over HTTP."""

    def __init__(self, timeline: Timeline, deliveries: Deliveries) -> None:
        self.session: aiohttp.ClientSession | None = None
        self.is_up = True
        self._timeline = timeline
        self._deliveries = deliveries

    async def carry(self, envelope: Envelope, *, copies: int, abort: bool) -> str | None:
        """As `Way.carry`; 2xx acknowledges. With `abort` the answer is not waited for."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        task = loop.create_task(self._post(envelope))
        task.add_done_callback(lambda _: None if done.done() else done.set_result(None))
        second = loop.create_task(self._post(envelope)) if copies > 1 else None
        try:
            if abort or envelope.ack_lost or not await self._timeline.before(done, envelope.deadline):
                await self._timeline.before(done, envelope.deadline)
                return "http_timeout" if envelope.kind == "events_api" else TIMED_OUT
            status, reason, payload, no_retry = await task
            if second is not None:
                await second
        finally:
            for each in (task, second):
                if each is not None:
                    each.cancel()
        if 200 <= status < 300:
            return None if self._deliveries.acknowledge(envelope, payload) else TIMED_OUT
        if envelope.kind != "events_api":
            return NOBODY
        return "no_retry" if no_retry else reason

    async def _post(self, envelope: Envelope) -> tuple[int, str, JsonObject, bool]:
        """Status, why it is no acknowledgement, the answer's content, and whether no retry is wished."""
        body, content_type = _body(envelope)
        if not self.is_up:
            return 0, "connection_failed", {}, False
        headers = {}
        if envelope.retry_num:
            headers = {
                "X-Slack-Retry-Num": str(envelope.retry_num),
                "X-Slack-Retry-Reason": (envelope.retry_reason or "unknown_error").replace(" ", "_"),
            }
        try:
            status, answer, received = await self.post(
                envelope.app, body, content_type, secret=envelope.app.signing_secret, headers=headers
            )
        except (aiohttp.ClientError, OSError):
            return 0, "connection_failed", {}, False
        return status, "http_error", _payload(answer), received.get("x-slack-no-retry") == "1"

    async def post(
        self,
        app: App,
        body: bytes,
        content_type: str,
        *,
        secret: str,
        age_s: float = 0.0,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes, dict[str, str]]:
        """One request, signed `age_s` seconds ago with `secret` unless that is empty; ValueError with no URL."""
        if self.session is None or app.request_url is None:
            raise ValueError("no request URL is set")
        sent = {"Content-Type": content_type, "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)"}
        if secret:
            stamp = str(int(self._timeline.wall() - age_s))
            sent |= {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature(secret, stamp, body)}
        async with self.session.post(
            app.request_url,
            data=body,
            headers=sent | (headers or {}),
            timeout=aiohttp.ClientTimeout(total=CALL_TIMEOUT_S),
            allow_redirects=False,
        ) as response:
            answer = await response.read()
            return response.status, answer, {name.lower(): value for name, value in response.headers.items()}

    async def verify(self, app: App) -> None:
        """Send the challenge that Slack sends when an address is set; ValueError unless it comes back."""
        challenge = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"
        body = msgspec.json.encode({"token": "t", "challenge": challenge, "type": "url_verification"})
        status, answer, _ = await self.post(app, body, JSON, secret=app.signing_secret)
        if status != 200 or challenge not in answer.decode("utf-8", "replace"):
            raise ValueError(f"the address answered {status} and not the challenge")


def signature(secret: str, stamp: str, body: bytes) -> str:
    """Slack's request signature, version 0."""
    return "v0=" + hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()


def _body(envelope: Envelope) -> tuple[bytes, str]:
    if envelope.kind == "events_api":
        return msgspec.json.encode(envelope.payload), JSON
    if envelope.kind == "interactive":
        return urlencode({"payload": msgspec.json.encode(envelope.payload).decode()}).encode(), FORM
    return urlencode(envelope.payload).encode(), FORM


def _payload(answer: bytes) -> JsonObject:
    """What an answer says: a JSON object, or text."""
    try:
        decoded = msgspec.json.decode(answer) if answer else {}
    except msgspec.DecodeError:
        decoded = {"text": answer.decode("utf-8", "replace")}
    return decoded if isinstance(decoded, dict) else {}

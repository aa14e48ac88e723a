"""HTTP of Slack: reads requests, applies faults, answers; and the ways a network can fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec
from aiohttp import hdrs, web

from tests.platforms.telegram.changes import Changes

from .api import WebApi
from .faults import Fault, FaultBook
from .filing import Filing
from .model import JsonObject
from .params import Parameters
from .presses import PressBook
from .refusal import Refused
from .requestlog import RequestLog
from .responding import Responding
from .sockets import Sockets
from .world import World

BODY_MAX_BYTES = 60 * 1024 * 1024
BROKEN_JSON = b'{"ok":true,"channel":"C'
NEVER_S = 3600.0
NetworkState = Literal["up", "down", "blackhole"]
Done = Callable[[], JsonObject]


class Wire:
    """One handler for all methods, one for uploads, one for response URLs, one for sockets."""

    def __init__(
        self,
        world: World,
        api: WebApi,
        filing: Filing,
        responding: Responding,
        presses: PressBook,
        sockets: Sockets,
        faults: FaultBook,
        log: RequestLog,
        changes: Changes,
    ) -> None:
        self.state: NetworkState = "up"
        self._world = world
        self._api = api
        self._filing = filing
        self._responding = responding
        self._presses = presses
        self._sockets = sockets
        self._faults = faults
        self._log = log
        self._changes = changes

    def routes(self) -> list[web.RouteDef]:
        """Slack's addresses."""
        return [
            web.route("*", "/api/{method}", self.handle),
            web.route("*", "/upload/v1/{ticket}", self.upload),
            web.get("/files-pri/{file}/{name}", self.download),
            web.post("/actions/{key}", self.respond),
            web.get("/link/", self.connect),
        ]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One method call."""
        if self.state == "blackhole":
            return await self._silence(request)
        method = request.match_info["method"]
        try:
            values = await read_values(request)
            app = self._api.app(_token(request, values), method)
        except Refused as refused:
            number = self._log.open(method, None, {}, None)
            return self._refuse(number, refused, "refused")
        parameters = Parameters(values)
        channel = self._api.channel_of(app, parameters)
        number = self._log.open(method, app.bot, parameters.for_log(), channel)
        return await self._run(
            request, number, method, channel, lambda: {"ok": True} | self._api.call(app, method, parameters)
        )

    async def upload(self, request: web.Request) -> web.StreamResponse:
        """The bytes of a file, raw or as the first part of a form."""
        if self.state == "blackhole":
            return await self._silence(request)
        content = await _content(request)
        number = self._log.open("upload", None, {"size_bytes": len(content)}, None)

        def take() -> JsonObject:
            if not self._filing.upload(request.match_info["ticket"], content):
                raise Refused("upload_refused", status=400)
            return {"text": f"OK - {len(content)}"}

        return await self._run(request, number, "upload", None, take)

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """An answer by `response_url`."""
        if self.state == "blackhole":
            return await self._silence(request)
        press = self._presses.by_response(request.match_info["key"])
        body = await _json_object(request)
        channel = None if press is None else press.channel
        number = self._log.open("response_url", None if press is None else press.bot, body, channel)

        def show() -> JsonObject:
            if press is None:
                raise Refused("expired_url", status=404)
            self._responding.respond(press, body)
            return {"ok": True}

        return await self._run(request, number, "response_url", channel, show)

    async def connect(self, request: web.Request) -> web.StreamResponse:
        """A Socket Mode connection."""
        if self.state == "blackhole":
            return await self._silence(request)
        return await self._sockets.handle(request)

    async def download(self, request: web.Request) -> web.StreamResponse:
        """A file's content for who has a token."""
        if self.state == "blackhole":
            return await self._silence(request)
        try:
            self._api.app(_token(request, {}), "files.info")
        except Refused:
            return web.Response(status=302, headers={"Location": "https://loopback.slack.com/?redir"})
        file = self._world.files.get(request.match_info["file"])
        if file is None or file.content is None:
            return web.Response(status=404)
        return web.Response(body=file.content, content_type="application/octet-stream")

    async def _run(
        self, request: web.Request, number: int, method: str, channel: str | None, work: Done
    ) -> web.StreamResponse:
        """Do the work under the faults and answer."""
        self._changes.bump()
        fault = self._faults.strike(method, channel)
        if fault is not None and not fault.done_first:
            return await self._fail(request, number, fault, None)
        try:
            body = work()
        except Refused as refused:
            return self._refuse(number, refused, "refused")
        if fault is not None:
            return await self._fail(request, number, fault, body)
        if self.state == "blackhole":
            return await self._silence(request)
        return self._finish(number, "done", body)

    async def _fail(
        self, request: web.Request, number: int, fault: Fault, body: JsonObject | None
    ) -> web.StreamResponse:
        """Answer, or fail to, as the fault says; `body` is there when the work was done."""
        outcome, done = f"fault:{fault.kind}", body is not None
        refusal = fault.refusal()
        if refusal is not None:
            return self._refuse(number, refusal, outcome, effect=done)
        if fault.kind == "no_shares" and body is not None:
            body["file"] |= {"shares": {}, "channels": [], "groups": [], "ims": []}
            return self._finish(number, outcome, body)
        self._log.close(number, status=0, outcome=outcome, effect=done)
        self._changes.bump()
        if fault.kind == "bad_json":
            return _answer(200, BROKEN_JSON)
        if fault.kind == "stall" and body is not None:
            await asyncio.sleep(fault.after_s or 0.0)
            return self._finish(number, outcome, body)
        if fault.kind == "stall":
            return await self._silence(request)
        return _break(request)

    async def _silence(self, request: web.Request) -> web.StreamResponse:
        """Never answer; the handler is cancelled when the caller gives up or the server breaks the connection."""
        await asyncio.sleep(NEVER_S)
        return _break(request)

    def _refuse(self, number: int, refused: Refused, outcome: str, *, effect: bool = False) -> web.Response:
        self._log.close(number, status=refused.status, outcome=outcome, error=refused.error, effect=effect)
        self._changes.bump()
        body = msgspec.json.encode(refused.body())
        if refused.status >= 500:
            body = b"server error"
        return _answer(refused.status, body, refused.headers())

    def _finish(self, number: int, outcome: str, body: JsonObject) -> web.Response:
        self._log.close(number, status=200, outcome=outcome, effect=True)
        self._changes.bump()
        if "ok" not in body:
            return web.Response(text=str(body["text"]))
        return _answer(200, msgspec.json.encode(body))


def _token(request: web.Request, values: JsonObject) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme == "Bearer" else str(values.get("token", ""))


async def read_values(request: web.Request) -> JsonObject:
    """Values from the query and a form or JSON body; Refused for a body that is neither."""
    values: JsonObject = dict(request.query)
    if request.content_type == "application/json":
        return values | await _json_object(request)
    try:
        form = await request.post()
    except (ValueError, LookupError):
        raise Refused("invalid_form_data") from None
    return values | {name: value for name, value in form.items() if isinstance(value, str)}


async def _json_object(request: web.Request) -> JsonObject:
    try:
        body = msgspec.json.decode(await request.read() or b"{}")
    except (msgspec.DecodeError, RecursionError):
        raise Refused("invalid_json") from None
    if not isinstance(body, dict):
        raise Refused("json_not_object")
    return body


async def _content(request: web.Request) -> bytes:
    """A file's bytes as they are, or the first file of a form."""
    if not request.content_type.startswith("multipart/"):
        return await request.read()
    for value in (await request.post()).values():
        if isinstance(value, web.FileField):
            return value.file.read()
    return b""


def _answer(status: int, body: bytes, headers: dict[str, str] | None = None) -> web.Response:
    kind = "application/json; charset=utf-8" if status < 500 else "text/plain"
    return web.Response(status=status, body=body, headers={hdrs.CONTENT_TYPE: kind} | (headers or {}))


def _break(request: web.Request) -> web.Response:
    """Reset the connection; whatever is returned cannot be sent any more."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)

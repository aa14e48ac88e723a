"""HTTP of the Bot API: reads requests, applies faults, answers; and the ways a network can fail."""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec
from aiohttp import BodyPartReader, ContentTypeError, hdrs, web

from .api import BotApi
from .changes import Changes
from .faults import Fault, FaultBook
from .model import JsonObject
from .params import Parameters, Upload
from .refusal import Refused, bad_request
from .requestlog import RequestLog
from .world import World

BODY_MAX_BYTES = 60 * 1024 * 1024
BROKEN_JSON = b'{"ok":true,"result":{"message_id":'
NEVER_S = 3600.0
NetworkState = Literal["up", "down", "blackhole"]


class Wire:
    """One handler for all methods, and one for file downloads."""

    def __init__(self, world: World, api: BotApi, faults: FaultBook, log: RequestLog, changes: Changes) -> None:
        self.state: NetworkState = "up"
        self._world = world
        self._api = api
        self._faults = faults
        self._log = log
        self._changes = changes

    @property
    def silent(self) -> bool:
        """Whether the network swallows everything."""
        return self.state == "blackhole"

    def routes(self) -> list[web.RouteDef]:
        """The Bot API's addresses."""
        return [
            web.route("*", "/bot{token}/{method}", self.handle),
            web.get("/file/bot{token}/{path:.+}", self.download),
        ]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One method call."""
        if self.silent:
            return await self._silence(request)
        method = request.match_info["method"]
        try:
            parameters = await read_parameters(request)
            bot = self._api.bot(request.match_info["token"])
        except Refused as refused:
            number = self._log.open(method, None, {}, None)
            return self._finish(number, refused.status, "refused", refused.body(), effect=False)
        chat_id = self._api.chat_id(parameters)
        number = self._log.open(method, bot.id, parameters.for_log(), chat_id)
        self._changes.bump()
        fault = self._faults.strike(method, chat_id)
        if fault is not None and not fault.done_first:
            return await self._fail(request, number, fault, effect=False)
        try:
            result = await self._api.call(bot, method, parameters)
        except Refused as refused:
            return self._finish(number, refused.status, "refused", refused.body(), effect=False)
        if fault is not None:
            return await self._fail(request, number, fault, effect=True, result=result)
        if self.silent:
            return await self._silence(request)
        return self._finish(number, 200, "done", {"ok": True, "result": result}, effect=True)

    async def _fail(
        self, request: web.Request, number: int, fault: Fault, *, effect: bool, result: object = None
    ) -> web.StreamResponse:
        """Answer, or fail to, as the fault says."""
        outcome = f"fault:{fault.kind}"
        refusal = fault.refusal()
        if refusal is not None:
            return self._finish(number, refusal.status, outcome, refusal.body(), effect=effect)
        self._log.close(number, status=0, outcome=outcome, description="", effect=effect)
        self._changes.bump()
        if fault.kind == "bad_json":
            return _answer(200, BROKEN_JSON)
        if fault.kind == "stall" and fault.after_s is not None:
            await asyncio.sleep(fault.after_s)
            return self._finish(number, 200, outcome, {"ok": True, "result": result}, effect=True)
        if fault.kind == "stall":
            return await self._silence(request)
        return _break(request)

    async def _silence(self, request: web.Request) -> web.StreamResponse:
        """Never answer; the handler is cancelled when the caller gives up or the server breaks the connection."""
        await asyncio.sleep(NEVER_S)
        return _break(request)

    def _finish(self, number: int, status: int, outcome: str, body: JsonObject, *, effect: bool) -> web.Response:
        description = str(body.get("description", ""))
        self._log.close(number, status=status, outcome=outcome, description=description, effect=effect)
        self._changes.bump()
        return _answer(status, msgspec.json.encode(body))

    async def download(self, request: web.Request) -> web.StreamResponse:
        """The content of a file that getFile has named."""
        if self.silent:
            return await self._silence(request)
        try:
            self._api.bot(request.match_info["token"])
        except Refused as refused:
            return _answer(refused.status, msgspec.json.encode(refused.body()))
        stored = self._world.files.get(request.match_info["path"].removeprefix("documents/"))
        if stored is None:
            return _answer(404, msgspec.json.encode(Refused(404).body()))
        return web.Response(body=stored.content, content_type="application/octet-stream")


async def read_parameters(request: web.Request) -> Parameters:
    """Parameters from the query string and a form, multipart or JSON body; Refused 400 for a body that is none."""
    values: JsonObject = dict(request.query)
    if request.content_type == "application/json":
        try:
            body = msgspec.json.decode(await request.read() or b"{}")
        except (msgspec.DecodeError, RecursionError):
            raise bad_request("can't parse JSON object") from None
        if not isinstance(body, dict):
            raise bad_request("can't parse JSON object: expected an Object")
        return Parameters(values | body)
    if request.content_type.startswith("multipart/"):
        return await _read_multipart(request, values)
    try:
        form = await request.post()
    except (ValueError, LookupError):
        raise bad_request("can't parse the form") from None
    return Parameters(values | {name: value for name, value in form.items() if isinstance(value, str)})


async def _read_multipart(request: web.Request, values: JsonObject) -> Parameters:
    uploads: dict[str, Upload] = {}
    try:
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader) or part.name is None:
                continue
            content = bytes(await part.read(decode=True))
            if len(content) > BODY_MAX_BYTES:
                raise bad_request("file is too big")
            if part.filename is None:
                values[part.name] = content.decode("utf-8")
            else:
                uploads[part.name] = Upload(file_name=part.filename, content=content)
    except (ValueError, LookupError, AssertionError, ContentTypeError):
        raise bad_request("can't parse the form") from None
    return Parameters(values, uploads)


def _answer(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, headers={hdrs.CONTENT_TYPE: "application/json"})


def _break(request: web.Request) -> web.Response:
    """Reset the connection; whatever is returned cannot be sent any more."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)

"""REST requests on the way in and answers on the way out, with limits, faults and the state of the network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Literal

import msgspec
from aiohttp import BodyPartReader, MultipartReader, hdrs, web

from tests.platforms.telegram.changes import Changes

from .api import RestApi
from .faults import Fault, FaultBook
from .limits import RateLimiter
from .messaging import NewFile
from .model import JsonObject
from .refusal import Refused, coded, plain
from .requestlog import RequestLog
from .routes import ROUTES, Reply, Request, Route, named
from .world import BotAccount, World

API = "/api/v10"
BODY_MAX_BYTES = 128 * 1024 * 1024
BROKEN_JSON = b'{"id": "1", "content":'
NEVER_S = 3600.0
JSON = "application/json"
NetworkState = Literal["up", "down", "blackhole"]


class Wire:
    """One handler for all routes."""

    def __init__(self, world: World, api: RestApi, faults: FaultBook, log: RequestLog, changes: Changes) -> None:
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
        """The REST API's addresses; anything else is a 404 in Discord's form."""
        known = [web.route(route.method, API + route.path, self._handler(route)) for route in ROUTES]
        return [*known, web.route("*", "/api/{rest:.*}", self.unknown)]

    def _handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        return partial(self.handle, route)

    async def unknown(self, request: web.Request) -> web.StreamResponse:
        """An address that is not served."""
        return await self._silence(request) if self.silent else _answer(404, plain(404).body)

    async def handle(self, route: Route, raw: web.Request) -> web.StreamResponse:
        """One request."""
        if self.silent:
            return await self._silence(raw)
        request = Request(
            route=route,
            call=named(route, dict(raw.match_info)),
            path=raw.path.removeprefix(API),
            arguments=dict(raw.match_info),
            query=dict(raw.query),
            body=None,
            files=[],
        )
        try:
            request.body, request.files = await read_body(raw)
            request.bot = self._bot(request, raw.headers.get("Authorization", ""))
        except Refused as refused:
            return self._finish(self._log.open(request), request, refused.status, "refused", refused.body, effect=False)
        request.channel_id = self._api.channel_of(request)
        number = self._log.open(request)
        self._changes.bump()
        fault = self._faults.strike(request.call, route.method, request.channel_id)
        if fault is not None and not fault.done_first:
            return await self._fail(raw, number, request, fault, effect=False)
        headers: dict[str, str] = {}
        try:
            headers = self._spend(request)
            reply = await self._api.run(request)
        except Refused as refused:
            more = headers | refused.headers
            return self._finish(number, request, refused.status, "refused", refused.body, effect=False, headers=more)
        if fault is not None:
            return await self._fail(raw, number, request, fault, effect=True, reply=reply)
        if self.silent:
            return await self._silence(raw)
        return self._finish(number, request, reply.status, "done", reply.body, effect=True, headers=headers)

    def _bot(self, request: Request, given: str) -> BotAccount | None:
        """Who asks; routes with a token of their own need nobody."""
        token = given.removeprefix("Bot ")
        for bot in self._world.bots.values():
            if given.startswith("Bot ") and bot.token == token:
                return bot
        if request.route.authorized:
            raise plain(401)
        application = request.arguments.get("application_id", "")
        return self._world.bots.get(int(application)) if application.isdigit() else None

    def _limiter(self, request: Request) -> RateLimiter | None:
        return self._api.limiters.get(request.bot.id) if request.bot is not None else None

    def _spend(self, request: Request) -> dict[str, str]:
        limiter = self._limiter(request)
        return {} if limiter is None else limiter.spend(request)

    async def _fail(
        self, raw: web.Request, number: int, request: Request, fault: Fault, *, effect: bool, reply: Reply | None = None
    ) -> web.StreamResponse:
        """Answer, or fail to, as the fault says."""
        outcome = f"fault:{fault.kind}"
        good = reply or Reply()
        refusal = fault.refusal()
        if refusal is not None:
            return self._refuse(number, request, fault, refusal, effect=effect)
        if fault.kind == "stall" and fault.after_s is not None:
            await asyncio.sleep(fault.after_s)
            return self._finish(number, request, good.status, outcome, good.body, effect=True)
        self._log.close(number, status=0, code=0, outcome=outcome, effect=effect)
        self._changes.bump()
        if fault.kind == "bad_json":
            return web.Response(status=200, body=BROKEN_JSON, headers={hdrs.CONTENT_TYPE: JSON})
        if fault.kind == "wrong_content_type":
            body = msgspec.json.encode(good.body)
            return web.Response(status=200, body=body, headers={hdrs.CONTENT_TYPE: f"{JSON}; charset=utf-8"})
        return await self._silence(raw) if fault.kind == "stall" else _break(raw)

    def _refuse(
        self, number: int, request: Request, fault: Fault, refusal: Refused, *, effect: bool
    ) -> web.StreamResponse:
        outcome = f"fault:{fault.kind}"
        answer = self._finish(
            number, request, refusal.status, outcome, refusal.body, effect=effect, headers=refusal.headers
        )
        if fault.kind == "429" and not fault.via:
            retry = {"Retry-After": refusal.headers["Retry-After"], hdrs.CONTENT_TYPE: "text/plain"}
            return web.Response(status=429, body=b"error code: 1015", headers=retry)
        return answer

    async def _silence(self, request: web.Request) -> web.StreamResponse:
        """Never answer; the handler is cancelled when the caller gives up or the server breaks the connection."""
        await asyncio.sleep(NEVER_S)
        return _break(request)

    def _finish(
        self,
        number: int,
        request: Request,
        status: int,
        outcome: str,
        body: Any,
        *,
        effect: bool,
        headers: dict[str, str] | None = None,
    ) -> web.Response:
        failed: JsonObject = body if status >= 400 and isinstance(body, dict) else {}
        self._log.close(number, status=status, code=int(failed.get("code", 0)), outcome=outcome, effect=effect)
        limiter = self._limiter(request)
        if limiter is not None:
            limiter.invalid(request, status)
        self._changes.bump()
        return _answer(status, body, headers)


async def read_body(request: web.Request) -> tuple[Any, list[NewFile]]:
    """The JSON body, or `payload_json` and the files of a form; Refused 50109 for one that cannot be read."""
    if request.content_type.startswith("multipart/"):
        return await read_form(await request.multipart())
    raw = await request.read()
    if not raw:
        return None, []
    return decode(raw), []


def decode(raw: bytes) -> Any:
    """JSON, or Refused 50109."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise coded(50109) from None


async def read_form(reader: MultipartReader) -> tuple[Any, list[NewFile]]:
    """`payload_json` and `files[n]` of a form."""
    body: Any = {}
    files: list[NewFile] = []
    async for part in reader:
        if not isinstance(part, BodyPartReader) or part.name is None:
            continue
        content = bytes(await part.read(decode=True))
        if part.name == "payload_json":
            body = decode(content)
        elif part.filename is not None:
            number = part.name.removeprefix("files[").removesuffix("]")
            files.append(
                NewFile(
                    number=int(number) if number.isdigit() else len(files),
                    file_name=part.filename,
                    content=content,
                    content_type=_type_of(part.headers),
                )
            )
    return body, files


def _type_of(headers: Mapping[str, str]) -> str:
    return headers.get(hdrs.CONTENT_TYPE, "application/octet-stream")


def _answer(status: int, body: Any, headers: dict[str, str] | None = None) -> web.Response:
    """The content type stands without a charset, as Discord sends it and discord.py demands it."""
    given = headers or {}
    if status == 204:
        return web.Response(status=204, headers=given)
    return web.Response(status=status, body=msgspec.json.encode(body), headers={hdrs.CONTENT_TYPE: JSON} | given)


def _break(request: web.Request) -> web.Response:
    """Reset the connection; whatever is returned cannot be sent any more."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)

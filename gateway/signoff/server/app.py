"""From a request to an answer: find the route, know the caller, decode, call, encode. No defect gets out as such."""

from __future__ import annotations

import logging
import secrets
from functools import partial
from typing import Any, Protocol, cast
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest
from msgspec import Struct

from signoff import aside
from signoff.decision_log import RefusedCalls
from signoff.endings import forbids, refused_message
from signoff.errors import ClaimRefused, InvalidInput, SignoffError
from signoff.lifecycle import IllegalTransition
from signoff.model import ApprovalRequest, replace
from signoff.record import approval_of
from signoff.server.caller import identify, require
from signoff.server.connections import JSON_HEADERS
from signoff.server.faults import BadRequest, ErrorAnswer, ErrorFacts, InvalidJson, code_of, facts_of, invalid
from signoff.server.limits import Hosts, body_of
from signoff.server.local import is_local
from signoff.server.routes import Call, Door, Reply, Route, Router
from signoff.server.wire import NoQuery

log = logging.getLogger("signoff.server")

_encode = msgspec.json.Encoder().encode
_NO_QUERY = NoQuery()


class Pages(Protocol):
    """The web console, as the server sees it: everything under `/console`, and `/`."""

    async def handle(self, request: BaseRequest) -> web.StreamResponse:
        """Answer a request whose host name was checked."""
        ...

    def close(self) -> None:
        """End its streams."""
        ...


class Api:
    """The handler of every request to the API, on the port and on the local socket."""

    def __init__(self, door: Door, hosts: Hosts, pages: Pages | None = None) -> None:
        """`pages` answers what browsers ask for, where the console is on."""
        self._door = door
        self._pages = pages
        self._hosts = hosts
        self._router = Router(door.routes)
        self._telemetry = door.core.telemetry
        self._refusals = RefusedCalls()

    async def handle(self, request: BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        call = Call(self._door, request, ())
        try:
            return _response(await self._called(call))
        except SignoffError as error:
            if isinstance(error, IllegalTransition):
                return self._defect(request, error)
            return await self._refused(call, error)
        except Exception as error:  # the outermost edge: a defect is logged and told apart from a refusal
            return self._defect(request, error)

    async def _called(self, call: Call) -> Reply | web.StreamResponse:
        request = call.request
        if not is_local(request):
            self._hosts.check(request)
        url = request.rel_url
        if self._pages is not None and (url.raw_path == "/" or f"{url.raw_path}/".startswith("/console/")):
            return await self._pages.handle(request)
        found, call.params = self._router.find(request.method, url.raw_path)
        if found.scopes:
            call.who = await identify(self._door.core, request)
            require(call.who, found.scopes)
        call.query = _query(found, url.raw_query_string)
        if found.decode is not None:
            call.body = _body(found, await body_of(request))
        elif request.can_read_body:
            await body_of(request)
        return await found.handler(call)

    async def _refused(self, call: Call, error: SignoffError) -> web.Response:
        code = code_of(error)
        self._telemetry.http_error(code)
        if error.status in (401, 403):
            what = f"{call.request.method} {call.request.rel_url.raw_path[:100]}"
            self._refusals.tell(code, what, None if is_local(call.request) else call.request.remote)
        if error.status >= 500:
            log.error("server.failed: %s: %s", code, error)
        row = error.facts.get("row")
        about = None
        if isinstance(row, ApprovalRequest) and call.who.sees(row):
            make = partial(approval_of, row, self._door.core.clock.now(), exact=call.who.exact(row))
            about = await aside.shown(row, make)
        told = facts_of(error)
        if isinstance(error, ClaimRefused) and isinstance(row, ApprovalRequest):
            # An agent may look at either text: neither may read like permission.
            told = replace(told, message=refused_message(row, code, self._door.core.clock.now()))
            if about is not None and not forbids(about.message):
                about = replace(about, message=told.message)
        answer = ErrorAnswer(error=told, approval=about, cause=error.facts.get("cause"))
        headers = dict(JSON_HEADERS)
        if error.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if error.status in (429, 503):
            headers["Retry-After"] = "1"
        if "allow" in error.facts:
            headers["Allow"] = error.facts["allow"]
        return web.Response(status=error.status, body=_encode(answer), headers=headers)

    def _defect(self, request: BaseRequest, error: Exception) -> web.Response:
        """One log line with an id; the caller gets the id and nothing else."""
        error_id = secrets.token_hex(8)
        self._telemetry.unexpected()
        log.error("server.defect %s: %s %s", error_id, request.method, request.rel_url.raw_path[:200], exc_info=error)
        facts = ErrorFacts(
            message=f"Something in the gateway went wrong; its log tells more under {error_id}.",
            type="server_error",
            code="internal_error",
            param=None,
        )
        return web.Response(status=500, body=_encode(ErrorAnswer(error=facts)), headers=JSON_HEADERS)


def _response(reply: Reply | web.StreamResponse) -> web.StreamResponse:
    if isinstance(reply, web.StreamResponse):
        return reply
    if isinstance(reply.value, bytes):
        headers = {**JSON_HEADERS, "Content-Type": reply.content_type}
        return web.Response(status=reply.status, body=reply.value, headers=headers)
    return web.Response(status=reply.status, body=_encode(reply.value), headers=JSON_HEADERS)


def _query(found: Route, raw: str) -> Any:
    if not raw:
        return _NO_QUERY if found.query is NoQuery else _convert({}, found.query)
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=32)
    except ValueError:
        raise BadRequest("The query is not UTF-8, or has too many parts.") from None
    given = dict(pairs)
    if len(given) != len(pairs):
        raise BadRequest("A query parameter is given twice.")
    return _convert(given, found.query)


def _convert(given: dict[str, str], query: type[Struct]) -> Struct:
    try:
        return msgspec.convert(given, query, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error, query, "query") from None


def _body(found: Route, raw: bytes) -> Any:
    body = cast("type[Struct]", found.body)
    if not raw and not found.body_needed:
        return body()
    try:
        return found.decode(raw)
    except msgspec.ValidationError as error:
        raise invalid(error, body) from None
    except msgspec.DecodeError as error:
        raise InvalidJson(f"The body is not JSON: {str(error)[:200]}.") from None
    except RecursionError:
        raise InvalidInput("The body is nested too deeply.") from None

"""What is refused before a request is read: foreign host names, and bodies that are too large or too slow."""

from __future__ import annotations

import asyncio
import ipaddress

from aiohttp import hdrs, web
from aiohttp.client_exceptions import ClientPayloadError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_request import BaseRequest

from signoff.errors import BodyTooLarge
from signoff.server.faults import BadRequest, RequestTimeout, WrongHost

MAX_BODY_BYTES = 1024**2
BODY_WITHIN_S = 30.0
"""A body of 1 MiB takes 30 s at 280 kbit/s; slower ones are let go so that they do not hold a connection."""
MAX_DEPTH = 64
"""Nesting of lists and objects in an action."""


class Hosts:
    """The names under which the gateway may be called.

    A web page of a stranger can make a browser call a loopback address under the stranger's own name (DNS rebinding);
    such a call still names the stranger's host. Addresses are no names, so they are always let through. A gateway that
    listens on more than loopback (`reachable`) is called by names only its operator knows, so any name will do there.
    """

    def __init__(self, names: frozenset[str], *, reachable: bool = False) -> None:
        self._reachable = reachable
        self._names = frozenset(name.lower().rstrip(".") for name in names) | {"localhost"}
        self._seen: set[str] = set()

    def check(self, request: BaseRequest) -> None:
        """Raise `WrongHost` for a name that is not ours, `BadRequest` for several or none in HTTP/1.1."""
        given = request.headers.getall(hdrs.HOST, ())
        if len(given) == 1:
            if given[0] in self._seen:
                return
            self._check(given[0])
            if len(self._seen) < 64:
                self._seen.add(given[0])
        elif given or request.version >= (1, 1):
            raise BadRequest("Send exactly one Host header.")

    def _check(self, given: str) -> None:
        name = _host_name(given)
        if self._reachable:
            return
        if name.lower().rstrip(".") in self._names:
            return
        try:
            ipaddress.ip_address(name)
        except ValueError:
            raise WrongHost from None


def _host_name(given: str) -> str:
    """The host of `host:port` or `[v6]:port`."""
    if given.startswith("["):
        return given[1:].partition("]")[0]
    return given.partition(":")[0]


async def body_of(request: BaseRequest) -> bytes:
    """The whole body. Raises `BodyTooLarge`, `RequestTimeout`, `BadRequest`."""
    length = request.content_length
    if length is not None and length > MAX_BODY_BYTES:
        raise BodyTooLarge
    if hdrs.EXPECT in request.headers:
        await _expected(request)
    try:
        if request.content.is_eof():
            return await request.read()
        async with asyncio.timeout(BODY_WITHIN_S):
            return await request.read()
    except TimeoutError:
        raise RequestTimeout from None
    except web.HTTPRequestEntityTooLarge:
        raise BodyTooLarge from None
    except (ClientPayloadError, web.RequestPayloadError, HttpProcessingError) as error:
        raise BadRequest(f"The body cannot be read: {type(error).__name__}.") from None


async def _expected(request: BaseRequest) -> None:
    if request.headers[hdrs.EXPECT].lower() != "100-continue" or request.version < (1, 1):
        raise BadRequest("This Expect header is not known; only 100-continue is.")
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    # The interim answer is none of the response's bytes, by which it is told whether an answer has begun.
    request.writer.output_size = 0


def too_deep(value: object, limit: int = MAX_DEPTH) -> bool:
    """Whether lists and objects nest deeper than `limit` in a decoded JSON value."""
    level = [value]
    for _ in range(limit + 1):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level = [item for item in inner if isinstance(item, (dict, list))]
        if not level:
            return False
    return True

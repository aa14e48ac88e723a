"""The shape of a route, and finding the one that a request is for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp.web import StreamResponse
from aiohttp.web_request import BaseRequest
from msgspec import Struct

from signoff.authorize import scopes_for
from signoff.errors import SignoffError
from signoff.server.caller import Caller
from signoff.server.core import Core
from signoff.server.faults import BadRequest, MethodNotAllowed, RouteNotFound
from signoff.server.hall import Hall
from signoff.server.wire import NoQuery

AGENT = frozenset({"agent", "admin"})
DECIDE = scopes_for("decide")
REPLAY = scopes_for("replay")
WORK = scopes_for("stop") | {"agent"}
READ = scopes_for("read") | {"agent"}
WATCH = scopes_for("read")
BYPASS = scopes_for("yolo")
OPS = frozenset({"ops", "admin"})
ADMIN = scopes_for("admin")


class Door(Struct, frozen=True, kw_only=True):
    """What handlers share."""

    core: Core
    hall: Hall
    streams: Any
    """The event streams (`streams.Streams`), which in turn know handlers."""
    backlog: Any
    """The waiting questions by agent (`backlog.Backlog`)."""
    routes: tuple[Route, ...]
    version: str


class Call:
    """One request to one route, decoded."""

    __slots__ = ("body", "core", "door", "params", "query", "request", "who")

    def __init__(self, door: Door, request: BaseRequest, params: tuple[str, ...]) -> None:
        self.door = door
        self.core = door.core
        self.request = request
        self.params = params
        self.who: Caller
        self.query: Any = None
        self.body: Any = None

    @property
    def id(self) -> str:
        """The first parameter in the path."""
        return self.params[0]


class Reply:
    """What a handler answers: a Struct to encode, with its status; or bytes of another content type."""

    __slots__ = ("content_type", "status", "value")

    def __init__(self, value: Struct | bytes, status: int = 200, content_type: str = "application/json") -> None:
        self.value = value
        self.status = status
        self.content_type = content_type


Handler = Callable[[Call], Awaitable[Reply | StreamResponse]]


class Route(Struct, frozen=True, kw_only=True):
    """One route: how it is called, by whom, and all that it can answer."""

    name: str
    method: str
    path: str
    handler: Handler
    scopes: frozenset[str] = frozenset()
    """Who may; empty: anybody, without a key."""
    query: type[Struct] = NoQuery
    body: type[Struct] | None = None
    body_needed: bool = True
    answer: Any = None
    """The Struct of a success; None where the content is not JSON."""
    content_type: str = "application/json"
    statuses: tuple[int, ...] = (200,)
    errors: tuple[type[SignoffError], ...] = ()
    """Errors of this route beside those that every route has."""
    error_codes: tuple[str, ...] = ()
    """Codes that share one class and are told apart by `code` alone."""
    text: str
    """What it does, for the documentation."""
    decode: Any = None
    """The decoder of the body, made once."""


def route(**facts: Any) -> Route:
    """A route with its decoder."""
    body = facts.get("body")
    return Route(**facts, decode=msgspec.json.Decoder(body).decode if body is not None else None)


class _Node:
    __slots__ = ("literals", "parameter", "routes")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.routes: dict[str, Route] = {}


class Router:
    """Routes by path and method. A path is matched by its parts, each decoded on its own."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._root = _Node()
        for entry in routes:
            node = self._root
            for part in entry.path.strip("/").split("/"):
                if part.startswith("{"):
                    node.parameter = node.parameter or _Node()
                    node = node.parameter
                else:
                    node = node.literals.setdefault(part, _Node())
            if entry.method in node.routes:
                raise ValueError(f"two routes for {entry.method} {entry.path}")
            node.routes[entry.method] = entry

    def find(self, method: str, raw_path: str) -> tuple[Route, tuple[str, ...]]:
        """The route and its path parameters. Raises `RouteNotFound`, `MethodNotAllowed` (with `allow`), `BadRequest`.

        HEAD is answered as GET would be, without the body.
        """
        node = self._root
        params: list[str] = []
        for part in raw_path[1:].split("/"):
            known = node.literals.get(part)
            if known is not None:
                node = known
            elif node.parameter is not None and part:
                node = node.parameter
                params.append(_decoded(part))
            else:
                raise RouteNotFound
        if not node.routes:
            raise RouteNotFound
        found = node.routes.get("GET" if method == "HEAD" else method)
        if found is None or (method == "HEAD" and found.content_type == "text/event-stream"):
            allow = ", ".join(sorted(node.routes))
            raise MethodNotAllowed(f"This route knows {allow}.", allow=allow)
        return found, tuple(params)


def _decoded(part: str) -> str:
    if "%" not in part and part.isascii():
        return part
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest("The path is not UTF-8.") from None

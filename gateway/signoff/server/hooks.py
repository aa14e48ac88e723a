"""The listener for the platforms' own calls, apart from the API: `/hooks/{profile}/{platform}`.

The adapter checks signatures; here only size and address are checked.
"""

from __future__ import annotations

import logging
from typing import Any, cast

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from signoff.errors import BodyTooLarge, SignoffError
from signoff.server.core import Core
from signoff.server.faults import ErrorAnswer, MethodNotAllowed, RouteNotFound, ShuttingDown, code_of, facts_of
from signoff.server.hall import Hall
from signoff.server.limits import body_of

log = logging.getLogger("signoff.hooks")

_PARTS = 3
_encode = msgspec.json.Encoder().encode


class Hooks:
    """The handler of every request to the hooks listener."""

    def __init__(self, core: Core, hall: Hall) -> None:
        self._core = core
        self._hall = hall

    async def handle(self, request: BaseRequest) -> web.StreamResponse:
        """Hand a platform's call to its adapter."""
        try:
            return await self._handed(request)
        except web.HTTPRequestEntityTooLarge:
            return _refused(BodyTooLarge())
        except web.HTTPException as answer:
            return web.Response(status=answer.status, text=answer.text, headers=answer.headers)
        except SignoffError as error:
            return _refused(error)
        except Exception:  # an adapter's defect must not end the listener; the platform will call again
            self._core.telemetry.unexpected()
            log.exception("hooks.defect: %s", request.rel_url.raw_path[:200])
            return web.Response(status=500)

    async def _handed(self, request: BaseRequest) -> web.StreamResponse:
        parts = request.rel_url.raw_path[1:].split("/")
        if len(parts) != _PARTS or parts[0] != "hooks":
            raise RouteNotFound
        adapter = self._core.adapters.get((parts[1], parts[2]))
        hook = adapter.hooks() if adapter is not None else None
        if hook is None:
            raise RouteNotFound
        if request.method != hook.method:
            raise MethodNotAllowed(f"This route knows {hook.method}.", allow=hook.method)
        if self._hall.closing:
            raise ShuttingDown
        # Read here, with a deadline: whoever calls has shown no key yet.
        await body_of(request)
        return cast("web.StreamResponse", await hook.handler(cast("Any", request)))


def _refused(error: SignoffError) -> web.Response:
    answer = ErrorAnswer(error=facts_of(error))
    headers = {"Content-Type": "application/json"}
    if "allow" in error.facts:
        headers["Allow"] = error.facts["allow"]
    log.info("hooks.refused: %s", code_of(error))
    return web.Response(status=error.status, body=_encode(answer), headers=headers)

"""Control of a server by method name, the same for callers in the process and, over HTTP, for others.

Arguments and results are plain JSON values on both ways (bytes as base64 text), so the two cannot differ.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec
from aiohttp import ClientSession, ClientTimeout, web

from .model import JsonObject

ERRORS: dict[str, type[Exception]] = {"lookup": LookupError, "value": ValueError}
ANSWER_MARGIN_S = 10.0


class ControlChannel(Protocol):
    """A way to a server's controls."""

    async def call(self, name: str, arguments: JsonObject) -> Any:
        """The result as plain JSON values; LookupError and ValueError as the control raised them."""

    async def aclose(self) -> None:
        """Let go of the way; the server stays as it is."""


class Dispatcher:
    """Finds controls by name among the public methods of some objects, and checks arguments by their annotations."""

    def __init__(self, *owners: object) -> None:
        self._controls: dict[str, tuple[Callable[..., Any], type[msgspec.Struct]]] = {}
        for owner in owners:
            for name, method in inspect.getmembers(owner, inspect.ismethod):
                if not name.startswith("_"):
                    self._controls[name] = (method, _arguments_type(name, method))

    async def call(self, name: str, arguments: JsonObject) -> Any:
        """Run a control; LookupError for an unknown one, ValueError for wrong arguments."""
        if name not in self._controls:
            raise LookupError(f"no control {name!r}")
        method, arguments_type = self._controls[name]
        checked = msgspec.convert(arguments, arguments_type)
        result = method(**{field: getattr(checked, field) for field in arguments_type.__struct_fields__})
        if isinstance(result, Awaitable):
            result = await result
        return msgspec.to_builtins(result)

    async def aclose(self) -> None:
        """Nothing to let go of in the same process."""

    async def handle(self, request: web.Request) -> web.Response:
        """POST of a JSON object of arguments; 200 with `result`, or 400 with `error` and `detail`."""
        try:
            arguments = msgspec.json.decode(await request.read() or b"{}", type=dict[str, Any])
            result = await self.call(request.match_info["name"], arguments)
        except LookupError as problem:
            return _json(400, {"error": "lookup", "detail": str(problem)})
        except ValueError as problem:
            return _json(400, {"error": "value", "detail": str(problem)})
        return _json(200, {"result": result})


class RemoteControl:
    """The controls of a server in another process."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._session: ClientSession | None = None

    async def call(self, name: str, arguments: JsonObject) -> Any:
        """As `ControlChannel.call`; OSError or aiohttp's ClientError when the server cannot be reached."""
        if self._session is None:
            self._session = ClientSession()
        timeout_s = float(arguments.get("timeout_s", 0.0)) + ANSWER_MARGIN_S
        async with self._session.post(
            f"{self._url}/_control/{name}",
            data=msgspec.json.encode(arguments),
            headers={"Content-Type": "application/json"},
            timeout=ClientTimeout(total=timeout_s),
        ) as response:
            body = msgspec.json.decode(await response.read())
        if "error" in body:
            raise ERRORS[body["error"]](body["detail"])
        return body["result"]

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _arguments_type(name: str, method: Callable[..., Any]) -> type[msgspec.Struct]:
    """A struct with a method's parameters as fields."""
    fields: Sequence[Any] = [
        (each.name, each.annotation)
        if each.default is inspect.Parameter.empty
        else (each.name, each.annotation, each.default)
        for each in inspect.signature(method, eval_str=True).parameters.values()
    ]
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _json(status: int, body: JsonObject) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")

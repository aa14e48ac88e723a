"""The listener for the platforms' own calls."""

from __future__ import annotations

from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from tests.unit.server.world import World, world_on

from signoff.errors import ConfigError
from signoff.ports import ChatAdapter, HookRoute
from signoff.server import serve


class Hooked:
    """An adapter as far as the hooks listener knows one."""

    def __init__(self, hook: HookRoute | None) -> None:
        self._hook = hook

    def hooks(self) -> HookRoute | None:
        """The route it was given."""
        return self._hook


async def echo(request: Any) -> web.StreamResponse:
    return web.Response(text=f"{request.headers['X-Secret']}:{(await request.read()).decode()}")


async def broken(_request: Any) -> web.StreamResponse:
    raise KeyError("inner detail")


async def refusing(_request: Any) -> web.StreamResponse:
    raise web.HTTPForbidden(text="no")


def adapters() -> dict[tuple[str, str], ChatAdapter]:
    hooks = {"telegram": HookRoute("POST", echo), "slack": HookRoute("POST", broken), "x": HookRoute("POST", refusing)}
    made: dict[tuple[str, str], Any] = {("default", name): Hooked(hook) for name, hook in hooks.items()}
    made["default", "discord"] = Hooked(None)
    return cast("dict[tuple[str, str], ChatAdapter]", made)


async def call(world: World, method: str, path: str, data: bytes = b"") -> tuple[int, str]:
    headers = {"X-Secret": "s", "Host": "hooks.example.com"}
    async with world.http.request(method, f"{world.bound.hooks}{path}", data=data, headers=headers) as response:
        return response.status, await response.text()


async def test_calls_reach_their_adapter_and_nothing_else() -> None:
    async with world_on("memory://", hooks=("127.0.0.1", 0)) as world:
        world.core.adapters = adapters()
        assert await call(world, "POST", "/hooks/default/telegram", b"hello") == (200, "s:hello")
        for path in ("/hooks/second/telegram", "/hooks/default/discord", "/hooks/default", "/", "/v1/keys", "/health"):
            status, text = await call(world, "POST", path)
            assert (status, "route_not_found" in text) == (404, True), path
        assert (await call(world, "GET", "/hooks/default/telegram"))[0] == 405
        assert (await call(world, "POST", "/hooks/default/x")) == (403, "no")


async def test_a_body_over_the_limit_and_a_defect(caplog: pytest.LogCaptureFixture) -> None:
    async with world_on("memory://", hooks=("127.0.0.1", 0)) as world:
        world.core.adapters = adapters()

        async def chunks() -> Any:
            for _ in range(40):
                yield b"x" * 32_768

        async with world.http.post(
            f"{world.bound.hooks}/hooks/default/telegram", data=chunks(), headers={"X-Secret": "s"}
        ) as response:
            assert response.status == 413
        status, text = await call(world, "POST", "/hooks/default/slack")
        assert (status, text) == (500, "")
        assert "hooks.defect" in caplog.text


async def test_a_taken_port_is_explained() -> None:
    async with world_on("memory://") as world:
        port = int(world.bound.api.rpartition(":")[2])
        with pytest.raises(ConfigError, match=r"gateway\.port"):
            async with serve(world.core, port=port):
                pass
        with pytest.raises(ConfigError, match=r"gateway\.hooks_port"):
            async with serve(world.core, hooks=("127.0.0.1", port)):
                pass
        async with aiohttp.ClientSession() as http, http.get(f"{world.bound.api}/health") as response:
            assert response.status == 200

"""Local administration over the Unix socket in the state folder."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import aiohttp
import pytest
from tests.unit.server.world import Client, World, world_on

from signoff.errors import ConfigError
from signoff.server import local
from signoff.server.local import LOCK_NAME, SOCKET_NAME, local_socket


def here(world: World) -> aiohttp.ClientSession:
    assert world.bound.socket is not None
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(world.bound.socket)))


async def test_whoever_reaches_the_socket_is_the_operator(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with world_on("memory://", state_dir=state) as world, here(world) as http:
        agent, _ = await world.pair()
        operator = Client(http, "http://signoff", None)
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        assert stat.S_IMODE((state / SOCKET_NAME).stat().st_mode) == 0o600
        row = await agent.ask()
        done = await operator("POST", f"/v1/approvals/{row['short_id']}/decision", {"choice": "once"})
        assert done.status == 200
        assert done.body["decided_by"] == [
            {"type": "person", "platform": "local", "user_id": str(os.getuid()), "via": "cli"}
        ]
        assert (await operator("POST", f"/v1/approvals/{row['short_id']}/undo")).status == 200
        made = await operator("POST", "/v1/keys", {"scope": "ops"}, headers={"X-Signoff-Profile": "second"})
        assert made.body["profile"] == "second"
        unknown = await operator("GET", "/v1/keys", headers={"X-Signoff-Profile": "nowhere"})
        assert (unknown.status, unknown.body["error"]["param"]) == (422, "X-Signoff-Profile")
        keyed = Client(http, "http://signoff", agent.key)
        assert (await keyed("GET", "/v1/keys")).code == "insufficient_scope"
    assert not (state / SOCKET_NAME).exists()


async def test_a_key_works_in_its_own_profile_alone(quick: World) -> None:
    """Where another is named the caller means other people than the key reaches."""
    admin = await quick.client("admin")
    body = {"scope": "ops"}
    made = await admin("POST", "/v1/keys", body, headers={"X-Signoff-Profile": "default"})
    assert made.body["profile"] == "default"
    refused = await admin("POST", "/v1/keys", body, headers={"X-Signoff-Profile": "second"})
    assert (refused.status, refused.code) == (403, "insufficient_scope")
    assert refused.body["error"]["message"] == "This key works in profile default, and 'second' was named."


async def test_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_uid", lambda _sock: os.geteuid() + 12345)
    async with world_on("memory://", state_dir=tmp_path / "s") as world, here(world) as http:
        assert (await Client(http, "http://signoff", None)("GET", "/v1/keys")).code == "insufficient_scope"


def test_a_stale_socket_is_replaced_and_a_live_gateway_is_named(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / SOCKET_NAME))
    with local_socket(tmp_path) as sock:
        assert sock.getsockname() == str(tmp_path / SOCKET_NAME)
        with pytest.raises(ConfigError, match="already runs"), local_socket(tmp_path):
            pass
        assert (tmp_path / SOCKET_NAME).exists(), "the loser leaves the winner's socket alone"
    with local_socket(tmp_path):
        pass
    assert (tmp_path / LOCK_NAME).exists()


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / SOCKET_NAME).write_text("precious")
    with pytest.raises(ConfigError, match="in the way"), local_socket(tmp_path):
        pass
    assert (tmp_path / SOCKET_NAME).read_text() == "precious"


def test_a_path_that_is_too_long_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="state_dir"), local_socket(tmp_path / ("x" * 120)):
        pass


def test_an_open_folder_is_closed_to_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with local_socket(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700

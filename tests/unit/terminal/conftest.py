"""A gateway with its local socket, in this process, and people at pseudo-terminals."""

from __future__ import annotations

import os
import pty
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.terminal.typist import Typist

from signoff.config import load_config
from signoff.gateway import Gateway
from signoff.model import replace
from signoff.server.serve import serve
from signoff.testing.fake_adapter import FakeAdapter

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="so-") as name:
        yield Path(name)


@pytest.fixture
async def gateway(folder: Path) -> AsyncIterator[Gateway]:
    """A running gateway that serves one chat platform."""
    file = folder / "signoff.toml"
    file.write_text(
        f'[gateway]\nstate_dir = "{folder}/state"\nstore = "memory://"\nport = 0\n[agents.builder]\nkinds = ["cli"]\n'
    )
    config = load_config(file, {})
    profile = replace(config.profiles["default"], approvers={"fake": ("1",)})
    config = replace(config, profiles={"default": profile})
    chat = FakeAdapter()
    async with (
        Gateway(config, adapters={("default", "fake"): chat}) as made,
        serve(made, host="127.0.0.1", port=0, state_dir=folder / "state") as bound,
    ):
        SERVED[made] = bound.api
        yield made


SERVED: dict[Gateway, str] = {}


@pytest.fixture
def served(gateway: Gateway) -> str:
    """The address of its API."""
    return SERVED.pop(gateway)


@pytest.fixture
def chat(gateway: Gateway) -> FakeAdapter:
    """The gateway's chat platform."""
    found = gateway.adapters["default", "fake"]
    assert isinstance(found, FakeAdapter)
    return found


@pytest.fixture
def environ(folder: Path) -> dict[str, str]:
    """The environment of a person's shell."""
    names = ("PATH", "LANG")
    plain = {name: os.environ[name] for name in names if name in os.environ}
    return {**plain, "HOME": str(folder), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


@pytest.fixture
async def typists(folder: Path, environ: dict[str, str], gateway: Gateway) -> AsyncIterator[Callable[..., Typist]]:
    """People at terminals in that folder."""
    made: list[Typist] = []

    def sit_down(**variables: str) -> Typist:
        made.append(Typist(folder, {**environ, **variables}))
        return made[-1]

    yield sit_down
    for typist in made:
        await typist.aclose()


@pytest.fixture
async def typist(typists: Callable[..., Typist]) -> Typist:
    """One of them."""
    return typists()


@pytest.fixture
def terminal() -> Iterator[str]:
    """A pseudo-terminal's name; nobody sits at it."""
    master, slave = pty.openpty()
    yield os.ttyname(slave)
    os.close(master)
    os.close(slave)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have any terminal count as the one that this process controls, which a test's process has none of."""
    return lambda: monkeypatch.setattr("signoff.terminal.tty._unusable", lambda _fd: "")

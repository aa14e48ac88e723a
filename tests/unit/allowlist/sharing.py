"""Two gateways that share a database, each with a state folder of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from signoff.allowlist_file import allowlist_path
from signoff.allowlist_rows import AllowlistRows
from signoff.broker import Ask
from signoff.changes.allowlist import Changed, Line
from signoff.clock import SystemClock
from signoff.config import load_config
from signoff.gateway import Gateway
from signoff.model import Actor, Command, Grant
from signoff.ports import Store
from signoff.stores.open import open_store
from signoff.testing.fake_adapter import FakeAdapter

ANN = Actor(type="person", principal="ann", name="ann", via="api")
OPERATOR = Actor(type="person", platform="local", user_id="0", via="cli")
LIMIT_S = 20.0


class SharedStore:
    """A store that says of itself that several gateways may serve its database."""

    shared = True

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def opened(url: str) -> Store:
    """A store of its own on the database of that URL; one whose engine is not shared is made to say that it is."""
    store = open_store(url, SystemClock())
    return store if store.shared else cast("Store", SharedStore(store))


def state_of(folder: Path, name: str) -> Path:
    """The state folder of that gateway."""
    return folder / name / "state"


def wrote(folder: Path, name: str, text: str, profile: str = "default") -> Path:
    """The gateway's own allowlist.toml with this text."""
    path = allowlist_path(state_of(folder, name), profile)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text)
    return path


@asynccontextmanager
async def gateway(folder: Path, name: str, url: str, text: str = "") -> AsyncIterator[Gateway]:
    """A gateway of that name on the database, with a session in each profile."""
    file = folder / name / "signoff.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    config = load_config(file, {"SIGNOFF_GATEWAY__STATE_DIR": str(state_of(folder, name))})
    adapters = {(profile, "fake"): FakeAdapter("fake") for profile in config.profiles}
    async with Gateway(config, adapters=adapters, store=opened(url)) as made:
        for profile in config.profiles:
            await made.session("s", kind="chat", destination="fake:1", profile=profile)
        yield made


def rows(made: Gateway) -> AllowlistRows:
    """Its allowlists."""
    assert isinstance(made.allowlisting, AllowlistRows)
    return made.allowlisting


def lines(*texts: str, name: str = "commands") -> list[Line]:
    """Lines of one list."""
    return [Line(list=name, text=text) for text in texts]


async def added(made: Gateway, *texts: str, profile: str = "default", name: str = "commands") -> Changed:
    """Add lines as its operator does."""
    return await rows(made).change(profile, lines(*texts, name=name), (), OPERATOR)


async def removed(made: Gateway, *texts: str, profile: str = "default") -> Changed:
    """Take lines out as its operator does."""
    ids = [line.id for line in await rows(made).lines(profile) if line.text in texts]
    return await rows(made).change(profile, (), ids, OPERATOR)


async def standing(made: Gateway, profile: str = "default") -> list[str]:
    """The texts that stand in the store."""
    return [line.text for line in await rows(made).lines(profile)]


async def asked(made: Gateway, command: str, session: str = "s", profile: str = "default") -> str | None:
    """Whether a person is asked: the outcome it was born with, None when it waits (it is then withdrawn)."""
    row = (await made.broker.submit(profile, Ask(action=Command(command=command), session_id=session))).row
    if row.outcome is None:
        await made.cancel(row.request_id, profile=profile)
    return row.outcome


async def always(made: Gateway, command: str, profile: str = "default") -> Grant:
    """Answer a question "always"; the permanent grant."""
    row = (await made.broker.submit(profile, Ask(action=Command(command=command), session_id="s"))).row
    await made.decide(row.request_id, "always", ANN, profile=profile)
    return next(grant for grant in await made.grants(profile=profile) if grant.scope == "always")


def admits(made: Gateway, profile: str = "default") -> tuple[str, ...]:
    """What its judgement has in the list `commands`."""
    return made.profiles[profile].allowlist.commands


async def until(true: Callable[[], bool | Awaitable[bool]]) -> None:
    """Return once it holds."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            found = true()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)

"""Who judges: a short text at once, a longer one beside the event loop, and with it its digest and its row."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from signoff import aside, coverage
from signoff.bench.rig import opened, sessions
from signoff.broker import Ask
from signoff.model import Action, Code, Command, FileWrite, Tool
from signoff.policy import explaining, ladder

LONG = aside.LONG_CHARS
BARE = "'ls' "
"""A command whose exact text has to be looked for."""
ACTIONS: dict[str, Callable[[int], Action]] = {
    "command": lambda chars: Command(command=BARE + "a" * (chars - len(BARE)), cwd="/srv/app"),
    "env": lambda chars: Command(command="ls", env={"NOTE": "a" * (chars - 2)}),
    "code": lambda chars: Code(language="python", code="#" * chars),
    "diff": lambda chars: FileWrite(path="/srv/a", diff="+" * (chars - len("/srv/a"))),
}


class Seen:
    """On which threads each step ran: True for the thread of the event loop."""

    def __init__(self) -> None:
        self.here = threading.get_ident()
        self.ran: dict[str, set[bool]] = {}

    def watch(self, patch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        work = getattr(module, name)

        def noted(*args: Any, **kwargs: Any) -> Any:
            self.ran.setdefault(name, set()).add(threading.get_ident() == self.here)
            return work(*args, **kwargs)

        patch.setattr(module, name, noted)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Watches reading, the digest and the exact text from now on."""
    watching = Seen()
    for module, name in ((ladder, "read"), (explaining, "read"), (aside, "digest_of"), (coverage, "unwrapped")):
        watching.watch(monkeypatch, module, name)
    return watching


@pytest.mark.parametrize("name", ACTIONS)
async def test_only_a_short_text_is_judged_on_the_loop(name: str, seen: Seen) -> None:
    async with opened() as (gateway, _adapter):
        (session,) = await sessions(gateway, 1)
        for chars, on_loop in ((LONG, True), (LONG + 1, False), (200_000, False), (1_000_000, False)):
            action = ACTIONS[name](chars)
            seen.ran.clear()
            await gateway.check(action, session_id=session)
            await gateway.broker.submit("default", Ask(action=action, session_id=session))
            assert seen.ran["read"] == {on_loop}, chars
            assert seen.ran.get("unwrapped", {on_loop}) == {on_loop}, chars
            assert on_loop or seen.ran["digest_of"] == {False}, chars


async def test_the_digest_of_long_arguments_is_made_beside_the_loop(seen: Seen) -> None:
    async with opened() as (gateway, _adapter):
        (session,) = await sessions(gateway, 1)
        for chars, on_loop in ((100, True), (1_000_000, False)):
            seen.ran.clear()
            action = Tool(name="drop_table", arguments={"note": "\n" * chars})
            await gateway.broker.submit("default", Ask(action=action, session_id=session))
            assert seen.ran["digest_of"] == {on_loop}, chars

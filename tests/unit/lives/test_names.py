"""Every name that a session is declared with has a longest length, and says so where it is over it."""

from __future__ import annotations

from typing import Any

import pytest

from signoff.errors import InvalidInput
from signoff.model import Destination, replace
from signoff.sessions import MAX_ID_CHARS, Declaration, Sessions
from signoff.settings import Profile
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

LONG, FITS = "x" * (MAX_ID_CHARS + 1), "x" * MAX_ID_CHARS


def declared(name: str, text: str) -> dict[str, Any]:
    """The facts of a declaration in which that name is this text."""
    if name in ("platform", "chat_id", "thread_id"):
        return {"destination": replace(Destination("fake", "1"), **{name: text})}
    if name in ("parent", "parent_turn"):
        return {"kind": "child", "parent": "p", name: text}
    return {name: text}


@pytest.mark.parametrize("name", ["user_id", "platform", "chat_id", "thread_id", "parent", "parent_turn", "session_id"])
@pytest.mark.parametrize("text", [LONG, "with\nline", "x" * 10_000_000])
async def test_a_name_that_is_too_long_is_refused(name: str, text: str) -> None:
    store = open_store("memory://", FakeClock())
    sessions = Sessions(store, {"default": Profile()}, lambda _: frozenset({"fake"}))
    facts = {"session_id": "s", **declared(name, text)}
    with pytest.raises(InvalidInput, match=f"{MAX_ID_CHARS} characters") as error:
        await sessions.declare("default", Declaration(**facts), None)
    assert error.value.param == name
    assert len(error.value.message) < 200
    await store.aclose()


@pytest.mark.parametrize("name", ["user_id", "chat_id", "thread_id"])
async def test_the_longest_one_is_kept(name: str) -> None:
    store = open_store("memory://", FakeClock())
    sessions = Sessions(store, {"default": Profile()}, lambda _: frozenset({"fake"}))
    session = await sessions.declare("default", Declaration(session_id="s", **declared(name, FITS)), None)
    assert FITS in (session.user_id or str(session.destination))
    await store.aclose()

"""API keys: only a hash is kept, and anything but the whole live key is nothing."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signoff.clock import SystemClock
from signoff.errors import InvalidInput, KeyNotFound
from signoff.keys import Keys
from signoff.model import Scope
from signoff.ports import Store
from signoff.settings import Profile
from signoff.stores.open import open_store


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store("memory://", SystemClock())
    yield opened
    await opened.aclose()


@pytest.fixture
def keys(store: Store) -> Keys:
    return Keys(store, {"default": Profile()})


async def test_a_key_is_verified_and_its_secret_not_kept(keys: Keys, store: Store) -> None:
    made = await keys.create("default", "approver", principal="ann")
    assert re.fullmatch(r"sk_[A-Za-z0-9]{12}_[A-Za-z0-9]{43}", made.text)
    secret = made.text.rpartition("_")[2]
    assert await keys.verify(made.text) == made.key
    events = await store.events("default", 0, limit=10)
    assert [event.type for event in events] == ["key.created"]
    assert secret not in msgspec.json.encode([*await keys.list("default"), *events]).decode()


async def test_what_differs_in_one_character_is_nothing(keys: Keys) -> None:
    made = await keys.create("default", "ops")
    other = "A" if made.text[-1] != "A" else "B"
    for wrong in (
        made.text[:-1] + other,
        made.text[:-1],
        made.text + "A",
        made.text.replace("sk_", "SK_"),
        made.text + "\n",
    ):
        assert await keys.verify(wrong) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=50)
@given(text=st.text())
async def test_any_text_is_refused(keys: Keys, text: str) -> None:
    assert await keys.verify(text) is None


async def test_a_revoked_key_is_nothing_at_once(keys: Keys) -> None:
    made = await keys.create("default", "ops")
    revoked = await keys.revoke("default", made.key.key_id)
    assert await keys.verify(made.text) is None
    assert await keys.revoke("default", made.key.key_id) == revoked


async def test_a_key_of_a_profile_that_is_gone_is_nothing(keys: Keys, store: Store) -> None:
    made = await keys.create("default", "ops")
    assert await Keys(store, {"other": Profile(name="other")}).verify(made.text) is None
    with pytest.raises(KeyNotFound):
        await keys.revoke("other", made.key.key_id)


@pytest.mark.parametrize(
    ("scope", "facts", "param"),
    [
        ("approver", {}, "principal"),
        ("agent", {"principal": "ann"}, "principal"),
        ("ops", {"agent": "builder"}, "agent"),
        ("agent", {"agent": "two words"}, "agent"),
        ("agent", {"agent": "x" * 65}, "agent"),
        ("king", {}, "scope"),
    ],
)
async def test_keys_that_cannot_be_made(keys: Keys, scope: Scope, facts: dict[str, str], param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await keys.create("default", scope, agent=facts.get("agent"), principal=facts.get("principal"))
    assert refused.value.param == param
    with pytest.raises(InvalidInput):
        await keys.create("nowhere", "ops")

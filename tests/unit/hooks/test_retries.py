"""When a receiver is tried again: jitter, and what it asks for itself, within reason."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hooks.receiver import Receiver
from tests.unit.hooks.test_deliveries import delivering, emitted, moving, profiles

from signoff.hooks.lines import BACKOFF_S, JITTER, MOST_PAUSE_S, chance
from signoff.hooks.posting import _seconds_until
from signoff.ports import Store
from signoff.testing.clock import FakeClock

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


async def gaps(receiver: Receiver, store: Store, clock: FakeClock, tries: int, luck: float, step_s: float) -> list[int]:
    """The seconds between so many tries of one message."""
    async with delivering(store, clock, profiles(receiver.url), chance=lambda: luck):
        await emitted(store, 1)
        await moving(clock, lambda: len(receiver.tried) == tries, step_s=step_s)
    return [later.at_s - earlier.at_s for earlier, later in pairwise(receiver.tried)]


async def test_a_pause_has_up_to_a_tenth_more(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    receiver.always = 503
    found = await gaps(receiver, store, clock, 7, 1.0, step_s=10)
    wanted = [pause_s * (1 + JITTER) for pause_s in BACKOFF_S]
    assert all(want - 1 <= gap <= want + 25 for want, gap in zip(wanted, found, strict=True)), found


@pytest.mark.parametrize(
    ("said", "least_s"),
    [("70", 70), ("2", 5), ("999999", MOST_PAUSE_S), ("Mon, 05 Jan 2026 09:02:00 GMT", 110), ("soon", 5), ("-5", 5)],
)
async def test_what_the_receiver_asks_for(
    receiver: Receiver, store: Store, clock: FakeClock, said: str, least_s: float
) -> None:
    receiver.plan.append(429)
    receiver.headers = {"Retry-After": said}
    (gap,) = await gaps(receiver, store, clock, 2, 0.0, step_s=max(1, least_s // 200))
    assert least_s <= gap <= least_s + 20, gap


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", None),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("Mon, 05 Jan 2026 09:00:30 GMT", 30.0),
        ("Mon, 05 Jan 2026 08:00:00 GMT", 0.0),
        ("Mon, 05 Jan 2026 09:00:30 -0000", None),
        ("1.5", None),
        ("٣", None),
    ],
)
def test_the_header_is_read(text: str, seconds: float | None) -> None:
    assert _seconds_until(text, NOW) == seconds


@given(st.text())
def test_any_header_is_read_without_an_error(text: str) -> None:
    found = _seconds_until(text, NOW)
    assert found is None or found >= 0


def test_chances_differ() -> None:
    found = {chance() for _ in range(200)}
    assert len(found) > 20
    assert all(0 <= each <= 1 for each in found)

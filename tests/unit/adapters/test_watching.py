"""An adapter's state by what was heard, and its pauses."""

from __future__ import annotations

import asyncio
import logging

import pytest

from signoff.errors import AdapterError, AdapterUnavailable
from signoff.testing.clock import FakeClock, settle
from signoff_adapters.watching import HISTORY, LONGEST_PAUSE_S, Pause, Watch


async def test_ready_waits_for_the_first_round_and_tells_its_failure() -> None:
    watch = Watch(FakeClock(), deaf_after_s=45, platform="Telegram")
    waiting = asyncio.create_task(watch.proven())
    await settle()
    assert not waiting.done()
    watch.failed(AdapterUnavailable("no route"))
    with pytest.raises(AdapterUnavailable, match="no route"):
        await waiting
    assert (watch.health().state, watch.health().detail) == ("degraded", "no route")
    watch.heard()
    await watch.proven()
    assert (watch.health().state, watch.health().detail) == ("ready", "")


async def test_silence_is_not_health() -> None:
    clock = FakeClock()
    watch = Watch(clock, deaf_after_s=45, platform="Telegram")
    watch.heard()
    heard_at = clock.now()
    await clock.advance(45)
    assert watch.health().state == "ready"
    await clock.advance(1)
    assert watch.health().state == "degraded"
    assert watch.health().detail == "nothing heard from Telegram for 46 s"
    assert watch.health().last_heard_at == heard_at
    watch.heard()
    assert watch.health().state == "ready"


async def test_trouble_that_the_platform_tells_of_degrades_without_being_a_failure() -> None:
    watch = Watch(FakeClock(), deaf_after_s=45, platform="Telegram")
    watch.heard("Telegram cannot deliver: 502")
    assert watch.health().state == "degraded"
    await watch.proven()


async def test_history_keeps_the_last_changes_with_their_times() -> None:
    clock = FakeClock()
    watch = Watch(clock, deaf_after_s=45, platform="Telegram")
    for number in range(HISTORY):
        watch.failed(AdapterUnavailable(f"reason {number}"))
        watch.failed(AdapterUnavailable(f"reason {number}"))
    watch.heard()
    await clock.advance(1)
    history = watch.health().history
    assert len(history) == HISTORY
    assert history[-2:] == ("2026-01-05T09:00:00Z degraded: reason 19", "2026-01-05T09:00:00Z ready")


def test_pauses_grow_to_a_quarter_of_a_minute_and_start_anew() -> None:
    watch = Watch(FakeClock(), deaf_after_s=45, platform="Telegram")
    for failures in range(40):
        pauses = [watch.pause_s() for _ in range(50)]
        assert all(1 <= pause <= 15 for pause in pauses), failures
        watch.failed(AdapterUnavailable("x"))
    assert min(pauses) >= 7.5
    assert len(set(pauses)) > 40
    watch.heard()
    assert watch.pause_s() == 1


def test_a_pause_that_counts_its_failures_itself() -> None:
    pause = Pause()
    pauses = [pause.next_s() for _ in range(50)]
    assert 1.0 <= pauses[0] <= 2.0
    assert LONGEST_PAUSE_S / 2 <= min(pauses[5:]) <= max(pauses) <= LONGEST_PAUSE_S
    pause.reset()
    assert pause.next_s() <= 2.0


def test_a_note_is_kept_and_changes_no_state(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(FakeClock(), deaf_after_s=45, platform="Discord")
    watch.note("left out", level=logging.WARNING)
    assert (watch.health().state, watch.health().history) == ("starting", ("2026-01-05T09:00:00Z left out",))
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [(logging.WARNING, "discord adapter: left out")]


async def test_stopped_is_the_end_until_begun_again() -> None:
    watch = Watch(FakeClock(), deaf_after_s=45, platform="Telegram")
    watch.stopped()
    watch.stopped()
    watch.heard()
    assert watch.health().state == "stopped"
    watch.begin()
    assert watch.health().state == "starting"
    watch.stopped()
    with pytest.raises(AdapterError):
        await watch.proven()

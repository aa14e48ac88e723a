"""A store that is away: few lines in the log, and nothing failing once it is back."""

from __future__ import annotations

import logging

from signoff.errors import InvalidInput, SaveUnknown, StoreCorrupt, StoreUnavailable
from signoff.outages import OVER, TOLD, Outages
from signoff.pulse import Pulse
from signoff.testing.clock import FakeClock

AWAY = StoreUnavailable("the database is away")


def _line(text: str, *values: object, at: float, name: str = "signoff.x", raised: bool = False) -> logging.LogRecord:
    info = (type(AWAY), AWAY, None) if raised else None
    record = logging.LogRecord(name, logging.WARNING, __file__, 1, text, values, info)
    record.created = at
    return record


def test_an_outage_is_told_when_it_begins_once_a_minute_and_when_it_is_over() -> None:
    clock = [0.0]
    outages = Outages(lambda: clock[0])
    over, follows = _line("back", at=100.0), _line("nothing of it counts: %s", AWAY, at=12.0)
    vars(over).update(OVER)
    vars(follows).update(TOLD)
    told = [
        (_line("sweep failed: %s", AWAY, at=10.0), True),
        (_line("outbox not read: %s", AWAY, at=10.1), False),
        (_line("ended in an error", at=11.0, raised=True), False),
        (_line("refused: %s", InvalidInput("a typing error"), at=11.0), True),
        (_line("the connection is lost", at=12.0, name="psycopg"), False),
        (follows, True),
        (_line("refused: %s", SaveUnknown(), at=13.0), True),
        (_line("refused: %s", StoreCorrupt("a page is torn"), at=13.0), True),
        (_line("sweep failed: %s", AWAY, at=69.9), False),
        (_line("sweep failed: %s", AWAY, at=70.0), True),
        (_line("sweep failed: %s", AWAY, at=99.0), False),
        (over, True),
        (_line("sweep failed: %s", AWAY, at=101.0), True),
    ]
    for record, written in told:
        clock[0] = record.created
        assert outages.filter(record) is written, (record.created, record.getMessage())


async def _fail(pulse: Pulse, clock: FakeClock, seconds: int, error: Exception) -> None:
    for _ in range(seconds):
        pulse.failed("loop", error)
        await clock.advance(1)


async def test_two_short_outages_are_not_one_long_failure() -> None:
    clock = FakeClock()
    pulse = Pulse(clock)
    for _ in range(2):
        await _fail(pulse, clock, 15, AWAY)
        pulse.store_is_back()
        await clock.advance(10)
        assert pulse.troubles() == {}
    await _fail(pulse, clock, 32, AWAY)
    assert list(pulse.troubles()) == ["loop"]
    pulse.store_is_back()
    assert pulse.troubles() == {}


async def test_a_defect_goes_on_failing_though_the_store_is_back() -> None:
    clock = FakeClock()
    pulse = Pulse(clock)
    await _fail(pulse, clock, 20, ValueError("a defect"))
    pulse.store_is_back()
    await _fail(pulse, clock, 12, AWAY)
    pulse.store_is_back()
    assert list(pulse.troubles()) == ["loop"]

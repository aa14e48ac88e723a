"""Lengths of time and clocks as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.cli.output import span_left
from signoff.durations import clock, duration, duration_long, grouped, left, window, window_long

NOW = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "passed", "whole"),
    [
        (-3, "0 s", "0 s"),
        (0, "0 s", "0 s"),
        (0.018, "18 ms", "18 ms"),
        (0.0001, "1 ms", "1 ms"),
        (0.1, "0.1 s", "0.1 s"),
        (0.39, "0.3 s", "0.3 s"),
        (1.9, "1 s", "1 s"),
        (12, "12 s", "12 s"),
        (60, "60 s", "60 s"),
        (119.9, "119 s", "119 s"),
        (150, "2 min", "150 s"),
        (240, "4 min", "4 min"),
        (299, "4 min", "299 s"),
        (3_600, "1 h", "1 h"),
        (5_400, "90 min", "90 min"),
        (7_200, "2 h", "2 h"),
        (86_400, "1 day", "1 day"),
        (90_000, "25 h", "25 h"),
        (259_200, "3 days", "3 days"),
        (86_400 * 1_204, "1,204 days", "1,204 days"),
    ],
)
def test_one_unit(seconds: float, passed: str, whole: str) -> None:
    assert duration(seconds) == passed
    assert window(seconds) == whole


def test_agents_read_whole_words() -> None:
    assert window_long(300) == "5 minutes"
    assert window_long(1) == "1 second"
    assert duration_long(150) == "2 minutes"
    assert duration_long(0.5) == "0.5 seconds"


@given(st.integers(min_value=1, max_value=10**9))
def test_time_left_is_never_promised_too_long(seconds: int) -> None:
    count, unit = duration(seconds).split()
    length = {"s": 1, "min": 60, "h": 3600, "day": 86_400, "days": 86_400}[unit]
    said = int(count.replace(",", "")) * length
    assert said <= seconds < 2 * said
    count, unit = window(seconds).split()
    length = {"s": 1, "min": 60, "h": 3600, "day": 86_400, "days": 86_400}[unit]
    assert int(count.replace(",", "")) * length == seconds


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-1, "0 s"),
        (0.4, "0.4 s"),
        (59.9, "59 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (299, "5 min"),
        (296, "4 min"),
        (3_599, "1 h"),
        (3_560, "59 min"),
        (5_400, "90 min"),
        (86_399, "1 day"),
        (90_000, "25 h"),
        (172_799, "2 days"),
        (172_801, "48 h"),
        (259_199, "3 days"),
        (259_200 - 3_600, "71 h"),
        (259_200, "3 days"),
        (259_201, "3 days"),
        (86_400 * 30 - 5, "30 days"),
    ],
)
def test_a_window_that_has_just_begun_reads_as_its_length(seconds: float, told: str) -> None:
    assert left(seconds) == told
    if not 0 < seconds < 1:
        assert span_left(seconds) == told


@given(st.integers(min_value=1, max_value=10**9))
def test_a_deadline_is_never_promised_more_than_a_hundredth_late(seconds: int) -> None:
    count, unit = left(seconds).split()
    length = {"s": 1, "min": 60, "h": 3600, "day": 86_400, "days": 86_400}[unit]
    said = int(count.replace(",", "")) * length
    assert said <= (seconds if seconds < 120 else seconds * 1.01)
    assert seconds < 1.5 * said


@given(st.integers(min_value=2, max_value=10_000), st.sampled_from([60, 3600, 86_400]))
def test_a_window_of_whole_units_reads_as_its_length_a_second_after(count: int, length: int) -> None:
    seconds = count * length
    if seconds > 120:
        assert left(seconds - 1) == left(seconds)


def test_counts_are_grouped() -> None:
    assert [grouped(n) for n in (0, 999, 1_204, 1_000_000)] == ["0", "999", "1,204", "1,000,000"]


def test_a_clock_says_its_zone_and_another_day_its_date() -> None:
    assert clock(NOW + timedelta(minutes=19), now=NOW) == "03:19 UTC"
    assert clock(NOW + timedelta(minutes=19), now=NOW, with_zone=False) == "03:19"
    assert clock(NOW + timedelta(days=3, hours=-1), now=NOW) == "2 Dec 02:00 UTC"
    assert clock(NOW + timedelta(days=400), now=NOW) == "3 Jan 2028 03:00 UTC"
    assert clock(NOW - timedelta(days=1), now=NOW, with_zone=False) == "28 Nov 03:00"


def test_the_day_is_that_of_the_reader() -> None:
    tokyo = timezone(timedelta(hours=9), "JST")
    late = datetime(2026, 11, 29, 14, 0, tzinfo=UTC)
    assert clock(late + timedelta(hours=2), now=late, zone=tokyo) == "30 Nov 01:00 JST"
    assert clock(late, now=NOW, zone=tokyo) == "23:00 JST"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        clock(NOW.replace(tzinfo=None), now=NOW)

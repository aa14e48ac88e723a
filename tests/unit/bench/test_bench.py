"""`signoff bench` runs, and every row is a number or an explained null. Nothing here is timed."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from signoff.bench import judging, over_http
from signoff.bench.child import Result
from signoff.bench.figures import NotMeasured, percentile, rss_bytes, watching
from signoff.bench.rounds import measure_all
from signoff.bench.rows import MEASURES, QUICK, Measure, Row, Sizes, chosen
from signoff.policy import judge

TINY = Sizes(
    at_once=2,
    approvals=4,
    http_approvals=4,
    waiting=3,
    place=5,
    session=3,
    threads=2,
    memory=4,
    idle=2,
    idle_s=0.05,
    many=6,
    many_taps=2,
    chats=1,
    commits=3,
    judged=20,
    appends=2,
)
KEYS = [row.key for measure in MEASURES for row in measure.rows]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    sizes = json.dumps({name: getattr(TINY, name) for name in TINY.__struct_fields__})
    return subprocess.run(
        [sys.executable, "-m", "signoff", "bench", "--rounds", "1", "--sizes", sizes, *arguments],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.heavy
def test_every_row_is_a_number_or_an_explained_null(tmp_path: Path) -> None:
    done = run(tmp_path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told: dict[str, Any] = json.loads(done.stdout)
    assert list(told)[: len(KEYS)] == KEYS
    # A checkout has all it takes, so that here nothing may be missing.
    assert told["why_null"] == {}
    assert {key for key in KEYS if not isinstance(told[key], (int, float))} == set()
    assert told["machine"]["cores"] >= 1
    assert told["machine"]["append_p50_ms"] > 0
    assert told["sizes"]["at_once"] == 2
    assert told["rounds"] == 1
    assert not list(tmp_path.iterdir())


def test_one_row_in_a_plain_table_names_the_sizes(tmp_path: Path) -> None:
    done = run(tmp_path, "--only", "wake_p99_ms")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[2] == "2 at once; one round."
    assert lines[4].split() == ["measured", "value", "goal", "at", "full", "sizes"]
    assert lines[5].startswith("decide to waiter's return, 3 waiting, p50")
    assert lines[5].endswith("≤ 1 ms")
    assert len(lines) == 7


def test_an_unknown_row_is_wrong_usage(tmp_path: Path) -> None:
    done = run(tmp_path, "--only", "speed")
    assert done.returncode == 2
    assert "There is no row 'speed'" in done.stderr


def test_rows_are_found_by_their_key_and_by_their_measurement() -> None:
    assert chosen(None) == MEASURES
    assert [m.name for m in chosen("many_rss_mb")] == ["many"]
    assert chosen("many") == chosen("many_rss_mb")
    assert len(set(KEYS)) == len(KEYS)


def test_titles_say_what_was_measured() -> None:
    [row, *_] = chosen("approve_all")[0].rows
    assert row.titled(Sizes()) == "approve all of 5,000, until every waiter returned"
    assert row.titled(QUICK) == "approve all of 1,000, until every waiter returned"


def test_goals_are_met_in_their_own_direction() -> None:
    fast = Row(key="a", title="", unit="/s", goal=10, more_is_better=True)
    short = Row(key="a", title="", unit="ms", goal=10)
    assert (fast.met(11), fast.met(9), short.met(9), short.met(11)) == (True, False, True, False)
    assert Row(key="a", title="", unit="ms").met(1) is None


@pytest.mark.parametrize(("percent", "value"), [(50, 2.0), (99, 4.0), (100, 4.0), (1, 1.0)])
def test_percentiles_are_values_that_occurred(percent: float, value: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], percent) == value


def test_memory_is_that_of_the_process_named() -> None:
    assert rss_bytes() == pytest.approx(rss_bytes(os.getpid()), rel=0.2)
    assert rss_bytes() > 1_000_000


async def test_a_blocked_loop_is_seen() -> None:
    def block() -> None:
        until = asyncio.get_running_loop().time() + 0.05
        while asyncio.get_running_loop().time() < until:
            pass

    async with watching() as gaps:
        block()
    assert gaps.longest_s >= 0.045


def made_up(place: str, limit_s: float = 20.0) -> Measure:
    return Measure(name="commit", place=place, rows=(Row(key="x", title="x", unit="ms"),), limit_s=limit_s)


async def test_medians_of_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([3.0, 1.0, 9.0])

    async def round_of(measure: Measure, sizes: Sizes) -> Result:
        return Result(values={"x": next(values)})

    monkeypatch.setattr("signoff.bench.rounds.run_round", round_of)
    [found] = await measure_all([made_up("")], TINY, 3, lambda what: None)
    assert (found.value, found.rounds, found.why) == (3.0, (3.0, 1.0, 9.0), None)


async def test_what_takes_too_long_is_ended_and_explained() -> None:
    slow = Measure(name="idle", place="", rows=(Row(key="x", title="x", unit="%"),), limit_s=1.5)
    sizes = Sizes(idle=1, idle_s=600.0)
    [found] = await measure_all([slow], sizes, 3, lambda what: None)
    assert (found.value, found.why) == (None, "not done within 1.5 s")


async def test_a_failure_is_explained_by_its_last_line() -> None:
    broken = Measure(name="no such measurement", place="", rows=(Row(key="x", title="x", unit="ms"),))
    [found] = await measure_all([broken], TINY, 1, lambda what: None)
    assert found.value is None
    assert (found.why or "").startswith("ended with code 1: ")


@pytest.mark.parametrize(
    ("place", "platform"),
    [
        ("on_telegram:tap", "Telegram"),
        ("on_telegram:start", "Telegram"),
        ("on_discord:tap", "Discord"),
        ("on_slack:tap", "Slack"),
        ("on_three:start", "Telegram"),
    ],
)
async def test_without_the_tests_folder_rows_say_so(
    place: str, platform: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module, _, function = place.partition(":")
    monkeypatch.setattr("signoff.__file__", str(tmp_path / "a" / "b" / "signoff" / "__init__.py"))
    with pytest.raises(NotMeasured, match=f"loopback {platform} .*run it from a checkout"):
        await getattr(importlib.import_module(f"signoff.bench.{module}"), function)(TINY)


async def test_a_server_that_does_not_start_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(NotMeasured, match="the server ended with code 1"):
        await over_http.approvals(TINY)


def test_judge_names_all_that_is_measured_of_judging() -> None:
    assert [measure.name for measure in chosen("judge")] == ["judge", "hostile", "policy"]
    assert [measure.name for measure in chosen("judge_10kb_ms")] == ["judge"]


async def test_what_the_judge_takes_is_measured_on_what_it_understands() -> None:
    found = await judging.judge_texts(TINY)
    assert set(found) == {row.key for row in chosen("judge")[0].rows}
    assert all(value > 0 for value in found.values())
    for key, text in judging.TEXTS.items():
        verdict = judge("command", text(0), judging.CONTEXT, clock=lambda: 0.0)
        assert verdict.verdict == ("ask" if key == "judge_parentheses_ms" else "allow"), key


def test_a_row_is_named_once(tmp_path: Path) -> None:
    done = run(tmp_path, "judge", "--only", "wake")
    assert (done.returncode, done.stderr) == (2, "signoff: Name the row once. See `signoff bench --help`.\n")

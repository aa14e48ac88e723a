"""Binding who asks: three states of each fact, scopes that give back what was there, and what carries it along."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.unit.context.conftest import STALE

from signoff import context
from signoff.context import VARIABLES, Context, ContextThreadPool, absent, bind, carried, child, current, fresh, within
from signoff.errors import InvalidInput
from signoff.model import Destination

NOTHING = Context()
ROOT = Path(__file__).resolve().parents[3]


def test_the_variables_are_no_settings() -> None:  # #31184
    assert [name for name in VARIABLES.values() if "__" in name or not name.startswith("SIGNOFF_")] == []
    assert set(STALE) == set(VARIABLES.values())
    facts = set(Context.__struct_fields__) - {"above", "made_at"}
    assert set(VARIABLES) == facts


# --- three states (2.1.2) --------------------------------------------------------------------------


@pytest.mark.usefixtures("stale")
def test_never_set_is_what_the_environment_says() -> None:  # 2.1.2
    found = current()
    assert (found.session_id, found.turn_id, found.tool_call_id) == ("stale-session", "stale-turn", "stale-call")
    assert (found.profile, found.user_id, found.parent) == ("stale", "stale-user", "stale-parent")
    assert (found.kinds, found.destination) == (frozenset({"chat"}), Destination("fake", "666"))
    assert found.interactive
    assert found.ask


@pytest.mark.usefixtures("stale")
def test_set_empty_is_absent_and_masks_the_environment() -> None:  # 2.1.2, 2.1.3
    with absent() as found:
        assert found == current() == NOTHING
        assert found.empty


@pytest.mark.usefixtures("stale")
def test_binding_a_session_binds_every_fact() -> None:  # 2.1.3, 2.1.5
    """What is not named is absent: a marker that leaked into the process reclassifies nobody."""
    with bind("chat-1", kind="chat", destination="fake:100"):
        assert current() == Context(
            session_id="chat-1", kinds=frozenset({"chat"}), destination=Destination("fake", "100")
        )


@pytest.mark.usefixtures("stale")
@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_each_fact_alone_masks_its_variable(name: str) -> None:  # 2.1.2
    """Set, it counts; next to it, all others are absent."""
    given: dict[str, Any] = {"kinds": "cron", "destination": "fake:7", "interactive": True, "ask": True}
    value = given.get(name, "set")
    with bind(**{"kind" if name == "kinds" else name: value}) as found:
        told = {field for field in VARIABLES if getattr(found, field) not in (None, False, frozenset())}
    assert name in told
    # A parent makes a child, and a session of some kind has an id: nothing else comes with it.
    assert told - {name} <= {"session_id", "kinds"}


@pytest.mark.parametrize("word", ["", "0", "false", "No", " off "])
def test_words_that_mean_no(word: str) -> None:
    assert current({"SIGNOFF_INTERACTIVE": word, "SIGNOFF_ASK": word}) == NOTHING


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("SIGNOFF_SESSION_KIND", "crno", "SIGNOFF_SESSION_KIND: 'crno' is no kind of session"),
        ("SIGNOFF_DESTINATION", "nowhere", "'nowhere' is not a destination"),
        ("SIGNOFF_SESSION_ID", "a\nb", "SIGNOFF_SESSION_ID holds control characters"),
    ],
)
def test_a_variable_that_cannot_be_read_is_refused_by_name(variable: str, value: str, told: str) -> None:
    """It is never taken for nothing: a misspelt `cron` would make a job a session with somebody in it."""
    with pytest.raises(InvalidInput) as refused:
        current({variable: value})
    assert refused.value.message.startswith(told)


def test_a_wrong_argument_binds_nothing() -> None:
    with bind("outer", kind="chat"):
        for wrong in ({"kind": "chron"}, {"destination": "nowhere"}, {"user_id": "\x00"}):
            with pytest.raises(InvalidInput):
                bind("s", **wrong)  # type: ignore[arg-type]  # what a careless caller hands over
        assert current().session_id == "outer"


@pytest.mark.parametrize("kind", ["cron", "worker", "chat"])
def test_only_a_child_has_a_parent(kind: Any) -> None:
    """Else a worker would be asked for in the chat that it names, and wait there."""
    with pytest.raises(InvalidInput, match="has no parent"):
        bind("w", kind=kind, parent="talk")
    with bind("w", kind="child", parent="talk") as found:
        assert (found.kind, found.parent) == ("child", "talk")


def test_jobs_without_a_name_never_share_one() -> None:
    with bind(kind="cron") as one, bind(kind="cron") as other:
        assert one.session_id is not None
        assert one.session_id != other.session_id


# --- scopes (2.1.3, #69566) ------------------------------------------------------------------------


@pytest.mark.usefixtures("stale")
def test_leaving_a_scope_recovers_the_outer_value() -> None:  # 2.1.3, #69566
    before = current()
    with bind("chat", kind="chat"):
        outer = current()
        with bind("job", kind="cron"):
            with absent():
                assert current() == NOTHING
            assert current().session_id == "job"
            with fresh():
                assert current() == before
        assert current() == outer
    assert current() == before


def test_a_scope_ends_also_by_an_error_and_by_hand() -> None:
    with pytest.raises(RuntimeError), bind("s"):
        raise RuntimeError
    assert current() == NOTHING
    binding = bind("s")
    assert current() == NOTHING
    assert binding.begin() == current()
    assert current().session_id == "s"
    with pytest.raises(RuntimeError, match="bound already"):
        binding.begin()
    binding.restore()
    binding.restore()
    assert current() == NOTHING
    with binding:
        assert current().session_id == "s"
    assert current() == NOTHING


def test_a_scope_cannot_be_ended_elsewhere() -> None:
    """Another thread's end of it would leave this one bound and look as if it had not."""
    binding = bind("s")
    binding.begin()
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="different Context"):
        pool.submit(binding.restore).result()
    assert current().session_id == "s"
    binding.restore()
    assert current() == NOTHING


def test_a_turn_and_a_call_within_the_session() -> None:
    with bind("s", kind="chat", turn_id="t1"):
        with within(tool_call_id="c1"):
            assert (current().session_id, current().turn_id, current().tool_call_id) == ("s", "t1", "c1")
            with within(turn_id="t2"):
                assert (current().turn_id, current().tool_call_id) == ("t2", "c1")
        assert (current().turn_id, current().tool_call_id) == ("t1", None)


def test_a_child_is_part_of_what_its_parent_is() -> None:  # 2.2 child, 2.7.1
    with (
        bind("job", kind="cron", destination="fake:1", user_id="7", profile="team", turn_id="t"),
        child("sub") as found,
    ):
        assert (found.kind, found.kinds) == ("cron", frozenset({"cron", "child"}))
        assert (found.parent, found.user_id, found.profile) == ("job", "7", "team")
        assert found.destination == Destination("fake", "1")
        assert found.turn_id is None, "the parent's turn is not one of the child's session"
        with child() as below:
            assert (below.kind, below.parent) == ("cron", "sub")
    with pytest.raises(InvalidInput, match="no session"):
        child()


# --- tasks, threads, pools (2.1.4) -----------------------------------------------------------------


async def test_tasks_do_not_see_each_other() -> None:
    turns = {name: asyncio.Event() for name in ("a", "b", "c")}
    order = list(turns)

    async def work(name: str) -> list[str | None]:
        with bind(name, kind="cron"):
            seen = [current().session_id]
            turns[name].set()
            await asyncio.gather(*(each.wait() for each in turns.values()))
            seen.append(current().session_id)
        return [*seen, current().session_id]

    found = await asyncio.gather(*(work(name) for name in order))
    assert found == [[name, name, None] for name in order]
    assert current() == NOTHING


async def test_an_async_scope_holds_over_awaits_and_in_to_thread() -> None:
    with bind("s", kind="chat"):
        await asyncio.sleep(0)
        assert (await asyncio.to_thread(current)).session_id == "s"
        loop = asyncio.get_running_loop()
        with ContextThreadPool(1) as pool:
            assert (await loop.run_in_executor(pool, current)).session_id == "s"


def _in_thread(work: Callable[[], Context]) -> Context:
    found: list[Context] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join(60)
    return found[0]


def test_a_thread_knows_only_what_is_carried_to_it() -> None:  # 2.1.4
    with bind("s", kind="chat"):
        assert _in_thread(carried(current)).session_id == "s"
        work = carried(current)
    assert _in_thread(current) == NOTHING
    assert _in_thread(work).session_id == "s", "as it was when it was handed over"


def test_a_pool_runs_each_work_for_who_handed_it_in() -> None:  # 2.1.4, G2-22
    """One thread serves both, and knows neither of them afterwards."""
    with ContextThreadPool(1) as pool:
        with bind("a", kind="chat"):
            of_a = [pool.submit(current) for _ in range(3)]
            mapped = pool.map(lambda _: current().session_id, range(3))
        with bind("b", kind="chat"):
            of_b = pool.submit(current)
        nobody = pool.submit(current)
        assert [each.result().session_id for each in of_a] == ["a"] * 3
        assert list(mapped) == ["a"] * 3
        assert of_b.result().session_id == "b"
        assert nobody.result() == NOTHING
        with bind("c", kind="chat"):
            pool.submit(bind("left behind", kind="cron").begin).result()
        assert pool.submit(current).result() == NOTHING, "what a work binds and forgets ends with it"


def test_carried_work_may_run_at_the_same_time() -> None:
    barrier = threading.Barrier(2)

    def work(number: int) -> tuple[str | None, int]:
        barrier.wait(60)
        return current().session_id, number

    with bind("s", kind="chat"):
        both = carried(work)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(both, (1, 2))) == [("s", 1), ("s", 2)]


def test_nothing_writes_the_process_environment() -> None:  # 2.1.5, #77022, #35515, #43549, #69740
    before = dict(os.environ)
    with bind("job", kind="cron", destination="fake:1", interactive=True, ask=True), within(turn_id="t"), child():
        context.child_environment()
        with ContextThreadPool(1) as pool:
            pool.submit(context.child_environment).result()
        assert dict(os.environ) == before
    assert dict(os.environ) == before


def test_no_source_writes_the_process_environment() -> None:  # 2.1.5, #53300
    writes = re.compile(
        r"os\.environ\[[^]]+\]\s*=[^=]|os\.environ\.(update|setdefault|pop|clear)\(|\bputenv\(|del os\.environ"
    )
    sources = [file for part in ("gateway", "adapters") for file in (ROOT / part).rglob("*.py")]
    assert len(sources) > 100
    assert [file.name for file in sources if writes.search(file.read_text("utf-8"))] == []

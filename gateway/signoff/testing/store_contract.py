"""What every store must do. Subclass `StoreContract` in a test module, give it a fixture `store`, and run pytest.

    class TestMine(StoreContract):
        @pytest.fixture
        async def store(self): ...

The suite knows no engine: it speaks to the port alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from signoff.errors import InvalidInput, StoreError, StoreUnavailable
from signoff.model import Actor, ApprovalRequest, Change, Copy, Note, Tool, replace
from signoff.ports import Store, Tx
from signoff.rows import joined, key_of, request_key
from signoff.testing.rows import EVERY_ROW, at, make_event, make_request, putting
from signoff.testing.store_reads import Denied, StoreReads


class StoreContract(StoreReads):
    """Tests over a fixture `store`: an open, empty `Store`."""

    @pytest.fixture
    async def store(self) -> Any:
        """Replace this fixture; it opens the store and closes it after the test."""
        raise AssertionError("a subclass of StoreContract needs its own `store` fixture")

    # --- rows ---

    async def test_every_row_reads_back_as_it_was_put(self, store: Store) -> None:
        await store.transact(putting(*EVERY_ROW))
        for row in EVERY_ROW:
            assert await store.get(type(row), key_of(row)) == row

        def again(tx: Tx) -> list[Any]:
            return [tx.get(type(row), key_of(row)) for row in EVERY_ROW]

        assert await store.transact(again) == list(EVERY_ROW)

    async def test_what_is_not_there(self, store: Store) -> None:
        half = "\ud800"
        for key in ("unknown", "", "a\x00b", half):
            assert await store.get(Note, key) is None
            assert await store.find(ApprovalRequest, "session", key) == []
            assert await store.transact(lambda tx, key=key: tx.get(Note, key)) is None  # type: ignore[misc]
            assert await store.transact(lambda tx, key=key: tx.find(Copy, "place", key)) == []  # type: ignore[misc]
        assert await store.due(Copy, at(1e6), limit=10) == []
        assert await store.next_due(Copy) is None
        assert await store.next_due(Note) is None
        assert await store.events("nobody", 0, limit=10) == []
        assert await store.last_seq("nobody") == 0

    async def test_an_unknown_column_is_named(self, store: Store) -> None:
        with pytest.raises(StoreError, match="colour"):
            await store.find(ApprovalRequest, "colour", "red")
        with pytest.raises(StoreError, match="colour"):
            await store.transact(lambda tx: tx.find(ApprovalRequest, "colour", "red"))

    async def test_put_replaces_and_delete_removes(self, store: Store) -> None:
        first, second = Note(name="n", value="1"), Note(name="n", value="2")
        await store.transact(putting(first))
        await store.transact(putting(second))
        assert await store.get(Note, "n") == second
        await store.transact(lambda tx: tx.delete(second))
        assert await store.get(Note, "n") is None

        def there_and_back(tx: Tx) -> None:
            tx.put(first)
            tx.delete(first)
            tx.put(second)

        await store.transact(there_and_back)
        assert await store.get(Note, "n") == second

        def back_and_gone(tx: Tx) -> None:
            tx.put(first)
            tx.delete(first)

        await store.transact(back_and_gone)
        assert await store.get(Note, "n") is None

    async def test_a_row_that_json_cannot_hold_is_refused_alone(self, store: Store) -> None:
        bad = make_request("bad", description="half \ud83d of a pair")
        odd = make_request("odd", action=Tool(name="t", arguments={"x": object()}))
        event = make_event(data={"text": "\udc00"})
        answers = await asyncio.gather(
            store.transact(putting(Note(name="before", value="1"))),
            store.transact(putting(Note(name="bad", value="1"), bad)),
            store.transact(putting(Note(name="odd", value="1"), odd)),
            store.transact(putting(Note(name="event", value="1"), events=[event])),
            store.transact(putting(Note(name="after", value="1"))),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [type(None), *[InvalidInput] * 3, type(None)]
        for name, there in (("before", True), ("bad", False), ("odd", False), ("event", False), ("after", True)):
            assert (await store.get(Note, name) is not None) == there
        assert await store.last_seq("default") == 0

    # --- one change ---

    async def test_a_change_that_raises_leaves_nothing(self, store: Store) -> None:
        error = Denied("no")

        def change(tx: Tx) -> None:
            putting(*EVERY_ROW, events=[make_event()])(tx)
            raise error

        with pytest.raises(Denied) as caught:
            await store.transact(change)
        assert caught.value is error
        for row in EVERY_ROW:
            assert await store.get(type(row), key_of(row)) is None
        assert await store.last_seq("default") == 0

    async def test_a_change_may_raise_anything(self, store: Store) -> None:
        empty: list[int] = []
        with pytest.raises(RuntimeError):
            await store.transact(lambda tx: next(iter(empty)))
        await store.transact(putting(Note(name="n", value="1")))
        assert await store.get(Note, "n") is not None

    async def test_a_change_reads_what_it_staged(self, store: Store) -> None:
        old, gone, kept = (make_request(name, created_at=at(i)) for i, name in enumerate(("old", "gone", "kept")))
        await store.transact(putting(old, gone, kept))

        def change(tx: Tx) -> list[list[str]]:
            seen = []

            def look(limit: int | None = None) -> None:
                found = tx.find(ApprovalRequest, "pending_profile", "default", limit=limit)
                seen.append([row.request_id for row in found])

            look()
            tx.put(make_request("new", created_at=at(0.5)))
            look()
            tx.put(replace(old, outcome="denied"))
            look()
            tx.delete(gone)
            look()
            look(limit=1)
            tx.put(old)
            look(limit=2)
            tx.put(make_request("new", created_at=at(0.5), outcome="denied"))
            look()
            tx.put(make_request("new", created_at=at(0.5)))
            look(limit=2)
            assert tx.get(ApprovalRequest, key_of(gone)) is None
            assert tx.get(ApprovalRequest, key_of(old)) == old
            return seen

        assert await store.transact(change) == [
            ["old", "gone", "kept"],
            ["old", "new", "gone", "kept"],
            ["new", "gone", "kept"],
            ["new", "kept"],
            ["new"],
            ["old", "new"],
            ["old", "kept"],
            ["old", "new"],
        ]
        found = await store.find(ApprovalRequest, "pending_profile", "default")
        assert [row.request_id for row in found] == ["old", "new", "kept"]

    async def test_a_limit_counts_what_is_left(self, store: Store) -> None:
        rows = [make_request(f"r{n}", created_at=at(n)) for n in range(5)]
        await store.transact(putting(*rows))

        def change(tx: Tx) -> list[ApprovalRequest]:
            tx.delete(rows[0])
            tx.put(replace(rows[1], outcome="denied"))
            return tx.find(ApprovalRequest, "pending_profile", "default", limit=2)

        assert await store.transact(change) == rows[2:4]

    async def test_a_transaction_that_is_over_is_dead(self, store: Store) -> None:
        kept: list[Tx] = []
        await store.transact(kept.append)
        for use in (
            lambda: kept[-1].get(Note, "n"),
            lambda: kept[-1].find(Copy, "place", "x"),
            lambda: kept[-1].put(Note(name="n", value="1")),
            lambda: kept[-1].delete(Note(name="n", value="1")),
            lambda: kept[-1].emit(make_event()),
        ):
            with pytest.raises(StoreError, match="over"):
                use()
        await store.transact(putting(Note(name="other", value="1")))
        assert await store.get(Note, "n") is None

    async def test_its_time_stands_still(self, store: Store) -> None:
        first, second = await store.transact(lambda tx: (tx.now, tx.now))
        assert first == second
        assert first.utcoffset() == timedelta(0)

    # --- many changes ---

    async def test_one_that_raises_leaves_its_neighbours_alone(self, store: Store) -> None:
        def change(number: int) -> Callable[[Tx], int]:
            def run(tx: Tx) -> int:
                tx.put(Note(name=f"n{number}", value="1"))
                tx.emit(make_event(data={"number": number}))
                tx.find(ApprovalRequest, "profile", "default")
                if number % 3 == 1:
                    raise Denied(str(number))
                return number

            return run

        answers = await asyncio.gather(*(store.transact(change(n)) for n in range(30)), return_exceptions=True)
        for number, answer in enumerate(answers):
            raised = number % 3 == 1
            assert isinstance(answer, Denied) if raised else answer == number
            assert (await store.get(Note, f"n{number}") is None) == raised
        events = await store.events("default", 0, limit=100)
        assert [event.data["number"] for event in events] == [n for n in range(30) if n % 3 != 1]
        assert [event.seq for event in events] == list(range(1, 21))

    async def test_numbers_given_to_a_failed_change_are_given_again(self, store: Store) -> None:
        await store.transact(putting(make_request("holder", coalesce_key="k")))
        good, bad = make_event(), make_event(data={"text": "\ud800"})
        changes = []
        for number in range(5):
            changes += [
                putting(Note(name=f"n{number}", value="1"), events=[good]),
                putting(events=[good, make_event(profile="other"), bad]),
                putting(make_request(f"r{number}", coalesce_key="k"), events=[good, good]),
            ]
        answers = await asyncio.gather(*map(store.transact, changes), return_exceptions=True)
        assert [type(answer) for answer in answers] == [type(None), InvalidInput, StoreError] * 5
        assert [event.seq for event in await store.events("default", 0, limit=99)] == [1, 2, 3, 4, 5]
        await store.transact(putting(events=[make_event(profile="other"), good]))
        assert (await store.last_seq("default"), await store.last_seq("other")) == (6, 1)

    async def test_one_of_a_hundred_decides(self, store: Store) -> None:
        await store.transact(putting(make_request()))
        key = request_key("default", "r1")

        def decide(name: str) -> Callable[[Tx], str]:
            def run(tx: Tx) -> str:
                row = tx.get(ApprovalRequest, key)
                assert row is not None
                if row.outcome is not None:
                    return str(row.decided_by[0].name)
                tx.put(replace(row, outcome="approved", decided_by=(Actor(type="person", name=name),)))
                tx.emit(make_event("approval.resolved", request_id="r1"))
                return name

            return run

        told = await asyncio.gather(*(store.transact(decide(f"p{n}"), bulk=n % 10 == 9) for n in range(100)))
        row = await store.get(ApprovalRequest, key)
        assert row is not None
        assert set(told) == {row.decided_by[0].name}
        assert await store.last_seq("default") == 1

    async def test_counting_loses_nothing(self, store: Store) -> None:
        def count(tx: Tx) -> int:
            row = tx.get(Note, "count")
            value = int(row.value) + 1 if row else 1
            tx.put(Note(name="count", value=str(value)))
            return value

        told = await asyncio.gather(*(store.transact(count) for _ in range(200)))
        assert sorted(told) == list(range(1, 201))

    async def test_a_unique_value_has_one_holder(self, store: Store) -> None:
        await store.transact(putting(make_request("a", coalesce_key="k")))
        answers = await asyncio.gather(
            store.transact(putting(Note(name="x", value="1"), make_request("b", coalesce_key="k"))),
            store.transact(putting(Note(name="y", value="1"))),
            return_exceptions=True,
        )
        assert isinstance(answers[0], StoreError)
        assert answers[1] is None
        assert await store.get(Note, "x") is None
        assert await store.get(Note, "y") is not None
        found = await store.find(ApprovalRequest, "leader_key", joined("default", "k"))
        assert [row.request_id for row in found] == ["a"]

    async def test_a_unique_value_changes_hands_in_one_change(self, store: Store) -> None:
        leader = make_request("a", coalesce_key="k")
        follower = make_request("b", coalesce_key="k", leader_id="a")
        other = make_request("c", coalesce_key="other")
        await store.transact(putting(leader, follower, other))
        # The new holder is put before the old one lets go.
        await store.transact(putting(replace(follower, leader_id=None), replace(leader, outcome="denied")))
        found = await store.find(ApprovalRequest, "leader_key", joined("default", "k"))
        assert [row.request_id for row in found] == ["b"]
        # Two holders swap.
        await store.transact(
            putting(replace(follower, leader_id=None, coalesce_key="other"), replace(other, coalesce_key="k"))
        )
        for value, holder in (("k", "c"), ("other", "b")):
            found = await store.find(ApprovalRequest, "leader_key", joined("default", value))
            assert [row.request_id for row in found] == [holder]

    async def test_a_cancelled_caller_changes_nothing(self, store: Store) -> None:
        heard: list[Change] = []
        store.subscribe(heard.extend)
        change = putting(Note(name="n", value="1"), events=[make_event()])
        task = asyncio.ensure_future(store.transact(change))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.transact(lambda tx: None)
        assert await store.get(Note, "n") is not None
        await store.transact(putting(Note(name="later", value="1")))
        assert [change.event.seq for change in heard] == [1]

    # --- the end ---

    async def test_it_tells_how_it_is(self, store: Store) -> None:
        assert "engine" in await store.check()

    async def test_closing_finishes_what_is_queued(self, store: Store) -> None:
        changes = [asyncio.ensure_future(store.transact(putting(Note(name=f"n{n}", value="1")))) for n in range(100)]
        await asyncio.sleep(0)
        await asyncio.gather(store.aclose(), store.aclose())
        await asyncio.gather(*changes)
        await store.aclose()
        with pytest.raises(StoreUnavailable):
            await store.transact(lambda tx: None)
        with pytest.raises(StoreUnavailable):
            await store.get(Note, "n1")
        with pytest.raises(StoreUnavailable):
            await store.check()

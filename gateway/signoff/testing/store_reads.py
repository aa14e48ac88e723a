"""What every store must answer: finds, due rows, the event log, the feed. A part of `StoreContract`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from signoff.errors import InvalidInput
from signoff.model import ApprovalRequest, Change, Copy, Note, replace
from signoff.ports import Store, Tx
from signoff.rows import joined, key_of, request_key
from signoff.testing.rows import at, make_copy, make_event, make_request, putting


class Denied(Exception):
    """What a change of the suite raises."""


class StoreReads:
    """Tests over the fixture `store` of a subclass."""

    # --- finding ---

    async def test_finds_are_in_order_and_paged(self, store: Store) -> None:
        rows = [make_request(f"r{n:03}", created_at=at(n // 4)) for n in range(100)]
        await store.transact(putting(*reversed(rows)))
        assert await store.find(ApprovalRequest, "profile", "default") == rows
        for size in (1, 7, 32, 50, 100):
            paged: list[ApprovalRequest] = []
            while page := await store.find(
                ApprovalRequest, "profile", "default", limit=size, after=key_of(paged[-1]) if paged else None
            ):
                assert len(page) <= size
                paged.extend(page)
            assert paged == rows
        assert await store.find(ApprovalRequest, "profile", "default", after=key_of(rows[10])) == rows[11:]
        assert await store.find(ApprovalRequest, "profile", "default", limit=0) == []
        assert await store.transact(lambda tx: tx.find(ApprovalRequest, "profile", "default", limit=3)) == rows[:3]

    async def test_a_page_goes_on_after_a_row_that_left(self, store: Store) -> None:
        rows = [make_request(f"r{n}", created_at=at(n)) for n in range(4)]
        await store.transact(putting(*rows))
        await store.transact(putting(replace(rows[1], outcome="denied")))
        found = await store.find(ApprovalRequest, "pending_profile", "default", after=key_of(rows[1]))
        assert found == rows[2:]
        with pytest.raises(InvalidInput):
            await store.find(ApprovalRequest, "pending_profile", "default", after="no such row")

    async def test_a_column_that_is_none_is_not_found(self, store: Store) -> None:
        row = make_request(turn_id="t1")
        await store.transact(putting(row))
        turn, leader = joined("default", "t1"), joined("default", "r1")
        assert await store.find(ApprovalRequest, "live_turn", turn) == [row]
        assert await store.find(ApprovalRequest, "leader_key", leader) == [row]
        await store.transact(putting(done := replace(row, outcome="timeout")))
        for path, value in (("live_turn", turn), ("leader_key", leader), ("pending_profile", "default")):
            assert await store.find(ApprovalRequest, path, value) == []
        assert await store.find(ApprovalRequest, "profile", "default") == [done]
        await store.transact(putting(row))
        assert await store.find(ApprovalRequest, "live_turn", turn) == [row]

    async def test_due_rows_come_by_urgency_and_time(self, store: Store) -> None:
        copies = [
            make_copy("late", priority=0, due_at=at(50)),
            make_copy("urgent2", priority=0, due_at=at(9)),
            make_copy("urgent1", priority=0, due_at=at(8)),
            make_copy("card", priority=2, due_at=at(1)),
            make_copy("edit", priority=3, due_at=at(0)),
            make_copy("idle"),
        ]
        await store.transact(putting(*copies))
        due = [copy.copy_id for copy in await store.due(Copy, at(10), limit=10)]
        assert due == ["urgent1", "urgent2", "card", "edit"]
        assert [copy.copy_id for copy in await store.due(Copy, at(10), limit=3)] == due[:3]
        assert [copy.copy_id for copy in await store.due(Copy, at(8), limit=99)] == ["urgent1", "card", "edit"]
        assert await store.next_due(Copy) == at(0)
        await store.transact(putting(make_copy("edit", priority=3)))
        assert await store.next_due(Copy) == at(1)
        await store.transact(putting(*(make_copy(copy.copy_id) for copy in copies)))
        assert await store.next_due(Copy) is None

    async def test_due_is_exact_to_the_microsecond(self, store: Store) -> None:
        when = at(1.000001)
        await store.transact(putting(make_request(expires_at=when)))
        assert await store.next_due(ApprovalRequest) == when
        assert await store.due(ApprovalRequest, when - timedelta(microseconds=1), limit=1) == []
        assert len(await store.due(ApprovalRequest, when, limit=1)) == 1

    # --- events and the feed ---

    async def test_events_are_gapless_for_each_profile(self, store: Store) -> None:
        def change(number: int) -> Callable[[Tx], None]:
            profile = f"p{number % 3}"

            def run(tx: Tx) -> None:
                tx.emit(make_event(profile=profile, session_id=f"s{number % 2}", data={"n": number}))
                tx.emit(make_event(profile=profile, data={"n": number}))
                if number % 5 == 4:
                    raise Denied

            return run

        await asyncio.gather(*(store.transact(change(n)) for n in range(60)), return_exceptions=True)
        for index in range(3):
            mine = [n for n in range(60) if n % 3 == index and n % 5 != 4]
            events = await store.events(f"p{index}", 0, limit=1000)
            assert [event.seq for event in events] == list(range(1, 2 * len(mine) + 1))
            assert [event.data["n"] for event in events] == [n for n in mine for _ in range(2)]
            assert await store.last_seq(f"p{index}") == len(events)
            assert await store.events(f"p{index}", 3, limit=2) == events[3:5]
            assert await store.events(f"p{index}", len(events), limit=5) == []
            ours = [event for event in events if event.session_id == "s1"]
            assert await store.events(f"p{index}", 1, limit=99, session_id="s1") == [e for e in ours if e.seq > 1]

    async def test_the_feed_tells_each_commit_once_in_order(self, store: Store) -> None:
        heard: list[Change] = []
        late: list[Change] = []
        stop = store.subscribe(heard.extend)

        def change(number: int) -> Callable[[Tx], int]:
            def run(tx: Tx) -> int:
                row = make_request("r1", card_version=number)
                tx.put(row)
                tx.emit(make_event(request_id="r1", data={"n": number}))
                tx.put(replace(row, label="final"))
                if number % 4 == 3:
                    raise Denied
                return number

            return run

        async def ask(number: int) -> None:
            if number % 4 == 3:
                with pytest.raises(Denied):
                    await store.transact(change(number))
                return
            await store.transact(change(number), bulk=number % 10 == 0)
            # The feed speaks before the caller goes on.
            assert number in [change.event.data["n"] for change in heard]

        await asyncio.gather(*(ask(n) for n in range(40)))
        good = [n for n in range(40) if n % 4 != 3]
        assert [change.event.data["n"] for change in heard] == good
        assert [change.event for change in heard] == await store.events("default", 0, limit=100)
        rows = [change.request for change in heard]
        assert [(r.card_version, r.label) for r in rows if r is not None] == [(n, "final") for n in good]
        stop()
        stop()
        store.subscribe(late.extend)
        await store.transact(putting(events=[make_event(request_id="unknown"), make_event()]))
        assert len(heard) == len(good)
        assert [change.request for change in late] == [None, None]

    async def test_a_listener_that_raises_harms_nobody(self, store: Store, caplog: pytest.LogCaptureFixture) -> None:
        heard: list[Change] = []

        def broken(changes: Sequence[Change]) -> None:
            raise Denied

        store.subscribe(broken)
        store.subscribe(heard.extend)
        await store.transact(putting(events=[make_event()]))
        assert len(heard) == 1
        assert [record.message for record in caplog.records] == ["store.listener_failed"]

    # --- many rows ---

    async def test_bulk_is_a_change_like_any_other(self, store: Store) -> None:
        requests = [make_request(f"r{n:04}", created_at=at(n)) for n in range(600)]
        copies = [make_copy(f"c{n:04}", request_id=f"r{n:04}", created_at=at(n)) for n in range(600)]
        await store.transact(putting(*requests, *copies), bulk=True)

        def approve_all(tx: Tx) -> tuple[int, tuple[int, int, int]]:
            found = tx.find(ApprovalRequest, "pending_profile", "default", limit=500)
            for row in found:
                for copy in tx.find(Copy, "request", key_of(row)):
                    tx.put(replace(copy, state="final"))
                tx.put(replace(row, outcome="approved"))
                tx.emit(make_event("approval.resolved", request_id=row.request_id))
            left = tx.find(ApprovalRequest, "pending_profile", "default")
            open_copies = tx.find(Copy, "open_chat", joined("default", "telegram", "100"))
            first = tx.find(Copy, "request", key_of(found[0]))
            return len(found), (len(left), len(open_copies), sum(copy.state == "final" for copy in first))

        def too_far(tx: Tx) -> None:
            raise Denied(approve_all(tx))

        with pytest.raises(Denied) as denied:
            await store.transact(too_far, bulk=True)
        assert denied.value.args[0] == (500, (100, 100, 1))
        answers = await asyncio.gather(
            store.transact(putting(Note(name="before", value="1"))),
            store.transact(approve_all, bulk=True),
            store.transact(lambda tx: len(tx.find(ApprovalRequest, "pending_profile", "default"))),
        )
        assert list(answers[1:]) == [(500, (100, 100, 1)), 100]
        assert len(await store.find(ApprovalRequest, "pending_profile", "default")) == 100
        assert [e.request_id for e in await store.events("default", 0, limit=999)] == [f"r{n:04}" for n in range(500)]
        assert sum(copy.state == "final" for copy in await store.find(Copy, "place", "none")) == 0
        done = await store.get(Copy, "c0499")
        assert done is not None
        assert done.state == "final"

    async def test_a_large_change_reads_what_a_small_one_does(self, store: Store) -> None:
        requests = [make_request(f"r{n}", leader_id="r0" if n > 5 else None, created_at=at(n)) for n in range(12)]
        copies = [
            make_copy(f"c{n}{m}", request_id=f"r{n}", created_at=at(-m), due_at=at(m))
            for n in range(12)
            for m in range(3)
        ]
        stray = make_copy("stray", request_id="nobody")
        await store.transact(putting(*requests, *copies, stray))

        def look(tx: Tx) -> list[Any]:
            seen: list[Any] = [tx.find(Copy, "open_chat", joined("default", "telegram", "100"))]
            seen += [tx.get(ApprovalRequest, request_key("default", f"r{n}")) for n in range(14)]
            seen.append(tx.get(ApprovalRequest, request_key("default", "nobody")))
            for row in tx.find(ApprovalRequest, "pending_profile", "default"):
                for limit in (None, 0, 2):
                    seen.append(tx.find(Copy, "request", key_of(row), limit=limit))
                    seen.append(tx.find(ApprovalRequest, "follower_of", key_of(row), limit=limit))
                tx.delete(copies[4])
                tx.put(make_copy("c40", request_id="r3", created_at=at(-9)))
            return seen

        def undone(tx: Tx) -> None:
            raise Denied(look(tx))

        told: list[list[Any]] = []
        for bulk in (False, True):
            with pytest.raises(Denied) as denied:
                await store.transact(undone, bulk=bulk)
            told.append(denied.value.args[0])
        assert told[0] == told[1]
        assert [copy.copy_id for copy in told[0][16]] == ["c02", "c01", "c00"]

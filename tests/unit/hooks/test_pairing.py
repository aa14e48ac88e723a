"""Every question has one `pre_approval_request` and one `post_approval_response`, whatever becomes of it (W27)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize
from tests.unit.core.harness import BY_ANN, OTHER_PLACE, World
from tests.unit.core.test_machine import Life
from tests.unit.hooks.receiver import eventually

from signoff.hooks import AgentEnd, Hooks, PostApprovalResponse, PreApprovalRequest
from signoff.hooks.payloads import HOOK_OF
from signoff.hooks.reading import load
from signoff.model import Event
from signoff.ports import Store
from signoff.settings import HOOK_NAMES, ApprovalSettings, Profile


class Ear:
    """Hears everything."""

    def __init__(self, store: Store) -> None:
        self.heard: list[Any] = []
        self.hooks = Hooks()
        for name in HOOK_NAMES:
            self.hooks.on(name, self.hear)
        self.hooks.follow(store)

    async def hear(self, payload: Any) -> None:
        self.heard.append(payload)

    async def whole(self, store: Store) -> list[Any]:
        """What was heard, once it is all that the log has, in the log's order."""
        wanted = [event for event in await store.events("default", 0, limit=1_000_000) if event.type in HOOK_OF]
        await eventually(lambda: len(self.heard) >= len(wanted))
        heard = sorted(self.heard, key=lambda payload: payload.seq)
        assert [payload.seq for payload in heard] == [event.seq for event in wanted]
        # What is made late says the same as what was made at once.
        assert heard == [await load(store, event) for event in wanted]
        return heard


def pre(heard: list[Any]) -> list[PreApprovalRequest]:
    return [payload for payload in heard if isinstance(payload, PreApprovalRequest)]


def post(heard: list[Any]) -> list[PostApprovalResponse]:
    return [payload for payload in heard if isinstance(payload, PostApprovalResponse)]


def ends(heard: list[Any]) -> list[AgentEnd]:
    return [payload for payload in heard if isinstance(payload, AgentEnd)]


class Heard(Life):
    """A random life that is listened to."""

    @initialize()
    def begin(self) -> None:
        super().begin()

        async def listen() -> None:
            self.ear = Ear(self.store)

        self.run(listen())

    def teardown(self) -> None:
        try:
            if hasattr(self, "ear"):
                self.run(self.check())
        finally:
            super().teardown()

    async def check(self) -> None:
        """One pre and one post for each question, in this order and with the row's own words."""
        heard = await self.ear.whole(self.store)
        rows = {row.request_id: row for name in ("s", "s2") for row in await self.world.rows(name)}
        ended = {name for name, row in rows.items() if row.outcome is not None}
        asked = {payload.request_id: payload for payload in pre(heard)}
        assert Counter(payload.request_id for payload in pre(heard)) == Counter(list(rows))
        assert Counter(payload.request_id for payload in post(heard)) == Counter(list(ended))
        for told in post(heard):
            row = rows[told.request_id]
            assert asked[told.request_id].seq < told.seq
            assert (told.outcome, told.cause, told.choice) == (row.outcome, row.cause, row.choice)
            assert told.decided_by == row.decided_by
        await self.ear.hooks.aclose()


TestPairs = Heard.TestCase
TestPairs.settings = settings(max_examples=25, stateful_step_count=30, suppress_health_check=list(HealthCheck))


async def test_a_follower_whose_leader_was_approved_once_has_one_pair(
    make_world: Callable[..., World], store: Store
) -> None:  # 9.4
    world, ear = make_world(), Ear(store)
    await world.session()
    leader = await world.ask("deploy build")
    follower = await world.ask("deploy build")
    await world.decide(leader, "once")
    await world.flush()
    await world.decide(follower, "deny", reason="not twice")
    heard = await ear.whole(store)
    assert [(payload.request_id, payload.coalesced, payload.leader_id) for payload in pre(heard)] == [
        (leader.request_id, False, None),
        (follower.request_id, True, leader.request_id),
    ]
    assert [(payload.request_id, payload.outcome, payload.coalesced) for payload in post(heard)] == [
        (leader.request_id, "approved", False),
        (follower.request_id, "denied", False),
    ]
    assert post(heard)[1].next_of == leader.request_id
    await ear.hooks.aclose()


async def test_followers_that_end_with_their_leader(make_world: Callable[..., World], store: Store) -> None:
    world, ear = make_world(), Ear(store)
    await world.session()
    rows = [await world.ask("deploy build") for _ in range(3)]
    await world.decide(rows[0], "session")
    told = post(await ear.whole(store))
    assert Counter(payload.request_id for payload in told) == Counter(row.request_id for row in rows)
    assert {payload.outcome for payload in told} == {"approved"}
    assert [payload.leader_id for payload in told] == [None, rows[0].request_id, rows[0].request_id]
    await ear.hooks.aclose()


async def test_what_is_born_ended_has_its_pair(make_world: Callable[..., World], store: Store) -> None:
    profile = Profile(approvers={"fake": ("1",)}, approvals=ApprovalSettings(deny=("never *",)))
    world, ear = make_world(profile=profile), Ear(store)
    await world.session()
    await world.session("hook", kind="webhook", destination=None)
    await world.turn()
    allowed = await world.submit("git status")
    forbidden = await world.submit("never this")
    floor = await world.submit("rm -rf /")
    unattended = await world.submit("deploy it", "hook")
    denied = await world.ask("deploy a", turn_id="t")
    await world.decide(denied, "deny")
    repeated = await world.submit("deploy a", turn_id="t")
    granting = await world.ask("deploy b")
    await world.decide(granting, "session")
    granted = await world.submit("deploy b")
    await world.sessions.end_turn("default", "t", "turn_interrupted", None)
    late = await world.submit("deploy c", turn_id="t")
    heard = await ear.whole(store)
    told = {payload.request_id: (payload.outcome, payload.surface) for payload in post(heard)}
    assert Counter(payload.request_id for payload in pre(heard)) == Counter(list(told))
    assert [told[row.request_id] for row in (allowed, forbidden, floor, unattended)] == [
        ("approved", "policy"),
        ("blocked", "policy"),
        ("blocked", "policy"),
        ("blocked", "policy"),
    ]
    assert [told[row.request_id] for row in (denied, repeated, granting, granted, late)] == [
        ("denied", "fake"),
        ("denied", "repeat"),
        ("approved", "fake"),
        ("approved", "grant"),
        ("cancelled", "system"),
    ]
    await ear.hooks.aclose()


async def test_every_end_of_an_agents_work_is_told(make_world: Callable[..., World], store: Store) -> None:
    # #14583 5.6.1
    world, ear = make_world(), Ear(store)
    await world.session()
    await world.session("s2", destination=OTHER_PLACE)
    for number in range(3):
        await world.turn(f"t{number}")
    await world.turn("short", lease_s=5)
    await world.session("kid", kind="child", parent="s")
    await world.turn("of-kid", "kid")
    await world.sessions.end_turn("default", "t0", "turn_interrupted", None)
    await world.advance(6)
    await world.sessions.stop("default", "s", BY_ANN)
    await world.sessions.clear("default", "s2", None, close=True)
    told = ends(await ear.whole(store))
    assert [(end.how, end.session_id, end.turn_id, end.cause) for end in told] == [
        ("turn_ended", "s", "t0", "turn_interrupted"),
        ("turn_ended", "s", "short", "requester_gone"),
        ("session_stopped", "s", None, "stop_requested"),
        ("turn_ended", "s", "t1", "stop_requested"),
        ("turn_ended", "s", "t2", "stop_requested"),
        ("session_cleared", "kid", None, "stop_requested"),
        ("turn_ended", "kid", "of-kid", "stop_requested"),
        ("session_cleared", "s2", None, "session_ended"),
    ]
    assert {end.ended_by for end in told[2:7]} == {BY_ANN}
    assert (told[5].kind, told[5].parent) == ("child", "s")
    await ear.hooks.aclose()


async def test_an_end_is_told_alike_after_its_session_is_another(
    make_world: Callable[..., World], store: Store
) -> None:
    """A receiver that was away hears of the session that ended, not of what its id stands for by then."""
    world, ear = make_world(), Ear(store)
    await world.session("above")
    await world.session("kid", kind="child", parent="above")
    await world.turn("t", "kid")
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    await world.sessions.stop("default", "kid", BY_ANN)
    await world.sessions.clear("default", "kid", BY_ANN, close=True)
    told = ends(await ear.whole(store))
    await world.session("kid", kind="api")
    await world.turn("next", "kid")
    again = [await load(store, event) for event in await store.events("default", 0, limit=1000)]
    assert [payload for payload in again if isinstance(payload, AgentEnd)] == told
    assert {(end.kind, end.parent) for end in told} == {("child", "above")}
    await ear.hooks.aclose()


async def test_an_end_of_an_earlier_version_is_told_with_its_session_as_it_is(world: World, store: Store) -> None:
    for name in ("s", "gone"):
        event = Event(
            profile="default", type="turn.ended", at=world.clock.now(), session_id=name, data={"turn_id": "t"}
        )
        told = await load(store, event)
        assert isinstance(told, AgentEnd)
        assert (told.turn_id, told.kind) == ("t", "chat" if name == "s" else None)

"""Deliveries to apps: each waits 3 s for its acknowledgement; events are retried, what people do is not."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.platforms.telegram.changes import Changes
from tests.platforms.telegram.clock import moment

from .faults import OF_DELIVERIES, FaultBook
from .model import EnvelopeKind, EnvelopeState, JsonObject
from .presses import ACKNOWLEDGE_WITHIN_S, Press
from .timeline import Timeline
from .world import App

RETRIES_S = (0.0, 60.0, 300.0)
"""Events API: "nearly immediately", after 1 minute, after 5 minutes."""
KEPT_ENVELOPES = 5_000
NOBODY, TIMED_OUT = "dispatch failed", "operation timed out"


@dataclass(kw_only=True, eq=False)
class Envelope:
    """One delivery; `turn` is set when its acknowledgement came or its socket went."""

    id: str
    kind: EnvelopeKind
    app: App
    payload: JsonObject
    channel: str | None
    about: str
    made_at: float
    press: Press | None = None
    state: str = "pending"
    attempts: int = 0
    retry_num: int | None = None
    retry_reason: str | None = None
    deadline: float = 0.0
    sockets: list[int] = field(default_factory=list)
    acknowledged_at: float | None = None
    ack_payload: JsonObject | None = None
    next_at: float | None = None
    ack_lost: bool = False
    turn: asyncio.Future[None] | None = None

    def frame(self) -> JsonObject:
        """The envelope as Socket Mode sends it."""
        frame: JsonObject = {"envelope_id": self.id, "type": self.kind, "payload": self.payload}
        frame["accepts_response_payload"] = self.kind != "events_api" and not self.about.startswith("block_actions")
        if self.kind == "events_api":
            frame |= {"retry_attempt": self.retry_num or 0, "retry_reason": self.retry_reason or ""}
        return frame

    def let_go(self) -> None:
        """Wake whoever waits for it."""
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)


class Way(Protocol):
    """How a delivery reaches an app. An acknowledgement is reported to `Deliveries.acknowledge`."""

    async def carry(self, envelope: Envelope, *, copies: int, abort: bool) -> str | None:
        """One attempt up to `envelope.deadline`; None once acknowledged, else why not."""


class Outcomes(Protocol):
    """Who must know what became of a delivery of something a person did."""

    def acknowledged(self, press: Press, payload: JsonObject) -> None:
        """In time, with this answer."""

    def failed(self, press: Press, why: str) -> None:
        """Not in time, or not at all."""


class Deliveries:
    """All deliveries of the workspace, the oldest forgotten first."""

    def __init__(self, timeline: Timeline, faults: FaultBook, changes: Changes) -> None:
        self._timeline = timeline
        self._faults = faults
        self._changes = changes
        self._kept: OrderedDict[str, Envelope] = OrderedDict()
        self._copies: dict[str, list[Envelope]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._made = 0
        self.ways: dict[str, Way] = {}
        """`socket` and `http`."""
        self.outcomes: Outcomes | None = None

    def send(
        self,
        app: App,
        kind: EnvelopeKind,
        payload: JsonObject,
        *,
        channel: str | None = None,
        about: str = "",
        press: Press | None = None,
    ) -> Envelope:
        """Begin a delivery."""
        self._made += 1
        envelope = Envelope(
            id=f"{self._made:08x}-0000-4000-8000-000000000000",
            kind=kind,
            app=app,
            payload=payload,
            channel=channel,
            about=about,
            made_at=self._timeline.now() if press is None else press.pressed_at,
            press=press,
        )
        if press is not None and not press.envelope_id:
            press.envelope_id = envelope.id
        self._kept[envelope.id] = envelope
        if len(self._kept) > KEPT_ENVELOPES:
            self._kept.popitem(last=False)
        self._spawn(self._deliver(envelope))
        self._changes.bump()
        return envelope

    def again(self, envelope_id: str, *, retry_num: int | None = None) -> None:
        """Deliver the same once more beside whatever became of it; LookupError when it is unknown."""
        if envelope_id not in self._kept:
            raise LookupError(f"no envelope {envelope_id}")
        first = self._kept[envelope_id]
        copy = Envelope(
            id=first.id,
            kind=first.kind,
            app=first.app,
            payload=first.payload,
            channel=first.channel,
            about=first.about,
            made_at=self._timeline.now(),
            retry_num=retry_num,
        )
        self._made += 1
        self._kept[f"{first.id}#{self._made}"] = copy
        self._copies.setdefault(first.id, []).append(copy)
        self._spawn(self._once(copy))

    async def _once(self, envelope: Envelope) -> None:
        why = await self._attempt(envelope, self._timeline.now() + ACKNOWLEDGE_WITHIN_S)
        if why is not None:
            self._end(envelope, "given_up")

    async def _deliver(self, envelope: Envelope) -> None:
        if envelope.kind == "events_api":
            await self._deliver_event(envelope)
            return
        why = await self._attempt(envelope, envelope.made_at + ACKNOWLEDGE_WITHIN_S)
        if why is not None:
            self._end(envelope, "failed")
            if envelope.press is not None and self.outcomes is not None:
                self.outcomes.failed(envelope.press, why)

    async def _deliver_event(self, envelope: Envelope) -> None:
        why = await self._attempt(envelope, self._timeline.now() + ACKNOWLEDGE_WITHIN_S)
        for number, pause_s in enumerate(RETRIES_S, start=1):
            if why is None:
                return
            if why == "no_retry":
                break
            await self._pause(envelope, pause_s)
            envelope.retry_num, envelope.retry_reason = number, why
            why = await self._attempt(envelope, self._timeline.now() + ACKNOWLEDGE_WITHIN_S)
        if why is not None:
            self._end(envelope, "given_up")

    async def _pause(self, envelope: Envelope, pause_s: float) -> None:
        """Wait for the next attempt; what comes in meanwhile is too late."""
        envelope.state, envelope.next_at = "waiting", self._timeline.now() + pause_s
        self._changes.bump()
        await self._timeline.until(envelope.next_at)
        envelope.state, envelope.next_at = "pending", None

    async def _attempt(self, envelope: Envelope, deadline: float) -> str | None:
        """One attempt under the faults; None once acknowledged, else why not."""
        fault = self._faults.strike(envelope.kind, envelope.channel, family=OF_DELIVERIES)
        kind = None if fault is None else fault.kind
        envelope.attempts += 1
        envelope.deadline = deadline
        envelope.turn = asyncio.get_running_loop().create_future()
        envelope.ack_lost = kind == "lose_ack"
        self._changes.bump()
        if kind == "lose":
            await self._timeline.until(deadline)
            return TIMED_OUT
        way = self.ways["http" if envelope.app.request_url is not None else "socket"]
        return await way.carry(envelope, copies=2 if kind == "duplicate" else 1, abort=kind == "abort")

    def acknowledge(self, envelope: Envelope, payload: JsonObject) -> bool:
        """Take an acknowledgement; whether it counts: in time, the first, and not lost."""
        if envelope.ack_lost or envelope.state != "pending":
            return False
        if self._timeline.now() > envelope.deadline:
            envelope.state = "late"
            self._changes.bump()
            return False
        envelope.acknowledged_at = self._timeline.now()
        envelope.ack_payload = payload
        self._end(envelope, "acknowledged")
        envelope.let_go()
        if envelope.press is not None and self.outcomes is not None:
            self.outcomes.acknowledged(envelope.press, payload)
        return True

    def of(self, envelope_id: str) -> Envelope | None:
        """The delivery with this id that still waits, or the latest."""
        found = [self._kept[envelope_id]] if envelope_id in self._kept else []
        found += self._copies.get(envelope_id, [])
        return next((each for each in found if each.state == "pending"), found[0] if found else None)

    def _end(self, envelope: Envelope, state: str) -> None:
        if envelope.state in ("pending", "waiting"):
            envelope.state = state
        self._changes.bump()

    def states(self, kind: EnvelopeKind | None, bot: str | None) -> list[EnvelopeState]:
        """Deliveries as tests see them."""
        return [
            _state(each) for each in self._kept.values() if kind in (None, each.kind) and bot in (None, each.app.bot)
        ]

    def pending(self, bot: str | None, *, waiting: bool) -> int:
        """How many wait for their acknowledgement, or with `waiting` for a later attempt too."""
        counted = ("pending", "waiting") if waiting else ("pending",)
        return sum(each.state in counted and bot in (None, each.app.bot) for each in self._kept.values())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Give all up."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _state(envelope: Envelope) -> EnvelopeState:
    return EnvelopeState(
        envelope_id=envelope.id,
        kind=envelope.kind,
        bot=envelope.app.bot,
        state=envelope.state,
        attempts=envelope.attempts,
        sockets=list(envelope.sockets),
        made_at=moment(envelope.made_at),
        acknowledged_at=None if envelope.acknowledged_at is None else moment(envelope.acknowledged_at),
        ack_payload=envelope.ack_payload,
        next_at=None if envelope.next_at is None else moment(envelope.next_at),
        about=envelope.about,
    )

"""Drills: rehearsal cards to places, the taps on them, and what came of it. All of it is in the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Literal

import msgspec
from msgspec import Struct

from signoff.authorize import Allowed
from signoff.changes import drilling, sending
from signoff.destinations import parse_destination
from signoff.drill_cards import outcome_line, seen_by
from signoff.errors import DrillNotFound, InvalidInput
from signoff.ids import new_id, row_id
from signoff.model import Actor, Answer, Copy, Destination, Note, Tap
from signoff.ports import Clock, Store, Tx
from signoff.settings import Profile
from signoff.wording import t

LEAST_S, MOST_S = 5.0, 3600.0
"""How long a drill may wait."""

State = Literal["waiting", "seen", "nobody", "not_sent"]


class DrillPlace(Struct, frozen=True, kw_only=True):
    """What came of one card."""

    destination: str
    state: State
    by: str | None = None
    after_s: float | None = None
    """Seconds from the card to the tap."""
    error: str | None = None


class DrillReport(Struct, frozen=True, kw_only=True):
    """What came of a drill so far."""

    drill_id: str
    by: str
    """Who rehearses."""
    ends_at: datetime
    places: tuple[DrillPlace, ...]


def named_places(profile: Profile) -> Iterator[Destination]:
    """Every destination that the settings name, once: the fallback, `also_to`, and those of agents."""
    named = [profile.approvals.fallback_destination] if profile.approvals.fallback_destination else []
    named += profile.approvals.also_to
    for agent in profile.agents.values():
        named += [parse_destination(place) for place in agent.destinations or () if ":" in place]
    yield from dict.fromkeys(named)


async def begin(store: Store, profile: str, places: Sequence[Destination], *, by: str, wait_s: float) -> str:
    """Queue the cards; the drill's id. Raises `InvalidInput` for no place and for a wait out of bounds."""
    if not places:
        raise InvalidInput(
            "The settings name no place to ask. Set approvals.fallback_destination, or name one with --to, such as "
            "console:main.",
            param="destinations",
        )
    if not LEAST_S <= wait_s <= MOST_S:
        raise InvalidInput(f"A drill waits {LEAST_S:g} to {MOST_S:g} seconds.", param="wait_s")
    drill_id = new_id("drill")
    change = partial(
        drilling.begin,
        profile=profile,
        drill_id=drill_id,
        by=by,
        wait_s=wait_s,
        places=[(row_id(), place) for place in places],
    )
    await store.transact(change)
    return drill_id


async def report(store: Store, clock: Clock, profile: str, drill_id: str) -> DrillReport:
    """What came of it so far. Raises `DrillNotFound`."""
    note = await store.get(Note, drilling.note_name(profile, drill_id))
    if note is None:
        raise DrillNotFound
    found = [await store.get(Copy, copy_id) for copy_id in msgspec.json.decode(note.value, type=list[str])]
    copies = [copy for copy in found if copy is not None]
    now = clock.now()
    return DrillReport(
        drill_id=drill_id,
        by=drilling.drill_of(copies[0]).by,
        ends_at=drilling.drill_of(copies[0]).ends_at,
        places=tuple(_place(copy, now) for copy in copies),
    )


def _place(copy: Copy, now: datetime) -> DrillPlace:
    drill = drilling.drill_of(copy)
    state: State = "waiting"
    if drill.seen_at is not None:
        state = "seen"
    elif copy.state == "failed" or (copy.sent_at is None and drill.ends_at <= now):
        state = "not_sent"
    elif drill.ended or drill.ends_at <= now:
        state = "nobody"
    return DrillPlace(
        destination=str(copy.destination),
        state=state,
        by=seen_by(drill.seen_by) if drill.seen_by is not None else None,
        after_s=drilling.after_s(copy),
        error=copy.error if state in ("not_sent", "waiting") else None,
    )


async def seen(store: Store, profile: str, drill_id: str, platform: str, actor: Actor) -> str:
    """Somebody who may decide saw its cards on that platform, which has one view of all its places; how they stand
    now, for people. Raises `DrillNotFound`."""

    def change(tx: Tx) -> Copy | None:
        note = tx.get(Note, drilling.note_name(profile, drill_id))
        ids = msgspec.json.decode(note.value, type=list[str]) if note is not None else []
        found = [copy for copy in (tx.get(Copy, each) for each in ids) if copy is not None]
        pressed = [drilling.press(tx, copy, actor) for copy in found if copy.destination.platform == platform]
        return pressed[0] if pressed else None

    copy = await store.transact(change)
    if copy is None:
        raise DrillNotFound
    return outcome_line(copy)


async def tapped(store: Store, copy_id: str, tap: Tap, allowed: Allowed) -> Answer:
    """Somebody who may decide pressed `I see it`."""

    def change(tx: Tx) -> Copy | None:
        copy = tx.get(Copy, copy_id)
        if copy is None:
            return None
        if tap.message_id is not None and copy.message_id not in (None, tap.message_id):
            return None
        if tap.message_id is not None and copy.message_id is None:
            copy = sending.learn(tx, copy, tap.message_id, tap.order)
        return drilling.press(tx, copy, allowed.actor)

    copy = await store.transact(change)
    return Answer(outcome_line(copy) if copy is not None else t("tap.unknown"))

"""From updates to the inbox: order, offsets, poison, and answers."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from signoff.errors import AdapterUnavailable
from signoff.model import Answer, Tap
from signoff.testing.adapter_stage import POISON, RecordingInbox
from signoff.testing.clock import FakeClock, settle
from signoff_adapters.telegram import TelegramConfig
from signoff_adapters.telegram.intake import Intake
from signoff_adapters.telegram.wire import Me, read_envelope
from signoff_adapters.words import RECEIVED, UNHANDLED

ANA = {"id": 81234567, "first_name": "Ana"}


class Replies:
    """Keeps answers to presses."""

    def __init__(self) -> None:
        self.given: list[tuple[str, Answer]] = []
        self.taken = True
        """Whether the platform still takes an answer."""

    async def __call__(self, query_id: str, answer: Answer) -> bool:
        self.given.append((query_id, answer))
        return self.taken


class BrokenInbox(RecordingInbox):
    """Fails at every tap, and at the alarm too."""

    async def tap(self, tap: Tap) -> Answer:
        self.taps.append(tap)
        raise RuntimeError("no")

    async def alarm(self, what: str, detail: str) -> None:
        await super().alarm(what, detail)
        raise RuntimeError("no store")


class Desk:
    """An intake with its surroundings."""

    def __init__(self, inbox: RecordingInbox | None = None) -> None:
        self.clock, self.replies, self.inbox = FakeClock(), Replies(), inbox or RecordingInbox()
        config = TelegramConfig(token="1:x")
        self.intake = Intake(self.inbox, self.clock, config, lambda: Me(1, "bot"), self.replies)

    async def take(self, *updates: dict[str, Any]) -> bool:
        fresh = self.intake.take(tuple(msgspec.Raw(msgspec.json.encode(update)) for update in updates))
        await settle()
        return fresh

    def where(self) -> tuple[int | None, bool]:
        """The offset, and whether something is in hand."""
        return self.intake.offset, self.intake.busy


def typed(update_id: int, text: str = "/pending", chat: int = 5) -> dict[str, Any]:
    message = {"message_id": update_id, "chat": {"id": chat, "type": "private"}, "from": ANA, "text": text}
    return {"update_id": update_id, "message": message}


def pressed(update_id: int, query_id: str = "q", chat: int = 5) -> dict[str, Any]:
    message = {"chat": {"id": chat}, "message_id": 1, "date": 0}
    query = {"id": query_id, "from": ANA, "data": "token", "message": message}
    return {"update_id": update_id, "callback_query": query}


async def test_the_offset_follows_what_is_settled() -> None:
    desk = Desk()
    assert desk.where() == (None, False)
    desk.inbox.held.add("6")
    assert await desk.take(typed(10), typed(11, chat=6), typed(12))
    assert desk.where() == (11, True)
    assert not await desk.take(typed(11, chat=6), typed(12))
    assert len(desk.inbox.messages) == 3
    desk.inbox.release()
    await settle()
    assert desk.where() == (13, False)
    desk.intake.confirmed(12)
    assert desk.where() == (13, False)
    desk.intake.confirmed(13)
    assert desk.where() == (None, False)
    await desk.intake.drain(1)


async def test_a_new_row_of_ids_after_a_quiet_week_is_not_skipped() -> None:
    desk = Desk()
    await desk.take(typed(900))
    desk.intake.confirmed(901)
    await desk.take(typed(100))
    assert desk.intake.offset == 101
    assert [message.message_id for message in desk.inbox.messages] == ["900", "100"]


async def test_an_update_that_never_ends_lets_the_others_pass_after_a_minute() -> None:
    desk = Desk()
    desk.inbox.held.add("6")
    await desk.take(typed(10, chat=6), typed(11, chat=6))
    await desk.clock.advance(59)
    assert desk.intake.offset == 10
    assert len(desk.inbox.messages) == 1
    await desk.clock.advance(2)
    assert len(desk.inbox.messages) == 2
    assert [what for what, _ in desk.inbox.alarms] == ["update_parked"]
    assert desk.intake.offset == 11
    desk.inbox.release()
    await settle()
    assert desk.intake.offset == 12


async def test_a_poisoned_tap_is_tried_three_times_with_pauses_and_excused() -> None:
    desk = Desk(BrokenInbox())
    await desk.take(pressed(10), typed(11))
    assert (len(desk.inbox.taps), desk.inbox.messages) == (1, [])
    await desk.clock.advance(1)
    assert len(desk.inbox.taps) == 2
    await desk.clock.advance(2)
    assert len(desk.inbox.taps) == 3
    assert len(desk.inbox.alarms) == 1
    assert len(desk.inbox.messages) == 1
    assert desk.replies.given == [("q", Answer(UNHANDLED))]
    assert desk.intake.offset == 12


async def test_a_posted_update_is_tried_at_each_delivery_and_parked_at_the_third() -> None:
    desk = Desk()
    raw = msgspec.json.encode(typed(10, POISON))
    for _ in range(2):
        with pytest.raises(RuntimeError):
            await desk.intake.deliver(read_envelope(raw), raw)
    await desk.intake.deliver(read_envelope(raw), raw)
    await desk.intake.deliver(read_envelope(raw), raw)
    assert (desk.inbox.tries, len(desk.inbox.alarms)) == (3, 1)


async def test_two_deliveries_at_once_are_one_update() -> None:
    desk = Desk()
    desk.inbox.held.add("5")
    raw = msgspec.json.encode(typed(10))
    both = [asyncio.create_task(desk.intake.deliver(read_envelope(raw), raw)) for _ in "12"]
    await settle()
    assert not any(task.done() for task in both)
    desk.inbox.release()
    await asyncio.gather(*both)
    assert len(desk.inbox.messages) == 1


async def test_one_press_in_two_updates_is_answered_once() -> None:
    desk = Desk()
    await desk.take(pressed(10), pressed(11))
    assert len(desk.inbox.taps) == 2
    assert desk.replies.given == [("q", desk.inbox.answer)]


async def test_a_press_without_data_gets_an_empty_answer() -> None:
    desk = Desk()
    await desk.take({"update_id": 1, "callback_query": {"id": "q", "from": ANA}})
    assert desk.replies.given == [("q", Answer(""))]
    assert desk.intake.offset == 2


async def test_the_neutral_answer_comes_after_a_second_and_a_half() -> None:
    desk = Desk()
    desk.inbox.held.add("5")
    await desk.take(pressed(10))
    await desk.clock.advance(1.4)
    assert desk.replies.given == []
    await desk.clock.advance(0.1)
    desk.inbox.release()
    await settle()
    assert desk.replies.given == [("q", Answer(RECEIVED))]


async def test_a_stop_confirms_nothing_that_was_broken_off() -> None:
    desk = Desk()
    desk.inbox.held.add("5")
    await desk.take(typed(10), typed(11, chat=6))
    waiting = asyncio.create_task(desk.intake.deliver(read_envelope(b'{"update_id": 10}'), b'{"update_id": 10}'))
    await desk.intake.drain(0.05)
    assert desk.intake.offset == 10
    with pytest.raises(AdapterUnavailable):
        await waiting


async def test_what_has_no_id_is_left_out() -> None:
    desk = Desk()
    assert await desk.take({"message": {}}, typed(10))
    assert desk.where() == (11, False)

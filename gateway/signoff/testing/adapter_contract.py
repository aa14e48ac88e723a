"""What every chat adapter must do, as a suite of tests. It needs pytest and pytest-asyncio (`asyncio_mode = auto`).

A platform joins with a `Stage`: a loopback server of the platform, the places and people in it, and how to spoil its
network. The suite then runs against the real adapter over real sockets::

    class TestTelegram(AdapterContract):
        @pytest.fixture
        async def stage(self) -> AsyncIterator[Stage]:
            async with telegram_stage() as stage:
                yield stage
"""

from __future__ import annotations

import asyncio
import gc
import time

import msgspec
import pytest

from signoff.errors import AdapterError
from signoff.model import Answer
from signoff.testing.adapter_sends import Failures, Sends
from signoff.testing.adapter_stage import (
    POISON,
    RecordingInbox,
    Stage,
    card,
    pass_time,
    running,
    until,
    until_shown,
)
from signoff.testing.clock import settle

HEAL_S = 90.0
"""Clock seconds within which an adapter works again after its platform does: two of the longest pauses (30 s), and what
a hiccup within them costs."""
NEUTRAL = "Received. The card will show the result."
"""The answer to a press that is given without a verdict."""
TRAPS = (
    "network_down",
    "black_hole",
    "dropped_once",
    "unauthorized_once",
    "not_found_once",
    "server_errors",
    "unreadable_answer",
    "second_client",
    "odd_update",
)
"""Ways in which chat libraries were seen to go deaf for good while they looked healthy."""


class Receives:
    """What people do reaches the inbox, once, in order, and is answered."""

    async def test_a_tap_names_person_place_message_and_token(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        async with running(stage, inbox) as adapter:
            for place in (stage.direct, stage.group, *([stage.thread] if stage.thread else [])):
                posted = await adapter.post(place, card())
                press = await stage.press(stage.person, place, posted.message_id, "t-approve")
                await self.answered(stage, press, inbox.answer)
                tap = inbox.taps.pop()
                assert (tap.destination, tap.message_id, tap.token) == (place, posted.message_id, "t-approve")
                assert (tap.person.platform, tap.person.user_id) == (place.platform, stage.person)
                assert tap.person.name
                assert tap.tap_id
        assert inbox.taps == []

    async def test_an_alert_and_a_long_answer(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        inbox.answer = Answer("x" * 5000, alert=True)
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(stage.direct, card())
            press = await stage.press(stage.person, stage.direct, posted.message_id, "t-deny")
            await until_shown(lambda: self.was_answered(stage, press), what="the press is answered")
            (answer,) = await stage.answers(press)
        assert len(answer.text) == stage.traits.answer_max
        assert answer.text[:100] == "x" * 100
        assert answer.alert is stage.traits.has_alerts

    async def test_two_presses_are_two_taps_and_each_is_answered_once(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(stage.group, card())
            presses = [await stage.press(stage.person, stage.group, posted.message_id, "t-approve") for _ in "12"]
            for press in presses:
                await self.answered(stage, press, inbox.answer)
        assert len({tap.tap_id for tap in inbox.taps}) == len(inbox.taps) == 2

    async def test_a_press_delivered_again_is_handled_once(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(stage.group, card())
            press = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
            await self.answered(stage, press, inbox.answer)
            await stage.press_again(press)
            later = await stage.press(stage.person, stage.group, posted.message_id, "t-deny")
            await self.answered(stage, later, inbox.answer)
            assert await stage.answers(press) == [inbox.answer]
        assert [tap.token for tap in inbox.taps] == ["t-approve", "t-deny"]

    async def test_strangers_and_forged_tokens_go_to_the_core_as_they_are(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        inbox.answer = Answer("You may not decide here; nothing changed.", alert=True)
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(stage.group, card())
            press = await stage.press(stage.stranger, stage.group, posted.message_id, "forged \U0001f3f4 <&>")
            await self.answered(stage, press, inbox.answer)
        assert [(tap.person.user_id, tap.token) for tap in inbox.taps] == [(stage.stranger, "forged \U0001f3f4 <&>")]

    async def test_no_verdict_is_shown_before_the_inbox_returns(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        inbox.held.add(stage.group.chat_id)
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(stage.group, card())
            press = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
            await until(lambda: bool(inbox.taps), what="the tap is in")
            await stage.clock.advance(1.4)
            assert await stage.answers(press) == []
            await stage.clock.advance(0.2)
            await self.answered(stage, press, Answer(NEUTRAL))
            inbox.release()
            later = await stage.press(stage.person, stage.group, posted.message_id, "t-deny")
            await self.answered(stage, later, inbox.answer)
            told = [Answer(NEUTRAL), *([inbox.answer] if stage.traits.follows_up else [])]
            await until_shown(lambda: self.has_answers(stage, press, len(told)), what="the slow press is answered")
            assert await stage.answers(press) == told

    async def test_messages_of_a_chat_come_in_order(self, stage: Stage) -> None:
        if not stage.traits.hears_messages:
            pytest.skip("what people write does not come in this way")
        inbox = RecordingInbox()
        async with running(stage, inbox):
            for number in range(10):
                await stage.say(stage.person, stage.direct, f"/pending {number}")
            await until(lambda: len(inbox.messages) == 10, what="all messages are in")
        assert [message.text for message in inbox.messages] == [f"/pending {number}" for number in range(10)]
        assert all(message.direct and message.person.user_id == stage.person for message in inbox.messages)
        orders = [message.order for message in inbox.messages]
        assert orders == sorted(set(orders))

    async def test_a_slow_chat_does_not_hold_up_the_others(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        inbox.held.add(stage.group.chat_id)
        async with running(stage, inbox) as adapter:
            stuck = await adapter.post(stage.group, card())
            free = await adapter.post(stage.direct, card())
            held = await stage.press(stage.person, stage.group, stuck.message_id, "t-approve")
            await until(lambda: bool(inbox.taps), what="the slow tap is in")
            for _ in range(3):
                press = await stage.press(stage.person, stage.direct, free.message_id, "t-deny")
                await self.answered(stage, press, inbox.answer)
            assert await stage.answers(held) == []
            inbox.release()
            await self.answered(stage, held, inbox.answer)
        assert [tap.token for tap in inbox.taps] == ["t-approve", "t-deny", "t-deny", "t-deny"]

    async def test_an_answer_that_fails_changes_nothing(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(stage.group, card())
            await stage.spoil("server_error", "answer")
            await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
            await until(lambda: bool(inbox.taps), what="the first tap is in")
            later = await stage.press(stage.person, stage.group, posted.message_id, "t-deny")
            await self.answered(stage, later, inbox.answer)
            assert adapter.health().state == "ready"
        assert [tap.token for tap in inbox.taps] == ["t-approve", "t-deny"]

    async def test_a_poisoned_update_is_parked_after_three_tries(self, stage: Stage) -> None:
        if not stage.traits.hears_messages:
            pytest.skip("what people write does not come in this way")
        inbox = RecordingInbox()
        async with running(stage, inbox):
            await stage.say(stage.person, stage.direct, POISON)
            await stage.say(stage.person, stage.direct, "/pending")
            await pass_time(stage.clock, lambda: bool(inbox.messages), within_s=30, what="the next message is in")
            await until(lambda: bool(inbox.alarms), what="an operator is told")
        assert inbox.tries == 3
        assert len(inbox.alarms) == 1

    async def test_what_was_not_settled_comes_again_after_a_restart(self, stage: Stage) -> None:
        if not stage.traits.delivers_again:
            pytest.skip("this platform delivers once, whatever becomes of it")
        first = RecordingInbox()
        second = RecordingInbox(first)
        async with running(stage, first) as adapter:
            posted = await adapter.post(stage.direct, card())
            press = await stage.press(stage.person, stage.direct, posted.message_id, "t-approve")
            await self.answered(stage, press, first.answer)
            first.held.add(stage.group.chat_id)
            held = await adapter.post(stage.group, card())
            lost = await stage.press(stage.person, stage.group, held.message_id, "t-deny")
            await until(lambda: len(first.taps) == 2, what="the tap is in")
        async with running(stage, second):
            await self.answered(stage, lost, second.answer)
        assert [tap.token for tap in second.taps] == ["t-deny"]

    @staticmethod
    async def was_answered(stage: Stage, press_id: str) -> bool:
        """Whether there is any answer yet."""
        return bool(await stage.answers(press_id))

    @staticmethod
    async def has_answers(stage: Stage, press_id: str, count: int) -> bool:
        """Whether there are so many answers."""
        return len(await stage.answers(press_id)) >= count

    async def answered(self, stage: Stage, press_id: str, answer: Answer) -> None:
        """The press has this answer and no other."""
        await until_shown(lambda: self.was_answered(stage, press_id), what=f"press {press_id} is answered")
        assert await stage.answers(press_id) == [self.told(stage, answer)]

    @staticmethod
    def told(stage: Stage, answer: Answer) -> Answer:
        """The answer as this platform shows it."""
        return msgspec.structs.replace(answer, alert=answer.alert and stage.traits.has_alerts)


class Lives:
    """Starting, healing, stopping."""

    async def test_it_is_ready_after_a_proven_round(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            health = adapter.health()
        assert health.state == "ready"
        assert health.last_heard_at is not None
        assert health.history
        assert adapter.health().state == "stopped"

    async def test_a_failed_start_is_told_and_heals(self, stage: Stage) -> None:
        adapter = stage.adapter()
        await stage.network(up=False)
        task = asyncio.create_task(adapter.run(RecordingInbox()))
        async with stage.serve(adapter.hooks()):
            with pytest.raises(AdapterError):
                await adapter.ready()
            assert adapter.health().state == "degraded"
            await stage.network(up=True)
            await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=HEAL_S, what="it is ready")
            await adapter.ready()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await adapter.aclose()

    @pytest.mark.parametrize("trap", TRAPS)
    async def test_it_hears_again_after(self, stage: Stage, trap: str) -> None:
        if trap not in stage.traps:
            pytest.skip("this platform has no such trap")
        inbox = RecordingInbox()
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(stage.direct, card())
            async with stage.traps[trap]():
                pass
            if not stage.traits.keeps_presses:
                await pass_time(
                    stage.clock, lambda: adapter.health().state == "ready", within_s=HEAL_S, what="it listens again"
                )
            press = await stage.press(stage.person, stage.direct, posted.message_id, "t-approve")
            await pass_time(stage.clock, lambda: bool(inbox.taps), within_s=HEAL_S, what=f"it hears after {trap}")
            await pass_time(
                stage.clock, lambda: adapter.health().state == "ready", within_s=HEAL_S, what="it knows that it hears"
            )
            await until_shown(lambda: Receives.was_answered(stage, press), what="the press is answered")
        assert [tap.token for tap in inbox.taps] == ["t-approve"]

    async def test_it_does_not_call_itself_ready_while_nothing_is_heard(self, stage: Stage) -> None:
        if "black_hole" not in stage.traps:
            pytest.skip("the network of this platform cannot fall silent")
        async with running(stage, RecordingInbox()) as adapter, stage.traps["black_hole"]():
            await stage.clock.advance(300)
            assert adapter.health().state == "degraded"

    async def test_a_stop_leaves_nothing(self, stage: Stage) -> None:
        before = asyncio.all_tasks()
        inbox = RecordingInbox()
        inbox.held.add(stage.group.chat_id)
        began = time.monotonic()
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(stage.group, card())
            await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
            await until(lambda: bool(inbox.taps), what="the tap is in")
            began = time.monotonic()
        assert time.monotonic() - began < 8.0
        await adapter.aclose()
        mine = asyncio.all_tasks() - before
        await until(lambda: not any(self.is_ours(task) for task in mine if not task.done()), what="no task is left")
        gc.collect()

    async def test_a_stop_waits_for_what_is_in_hand(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        inbox.held.add(stage.group.chat_id)
        async with running(stage, inbox) as adapter:
            posted = await adapter.post(stage.group, card())
            press = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
            await until(lambda: bool(inbox.taps), what="the tap is in")
            releasing = asyncio.create_task(self.release_while_it_stops(inbox))
        await releasing
        assert await stage.answers(press) == [inbox.answer]

    @staticmethod
    async def release_while_it_stops(inbox: RecordingInbox) -> None:
        """Let an adapter that waits for nothing cancel what is in hand, but keep none waiting for a time that a slow
        machine could make longer than its patience."""
        await settle()
        inbox.release()

    @staticmethod
    def is_ours(task: asyncio.Task[object]) -> bool:
        """Whether the task runs the adapter's code and not the stage's server."""
        code = getattr(task.get_coro(), "cr_code", None)
        return code is not None and "signoff_adapters" in code.co_filename


class AdapterContract(Sends, Failures, Receives, Lives):
    """All of it; see the module's text for how a platform joins."""

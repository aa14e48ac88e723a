"""Errors of work that no handling waits for are in the log: what a person was not told has a line."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from signoff.errors import StoreUnavailable
from signoff.model import Answer, Tap
from signoff.testing.adapter_stage import RecordingInbox
from signoff.testing.clock import FakeClock, settle
from signoff_adapters.discord import DiscordConfig
from signoff_adapters.discord.calls import Calls
from signoff_adapters.discord.intake import Intake as DiscordIntake
from signoff_adapters.discord.places import Places
from signoff_adapters.discord.wire import Me as DiscordMe
from signoff_adapters.telegram import TelegramConfig
from signoff_adapters.telegram.intake import Intake as TelegramIntake
from signoff_adapters.telegram.wire import Me as TelegramMe

Press = Callable[[RecordingInbox, FakeClock], Awaitable[None]]


class StoreAway(RecordingInbox):
    """Takes taps, and has no store when the person could not be told."""

    async def unanswered(self, tap: Tap, answer: Answer) -> None:
        raise StoreUnavailable("the store is away")


class SlowFailure(RecordingInbox):
    """Fails at a tap, but only once `release` was called."""

    async def tap(self, tap: Tap) -> Answer:
        await super().tap(tap)
        raise StoreUnavailable("the store is away")


async def refused(*_: object) -> bool:
    """The platform takes no answer any more."""
    return False


async def on_discord(inbox: RecordingInbox, clock: FakeClock) -> None:
    config = DiscordConfig(token="t")
    calls = Calls(config)
    intake = DiscordIntake(inbox, clock, config, calls, Places(calls), lambda: DiscordMe("1", "2"))
    press = {"id": "43", "type": 3, "channel": {"id": "20"}, "user": {"id": "81"}, "data": {"custom_id": "t"}}
    intake.interaction(press, first=refused)


async def on_telegram(inbox: RecordingInbox, clock: FakeClock) -> None:
    intake = TelegramIntake(inbox, clock, TelegramConfig(token="1:x"), lambda: TelegramMe(1, "bot"), refused)
    message = {"chat": {"id": 20}, "message_id": 1, "date": 0}
    query = {"id": "q", "from": {"id": 81, "first_name": "Ana"}, "data": "t", "message": message}
    intake.take((msgspec.Raw(msgspec.json.encode({"update_id": 1, "callback_query": query})),))


@pytest.mark.parametrize("press", [on_discord, on_telegram])
async def test_a_person_who_could_not_be_told_and_no_store(press: Press, caplog: pytest.LogCaptureFixture) -> None:
    inbox = StoreAway()
    await press(inbox, FakeClock())
    await settle()
    assert len(inbox.taps) == 1
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        f"{press.__name__[3:]}: StoreUnavailable: the store is away"
    ]


@pytest.mark.parametrize("press", [on_discord, on_telegram])
async def test_what_was_parked_and_fails_after_all(press: Press, caplog: pytest.LogCaptureFixture) -> None:
    inbox, clock = SlowFailure(), FakeClock()
    inbox.held.add("20")
    await press(inbox, clock)
    await settle()
    await clock.advance(61)
    await settle()
    assert [what for what, _ in inbox.alarms] == ["update_parked"]
    caplog.clear()
    inbox.release()
    await settle()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        f"{press.__name__[3:]}: StoreUnavailable: the store is away"
    ]

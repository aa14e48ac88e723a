"""The adapter in memory that embedding tests and benches build on."""

from __future__ import annotations

import asyncio

import pytest

from signoff.errors import AdapterFatal, AdapterUnavailable, MessageGone, SendAmbiguous
from signoff.model import Attachment, Card, Destination, Person
from signoff.ports import ChatAdapter
from signoff.testing.adapter_stage import RecordingInbox, card
from signoff.testing.clock import settle
from signoff.testing.fake_adapter import FakeAdapter

ROOM, ANA = Destination("fake", "-1"), Destination("fake", "1")


async def test_it_is_a_chat_adapter() -> None:
    adapter: ChatAdapter = FakeAdapter()
    assert isinstance(adapter, ChatAdapter)
    assert (adapter.is_group(ROOM), adapter.is_group(ANA)) == (True, False)
    assert adapter.hooks() is None


async def test_people_press_what_is_shown_and_what_is_not() -> None:
    adapter, inbox = FakeAdapter(), RecordingInbox()
    early = asyncio.create_task(adapter.say("/pending", where=ANA, by="1", direct=True))
    run = asyncio.create_task(adapter.run(inbox))
    await adapter.ready()
    assert adapter.health().state == "ready"
    typed = await early
    posted = await adapter.post(ROOM, card())
    assert await adapter.press("Deny", by="7", name="Ana") == inbox.answer
    assert await adapter.press("t-approve", message_id=posted.message_id) == inbox.answer
    await adapter.press("forged", destination=ROOM)
    with pytest.raises(LookupError):
        await adapter.press("Undo")
    assert [tap.token for tap in inbox.taps] == ["t-deny", "t-approve", "forged"]
    assert inbox.taps[0].person == Person(platform="fake", user_id="7", name="Ana")
    assert [tap.message_id for tap in inbox.taps] == [posted.message_id, posted.message_id, None]
    assert [message.message_id for message in inbox.messages] == [typed]
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    assert adapter.health().state == "stopped"


async def test_forms_of_a_message_are_kept() -> None:
    adapter = FakeAdapter()
    posted = await adapter.post(ROOM, Card(blocks=card().blocks, attachment=Attachment("x.txt", b"x")))
    await adapter.update(ROOM, posted.message_id, card("Approved", rows=()))
    await adapter.update(ROOM, posted.message_id, card("Approved", rows=()))
    (shown,) = adapter.shown(ROOM)
    assert (len(shown.cards), shown.text, shown.reply_to) == (2, "Approved\nls -la", posted.file_id)
    adapter.remove(posted.message_id)
    with pytest.raises(MessageGone):
        await adapter.update(ROOM, posted.message_id, card())
    await adapter.delete(ROOM, posted.message_id)
    assert adapter.shown() == []
    assert [call for call, _ in adapter.calls] == ["post", "update", "update", "update", "delete"]


async def test_failures_are_done_as_told_and_end() -> None:
    adapter = FakeAdapter()
    adapter.fail(AdapterUnavailable("no"), times=2)
    adapter.lose_answer()
    for expected in (AdapterUnavailable, AdapterUnavailable, SendAmbiguous):
        with pytest.raises(expected):
            await adapter.post(ROOM, card())
    await adapter.post(ROOM, card("second"))
    assert [message.text.splitlines()[0] for message in adapter.shown()] == ["Low: lists files", "second"]


async def test_a_stall_holds_a_call_until_it_may_go_on() -> None:
    adapter = FakeAdapter()
    adapter.stall()
    send = asyncio.create_task(adapter.post(ROOM, card()))
    await settle()
    assert adapter.shown() == []
    adapter.go_on()
    assert len(await adapter.until(bool)) == 1
    await send


async def test_it_can_die() -> None:
    adapter = FakeAdapter()
    run = asyncio.create_task(adapter.run(RecordingInbox()))
    await adapter.ready()
    adapter.die(AdapterFatal("bad token"))
    with pytest.raises(AdapterFatal, match="bad token"):
        await run

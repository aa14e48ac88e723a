"""What Slack delivers, as taps and messages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.model import Destination, Message
from signoff_adapters.slack.wire import (
    Event,
    Handle,
    Interaction,
    Me,
    Slash,
    command_of,
    is_talk,
    key_of,
    message_of,
    metadata,
    order_of,
    plain,
    pressed_of,
)

ME = Me(user_id="UBOT1", bot_id="B1", team_id="T1", enterprise_id="E1")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def nobody_ours(_channel: str, _ts: str) -> bool:
    return False


def read(fields: dict[str, Any], *, ours: bool = False) -> Message | None:
    event = msgspec.convert(
        {"type": "message", "channel": "C1", "user": "U1", "text": "hi", "ts": "1.000002"} | fields, Event
    )
    return message_of(event, ME, lambda _channel, _ts: ours) if is_talk(event) else None


def press(**fields: Any) -> Interaction:
    given: dict[str, Any] = {
        "type": "block_actions",
        "user": {"id": "U1", "name": "ana", "team_id": "T1"},
        "trigger_id": "12.34",
        "response_url": "http://127.0.0.1/actions/1",
        "container": {"type": "message", "message_ts": "1700000000.000100", "channel_id": "C1", "is_ephemeral": False},
        "channel": {"id": "C1"},
        "message": {"ts": "1700000000.000100"},
        "actions": [{"action_id": "signoff_0_1", "block_id": "signoff_0", "value": "t-deny", "action_ts": "1.5"}],
    }
    return msgspec.convert(given | fields, Interaction)


def test_a_press_is_a_tap() -> None:
    pressed = pressed_of(press())
    assert pressed is not None
    tap = pressed.tap
    assert (tap.destination, tap.message_id, tap.order) == (
        Destination("slack", "C1"),
        "1700000000.000100",
        1700000000000100,
    )
    assert (tap.person.user_id, tap.person.name, tap.token, tap.tap_id) == ("U1", "ana", "t-deny", "12.34")
    assert (pressed.team, pressed.typed, pressed.handle.panel) == ("T1", False, False)


def test_a_press_in_a_thread_names_the_thread() -> None:
    pressed = pressed_of(press(message={"ts": "1700000000.000100", "thread_ts": "1600000000.000001"}))
    assert pressed is not None
    assert pressed.tap.destination.thread_id == pressed.handle.thread == "1600000000.000001"


def test_a_press_on_a_card_that_began_a_thread_is_in_the_channel() -> None:
    pressed = pressed_of(press(message={"ts": "1700000000.000100", "thread_ts": "1700000000.000100"}))
    assert pressed is not None
    assert pressed.tap.destination.thread_id is None


def test_a_press_on_a_panel_names_no_message_and_keeps_the_thread() -> None:
    container = {"message_ts": "1700000009.000100", "channel_id": "C1", "is_ephemeral": True}
    action = {"action_id": "signoff_0_0", "block_id": "signoff_0_1600000000.000001", "value": "t-close"}
    pressed = pressed_of(press(container=container, message=None, actions=[action]))
    assert pressed is not None
    assert (pressed.tap.message_id, pressed.tap.order, pressed.handle.panel) == (None, 0, True)
    assert pressed.tap.destination == Destination("slack", "C1", "1600000000.000001")


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "shortcut"},
        {"actions": []},
        {"actions": [{"action_id": "others", "value": "t"}]},
        {"actions": [{"action_id": "signoff_0_0"}]},
        {"container": {}, "channel": None},
    ],
)
def test_presses_of_nothing_of_ours(fields: dict[str, Any]) -> None:
    assert pressed_of(press(**fields)) is None


def test_a_dialog_brings_back_its_token_and_place() -> None:
    handle = Handle(channel="C1", user="U1", thread="1.000001", response_url="http://x/1", trigger_id="9", panel=True)
    view = {
        "id": "V1",
        "callback_id": "signoff_reason",
        "private_metadata": metadata("t-typed", handle),
        "state": {"values": {"reason": {"reason": {"type": "plain_text_input", "value": "wrong host"}}}},
    }
    pressed = pressed_of(press(type="view_submission", view=view, actions=[], trigger_id="99"))
    assert pressed is not None
    assert (pressed.tap.token, pressed.tap.text, pressed.tap.message_id) == ("t-typed", "wrong host", None)
    assert pressed.tap.destination == Destination("slack", "C1", "1.000001")
    assert pressed.handle == msgspec.structs.replace(handle, trigger_id="")
    assert pressed.typed


@pytest.mark.parametrize("changes", [{"callback_id": "others"}, {"private_metadata": "{}"}, {"private_metadata": "?"}])
def test_dialogs_of_others_are_nothing(changes: dict[str, str]) -> None:
    view = {
        "id": "V1",
        "callback_id": "signoff_reason",
        "private_metadata": metadata("t", Handle(channel="C", user="U")),
    }
    assert pressed_of(press(type="view_submission", view=view | changes)) is None


def test_a_message_in_a_channel() -> None:
    message = read({"text": "!approve 7Q2MK", "channel_type": "channel"})
    assert message is not None
    assert (message.destination, message.message_id, message.order) == (Destination("slack", "C1"), "1.000002", 1000002)
    assert (message.text, message.direct, message.addressed, message.reply_to) == ("!approve 7Q2MK", False, False, None)
    assert (message.unattributable, message.replies) == (False, "private")
    assert message.at == datetime(1970, 1, 1, 0, 0, 1, 2, tzinfo=UTC)
    far = read({"ts": "999999999999.0"})
    assert far is not None
    assert far.at is None


def test_a_direct_message() -> None:
    message = read({"channel": "D1", "channel_type": "im"})
    assert message is not None
    assert (message.direct, message.replies) == (True, "posted")


@pytest.mark.parametrize("text", ["<@UBOT1> approve", "<@UBOT1|signoff>: approve", "  <@UBOT1>,  approve"])
def test_our_name_is_taken_off(text: str) -> None:
    message = read({"text": text})
    assert message is not None
    assert (message.text, message.addressed) == ("approve", True)


def test_our_name_in_the_middle_addresses_us_and_stays() -> None:
    message = read({"text": "ask <@UBOT1> to approve"})
    assert message is not None
    assert (message.text, message.addressed) == ("ask @UBOT1 to approve", True)


def test_a_thread_is_a_place_of_its_own() -> None:
    message = read({"thread_ts": "1.000001", "parent_user_id": "U9"})
    assert message is not None
    assert (message.destination.thread_id, message.reply_to, message.addressed) == ("1.000001", None, False)


@pytest.mark.parametrize(("fields", "ours"), [({"parent_user_id": "UBOT1"}, False), ({}, True)])
def test_a_thread_under_our_card_is_a_reply_to_the_card_in_its_place(fields: dict[str, str], ours: bool) -> None:
    message = read({"thread_ts": "1.000001"} | fields, ours=ours)
    assert message is not None
    assert (message.destination.thread_id, message.reply_to, message.addressed) == (None, "1.000001", True)


@pytest.mark.parametrize(
    "fields",
    [
        {"bot_id": "BOTHER"},
        {"bot_id": "BOTHER", "user": None, "subtype": "bot_message"},
        {"text": "", "attachments": [{"is_share": True, "text": "!approve"}]},
        {"text": "!approve", "attachments": [{"is_share": True, "text": "x"}]},
        {
            "subtype": "message_changed",
            "message": {"user": "U1", "text": "!approve", "ts": "1.000002", "edited": {"ts": "2.0"}},
            "previous_message": {"user": "U1", "text": "!deny", "ts": "1.000002"},
        },
    ],
    ids=["bot", "webhook", "forwarded", "forwarded with a comment", "edited"],
)
def test_what_nobody_wrote_first_hand_is_not_attributed(fields: dict[str, Any]) -> None:
    message = read(fields)
    assert message is not None
    assert message.unattributable
    assert message.text in ("!approve", "hi")


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "UBOT1"},
        {"bot_id": "B1"},
        {"subtype": "channel_join"},
        {"subtype": "message_deleted"},
        {"text": ""},
        {"text": None},
        {"ts": None},
        {"channel": {"id": "C1"}},
        {"user": {"id": "U1"}},
        {"type": "reaction_added"},
        {
            "subtype": "message_changed",
            "message": {"user": "U1", "text": "same", "ts": "1.000002"},
            "previous_message": {"user": "U1", "text": "same", "ts": "1.000002"},
        },
        {"subtype": "message_changed", "message": {"user": "UBOT1", "text": "card", "ts": "1.000002"}},
    ],
)
def test_what_is_passed_over(fields: dict[str, Any]) -> None:
    assert read(fields) is None


def test_a_mention_and_its_message_are_one_and_an_edit_another() -> None:
    said = Event(type="message", channel="C1", ts="1.2")
    named = Event(type="app_mention", channel="C1", ts="1.2")
    edited = msgspec.convert(
        {"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "3.4",
         "message": {"ts": "1.2", "edited": {"ts": "3.3"}}},
        Event,
    )  # fmt: skip
    assert key_of(said) == key_of(named)
    assert key_of(edited) != key_of(said)


def test_a_slash_command() -> None:
    slash = Slash(user_id="U1", channel_id="C1", user_name="ana", text="approve  7Q2MK", trigger_id="13.1")
    message = command_of(slash, datetime(2026, 1, 5, 9, 0, 0, 5, tzinfo=UTC))
    assert (message.text, message.replies, message.message_id) == ("/signoff approve  7Q2MK", "all", "13.1")
    assert message.order == 1767603600000005
    assert command_of(slash, datetime(2026, 1, 5, 9, tzinfo=UTC), after=1767603600000005).order == 1767603600000006
    asked = Slash(user_id="U1", channel_id="C1", text="yolo 45", trigger_id="13.2")
    assert command_of(asked, datetime(2026, 1, 5, tzinfo=UTC)).text == "/signoff yolo 45"
    assert command_of(Slash(user_id="U1", channel_id="D1"), datetime(2026, 1, 5, tzinfo=UTC)).text == "/signoff"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("a &amp;&lt;b&gt;", "a &<b>"),
        ("<http://example.com|example.com> and <https://x.example/a?b=1&amp;c=2>", "example.com and https://x.example/a?b=1&c=2"),
        ("<@U1> <@U1|ana> <#C1|ops> <#C1>", "@U1 @ana #ops #C1"),
        ("<!here> <!subteam^S1|@ops> <!subteam^S1> <!date^1^{date}|today>", "@here @ops @subteam today"),
        ("&amp;lt;", "&lt;"),
    ],
)  # fmt: skip
def test_references_become_words(typed: str, meant: str) -> None:
    assert plain(typed) == meant


@pytest.mark.parametrize(
    ("ts", "order"), [("1700000000.000100", 1700000000000100), ("1.5", 1500000), ("", 0), ("x.y", 0), (None, 0)]
)
def test_the_order_of_a_timestamp(ts: str | None, order: int) -> None:
    assert order_of(ts) == order


@pytest.mark.parametrize(("team", "home"), [("T1", True), ("E1", True), (None, True), ("", True), ("T2", False)])
def test_whose_workspace_it_is(team: str | None, home: bool) -> None:
    assert ME.home(team) is home


@given(st.dictionaries(st.sampled_from([*Event.__struct_fields__]), JSON))
def test_no_event_breaks_the_reader(fields: dict[str, Any]) -> None:
    try:
        event = msgspec.convert({"type": "message"} | fields, Event)
    except msgspec.ValidationError:
        return
    message_of(event, ME, nobody_ours)
    key_of(event)


@given(st.dictionaries(st.sampled_from([*Interaction.__struct_fields__]), JSON))
def test_no_interaction_breaks_the_reader(fields: dict[str, Any]) -> None:
    try:
        interaction = msgspec.convert({"type": "block_actions", "user": {"id": "U1"}} | fields, Interaction)
    except msgspec.ValidationError:
        return
    pressed_of(interaction)

"""Updates as taps and messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.model import Destination, Message
from signoff_adapters.telegram.wire import (
    Incoming,
    Me,
    Query,
    Update,
    left_of,
    message_of,
    move_of,
    read_envelope,
    tap_of,
)

ME = Me(123456, "ops_signoff_bot")
ANA = {"id": 81234567, "is_bot": False, "first_name": "Ana", "last_name": "R", "username": "ana_ops"}
GROUP = {"id": -1001, "type": "supergroup", "title": "ops"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["message", "chat", "id", "callback_query", "edited_message", "from", "x"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def incoming(**fields: Any) -> Incoming:
    given = {"message_id": 7, "date": 1, "chat": GROUP, "from": ANA, "text": "/approve 7Q2MK"} | fields
    raw = msgspec.json.encode({name: value for name, value in given.items() if value is not None})
    return msgspec.json.decode(raw, type=Incoming)


def read(**fields: Any) -> Message:
    message = message_of(incoming(**fields), ME)
    assert message is not None
    return message


def test_a_plain_message() -> None:
    message = read()
    assert message.destination == Destination("telegram", "-1001")
    assert (message.message_id, message.order) == ("7", 7)
    assert (message.person.user_id, message.person.name) == ("81234567", "Ana R")
    assert message.text == "/approve 7Q2MK"
    assert (message.direct, message.addressed, message.unattributable, message.reply_to) == (False, False, False, None)
    assert read(chat={"id": 81234567, "type": "private"}).direct
    assert message.at == datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), "it was written within the second that is told"
    assert [read(date=date).at for date in (0, -5, 10**14)] == [None] * 3


@pytest.mark.parametrize(
    ("text", "read_as", "addressed"),
    [
        ("/approve@ops_signoff_bot 7Q2MK", "/approve 7Q2MK", True),
        ("/approve@OPS_Signoff_Bot", "/approve", True),
        ("/approve@other_bot 7Q2MK", None, False),
        ("/approve@ops_signoff_bot2", None, False),
        ("@ops_signoff_bot approve 7Q2MK", "approve 7Q2MK", True),
        ("@OPS_signoff_bot, !deny", "!deny", True),
        ("@ops_signoff_bot2 approve", "@ops_signoff_bot2 approve", False),
        ("please /approve@other_bot", "please /approve@other_bot", False),
        ("", "", False),
    ],
)
def test_whom_a_command_is_for(text: str, read_as: str | None, addressed: bool) -> None:
    message = message_of(incoming(text=text), ME)
    assert (message.text if message else None) == read_as
    assert (message is not None and message.addressed) == addressed


def test_a_mention_inside_and_a_reply_to_the_bot_address_it() -> None:
    text = "🛑 hey @ops_signoff_bot"
    assert read(text=text, entities=[{"type": "mention", "offset": 7, "length": 16}]).addressed
    assert not read(text=text, entities=[{"type": "mention", "offset": 999, "length": 16}]).addressed
    assert read(entities=[{"type": "text_mention", "offset": 0, "length": 1, "user": {"id": ME.id}}]).addressed
    reply = {"message_id": 3, "chat": GROUP, "from": {"id": ME.id, "is_bot": True, "first_name": "Signoff"}}
    message = read(text="too risky", reply_to_message=reply)
    assert message.addressed
    assert message.reply_to == "3"


def test_a_thread_counts_only_in_topics() -> None:
    assert read(message_thread_id=5).destination.thread_id is None
    assert read(message_thread_id=5, is_topic_message=True).destination.thread_id == "5"


def test_the_first_message_of_a_topic_is_not_replied_to() -> None:
    first = {"message_id": 5, "chat": GROUP, "from": {"id": ME.id, "is_bot": True, "first_name": "Signoff"}}
    message = read(message_thread_id=5, is_topic_message=True, reply_to_message=first)
    assert message.reply_to is None
    assert not message.addressed


@pytest.mark.parametrize(
    "fields",
    [
        {"forward_origin": {"type": "user", "date": 1, "sender_user": ANA}},
        {"sender_chat": GROUP},
        {"via_bot": {"id": 9, "is_bot": True, "first_name": "x"}},
        {"from": {"id": 9, "is_bot": True, "first_name": "x"}},
        {"from": None, "sender_chat": GROUP},
        {"from": None},
    ],
)
def test_who_cannot_be_named_decides_nothing(fields: dict[str, Any]) -> None:
    assert read(**fields).unattributable


def test_an_edit_decides_nothing() -> None:
    message = message_of(incoming(), ME, edited=True)
    assert message is not None
    assert message.unattributable


def test_a_message_without_text_is_none() -> None:
    assert message_of(incoming(text=None), ME) is None


def test_a_move_is_told_from_both_ends() -> None:
    assert move_of(incoming(text=None, migrate_to_chat_id=-1009)) == ("-1001", "-1009")
    assert move_of(incoming(text=None, migrate_from_chat_id=-5)) == ("-5", "-1001")
    assert move_of(incoming()) is None


def test_a_press_on_a_message_too_old_to_be_shown() -> None:
    old = {"chat": GROUP, "message_id": 7, "date": 0}
    raw = {"id": "44", "from": ANA, "data": "t", "message": old}
    tap = tap_of(msgspec.convert(raw, Query))
    assert tap is not None
    assert tap.destination == Destination("telegram", "-1001")
    assert (tap.message_id, tap.token, tap.tap_id) == ("7", "t", "44")


@pytest.mark.parametrize("missing", ["message", "data"])
def test_a_press_of_no_button_of_ours_is_none(missing: str) -> None:
    raw: dict[str, Any] = {"id": "44", "from": ANA, "data": "t", "message": {"chat": GROUP, "message_id": 7}}
    del raw[missing]
    assert tap_of(msgspec.convert(raw, Query)) is None


@settings(deadline=None)
@given(st.integers(0, 2**40), st.dictionaries(st.sampled_from(["message", "callback_query", "poll"]), JSON, max_size=3))
def test_the_id_of_any_update_can_be_read(update_id: int, rest: dict[str, Any]) -> None:
    assert read_envelope(json.dumps({"update_id": update_id} | rest).encode()).update_id == update_id


@settings(deadline=None)
@given(st.binary(max_size=30) | JSON.map(lambda value: json.dumps(value).encode()))
def test_what_is_no_update_raises_only_one_kind_of_error(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_envelope(raw)


def test_the_lane_is_the_chat() -> None:
    press = {"update_id": 1, "callback_query": {"message": {"chat": GROUP}}}
    typed = {"update_id": 2, "edited_message": {"chat": GROUP}}
    lanes = [read_envelope(msgspec.json.encode(each)).lane for each in (press, typed, {"update_id": 3})]
    assert lanes == [-1001, -1001, 0]


@pytest.mark.parametrize(
    ("kind", "status", "why"),
    [
        ("private", {"status": "kicked"}, "the person blocked the bot"),
        ("group", {"status": "left"}, "the bot was removed from the chat"),
        ("supergroup", {"status": "restricted", "is_member": False}, "the bot was removed from the chat"),
        ("supergroup", {"status": "restricted", "is_member": True}, None),
        ("private", {"status": "member"}, None),
        ("group", {"status": "administrator"}, None),
    ],
)
def test_where_we_can_be_answered_no_more(kind: str, status: dict[str, Any], why: str | None) -> None:
    change = {"chat": {"id": -5, "type": kind}, "from": {"id": 1}, "new_chat_member": status, "old_chat_member": {}}
    raw = msgspec.json.encode({"update_id": 1, "my_chat_member": change})
    assert read_envelope(raw).lane == -5
    update = msgspec.json.decode(raw, type=Update).my_chat_member
    assert update is not None
    assert left_of(update) == (None if why is None else (Destination("telegram", "-5"), why))

"""What Discord delivers, read as taps, messages and places."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.model import Destination, Person
from signoff_adapters.discord.wire import (
    MODAL,
    Channel,
    Me,
    channel_of,
    command_message,
    message_of,
    read_interaction,
    read_message,
    tap_of,
    typed_text,
)

ME = Me("900", "901")
PLACE = Destination("discord", "20")
USER = {"id": "81", "username": "ana", "global_name": "Ana", "bot": False, "avatar": None}
PRESS: dict[str, Any] = {
    "id": "1234567890123456789", "type": 3, "token": "secret", "application_id": "901", "channel_id": "22",
    "channel": {"id": "22", "type": 11, "parent_id": "20"}, "guild_id": "10",
    "member": {"user": USER, "nick": "Ana R", "roles": ["5", "6"], "permissions": "0"},
    "message": {"id": "777", "flags": 4, "thread": None}, "data": {"custom_id": "t-approve", "component_type": 2},
}  # fmt: skip
SAID: dict[str, Any] = {
    "id": "888", "type": 0, "channel_id": "20", "guild_id": "10", "author": USER, "content": "<@900> approve",
    "member": {"nick": None, "roles": []}, "mentions": [{"id": "900", "username": "bot"}], "edited_timestamp": None,
}  # fmt: skip


def test_a_press_names_person_roles_place_and_message() -> None:
    press = read_interaction(PRESS)
    channel = channel_of(press)
    assert channel is not None
    tap = tap_of(press, channel.place)
    assert tap is not None
    assert tap.destination == Destination("discord", "20", "22")
    assert tap.person == Person(platform="discord", user_id="81", name="Ana R", groups=("role:5", "role:6"))
    assert (tap.message_id, tap.order, tap.token, tap.tap_id) == ("777", 777, "t-approve", PRESS["id"])
    assert tap.text is None


def test_a_press_in_a_direct_chat_names_the_user() -> None:
    direct = {**PRESS, "member": None, "user": USER, "guild_id": None, "channel": {"id": "30", "type": 1}}
    press = read_interaction(direct)
    channel = channel_of(press)
    assert channel is not None
    tap = tap_of(press, channel.place)
    assert tap is not None
    assert (tap.person.user_id, tap.person.name, tap.person.groups) == ("81", "Ana", ())
    assert tap.destination == Destination("discord", "30")


def test_a_press_by_nobody_or_of_nothing_is_no_tap() -> None:
    assert tap_of(read_interaction({**PRESS, "member": None}), PLACE) is None
    assert tap_of(read_interaction({**PRESS, "data": {}}), PLACE) is None
    assert command_message(read_interaction({**PRESS, "member": None}), PLACE, "/help") is None


def test_a_thread_without_its_channel_must_be_looked_up() -> None:
    assert channel_of(read_interaction({**PRESS, "channel": {"id": "22", "type": 11}})) is None
    assert channel_of(read_interaction({**PRESS, "channel": None})) is None
    assert Channel("22", 0, "9").place == Destination("discord", "22")  # a channel's parent is its category


@pytest.mark.parametrize(
    "components",
    [
        [{"type": 1, "components": [{"type": 4, "custom_id": "text", "value": "too risky"}]}],
        [{"type": 18, "component": {"type": 4, "custom_id": "text", "value": "too risky"}}],
    ],
)
def test_a_dialog_brings_its_text(components: list[Any]) -> None:
    sent = read_interaction({**PRESS, "type": MODAL, "data": {"custom_id": "t-typed", "components": components}})
    tap = tap_of(sent, PLACE)
    assert tap is not None
    assert (tap.token, tap.text) == ("t-typed", "too risky")


def test_a_mention_is_a_message_to_us_without_our_name() -> None:
    message = message_of(read_message(SAID), PLACE, ME)
    assert message is not None
    assert (message.text, message.addressed, message.direct, message.unattributable) == ("approve", True, False, False)
    assert (message.order, message.replies) == (888, "posted")


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"guild_id": None}, "direct", True),
        ({"author": {**USER, "bot": True}}, "unattributable", True),
        ({"webhook_id": "5"}, "unattributable", True),
        ({"edited_timestamp": "2026-01-05T09:00:00+00:00"}, "unattributable", True),
        ({"message_reference": {"type": 1, "message_id": "5"}}, "unattributable", True),
        ({"message_reference": {"type": 1, "message_id": "5"}}, "reply_to", None),
        ({"message_snapshots": [{"message": {"content": "x"}}]}, "unattributable", True),
        ({"content": "", "message_snapshots": [{"message": {"content": "/approve"}}]}, "text", "/approve"),
        ({"type": 19, "message_reference": {"message_id": "5"}}, "reply_to", "5"),
        ({"content": "see <@900>"}, "text", "see <@900>"),
        ({"content": "yes", "mentions": []}, "addressed", False),
        ({"id": "175928847299117063"}, "at", datetime(2016, 4, 30, 11, 18, 25, 797000, tzinfo=UTC)),
        ({"id": "888"}, "at", None),
        ({"content": "y", "mentions": [], "referenced_message": {"author": {"id": "900"}}}, "addressed", True),
    ],
)
def test_messages(change: dict[str, Any], field: str, value: object) -> None:
    message = message_of(read_message({**SAID, **change}), PLACE, ME)
    assert message is not None
    assert getattr(message, field) == value


@pytest.mark.parametrize("change", [{"author": {**USER, "id": "900"}}, {"type": 7}, {"content": ""}, {"author": None}])
def test_what_is_no_talk(change: dict[str, Any]) -> None:
    assert message_of(read_message({**SAID, **change}), PLACE, ME) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9**20) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*PRESS, *SAID, "value", "component", "components"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from([PRESS, SAID]), st.data())
def test_odd_objects_are_read_or_refused_in_one_way(odd: Any, base: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(base)))
    spoilt = {**base, key: odd}
    with contextlib.suppress(msgspec.ValidationError):
        interaction = read_interaction(spoilt)
        tap_of(interaction, PLACE)
        channel_of(interaction)
    with contextlib.suppress(msgspec.ValidationError):
        message_of(read_message(spoilt), PLACE, ME)
    assert isinstance(typed_text(odd), str)

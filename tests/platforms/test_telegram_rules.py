"""Rules of the loopback Telegram without a network: odd requests, budgets over time, drawing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.platforms.telegram import RateLimits, ServerClock, TelegramServer
from tests.platforms.telegram.limits import MINUTE_S, RateLimiter
from tests.platforms.telegram.params import Parameters
from tests.platforms.telegram.refusal import Refused
from tests.platforms.telegram.rules import check_entities, check_keyboard, links_in, units

TOKEN = "123456:TESTTOKEN"
ANA, GROUP = 81234567, -4001

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = [
    "chat_id",
    "text",
    "caption",
    "entities",
    "reply_markup",
    "message_id",
    "message_thread_id",
    "reply_parameters",
    "callback_query_id",
    "commands",
    "scope",
    "url",
    "secret_token",
    "user_id",
    "document",
    "file_id",
    "allowed_updates",
]
METHODS = [
    "sendMessage",
    "sendDocument",
    "editMessageText",
    "editMessageReplyMarkup",
    "deleteMessage",
    "answerCallbackQuery",
    "setMyCommands",
    "getChat",
    "getChatMember",
    "getFile",
    "setWebhook",
    "sendChatAction",
]
NEAR_MISSES = st.sampled_from(
    [
        ANA,
        str(GROUP),
        {"inline_keyboard": [[{"text": "x", "callback_data": 5}]]},
        {"inline_keyboard": [[{"text": "x", "url": "http://["}]]},
        [{"type": "code", "offset": -1, "length": 1}],
        '[{"type": "code"}]',
        "\ud800",
        "{" * 2000,
        10**30,
    ]
)


@settings(max_examples=300, deadline=None)
@given(method=st.sampled_from(METHODS), values=st.dictionaries(st.sampled_from(NAMES), JSON | NEAR_MISSES, max_size=6))
def test_no_request_breaks_the_server(method: str, values: dict[str, Any]) -> None:
    server = fuzzed_server()
    parameters = Parameters({"chat_id": ANA, "text": "x", "message_id": 1} | values)
    server.api.chat_id(parameters)
    msgspec.json.encode(str(parameters.for_log()).encode("utf-8", "replace").decode())
    try:
        result = server.api.call_now(server.api.bot(TOKEN), method, parameters)
    except Refused as refused:
        assert refused.status in (400, 403, 404, 429)
        msgspec.json.encode(refused.body())
    else:
        msgspec.json.encode(result)


def fuzzed_server() -> TelegramServer:
    """A furnished server that does not listen."""
    server = TelegramServer()
    server.building.add_bot(TOKEN, "ops_signoff_bot")
    server.building.add_user(user_id=ANA, first_name="Ana")
    return server


@given(steps=st.lists(st.tuples(st.floats(0, 40), st.booleans()), max_size=120))
def test_what_the_budgets_let_through_fits_every_minute(steps: list[tuple[float, bool]]) -> None:
    clock = ServerClock(lambda: 0.0)
    limiter = RateLimiter(clock, RateLimits(group_per_minute=5, group_edits_per_minute=3))
    passed: dict[bool, list[float]] = {False: [], True: []}
    for pause_s, edit in steps:
        clock.advance(pause_s / 10)
        try:
            limiter.spend("sendMessage", GROUP, group=True, edit=edit)
        except Refused as refused:
            assert refused.parameters is not None
            assert 1 <= refused.parameters["retry_after"] <= MINUTE_S
        else:
            passed[edit].append(clock.now())
    for edit, most in ((False, 5), (True, 3)):
        times = passed[edit]
        assert all(later - earlier >= MINUTE_S for earlier, later in zip(times, times[most:], strict=False))


@given(limit_wait=st.integers(0, 3))
def test_waiting_as_told_is_always_enough(limit_wait: int) -> None:
    clock = ServerClock(lambda: 1_800_000_000.0)
    limiter = RateLimiter(clock, RateLimits())
    for number in range(60):
        clock.advance(limit_wait / 7)
        try:
            limiter.spend("sendMessage", GROUP, group=True, edit=False)
        except Refused as refused:
            assert refused.parameters is not None
            clock.advance(refused.parameters["retry_after"])
            limiter.spend("sendMessage", GROUP, group=True, edit=False)
        assert limiter.report().total <= number + 1


@given(text=st.text(max_size=20), offset=st.integers(-2, 50), length=st.integers(-2, 50))
def test_entities_that_are_taken_cover_whole_characters(text: str, offset: int, length: int) -> None:
    try:
        check_entities([{"type": "code", "offset": offset, "length": length}], text)
    except Refused:
        return
    whole = text.encode("utf-16-le")
    assert whole[2 * offset : 2 * (offset + length)].decode("utf-16-le")
    assert offset + length <= units(text)


@pytest.mark.parametrize("layout", ["r", "t", "wDT", "dt", ""])
def test_date_time_formats_that_exist(layout: str) -> None:
    entity = {"type": "date_time", "offset": 0, "length": 1, "unix_time": 1, "date_time_format": layout}
    assert check_entities([entity], "x") == [entity]


@pytest.mark.parametrize("layout", ["R", "rt", "td", "x", 5])
def test_date_time_formats_that_do_not(layout: object) -> None:
    entity = {"type": "date_time", "offset": 0, "length": 1, "unix_time": 1, "date_time_format": layout}
    with pytest.raises(Refused, match="date_time_format"):
        check_entities([entity], "x")


@pytest.mark.parametrize(
    "button",
    [
        {"text": "x"},
        {"text": " ", "callback_data": "x"},
        {"text": "x", "callback_data": ""},
        {"text": "x", "callback_data": "x", "url": "https://example.org"},
        {"text": "x", "callback_data": "x", "style": "rainbow"},
        {"text": "x", "url": "http://localhost:8787/"},
        {"text": "x", "url": "javascript:alert(1)"},
        "x",
    ],
)
def test_buttons_nobody_could_use_are_refused(button: object) -> None:
    with pytest.raises(Refused):
        check_keyboard({"inline_keyboard": [[button]]})


def test_links_are_found_outside_code_only() -> None:
    text = "🔥 /stop @ops_team #prod https://example.org a/b mail@example.org"
    assert links_in(text, []) == ["/stop", "@ops_team", "#prod", "https://example.org"]
    assert links_in(text, [{"type": "code", "offset": 0, "length": units(text)}]) == []


def test_a_standing_clock_moves_only_by_hand() -> None:
    source = [100.0]
    clock = ServerClock(lambda: source[0])
    clock.freeze(True)
    source[0] = 150.0
    clock.advance(5)
    assert clock.now() == 105.0
    clock.freeze(False)
    source[0] = 151.0
    assert clock.now() == 106.0
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1)

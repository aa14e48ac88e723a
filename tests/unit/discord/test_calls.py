"""What Discord's refusals mean, and what must not be logged."""

from __future__ import annotations

import logging

import pytest

from signoff.errors import AdapterError, AdapterUnavailable, MessageGone, RateLimited, SendAmbiguous, SendRefused
from signoff_adapters.discord.calls import (
    HideToken,
    OldEdits,
    Rejected,
    Throttled,
    Unauthorized,
    _failure,
    as_edit_error,
    as_send_error,
)
from signoff_adapters.failures import AnswerLost, CallFailed, NotSent, ServerTrouble


@pytest.mark.parametrize(
    ("error", "send", "edit"),
    [
        (NotSent("no connection"), AdapterUnavailable, AdapterUnavailable),
        (AnswerLost("no answer"), SendAmbiguous, AdapterUnavailable),
        (ServerTrouble("502"), SendAmbiguous, AdapterUnavailable),
        (Unauthorized("401"), AdapterUnavailable, AdapterUnavailable),
        (Throttled(7), RateLimited, RateLimited),
        (Rejected(404, 10008, ""), MessageGone, MessageGone),
        (OldEdits(600), AdapterUnavailable, AdapterUnavailable),
        (Rejected(400, 50035, "Invalid Form Body"), SendRefused, SendRefused),
        (Rejected(404, 0, ""), SendRefused, SendRefused),
    ],
)
def test_what_a_failure_means(error: CallFailed, send: type[AdapterError], edit: type[AdapterError]) -> None:
    assert type(as_send_error(error)) is send
    assert type(as_edit_error(error)) is edit


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (404, 10003, "chat_not_found"),
        (403, 50001, "no_access"),
        (403, 50013, "no_rights"),
        (403, 50007, "blocked"),
        (400, 50083, "archived"),
        (413, 40005, "attachment"),
        (413, 0, "attachment"),
        (400, 50035, "refused"),
    ],
)
def test_refusals_have_a_stable_reason(status: int, code: int, reason: str) -> None:
    refused = as_send_error(Rejected(status, code, "text"))
    assert refused.facts["reason"] == reason


@pytest.mark.parametrize(
    ("status", "body", "header", "kind"),
    [
        (429, b'{"retry_after": 0.75, "global": true}', "1", Throttled),
        (429, b"<html>banned</html>", "60", Throttled),
        (429, b'{"code": 30046, "message": "too many edits"}', "", OldEdits),
        (401, b'{"code": 0, "message": "401: Unauthorized"}', "", Unauthorized),
        (401, b'{"code": 50027, "message": "Invalid Webhook Token"}', "", Rejected),
        (503, b"", "", ServerTrouble),
        (404, b"[]", "", Rejected),
    ],
)
def test_answers_are_told_apart(status: int, body: bytes, header: str, kind: type[CallFailed]) -> None:
    assert type(_failure(status, body, header)) is kind


@pytest.mark.parametrize(
    ("body", "header", "wait_s"),
    [
        (b'{"retry_after": 0.75}', "9", 0.75),
        (b"no json", "60", 60.0),
        (b"no json", "soon", 5.0),
        (b'{"retry_after": -1}', "", 5.0),
        (b'{"retry_after": "x"}', "3", 3.0),
    ],
)
def test_the_wait_is_taken_from_where_it_stands(body: bytes, header: str, wait_s: float) -> None:
    error = _failure(429, body, header)
    assert isinstance(error, Throttled)
    assert error.retry_after_s == wait_s


@pytest.mark.parametrize(
    ("body", "for_all"),
    [
        (b'{"retry_after": 0.75, "global": true}', True),
        (b'{"retry_after": 0.75, "global": false}', False),
        (b'{"retry_after": 0.75}', False),
        (b"<html>banned</html>", True),
    ],
)
def test_a_wait_says_whom_it_is_for(body: bytes, for_all: bool) -> None:
    error = _failure(429, body, "60")
    assert isinstance(error, Throttled)
    assert error.for_all == for_all


def test_a_refused_field_is_named() -> None:
    body = b'{"code": 50035, "message": "Invalid Form Body", "errors": {"content": {"_errors": [{"message": "long"}]}}}'
    assert "(content: long)" in str(_failure(400, body, ""))


def test_the_token_and_whole_frames_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    hide = HideToken("SECRET")
    hide.attach()
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("aiohttp.client").info("sent %s", "Bot SECRET")
        logging.getLogger("discord.gateway").debug("WebSocket Event: %s", {"token": "of an interaction"})
        logging.getLogger("discord.gateway").warning("slow")
    hide.detach()
    assert [record.getMessage() for record in caplog.records] == ["sent Bot <token>", "slow"]

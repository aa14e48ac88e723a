"""What the adapters share about files, posted bodies, addresses and lengths."""

from __future__ import annotations

import io
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from signoff.errors import AdapterError, AdapterUnavailable, SendAmbiguous, SendRefused
from signoff.model import Attachment, Destination
from signoff_adapters.addresses import host_of
from signoff_adapters.bodies import BODY_MAX_BYTES, WINDOW_S, fresh, read_body
from signoff_adapters.files import as_file_error, file_key
from signoff_adapters.lengths import cut, units
from signoff_adapters.recent import Recent

HERE = Destination("telegram", "1")


def test_a_file_is_known_again_by_place_name_and_content() -> None:
    key = file_key(HERE, Attachment("a.txt", b"1"))
    assert key == file_key(Destination("telegram", "1"), Attachment("a.txt", b"1"))
    others = {
        file_key(Destination("telegram", "2"), Attachment("a.txt", b"1")),
        file_key(HERE, Attachment("b.txt", b"1")),
        file_key(HERE, Attachment("a.txt", b"2")),
    }
    assert len(others) == 3
    assert key not in others


def test_a_files_failure_is_told_of_the_card() -> None:
    about = {"too_long"}
    lost = as_file_error(SendAmbiguous("lost", answered=False), about)
    assert type(lost) is AdapterUnavailable
    refused = as_file_error(SendRefused("It is long.", reason="too_long"), about)
    assert refused.facts["reason"] == "attachment"
    assert refused.message == "The file could not be attached. It is long."
    other: AdapterError = SendRefused("Nobody is there.", reason="chat_not_found")
    assert as_file_error(other, about) is other


@pytest.mark.parametrize(
    ("size", "listener_max", "read"),
    [
        (BODY_MAX_BYTES, 2 * BODY_MAX_BYTES, True),
        (BODY_MAX_BYTES + 1, 2 * BODY_MAX_BYTES, False),
        (2048, 1024, False),
    ],
)
async def test_a_body_is_read_up_to_its_limit(size: int, listener_max: int, *, read: bool) -> None:
    got: list[bytes | None] = []

    async def handle(request: web.Request) -> web.Response:
        got.append(await read_body(request))
        return web.Response()

    app = web.Application(client_max_size=listener_max)
    app.router.add_post("/", handle)
    async with TestClient(TestServer(app)) as client:
        await client.post("/", data=io.BytesIO(b"x" * size))
    assert got == [b"x" * size if read else None]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://hooks.example/secret?token=1", "hooks.example"),
        ("https://user:secret@hooks.example:8443/x", "hooks.example:8443"),
        ("nonsense", "an unknown host"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, host: str) -> None:
    assert host_of(url) == host


def test_half_a_character_has_no_length() -> None:
    assert [units(text) for text in ("", "a", "é", "🛑", "e\u0301")] == [0, 1, 1, 2, 2]
    with pytest.raises(SendRefused) as refused:
        units("\ud83d")
    assert refused.value.facts["reason"] == "not_text"


def test_the_oldest_is_forgotten() -> None:
    recent: Recent[int, int] = Recent(2)
    for number in (1, 2, 1, 3):
        recent.put(number, number)
    assert [number in recent for number in (1, 2, 3)] == [True, False, True]
    assert (recent.newest(), list(recent)) == (3, [1, 3])


def test_a_request_was_signed_lately() -> None:
    now = int(time.time())
    assert all(fresh(str(now + off)) for off in (0, WINDOW_S - 60, 60 - WINDOW_S))
    assert not any(fresh(str(now + off)) for off in (WINDOW_S + 60, -WINDOW_S - 60))
    assert not any(fresh(odd) for odd in ("", "now", "-1", "1.5", "²", "9" * 13))


def test_a_cut_text_shows_that_there_is_more() -> None:
    assert [cut("four", limit) for limit in (5, 4, 3)] == ["four", "four", "fo…"]

"""What the examination says of the receivers of webhooks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.hooks.receiver import SECRET, receiving

from signoff.doctoring.hooks import MANY_BEHIND, hook_findings, reach_findings
from signoff.settings import HookSettings, Profile

OK: dict[str, Any] = {"state": "ok", "seq": 7, "behind": 0, "failing_since": None, "parked": 0, "detail": ""}


def told(url: str) -> Profile:
    """A profile with one receiver."""
    return Profile(hooks={"audit": HookSettings(url=url, secret=SECRET)})


@pytest.mark.parametrize(
    ("url", "level", "words"),
    [
        ("https://audit.example.org/x?key=secret-value", "ok", "over https at audit.example.org"),
        ("http://127.0.0.1:9/x", "ok", "which is this machine"),
        ("http://audit.example.org/x", "problem", "http to audit.example.org is no way to tell it"),
        ("audit.example.org", "problem", "no scheme"),
    ],
)
def test_the_address(url: str, level: str, words: str) -> None:
    (found,) = hook_findings(told(url), None)
    assert (found.about, found.level) == ("hooks.audit", level)
    assert words in found.text
    assert "secret-value" not in found.text + found.mend


@pytest.mark.parametrize(
    ("state", "level", "words"),
    [
        (OK, "ok", "Its deliveries go through."),
        ({**OK, "behind": MANY_BEHIND + 1}, "warning", "1001 events behind"),
        ({**OK, "behind": None}, "ok", "go through"),
        (
            {**OK, "state": "failing", "failing_since": "2026-01-05T09:00:00Z", "detail": "HTTP 500", "behind": 3},
            "problem",
            "failing since 2026-01-05T09:00:00Z: HTTP 500. It is 3 events behind.",
        ),
        ({**OK, "state": "failing", "parked": 4, "detail": "HTTP 500"}, "problem", "4 events were given up"),
        (None, "problem", "does not know it"),
    ],
)
def test_what_the_running_gateway_says(state: dict[str, Any] | None, level: str, words: str) -> None:
    states = {} if state is None else {"default/audit": state}
    _, found = hook_findings(told("https://audit.example.org/x"), states)
    assert found.level == level
    assert words in found.text


async def test_a_receiver_that_listens_is_reached_and_nothing_is_posted() -> None:
    async with receiving() as receiver:
        (found,) = await reach_findings(told(receiver.url))
        assert (found.level, found.text) == ("ok", "127.0.0.1 takes connections.")
        assert receiver.tried == []


async def test_one_that_does_not_listen_is_not() -> None:
    (found,) = await reach_findings(told("http://127.0.0.1:9/x"))
    assert found.level == "problem"
    assert "127.0.0.1 cannot be reached: " in found.text


async def test_tls_that_fails_is_told() -> None:
    async def plain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        (found,) = await reach_findings(told(f"https://127.0.0.1:{port}/x"))
    assert found.level == "problem"
    assert "cannot be reached" in found.text


async def test_a_proxy_is_not_gone_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    (found,) = await reach_findings(told("https://audit.example.org/x"))
    assert (found.level, "proxy" in found.text) == ("warning", True)

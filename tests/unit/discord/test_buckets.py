"""Limits that Discord's answers announce are kept before it has to refuse."""

from __future__ import annotations

import pytest
from tests.contract.test_discord import discord_stage

from signoff.errors import RateLimited
from signoff.testing.adapter_stage import RecordingInbox, card, running
from signoff_adapters.discord.buckets import Buckets

EMPTY = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "2.5"}


def test_an_empty_bucket_is_waited_for() -> None:
    buckets = Buckets()
    buckets.heard("POST", "/channels/1/messages", EMPTY, 100.0)
    assert buckets.wait_s("POST", "/channels/1/messages", 101.0) == 1.5
    assert buckets.wait_s("POST", "/channels/2/messages", 101.0) == 0
    assert buckets.wait_s("PATCH", "/channels/1/messages/7", 101.0) == 0
    assert buckets.wait_s("POST", "/channels/1/messages", 102.5) == 0


def test_edits_of_one_channel_share_a_bucket() -> None:
    buckets = Buckets()
    buckets.heard("PATCH", "/channels/1/messages/7", EMPTY, 0.0)
    assert buckets.wait_s("PATCH", "/channels/1/messages/8", 0.0) == 2.5


@pytest.mark.parametrize(
    "headers",
    [
        {"X-RateLimit-Remaining": "1", "X-RateLimit-Reset-After": "2"},
        {"X-RateLimit-Remaining": "0"},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "soon"},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "nan"},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "-1"},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "1e9"},
    ],
)
def test_what_announces_nothing_holds_up_nothing(headers: dict[str, str]) -> None:
    buckets = Buckets()
    buckets.heard("POST", "/channels/1/messages", headers, 0.0)
    assert buckets.wait_s("POST", "/channels/1/messages", 0.0) == 0


def test_a_refusal_of_one_message_holds_up_no_other() -> None:
    buckets = Buckets()
    buckets.hold_one("PATCH", "/channels/1/messages/7", 600.0, 100.0)
    assert buckets.wait_of_one_s("PATCH", "/channels/1/messages/7", 101.0) == 599.0
    assert buckets.wait_of_one_s("PATCH", "/channels/1/messages/8", 101.0) == 0
    assert buckets.wait_s("PATCH", "/channels/1/messages/7", 101.0) == 0
    assert buckets.wait_of_one_s("PATCH", "/channels/1/messages/7", 700.0) == 0


def test_a_refusal_of_all_holds_up_all_and_the_longest_of_two_counts() -> None:
    buckets = Buckets()
    buckets.hold_all(60.0, 100.0)
    buckets.hold_all(1.0, 100.0)
    buckets.heard("POST", "/channels/1/messages", EMPTY, 159.0)
    assert buckets.wait_s("GET", "/users/@me", 101.0) == 59.0
    assert buckets.wait_s("POST", "/channels/1/messages", 159.0) == 2.5
    assert buckets.wait_s("GET", "/users/@me", 160.0) == 0
    buckets.hold_all(1e6, 0.0)
    assert buckets.wait_s("GET", "/users/@me", 0.0) == 3600


async def test_discord_never_has_to_refuse() -> None:
    held: RateLimited | None = None
    async with discord_stage("gateway") as stage, running(stage, RecordingInbox()) as adapter:
        await stage.discord.set_limits(mode="enforce")
        for number in range(20):
            try:
                await adapter.post(stage.group, card(f"number {number}", rows=()))
            except RateLimited as error:
                held = error
                break
        report = await stage.discord.limit_report()
    assert held is not None
    assert 0 < held.retry_after_s <= 10
    assert report.total == 0

"""The adapter's settings and its own refusals."""

from __future__ import annotations

from typing import Any

import pytest

from signoff.errors import ConfigError
from signoff.testing.clock import FakeClock
from signoff_adapters.discord import DiscordAdapter, DiscordConfig


@pytest.mark.parametrize(
    ("wrong", "setting"),
    [
        ({"token": ""}, "token"),
        ({"api_base_url": "discord.com"}, "api_base_url"),
        ({"gateway_url": "https://gateway.discord.gg"}, "gateway_url"),
        ({"public_key": "abc"}, "public_key"),
    ],
)
def test_what_cannot_work_names_the_setting(wrong: dict[str, Any], setting: str) -> None:
    with pytest.raises(ValueError, match=f"platforms.discord.{setting}"):
        DiscordConfig(**{"token": "t", **wrong})


def test_http_mode_needs_a_key_and_an_address() -> None:
    with pytest.raises(ConfigError, match=r"platforms\.discord\.public_key") as refused:
        DiscordAdapter(DiscordConfig(token="t", mode="http", hooks_url="https://x"), clock=FakeClock(), profile="ops")
    assert refused.value.param == "platforms.discord.public_key"
    with pytest.raises(ConfigError, match="hooks listener"):
        DiscordAdapter(DiscordConfig(token="t", mode="http", public_key="a" * 64), clock=FakeClock(), profile="ops")


def test_the_secrets_are_not_shown() -> None:
    config = DiscordConfig(token="SECRET", hook_secret="HOOK", public_key="a" * 64)
    assert "SECRET" not in repr(config)
    assert "HOOK" not in repr(config)

"""The adapter's settings."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from ..addresses import check_address

_PUBLIC_KEY = re.compile(r"[0-9a-fA-F]{64}")


class DiscordConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach Discord and how to receive.

    The time limits have defaults that suit Discord: an interaction must be answered within 3 s, so the neutral answer
    comes after 1.5 s. The gateway asks for a heartbeat about every 41 s, which would leave a dead connection unnoticed
    for longer than people wait; one every 10 s stays far below the 120 frames a minute that a client may send.
    """

    token: str
    api_base_url: str = "https://discord.com"
    """An origin; `/api/v10` is added."""
    gateway_url: str = "wss://gateway.discord.gg/"
    """The whole address of the gateway; its query is added."""
    mode: Literal["gateway", "http"] = "gateway"
    public_key: str | None = None
    """The application's public key in hexadecimal, which signs what Discord posts; http mode only."""
    hooks_url: str | None = None
    """The full public address that Discord posts interactions to; http mode only."""
    hook_secret: str | None = None
    """Taken because every platform is given one; Discord proves itself by its signature instead."""
    connect_timeout_s: float = 5.0
    answer_timeout_s: float = 4.0
    upload_timeout_s: float = 7.0
    settle_within_s: float = 9.0
    """Within that long from the first try a post whose answer was lost is settled by trying it again."""
    slow_tap_s: float = 1.5
    stuck_after_s: float = 60.0
    """A command still in hand after that no longer holds up its channel."""
    drain_s: float = 3.5
    """How long a stop waits for what was already received: nearly all of its 4 s, since the next start can make an edit
    that was not made, but cannot answer a press that was taken."""
    check_every_s: float = 30.0
    """How often Discord is asked whether presses still come here."""
    heartbeat_every_s: float = 9.5
    """Discord asks for one each 41 s; silence would then be noticed too late."""
    silence_s: float = 22.0
    """A gateway connection on which nothing came for so long is given up: two heartbeats without an answer."""
    greeting_timeout_s: float = 10.0
    """How long the gateway may take to greet, and to begin or resume a session."""
    identify_gap_s: float = 5.0
    """Least time between two new sessions; Discord refuses a second one within 5 s."""

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot work."""
        if not self.token:
            raise ValueError("platforms.discord.token is empty; put the bot's token from the Developer Portal")
        check_address(self.api_base_url, "platforms.discord.api_base_url", "an origin such as https://discord.com")
        form = "an address such as wss://gateway.discord.gg/"
        check_address(self.gateway_url, "platforms.discord.gateway_url", form, ("ws", "wss"))
        if self.public_key is not None and not _PUBLIC_KEY.fullmatch(self.public_key):
            raise ValueError("platforms.discord.public_key must be the application's public key: 64 hexadecimal digits")

    def __repr__(self) -> str:
        """Without the secrets, because settings end up in logs."""
        return f"DiscordConfig(mode={self.mode!r}, api_base_url={self.api_base_url!r})"

"""The adapter's settings."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..addresses import check_address


class TelegramConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach the Bot API and how to receive.

    The time limits have defaults that suit Telegram: a poll is held open 25 s (the server allows 50), an answer to any
    other call is awaited 10 s. A press can be answered for about 15 s, so the neutral answer comes early, after 1.5 s.
    """

    token: str
    api_base_url: str = "https://api.telegram.org"
    """An origin; `/bot<token>` and `/file/bot<token>` are added."""
    mode: Literal["polling", "webhook"] = "polling"
    hooks_url: str | None = None
    """The full public address that Telegram posts updates to; webhook mode only."""
    hook_secret: str | None = None
    """What Telegram sends along as proof; 1-256 characters of `A-Za-z0-9_-`; webhook mode only."""
    poll_timeout_s: int = 25
    connect_timeout_s: float = 5.0
    answer_timeout_s: float = 10.0
    upload_timeout_s: float = 30.0
    slow_tap_s: float = 1.5
    stuck_after_s: float = 60.0
    """An update still in hand after that no longer holds up its chat and the offset."""
    drain_s: float = 3.5
    """How long a stop waits for what was already received: nearly all of its 4 s, since the next start can make an edit
    that was not made, but cannot answer a press that was taken."""
    check_every_s: float = 30.0
    """How often webhook mode asks Telegram whether it can still deliver."""

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot work."""
        if not self.token:
            raise ValueError("platforms.telegram.token is empty; put the token that @BotFather gave you")
        check_address(
            self.api_base_url, "platforms.telegram.api_base_url", "an origin such as https://api.telegram.org"
        )

    def __repr__(self) -> str:
        """Without the secrets, because settings end up in logs."""
        return f"TelegramConfig(mode={self.mode!r}, api_base_url={self.api_base_url!r})"

"""The adapter's settings."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..addresses import check_address


class SlackConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach the Web API and how to receive.

    Slack waits 3 s for the acknowledgement of anything a person did, hence the neutral answer after 1.5 s. A socket is
    asked for a sign of life every 10 s and given up when none comes within `answer_timeout_s`: healed within 30 s.
    """

    bot_token: str
    app_token: str | None = None
    """The app-level token with `connections:write`; socket mode only."""
    signing_secret: str | None = None
    """What Slack signs its requests with; http mode only."""
    api_base_url: str = "https://slack.com"
    """An origin; `/api/` is added."""
    mode: Literal["socket", "http"] = "socket"
    hooks_url: str | None = None
    """The public address that the app's request URLs must name; given in http mode, for messages to the operator."""
    hook_secret: str | None = None
    """Unused: Slack signs with its own secret. Every adapter in a hook mode is given one."""
    connect_timeout_s: float = 5.0
    answer_timeout_s: float = 10.0
    upload_timeout_s: float = 30.0
    slow_tap_s: float = 1.5
    slow_event_s: float = 2.5
    """An event not settled by then is refused over HTTP, so that Slack delivers it again; below Slack's 3 s."""
    stuck_after_s: float = 60.0
    """A message still in hand after that no longer holds up its chat."""
    drain_s: float = 3.5
    """How long a stop waits for what was already received: nearly all of its 4 s, since the next start can make an edit
    that was not made, but cannot answer a press that was taken."""
    check_every_s: float = 30.0
    """How often Slack is asked whether the token still holds."""
    ping_every_s: float = 10.0
    sockets: int = 2
    """Connections held open: while one is renewed or broken, the other still receives. Slack allows 10."""
    linger_s: float = 10.0
    """How long a socket that Slack wants renewed is still read; Slack announces about 10 s."""
    echo_s: float = 5.0
    """A posted message that Slack is known to report back is missed after that: the sockets are deaf."""
    renew_after_s: float = 900.0
    """A socket that brought nothing for so long is renewed: idle ones were seen to be connected and deaf."""
    turn_every_s: float = 75.0
    """Within an hour of a card with buttons one quiet socket is renewed that often, each in its turn: nothing else
    shows that a press would get through. Slack allows a new one about once a minute."""
    file_shown_s: float = 5.0
    """How long a card waits for its file to appear in the chat."""

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot work."""
        if not self.bot_token:
            raise ValueError("platforms.slack.bot_token is empty; put the Bot User OAuth Token (xoxb-...) of the app")
        check_address(self.api_base_url, "platforms.slack.api_base_url", "an origin such as https://slack.com")

    def __repr__(self) -> str:
        """Without the secrets, because settings end up in logs."""
        return f"SlackConfig(mode={self.mode!r}, api_base_url={self.api_base_url!r})"

"""What the HTTP door needs of the gateway behind it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from signoff.allowlist_rows import AllowlistRows
from signoff.allowlisting import Allowlisting
from signoff.broker import Broker
from signoff.catching_up import CatchUps, Listening
from signoff.keys import Keys
from signoff.ports import ChatAdapter, Clock, Store
from signoff.sessions import Sessions
from signoff.settings import Profile
from signoff.staged import Staged
from signoff.telemetry import Telemetry


class Core(Protocol):
    """The gateway, as the server sees it."""

    @property
    def broker(self) -> Broker:
        """Ask, decide, wait, claim."""
        ...

    @property
    def staged(self) -> Staged:
        """Kept actions."""
        ...

    @property
    def sessions(self) -> Sessions:
        """Sessions, turns, notifiers."""
        ...

    @property
    def keys(self) -> Keys:
        """API keys."""
        ...

    @property
    def allowlisting(self) -> Allowlisting | AllowlistRows:
        """The operators' allowlists."""
        ...

    @property
    def store(self) -> Store:
        """The rows, for lists and events."""
        ...

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The tenants by name."""
        ...

    @property
    def telemetry(self) -> Telemetry:
        """The metrics."""
        ...

    @property
    def adapters(self) -> Mapping[tuple[str, str], ChatAdapter]:
        """The connected platforms by profile and platform."""
        ...

    def pages_open(self) -> None:
        """The web console is served from now on, so questions may go there."""
        ...

    @property
    def ready(self) -> bool:
        """Whether the store serves and every platform had its first round."""
        ...

    @property
    def started_at(self) -> datetime:
        """When this gateway started, aware UTC."""
        ...

    @property
    def catch_ups(self) -> CatchUps:
        """What is told after an absence."""
        ...

    @property
    def listening(self) -> list[Listening]:
        """Each tells whether an agent of a profile reads its event stream now."""
        ...

    async def health(self) -> dict[str, Any]:
        """Facts per adapter and of the store, as JSON values. Never raises for a part that is down."""
        ...

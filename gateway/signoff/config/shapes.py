"""The typed configuration."""

from __future__ import annotations

import difflib
from pathlib import Path

from msgspec import Struct

from signoff.config.secrets import Secret
from signoff.errors import ConfigError
from signoff.settings import Profile


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """`gateway.*`, with absolute paths."""

    state_dir: Path
    """The folder of the gateway's own files, mode 0700."""
    store: Secret
    """The store's URL."""
    token_key_file: Path
    """The key that signs buttons, mode 0600."""
    host: str = "127.0.0.1"
    port: int = 8787
    """TCP port of the API; 0 picks a free one."""
    hooks_host: str = "127.0.0.1"
    hooks_port: int = 8788
    """TCP port of the webhook listener; 0 picks a free one."""
    hooks_url: str | None = None
    """The public address of the webhook listener; None: the listener's own."""
    console: bool = True
    """Whether the web console answers under `/console` of the API."""
    console_url: str | None = None
    """The public address under which browsers reach the API; None: there is none, so cards carry no link."""

    @property
    def admin_socket(self) -> Path:
        """The Unix socket for local administration, mode 0600."""
        return self.state_dir / "admin.sock"


class Config(Struct, frozen=True, kw_only=True):
    """Everything the gateway is told from outside. Secrets in it are hidden from `repr`."""

    gateway: GatewaySettings
    profiles: dict[str, Profile]
    file: Path | None = None
    """The file it was read from; None: the environment alone."""
    secret_variables: frozenset[str] = frozenset()
    """The variables that its secrets came from."""

    def profile(self, name: str) -> Profile:
        """The profile of that name; raises `ConfigError` naming the nearest."""
        found = self.profiles.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.profiles, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(self.profiles))}."
            raise ConfigError(f"There is no profile {name!r}; {hint}", param=f"profiles.{name}")
        return found

    @property
    def webhooks(self) -> bool:
        """Whether a platform has its updates sent to the webhook listener."""
        return any(
            settings.get("mode") in ("webhook", "http")
            for profile in self.profiles.values()
            for settings in profile.platforms.values()
        )

"""From a store's URL to an open store, through the entry-point group `signoff.stores`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast
from urllib.parse import urlsplit

from signoff.errors import ConfigError
from signoff.ports import Clock, Store

GROUP = "signoff.stores"
"""Each entry point is named for a URL scheme and loads a `(url, clock) -> Store`."""


def open_store(url: str, clock: Clock) -> Store:
    """Open the store that `url` names, creating it where it does not exist yet.

    Raises `ConfigError` for a scheme that no installed engine serves, and `StoreError` when it cannot be opened.
    """
    scheme = urlsplit(url).scheme
    engines = entry_points(group=GROUP)
    for engine in engines:
        if engine.name == scheme:
            opener = cast("Callable[[str, Clock], Store]", engine.load())
            return opener(url, clock)
    known = ", ".join(f"{name}://" for name in sorted(engines.names)) or "none"
    shown = f"{scheme}://" if scheme else "a URL without a scheme"
    # The URL itself is not shown: it may carry a password.
    raise ConfigError(f"gateway.store names {shown}, which no installed engine serves. Known: {known}.")

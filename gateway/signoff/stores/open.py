"""From a store's URL to an open store, through the entry-point group `signoff.stores`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import entry_points
from typing import cast
from urllib.parse import urlsplit

from signoff.errors import ConfigError
from signoff.folder import locked
from signoff.ports import Clock, Store
from signoff.stores.sqlite_place import make_folder, sqlite_path

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


def serving(url: str) -> AbstractContextManager[None]:
    """Hold this store for one gateway while the block runs: two that serve one file would both post its cards and act
    on its deadlines. Commands that only read or write rows, such as `signoff key`, need no such hold.

    Raises `ConfigError` when another gateway holds it. Engines that are not one file hold nothing.
    """
    if urlsplit(url).scheme != "sqlite":
        return nullcontext()
    path = sqlite_path(url)
    make_folder(path)
    return locked(
        path.with_name(f"{path.name}.lock"),
        f"A gateway already runs on {path}. Stop it, or give this one its own gateway.store.",
    )

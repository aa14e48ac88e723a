"""From a store's URL to an open store, through the entry-point group `signoff.stores`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import EntryPoint, entry_points
from typing import cast
from urllib.parse import urlsplit

from signoff.errors import ConfigError
from signoff.folder import locked
from signoff.ports import Clock, Store
from signoff.stores.sqlite_place import make_folder, sqlite_path

GROUP = "signoff.stores"
"""Each entry point is named for a URL scheme and loads a `(url, clock) -> Store`. Where several gateways may serve one
database, that function has an attribute `shared` that is true."""


def open_store(url: str, clock: Clock) -> Store:
    """Open the store that `url` names, creating it where it does not exist yet.

    Raises `ConfigError` for a scheme that no installed engine serves, and `StoreError` when it cannot be opened.
    """
    return _opener(url)(url, clock)


def shared(url: str) -> bool:
    """Whether several gateways may serve this store at once; told without opening it. Raises `ConfigError`."""
    return bool(getattr(_opener(url), "shared", False))


def _opener(url: str) -> Callable[[str, Clock], Store]:
    scheme, there, _ = url.partition(":")  # the rest is for the engine to read
    scheme = scheme if there else ""
    engines = entry_points(group=GROUP)
    for engine in engines:
        if engine.name == scheme:
            return _loaded(engine)
    known = ", ".join(f"{name}://" for name in sorted(engines.names)) or "none"
    shown = f"{scheme}://" if scheme else "a URL without a scheme"
    # The URL itself is not shown: it may carry a password.
    raise ConfigError(f"gateway.store names {shown}, which no installed engine serves. Known: {known}.")


def _loaded(engine: EntryPoint) -> Callable[[str, Clock], Store]:
    try:
        return cast("Callable[[str, Clock], Store]", engine.load())
    except ImportError as error:
        package = error.name or "a package"
        raise ConfigError(
            f"gateway.store names {engine.name}://, and {package} is not installed."
            f" Run: pip install 'signoff[{', '.join(engine.extras) or 'all'}]'.",
            param="gateway.store",
        ) from error


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

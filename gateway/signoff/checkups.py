"""Finding an adapter's check-up and its class by the platform's name, without importing adapters by name."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, cast

from signoff.errors import ConfigError
from signoff.ports import ChatAdapter, Checkup, Clock

GROUP = "signoff.adapters"
MODULE = "checkup"
"""The module of an adapter's package that examines its platform; an adapter may do without."""


def platforms() -> tuple[str, ...]:
    """The names of the installed adapters."""
    return tuple(sorted(entry_points(group=GROUP).names))


def open_checkup(platform: str, settings: Mapping[str, Any]) -> Checkup | None:
    """The check-up of a platform with these settings; None where its adapter has none. Raises `ConfigError`."""
    module = _module(platform)
    if module is None:
        return None
    return cast("Checkup", module.open_checkup(_factory(platform).config_type(**settings)))


def to_paste(platform: str) -> str:
    """What an operator pastes at the platform to make a bot there; empty where nothing is. Raises `ConfigError`."""
    module = _module(platform)
    return "" if module is None else str(module.TO_PASTE)


def open_adapter(platform: str, settings: Mapping[str, Any], *, clock: Clock, profile: str) -> ChatAdapter:
    """A platform's adapter, connected nowhere yet. Raises `ConfigError`."""
    factory = _factory(platform)
    return cast("ChatAdapter", factory(factory.config_type(**settings), clock=clock, profile=profile))


def _factory(platform: str) -> Any:
    try:
        return _point(platform).load()
    except ImportError as error:
        raise _not_installed(platform, error) from None


def _module(platform: str) -> ModuleType | None:
    package = _point(platform).module
    try:
        if importlib.util.find_spec(f"{package}.{MODULE}") is None:
            return None
        return importlib.import_module(f"{package}.{MODULE}")
    except ImportError as error:
        raise _not_installed(platform, error) from None


def _point(platform: str) -> EntryPoint:
    point = next(iter(entry_points(group=GROUP, name=platform)), None)
    if point is None:
        raise ConfigError(f"platforms.{platform}: no installed adapter serves it.")
    return point


def _not_installed(platform: str, error: ImportError) -> ConfigError:
    return ConfigError(
        f"platforms.{platform}: its library is missing ({error.name}); run: pip install 'signoff[{platform}]'"
    )

"""From the paths that were written to the settings they mean; for what means none, the nearest that exists."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from signoff.config.sources import NAMED, PREFIX, Found, Path_, folded
from signoff.config.table import GATEWAY, NAME, PROFILE, SECTIONS, Setting
from signoff.errors import ConfigError

SUFFIXES = ("_env", "_file")
_BUILT_IN = frozenset({"telegram", "discord", "slack"})
_SECRET_WORDS = ("token", "secret", "key", "password")


class Matcher:
    """Finds settings by path. `platforms` are further installed adapters, whose settings are their own affair."""

    def __init__(self, platforms: Iterable[str] = ()) -> None:
        self._settings = {setting.path: setting for setting in (*GATEWAY, *PROFILE)}
        self._foreign = frozenset(platforms) - _BUILT_IN

    def match(self, path: Path_, found: Found) -> tuple[Setting, str] | None:
        """The setting that a path (without its profile) means and its suffix; None for an empty section.

        Raises `ConfigError` for what is no setting.
        """
        setting, suffix = self._look_up(path)
        if setting is not None:
            return setting, suffix
        if self._is_section(path):
            if found.value == {}:
                return None
            raise ConfigError(
                f"{found.where} is a section, not a value; write {SECTIONS[path[0]]} and its settings under it.",
                param=".".join(path),
            )
        raise ConfigError(self._unknown(path, found), param=".".join(path))

    def _look_up(self, path: Path_) -> tuple[Setting | None, str]:
        general = _general(path)
        if general in self._settings:
            return self._settings[general], ""
        for suffix in SUFFIXES:
            if path[-1].endswith(suffix):
                base = (*general[:-1], general[-1].removesuffix(suffix))
                setting = self._settings.get(base)
                if setting is not None and setting.secret:
                    return setting, suffix
        if len(path) == 3 and path[0] == "platforms" and path[1] in self._foreign:
            return self._foreign_setting(path)
        return None, ""

    def _foreign_setting(self, path: Path_) -> tuple[Setting, str]:
        """A setting of an adapter from elsewhere: passed on as it is, except its approvers and secrets."""
        name, suffix = path[2], ""
        for each in SUFFIXES:
            if name.endswith(each) and any(word in name for word in _SECRET_WORDS):
                name, suffix = name.removesuffix(each), each
        if name == "approvers":
            like = self._settings["platforms", "telegram", "approvers"]
            return Setting(name=".".join(path), doc=like.doc, check=like.check, shape="list"), ""
        secret = any(word in name for word in _SECRET_WORDS)
        full = ".".join((*path[:2], name))
        return Setting(name=full, doc="The adapter's own.", check=_anything, secret=secret), suffix

    def _is_section(self, path: Path_) -> bool:
        general = _general(path)
        if any(known[: len(general)] == general for known in self._settings):
            return True
        return len(path) == 2 and path[0] == "platforms" and path[1] in self._foreign

    def _unknown(self, path: Path_, found: Found) -> str:
        for size in range(len(path) - 1, 0, -1):
            if _general(path[:size]) in self._settings:
                return f"{found.where} goes too deep: {'.'.join(path[:size])} is one value; end there."
        near = self._nearest(path)
        if near is None:
            return f"{found.where} is not a setting, and none is like it; see the list of settings, or remove it."
        return f"{found.where} is not a setting; did you mean {_spelled(near, found)}?"

    def _nearest(self, path: Path_) -> str | None:
        """The setting most like `path`, with the operator's own names put in."""
        names = [self._with_names(known, path) for known in self._settings]
        names += [name + suffix for name, known in zip(list(names), self._settings.values(), strict=True)
                  if known.secret for suffix in SUFFIXES]  # fmt: skip
        close = difflib.get_close_matches(".".join(path), names, n=1, cutoff=0.7)
        if close:
            return close[0]
        # The right name in the wrong section, such as timeout_s at the top.
        by_last = {name.rpartition(".")[2]: name for name in reversed(names)}
        last = difflib.get_close_matches(path[-1], by_last, n=1, cutoff=0.8)
        if last:
            return by_last[last[0]]
        section = difflib.get_close_matches(path[0], SECTIONS, n=1, cutoff=0.7)
        return f"{section[0]}" if section and section[0] != path[0] else None

    @staticmethod
    def _with_names(known: Path_, path: Path_) -> str:
        parts = list(known)
        if "<name>" in parts:
            parts[1] = path[1] if len(path) > 2 and NAME.fullmatch(path[1]) else "NAME"
        return ".".join(parts)


def _general(path: Path_) -> Path_:
    """The path with the operator's own name written `<name>`."""
    return (path[0], "<name>", *path[2:]) if len(path) > 1 and path[0] in NAMED - {"profiles"} else path


def _spelled(name: str, found: Found) -> str:
    """A setting's name as it is written where the mistake stands."""
    if found.env is None:
        return name
    prefix = PREFIX
    if found.env.startswith(f"{PREFIX}PROFILES__"):
        prefix = "__".join(found.env.split("__")[:2]) + "__"
    return prefix + "__".join(part.upper().replace("-", "_") for part in name.split("."))


def _anything(value: Any) -> Any:
    return value


def split_profiles(
    found: Mapping[Path_, Found],
) -> tuple[dict[Path_, Found], dict[str, dict[Path_, Found]]]:
    """The gateway's own settings, and each profile's. The top level is profile `default`.

    Raises `ConfigError` for bad profile names, for names that are too much alike, and for a `default` that is written
    in both places.
    """
    gateway: dict[Path_, Found] = {}
    profiles: dict[str, dict[Path_, Found]] = {"default": {}}
    for path, each in found.items():
        if path[0] == "gateway":
            gateway[path] = each
        elif path[0] != "profiles":
            profiles["default"][path] = each
    for path, each in found.items():
        if path[0] != "profiles":
            continue
        if len(path) == 1 or (len(path) == 2 and each.value != {}):
            raise ConfigError(f"{each.where} is a section, not a value; write {SECTIONS['profiles']}.")
        name, inner = path[1], path[2:]
        if NAME.fullmatch(name) is None:
            raise ConfigError(f"{each.where}: a name has 1 to 64 letters, digits, '.', '_' and '-'; rename it.")
        if inner and inner[0] in ("gateway", "profiles"):
            raise ConfigError(f"{each.where}: {inner[0]} settings stand at the top, not in a profile; move it there.")
        if name == "default" and inner in profiles["default"] and each.env is None:
            raise ConfigError(f"{each.where} is also set at the top, which is profile default; keep one of the two.")
        profiles.setdefault(name, {})
        if inner:
            profiles[name][inner] = each
    _check_names(profiles)
    return gateway, profiles


def _check_names(names: Iterable[str]) -> None:
    """Raise `ConfigError` for profiles that would share a variable's name, or a folder where capitals are ignored."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(folded(name), name)
        if other != name:
            raise ConfigError(
                f"profiles.{name}: the name is too much like that of profile {other!r}; in a variable or a folder's "
                "name they would be one. Rename it.",
                param=f"profiles.{name}",
            )

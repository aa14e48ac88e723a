"""Where settings come from: a TOML file and environment variables, flattened to paths that remember their source."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from signoff.errors import ConfigError
from signoff.toml_problems import FORM, toml_problem

PREFIX = "SIGNOFF_"
NAMED = frozenset({"agents", "principals", "hooks", "executors", "profiles"})
"""Sections whose second part is a name that the operator gives."""
MAX_BYTES = 4 * 1024 * 1024
"""Of a larger file nothing is read: no operator writes one, and a device has no end."""

_TRUE = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

Path_ = tuple[str, ...]


class Found(Struct, frozen=True, kw_only=True):
    """One value as somebody wrote it. `env` is the variable it stood in, None for the file."""

    value: Any
    where: str
    """What an error begins with: the file's name and the dotted setting, or the variable."""
    env: str | None = None


def from_file(path: Path) -> dict[Path_, Found]:
    """The settings of a TOML file; raises `ConfigError` for a file that cannot be read as one."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {path}; create it or name another with --config.") from None
    except OSError as error:
        raise ConfigError(f"The configuration file {path} cannot be read: {error.strerror}.") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_BYTES // 1024 // 1024} MiB, so it is no configuration.")
    try:
        text = raw.decode("utf-8-sig")
        tree = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: this is not UTF-8; save the file as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        line, what = toml_problem(str(error), text)
        raise ConfigError(f"{path}, line {line}: this is not TOML: {what}. {FORM}") from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply to be a configuration; see the list of settings.") from None
    found: dict[Path_, Found] = {}
    _flatten(tree, (), path.name, found)
    return found


def _flatten(tree: Mapping[str, Any], path: Path_, file: str, found: dict[Path_, Found]) -> None:
    for name, value in tree.items():
        here = (*path, name)
        if isinstance(value, dict) and value and not _is_foreign_value(here):
            _flatten(value, here, file, found)
        else:
            found[here] = Found(value=value, where=f"{file}: {'.'.join(here)}")


def _is_foreign_value(path: Path_) -> bool:
    """Whether a table at this path is the value of an adapter's own setting rather than a section."""
    inner = path[2:] if path[0] == "profiles" else path
    return len(inner) == 3 and inner[0] == "platforms"


def from_environment(environ: Mapping[str, str], known: Iterable[Path_]) -> dict[Path_, Found]:
    """The settings in the environment: names with `SIGNOFF_` and `__`. An empty variable counts as not set.

    Names that the operator gave keep the spelling they have in `known`: upper case and `_` for `-` are the variable's.
    """
    spelled = _given_names(known)
    found = {}
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX) or "__" not in name or not value.strip():
            continue
        parts = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
        found[_respelled(parts, spelled)] = Found(value=value, where=name, env=name)
    return found


def _given_names(paths: Iterable[Path_]) -> dict[Path_, str]:
    """Each given name by its folded path: two profiles may spell the name of an agent differently."""
    names = {}
    for path in paths:
        for index in range(1, len(path)):
            if path[index - 1] in NAMED:
                names[_folded_path(path[: index + 1])] = path[index]
    return names


def _respelled(parts: Path_, spelled: Mapping[Path_, str]) -> Path_:
    out = list(parts)
    for index in range(1, len(parts)):
        if parts[index - 1] in NAMED and index in (1, 3):
            out[index] = spelled.get(_folded_path(parts[: index + 1]), parts[index])
    return tuple(out)


def _folded_path(path: Path_) -> Path_:
    return tuple(map(folded, path))


def folded(name: str) -> str:
    """What a given name is in a variable's name; names that are one there cannot stand side by side."""
    return name.lower().replace("-", "_").replace(".", "_")


def typed(text: str, shape: str) -> Any:
    """A variable's text as the setting's type; text that does not fit is returned as it is, for the check to refuse."""
    if shape == "boolean":
        return _TRUE.get(text.strip().lower(), text)
    if shape == "number":
        return _number(text.strip())
    if shape == "list":
        return _items(text.strip())
    return text


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _items(text: str) -> Any:
    """A JSON list, or words between commas."""
    if not text.startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text

"""Where other agents keep their settings, and how the files are read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from signoff.errors import ConfigError
from signoff.setup.importing import Wish, from_claude, from_codex_config, from_codex_rules, from_hermes, from_opencode

PLACES = (
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/rules/*.rules",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
    ".hermes/config.yaml",
)
"""Below a project's folder or a user's home."""
MAX_BYTES = 4 * 1024 * 1024

_JSONC = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.S)
_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(\s*[}\]])', re.S)


def files_of(paths: tuple[str, ...], folder: Path, home: Path) -> list[Path]:
    """The files that are meant: `auto` means all known places below `folder` and `home`, a folder those below it.

    Raises `ConfigError` for a path that is not there.
    """
    found: list[Path] = []
    for text in paths:
        path = Path(text).expanduser()
        if text == "auto":
            found += [*_below(folder), *_below(home)]
        elif path.is_dir():
            found += _below(path)
        elif path.is_file():
            found.append(path)
        else:
            raise ConfigError(f"There is no file {path} to import from.")
    return list({each.resolve(): each for each in found}.values())


def _below(folder: Path) -> list[Path]:
    return [path for place in PLACES for path in sorted(folder.glob(place)) if path.is_file()]


def wishes_of(path: Path) -> tuple[Wish, ...]:
    """What a file wants. Raises `ConfigError` for one that cannot be read, or that is none of these agents'."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES // 1024 // 1024} MiB.")
        return _read(path, data.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {' '.join(str(error).split())}.") from None


def _read(path: Path, text: str) -> tuple[Wish, ...]:
    where = str(path)
    if path.suffix == ".rules":
        return from_codex_rules(text, where)
    if path.suffix == ".toml":
        return from_codex_config(text, where)
    if path.suffix in {".yaml", ".yml"}:
        return from_hermes(_yaml(path, text), where)
    tree = json.loads(_plain_json(text))
    if not isinstance(tree, dict):
        raise ValueError("it holds no object")
    return (*from_claude(tree, where), *from_opencode(tree, where))


def _plain_json(text: str) -> str:
    """JSON without the comments and last commas that opencode allows."""
    bare = _JSONC.sub(lambda found: found[1] or " ", text)
    return _COMMA.sub(lambda found: found[1] or found[2], bare)


def _yaml(path: Path, text: str) -> dict[str, Any]:
    try:
        import yaml  # type: ignore[import-untyped]  # it brings no types
    except ImportError:
        raise ConfigError(f"{path} is YAML, for which PyYAML is needed. Mend: pip install 'signoff[yaml]'") from None
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    if not isinstance(tree, dict):
        raise ValueError("it holds no settings")
    return tree

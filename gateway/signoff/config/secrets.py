"""Text that must not be shown: it works as a string, and its `repr` hides it, in dumps of whole structures too."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from signoff.errors import ConfigError

MAX_SECRET_BYTES = 64 * 1024
"""A secret file larger than this is surely another file."""


class Secret(str):
    """A string whose `repr` is `Secret(…)`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret(…)"


def read_secret_file(path: Path, setting: str) -> str:
    """The stripped content of a secret file.

    Raises `ConfigError` naming `setting` for a file that is missing, unreadable, empty, no text, or open to everybody
    on the machine.
    """
    refuse_open_file(path, setting)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be read: {error.strerror}.", param=setting) from None
    try:
        content = raw[:MAX_SECRET_BYTES].decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{setting}: {path} is not UTF-8 text; put the secret alone in it.", param=setting) from None
    if not content or len(raw) > MAX_SECRET_BYTES:
        size = "empty" if not content else "too large for a secret"
        raise ConfigError(f"{setting}: {path} is {size}; put the secret alone in it.", param=setting)
    return content


def refuse_open_file(path: Path, setting: str) -> None:
    """Raise `ConfigError` unless `path` is a file that others on this machine cannot read.

    The group may read it: orchestrators hand secrets to a service that way.
    """
    try:
        facts = path.stat()
    except FileNotFoundError:
        raise ConfigError(f"{setting}: there is no file {path}; create it or mend the path.", param=setting) from None
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be read: {error.strerror}.", param=setting) from None
    if not stat.S_ISREG(facts.st_mode):
        raise ConfigError(f"{setting}: {path} is not a file; name the file that holds the secret.", param=setting)
    if os.name == "posix" and facts.st_mode & (stat.S_IROTH | stat.S_IWOTH):
        raise ConfigError(
            f"{setting}: {path} is open to everybody on this machine; run: chmod 600 {path}", param=setting
        )

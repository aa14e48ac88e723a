"""Where an SQLite store stands: its path, its folder, and whether the file there is still the one that was opened."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from signoff.errors import ConfigError, StoreUnavailable
from signoff.folder import own_folder


def sqlite_path(url: str) -> Path:
    """The file that `sqlite:///absolute/path.db` names; raises `ConfigError` for another form."""
    parts = urlsplit(url)
    path = Path(unquote("/" + parts.path.lstrip("/")))
    if parts.netloc or parts.query or parts.fragment or path == Path("/"):
        raise ConfigError(f"gateway.store: {url!r} should be sqlite:///absolute/path/of/the/file.db")
    return path


def make_folder(path: Path) -> None:
    """Make the store's folder (0700) where missing. Raises `StoreUnavailable`, and `ConfigError` when it is another
    user's."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            own_folder(path.parent, "gateway.store")  # one that cannot be written is refused for that, with its mend
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be opened for writing: {error.strerror}."
            " Make the folder writable for the gateway's user, or point gateway.store elsewhere.",
            file=str(path),
        ) from error


class Anchor:
    """The file that was opened, by its device and inode: a name may come to stand for another file, or for none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = _identity(path)

    def lost(self) -> StoreUnavailable | None:
        """Why nothing may be saved: what is written to a file without its name is gone with this process."""
        found = _identity(self._path)
        if found is not None and found == self._opened:
            return None
        what = "was removed" if found is None else "was replaced by another file"
        return StoreUnavailable(
            f"{self._path} {what} while the gateway runs; nothing more is saved. Put the file back, or"
            " stop the gateway and start it with what is there.",
            file=str(self._path),
        )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino

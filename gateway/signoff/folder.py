"""The gateway's own folder and the lock beside its store: both are held by one user, and one gateway."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from signoff.errors import ConfigError


def private_folder(folder: Path) -> None:
    """Make the state folder, or see that it is ours, readable to its owner alone. Raises `ConfigError`."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        own_folder(folder, "gateway.state_dir")
        if stat.S_IMODE(folder.stat().st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise ConfigError(f"The state folder {folder} cannot be used (gateway.state_dir): {error.strerror}.") from None


def own_folder(folder: Path, setting: str) -> None:
    """Raise `ConfigError` when another user owns the folder: that one could put its own files in place of ours.

    Root is no exception: what it left there its owner could not use, and what it found there it must not trust.
    """
    owner, me = folder.stat().st_uid, os.geteuid()
    if owner != me:
        name = user_name(owner)
        raise ConfigError(
            f"{setting}: the folder {folder} belongs to user {name}, and this process runs as user {user_name(me)}. "
            f"Run it as that user (sudo -u {name} signoff ...), or name a folder of your own."
        )


def user_name(number: int) -> str:
    """What commands call that user: by name, and `#1000` where it has none, as sudo takes it."""
    import pwd  # on POSIX alone, like fcntl below

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"#{number}"


@contextmanager
def locked(path: Path, taken: str) -> Iterator[None]:
    """Hold a lock file, made 0600 where missing, until the block ends; the kernel drops it when the process dies.

    Raises `ConfigError`: with the words `taken` when another holds it, or when the file cannot be opened.
    """
    import fcntl  # on POSIX alone; a gateway runs there, a client may run elsewhere

    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigError(f"The lock file {path} cannot be opened: {error.strerror}.") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(taken) from None
        yield
    finally:
        os.close(lock)

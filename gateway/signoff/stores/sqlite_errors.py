"""What an SQLite error means for whoever runs the gateway: one line that names the file and the mend."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from signoff.errors import StoreCorrupt, StoreError, StoreUnavailable

_PRIMARY = 0xFF
"""SQLite's extended result codes keep the primary code in the low byte (sqlite.org/rescode.html)."""

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code of an error, or None where Python raised it by itself."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY


def is_locked(error: sqlite3.Error) -> bool:
    """Another process holds the lock."""
    return primary_code(error) in _LOCKED


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """The error to raise instead. Nothing was saved by what failed, and nothing that was saved is touched."""
    code = primary_code(error)
    if code in _DAMAGED:
        return StoreCorrupt(
            f"{path} is damaged or is no Signoff store ({error}). Restore a backup, or move the file away to start"
            " empty; it was left as it is."
        )
    mends = {
        sqlite3.SQLITE_FULL: "the disk is full. Free space there; the store goes on by itself",
        sqlite3.SQLITE_READONLY: "it is read-only. Make the file and its folder writable for the gateway's user",
        sqlite3.SQLITE_PERM: "access was refused. Make the file and its folder writable for the gateway's user",
        sqlite3.SQLITE_CANTOPEN: "it cannot be opened. Make the file and its folder writable for the gateway's user",
        sqlite3.SQLITE_IOERR: "the disk refuses to read or write. Check its space, quota and health",
        sqlite3.SQLITE_BUSY: "another process holds its lock. Stop that process or let it finish",
    }
    mend = mends.get(-1 if code is None else code, "SQLite failed. Look at the message and at the disk")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreUnavailable(f"{path}: {mend} ({name}: {error}). Nothing was saved.", file=str(path))

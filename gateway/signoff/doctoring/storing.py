"""The store: that it opens, can be written, is of a schema that we know, and has room to grow."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from signoff.config import Config
from signoff.doctoring.files import existing, takes_files
from signoff.errors import StoreError
from signoff.ports import Finding
from signoff.stores.migrate import identify, migrations
from signoff.stores.sqlite_place import sqlite_path

LITTLE_BYTES, TOO_LITTLE_BYTES = 1024**3, 100 * 1024**2
"""Free space at which a disk is told to be filling up, and at which a busy day could fill it."""
LOCK_WAIT_S = 2.0
_ABOUT = "store"


def store_findings(config: Config) -> Iterator[Finding]:
    """Look at the store of a gateway that does not run. Nothing is made or changed."""
    scheme = urlsplit(config.gateway.store).scheme
    if scheme == "memory":
        yield Finding.warning(
            _ABOUT,
            "memory:// forgets everything when the gateway ends.",
            "Set gateway.store to sqlite:///…, or leave it out.",
        )
        return
    if scheme in ("postgresql", "postgres"):
        yield from _database(config.gateway.store)
        return
    if scheme != "sqlite":
        yield Finding.fine(_ABOUT, f"{scheme}:// is looked at by the gateway itself when it starts.")
        return
    path = sqlite_path(config.gateway.store)
    folder = existing(path.parent)
    if not path.exists() and not takes_files(folder):
        text = f"{path} cannot be made: {folder} takes nothing of ours."
        yield Finding.problem(_ABOUT, text, "Set gateway.store elsewhere; by default it is in gateway.state_dir.")
        return
    yield _file(path) if path.exists() else Finding.fine(_ABOUT, f"{path} is made at the first start.")
    yield disk_finding(shutil.disk_usage(folder).free, path.parent)


def serving_findings(store: dict[str, Any]) -> Iterator[Finding]:
    """What a running gateway says of its store."""
    if store.get("status") != "ok":
        why = str(store.get("error") or "it does not say why")
        yield Finding.problem(
            _ABOUT, f"The running gateway cannot use its store: {why}", "Mend that; it goes on by itself."
        )
        return
    yield Finding.fine(_ABOUT, "The running gateway reads and writes it.")
    if store.get("listening") is False:
        text = "The database's notifications do not arrive; what other gateways do is seen later."
        yield Finding.warning(_ABOUT, text, "Connect to the server itself, or by a pooler in session mode.")
    if isinstance(free := store.get("free_bytes"), int):
        yield disk_finding(free, Path(str(store.get("file", ""))).parent)


def shared_findings(config: Config) -> Iterator[Finding]:
    """What only a store that several gateways share can tell, whether ours runs or not."""
    if urlsplit(config.gateway.store).scheme not in ("postgresql", "postgres"):
        return
    try:
        from signoff.doctoring.databases import key_findings
    except ImportError:
        return
    yield from key_findings(config.gateway.store, config.gateway.token_key_file)


def disk_finding(free_bytes: int, folder: Path) -> Finding:
    """Whether the disk has room."""
    shown = f"{free_bytes / 1024**3:.1f} GB" if free_bytes >= LITTLE_BYTES else f"{free_bytes // 1024**2} MB"
    text, mend = f"{shown} are free beside {folder}.", "Make room, or set gateway.store to another disk."
    if free_bytes < TOO_LITTLE_BYTES:
        return Finding.problem("disk", text, mend)
    return Finding.warning("disk", text, mend) if free_bytes < LITTLE_BYTES else Finding.fine("disk", text)


def _database(url: str) -> Iterator[Finding]:
    """A store on a server, whose driver may not be installed."""
    try:
        from signoff.doctoring.databases import database_findings
    except ImportError as error:
        yield Finding.problem(
            _ABOUT,
            f"gateway.store names PostgreSQL, and {error.name} is missing.",
            "Run: pip install 'signoff[postgres]'",
        )
        return
    yield from database_findings(url)


def _file(path: Path) -> Finding:
    try:
        version = _opened(path)
    except StoreError as error:
        text, _, mend = error.message.rpartition(". ")
        return Finding.problem(_ABOUT, f"{text or error.message}.", mend or "Point gateway.store elsewhere.")
    except sqlite3.Error as error:
        return Finding.problem(
            _ABOUT,
            f"{path} cannot be opened and written: {error}.",
            "Let this user write it, end whatever locks it, or restore a backup.",
        )
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return Finding.warning(_ABOUT, f"Others on this machine may read {path}.", f"Run: chmod 600 {path}")
    newest = max(migrations())
    later = "" if version == newest else f"; the next start brings it to {newest}"
    return Finding.fine(_ABOUT, f"{path} opens and can be written (schema {version}{later}).")


def _opened(path: Path) -> int:
    """The schema's number. A transaction for writing is begun and taken back."""
    uri = f"file:{quote(str(path))}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_S, isolation_level=None)) as db:
        version = identify(db, path)
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
    return version

"""All requests of a profile, oldest first, read without writing anything: a gateway may be serving the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote, urlsplit

from signoff.errors import ConfigError, StoreError
from signoff.model import ApprovalRequest
from signoff.rows import request_key
from signoff.stores.looking import looking
from signoff.stores.migrate import identify, migrations
from signoff.stores.open import shared
from signoff.stores.packing import unknown_place
from signoff.stores.sqlite_errors import explain
from signoff.stores.sqlite_place import sqlite_path
from signoff.stores.sqlite_shapes import SHAPES, decoded

PAGE = 256
"""Requests read at a time; each page is a snapshot of its own, so that no log grows behind a long read."""
WAIT_S = 5.0
"""How long a read waits for a lock, which readers meet only while a crashed file is recovered."""


def requests(url: str, profile: str) -> Iterator[list[ApprovalRequest]]:
    """Pages of requests as they stand now. Raises `StoreError`, and `ConfigError` for a store that lives in its
    gateway alone."""
    if shared(url):
        yield from _in_database(url, profile)
        return
    if urlsplit(url).scheme != "sqlite":
        raise ConfigError("memory:// lives in its gateway alone and cannot be read beside it.", param="gateway.store")
    path = sqlite_path(url)
    if not path.exists():
        raise StoreError(f"There is no store {path} yet: no question was ever asked.")
    try:
        connected = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=WAIT_S, isolation_level=None)
    except sqlite3.Error as error:
        raise explain(error, path) from error
    with closing(connected) as db:
        try:
            if identify(db, path) < max(migrations()):
                raise StoreError(f"{path} is of an older version: start its gateway once, which brings it up to date.")
            yield from _pages(db, profile)
        except sqlite3.Error as error:
            raise explain(error, path) from error


def _in_database(url: str, profile: str) -> Iterator[list[ApprovalRequest]]:
    with looking(url) as (store, runner):
        after: str | None = None
        while True:
            rows = runner.run(store.find(ApprovalRequest, "profile", profile, limit=PAGE, after=after))
            if rows:
                yield rows
            if len(rows) < PAGE:
                return
            after = request_key(profile, rows[-1].request_id)


def _pages(db: sqlite3.Connection, profile: str) -> Iterator[list[ApprovalRequest]]:
    shape = SHAPES[ApprovalRequest]
    after: tuple[float, str] | None = None
    while True:
        values = (profile, *(after or ()), PAGE)
        found = db.execute(shape.find("profile", after=after is not None), values).fetchone()
        rows: list[ApprovalRequest] = []
        if found is not None and found[0] is not None:
            rows = decoded(shape.decode_list, found[0], shape.name)
        if rows:
            yield rows
        if len(rows) < PAGE:
            return
        key = request_key(profile, rows[-1].request_id)
        order = db.execute(shape.place, (key,)).fetchone()
        if order is None:
            raise unknown_place(shape.table)
        after = (order[0], key)

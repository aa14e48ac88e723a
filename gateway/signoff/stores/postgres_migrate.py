"""Opening the database: whether it can serve, and bringing its schema to this version."""

from __future__ import annotations

import time
from importlib.resources import files
from typing import Any, NamedTuple

import psycopg

from signoff.errors import StoreCorrupt, StoreError, StoreTooNew
from signoff.stores.postgres_errors import explain
from signoff.stores.postgres_place import Place

OLDEST = 14
"""The oldest major version that is served: the oldest that PostgreSQL itself still mends in 2026."""
_LOCK = 0x5369676E6F6666
"""`Signoff` in ASCII: the advisory lock under which the schema is changed."""


class Opened(NamedTuple):
    """What opening found out."""

    schema: int
    server: str
    """The server's version."""
    pos: int
    """Where the event log ended."""
    ahead_s: float
    """How far the server's clock is ahead of ours, in seconds; negative where it is behind."""


def migrations() -> dict[int, str]:
    """The SQL of every migration by its number, from 1 without a gap."""
    folder = files("signoff.stores").joinpath("sql", "postgres")
    scripts = {
        int(entry.name.partition("_")[0]): entry.read_text("utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }
    return dict(sorted(scripts.items()))


def prepare(place: Place) -> Opened:
    """Connect once, see that the server can serve, and apply what is missing of the schema. Two processes may do so at
    the same time.

    Raises `StoreUnavailable`, `StoreTooNew` for a schema of a later version, `StoreCorrupt` for another program's,
    and `StoreError` for a server that is too old or a database that is not UTF-8.
    """
    try:
        with psycopg.connect(**place.options, autocommit=True) as db:
            server = _suitable(db, place)
            with db.transaction():
                schema = _migrate(db, place)
            pos = _one(db, "SELECT pos FROM signoff.head")
            ahead_s = float(_one(db, "SELECT extract(epoch FROM clock_timestamp())")) - time.time()
    except psycopg.Error as error:
        raise explain(error, place.shown) from error
    return Opened(schema, server, pos, ahead_s)


def look(place: Place) -> tuple[str, int]:
    """The server's version and the schema's number, 0 where there is none yet; changes nothing. Raises as `prepare`."""
    try:
        with psycopg.connect(**place.options, autocommit=True) as db:
            return _suitable(db, place), identify(db, place)
    except psycopg.Error as error:
        raise explain(error, place.shown) from error


def identify(db: psycopg.Connection[Any], place: Place) -> int:
    """The schema's number, 0 where there is none. Raises `StoreTooNew` and `StoreCorrupt`."""
    # One statement: another process may be making it between two.
    row = db.execute(
        "SELECT to_regclass('signoff.about') IS NOT NULL, (SELECT count(*) FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'signoff')"
    ).fetchone()
    ours, others = row or (False, 0)
    if not ours:
        if others:
            raise StoreCorrupt(
                f"{place.shown} has a schema named signoff that is another program's. Point gateway.store at another"
                " database; this one was left as it is."
            )
        return 0
    version: int = _one(db, "SELECT schema FROM signoff.about")
    newest = max(migrations())
    if version > newest:
        raise StoreTooNew(
            f"{place.shown} was written by a newer Signoff (schema {version}, this version knows {newest})."
            " Install that version, or point gateway.store elsewhere; it was left as it is."
        )
    return version


def _suitable(db: psycopg.Connection[Any], place: Place) -> str:
    major = db.info.server_version // 10_000
    if major < OLDEST:
        raise StoreError(
            f"{place.shown} is PostgreSQL {major}; Signoff needs {OLDEST} or later. Upgrade the server, or point"
            " gateway.store at another."
        )
    encoding = _one(db, "SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{place.shown} is encoded in {encoding}; Signoff needs UTF8. Make the database with ENCODING 'UTF8'."
        )
    return str(_one(db, "SHOW server_version"))


def _migrate(db: psycopg.Connection[Any], place: Place) -> int:
    scripts = migrations()
    newest = max(scripts)
    if (version := identify(db, place)) == newest:
        return version
    db.execute("SELECT pg_advisory_xact_lock(%s::int8)", (_LOCK,))
    version = identify(db, place)  # somebody else may have been first
    if version == 0 and not _one(db, "SELECT to_regnamespace('signoff') IS NOT NULL"):
        db.execute("CREATE SCHEMA signoff")
    if version == 0:
        db.execute("CREATE TABLE signoff.about (schema integer NOT NULL)")
        db.execute("INSERT INTO signoff.about VALUES (0)")
    for number in range(version + 1, newest + 1):
        db.execute(scripts[number].encode())
    db.execute("UPDATE signoff.about SET schema = %s::int4", (newest,))
    return newest


def _one(db: psycopg.Connection[Any], sql: str) -> Any:
    found = db.execute(sql.encode()).fetchone()
    return None if found is None else found[0]

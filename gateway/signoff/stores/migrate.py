"""Bringing an SQLite file to the schema of this version: numbered SQL files, each in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from signoff.errors import StoreCorrupt, StoreTooNew

APPLICATION_ID = 0x5369676E
"""`Sign` in ASCII, in the file's header: tells our file from another program's database."""


def migrations() -> dict[int, str]:
    """The SQL of every migration by its number, from 1 without a gap."""
    folder = files("signoff.stores").joinpath("sql", "sqlite")
    scripts = {
        int(entry.name.partition("_")[0]): entry.read_text("utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }
    return dict(sorted(scripts.items()))


def migrate(db: sqlite3.Connection, path: Path) -> int:
    """Apply what is missing; returns the schema's number. Another process may migrate at the same time.

    Raises `StoreTooNew` for a file of a later version, `StoreCorrupt` for another program's file, and
    `sqlite3.Error`.
    """
    scripts = migrations()
    newest = max(scripts)
    while (version := identify(db, path)) < newest:
        db.execute("BEGIN IMMEDIATE")
        try:
            if _number(db, "user_version") == version:  # else somebody else was first
                for statement in _statements(scripts[version + 1]):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {version + 1}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    return version


def identify(db: sqlite3.Connection, path: Path) -> int:
    """The file's schema number, 0 for an empty one; changes nothing. Raises as `migrate` does."""
    newest = max(migrations())
    db.execute("BEGIN")  # one snapshot: another process may be making the file
    try:
        version = _number(db, "user_version")
        ours = _number(db, "application_id") == APPLICATION_ID
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    finally:
        db.execute("COMMIT")
    if not ours and (tables or version):
        raise StoreCorrupt(
            f"{path} is another program's database. Point gateway.store elsewhere; the file was left as it is."
        )
    if version > newest:
        raise StoreTooNew(
            f"{path} was written by a newer Signoff (schema {version}, this version knows {newest})."
            " Install that version, or point gateway.store elsewhere; the file was left as it is."
        )
    return version


def _number(db: sqlite3.Connection, pragma: str) -> int:
    value: int = db.execute(f"PRAGMA {pragma}").fetchone()[0]
    return value


def _statements(script: str) -> Iterator[str]:
    """The script's statements one by one: `executescript` would commit the transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement

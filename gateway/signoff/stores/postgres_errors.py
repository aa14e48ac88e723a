"""What a PostgreSQL error means for whoever runs the gateway: one line that names the database and the mend."""

from __future__ import annotations

import psycopg

from signoff.errors import StoreError, StoreUnavailable

_MENDS = {
    "28P01": "the password was refused. Mend the user and password in gateway.store",
    "28000": "the server refuses this user. Mend gateway.store, or the server's pg_hba.conf",
    "3D000": "there is no such database. Make it with CREATE DATABASE, or mend gateway.store",
    "3F000": "the schema signoff is gone. Restore a backup of the database",
    "42P01": "a table of the schema signoff is gone. Restore a backup of the database",
    "42703": "a column of the schema signoff is gone. Restore a backup of the database",
    "42501": "this user may not do that. Let an administrator run: CREATE SCHEMA signoff AUTHORIZATION <user>",
    "25006": "the server can only be read, as a standby can. Point gateway.store at the primary",
    "53100": "the server's disk is full. Free space there; the store goes on by itself",
    "53200": "the server is out of memory. Look at its log",
    "53300": "the server takes no more connections. Raise max_connections, or stop what uses them up",
    "55P03": "another gateway or session held the lock too long, or its commit waits for a standby that is away. End"
    " it, or let it finish",
    "57014": "the server took too long. Look at its load and its log",
}
"""By SQLSTATE (PostgreSQL's appendix A)."""
_WORDS = (
    ("password authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("no pg_hba.conf entry", "28000"),
    ('role "', "28000"),
    ('database "', "3D000"),
    ("session is read-only", "25006"),
    ("too many connections", "53300"),
    ("too many clients", "53300"),
    ("remaining connection slots", "53300"),
)
"""A connection that is refused at its start has no SQLSTATE in the driver, only the server's words."""
_AGAIN = ("40001", "40P01")
"""The server gave up one of several transactions for the others' sake; the same again may go well."""


def is_lost(error: BaseException, connection: psycopg.AsyncConnection[object] | None) -> bool:
    """Whether the connection is gone, so that the server may or may not have done what it was last asked."""
    if isinstance(error, TimeoutError):
        return True
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return connection is None or connection.closed or (error.sqlstate or "").startswith(("08", "57P"))


def may_go_well(error: BaseException) -> bool:
    """Whether the transaction was given up for another's sake."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _AGAIN


def is_locked_out(error: BaseException) -> bool:
    """Whether a lock did not come free in time."""
    return isinstance(error, psycopg.Error) and error.sqlstate == "55P03"


def is_forbidden(error: BaseException) -> bool:
    """Whether this user may not do that."""
    return isinstance(error, psycopg.Error) and error.sqlstate == "42501"


def is_missing(error: BaseException) -> bool:
    """Whether the server lacks a table or column, or the right to it, which other changes may not need."""
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith("42")


def explain(error: BaseException, shown: str) -> StoreError:
    """The error to raise instead; `shown` names the database. Nothing was saved by what failed."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, TimeoutError):
        return StoreUnavailable(
            f"{shown}: no answer in time. See that the server runs and can be reached. Nothing was saved."
        )
    code = getattr(error, "sqlstate", None)
    told = " ".join(str(error).split())
    if code is None:
        code = next((found for words, found in _WORDS if words in told), None)
    mend = _MENDS.get(code or "")
    if mend is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        mend = "it cannot be reached. Start the server, or mend the host and port in gateway.store"
    kind = f"{code}: " if code else ""
    text = f"{shown}: {mend or 'the server failed. Look at the message and at its log'} ({kind}{told})."
    return StoreUnavailable(f"{text} Nothing was saved.")

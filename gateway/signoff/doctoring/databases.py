"""A PostgreSQL store: that the server can be reached, is of a version and schema that we know, and lets us write."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from signoff.changes import token_keys
from signoff.doctoring.clocks import ALLOWED_S, judged
from signoff.errors import ConfigError, StoreError
from signoff.key_marks import MEND
from signoff.keyring import marks
from signoff.loopback import is_loopback
from signoff.model import Note
from signoff.ports import Finding
from signoff.stores.postgres import MOST_AHEAD_S
from signoff.stores.postgres_errors import explain
from signoff.stores.postgres_migrate import look, migrations
from signoff.stores.postgres_place import Place

_ABOUT = "store"
_RIGHTS = """
SELECT current_user, pg_is_in_recovery(), clock_timestamp(), has_database_privilege(current_database(), 'CREATE'),
    (SELECT coalesce(bool_and(has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
        AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')), true)
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'signoff' AND c.relkind = 'r')
"""


def database_findings(url: str) -> Iterator[Finding]:
    """Look at the database that `url` names. Nothing is made or changed, and no password is shown."""
    try:
        place = Place(url)
        server, schema = look(place)
        with psycopg.connect(**place.options, autocommit=True) as db:
            encrypted = bool(db.pgconn.ssl_in_use)
            began = datetime.now(UTC)
            row = db.execute(_RIGHTS).fetchone()
            ours = began + (datetime.now(UTC) - began) / 2
    except ConfigError as error:
        text, _, mend = error.message.partition("; ")
        yield Finding.problem(_ABOUT, f"{text}.", f"{mend[:1].upper()}{mend[1:]}")
        return
    except StoreError as error:
        yield _problem(error.message)
        return
    except psycopg.Error as error:
        yield _problem(explain(error, place.shown).message)
        return
    user, standby, theirs, may_make, may_write = row or ("", False, ours, False, False)
    yield _writable(place, server, schema, str(user), standby=standby, may_make=may_make, may_write=may_write)
    yield clocks_finding(ours, theirs)
    if not encrypted and _far(place.options):
        yield Finding.warning(
            "connection",
            f"The connection to {place.shown} is not encrypted.",
            "Add ?sslmode=verify-full to gateway.store, and TLS to the server.",
        )


def key_findings(url: str, key_file: Path) -> Iterator[Finding]:
    """Whether every gateway of the database signs buttons with a key that is in our file. Silent where one of the two
    cannot be read, which others tell."""
    now = datetime.now(UTC)
    try:
        place = Place(url)
        ours = marks(key_file, now)
        with psycopg.connect(**place.options, autocommit=True) as db:
            row = db.execute("SELECT row FROM signoff.notes WHERE key = %s::text", (token_keys.NOTE,)).fetchone()
    except (ConfigError, psycopg.Error):
        return
    note = None if row is None else msgspec.json.decode(row[0], type=Note)
    if others := token_keys.unknown(note, ours.accepts, now):
        text = f"Another gateway of {place.shown} signs buttons with a key (mark {', '.join(others)}) that {key_file}"
        yield Finding.problem("key file", f"{text} does not hold. What is pressed on its cards is refused here.", MEND)
    elif note is not None:
        yield Finding.fine("key file", f"{key_file} holds the key of every gateway of {place.shown}.")


def _writable(
    place: Place, server: str, schema: int, user: str, *, standby: bool, may_make: bool, may_write: bool
) -> Finding:
    newest, named = max(migrations()), _named(place)
    if standby:
        return _problem(f"{named} is a standby. Point gateway.store at the primary.")
    if schema == 0 and not may_make:
        mend = f"Let an administrator run: CREATE SCHEMA signoff AUTHORIZATION {user}"
        return _problem(f"{named} has no schema yet, and user {user} may not make one. {mend}.")
    if not may_write:
        mend = "Let the user who made them run the gateway, or grant all rights on the tables of the schema signoff"
        return _problem(f"{named} has tables that user {user} may not write. {mend}.")
    if schema == 0:
        return Finding.fine(_ABOUT, f"{named} answers (PostgreSQL {server}); its schema is made at the first start.")
    later = "" if schema == newest else f"; the next start brings it to {newest}"
    return Finding.fine(_ABOUT, f"{named} answers and can be written (PostgreSQL {server}, schema {schema}{later}).")


def _named(place: Place) -> str:
    return f"{place.shown[:1].upper()}{place.shown[1:]}"


def clocks_finding(ours: datetime, theirs: datetime) -> Finding:
    """Compare our clock with the server's: a gateway does not start where they are far apart."""
    found = judged(ours, theirs, "the database")
    if abs((ours - theirs).total_seconds()) <= max(MOST_AHEAD_S, ALLOWED_S):
        return found
    return Finding.problem(found.about, f"{found.text} The gateway does not start so.", found.mend)


def _far(options: dict[str, Any]) -> bool:
    """Whether the server is on another machine."""
    hosts = str(options.get("hostaddr") or options.get("host") or "/").split(",")
    return any(not host.startswith("/") and not is_loopback(host) for host in hosts)


def _problem(message: str) -> Finding:
    """A store's error says what is wrong, then how to mend it."""
    text, _, mend = message.removesuffix(" Nothing was saved.").partition(". ")
    return Finding.problem(_ABOUT, f"{text[:1].upper()}{text[1:]}.", mend)

"""Opening: what cannot serve is told in one line with its mend, and never with the password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.ports import free_port
from tests.services.postgres import PASSWORD, USER, Database, database, fresh_database, server

from signoff.clock import SystemClock
from signoff.errors import ConfigError, SignoffError, StoreCorrupt, StoreError, StoreTooNew, StoreUnavailable
from signoff.rows import TABLES
from signoff.stores import postgres, postgres_migrate
from signoff.stores.open import open_store, shared
from signoff.stores.postgres_migrate import look, migrations, prepare
from signoff.stores.postgres_place import Place

__all__ = ["database"]


def chained(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all behind it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def told(kind: type[SignoffError], words: str) -> Iterator[None]:
    """The block raises that, in one line that has these words; no error behind it has the password."""
    with pytest.raises(kind, match=words) as caught:
        yield
    assert "\n" not in caught.value.message
    for error in chained(caught.value):
        for part in (PASSWORD, "p4ss", "rd%25", "drow"):
            assert part not in f"{error} {error!r} {error.args}"


def refuses(url: str, kind: type[SignoffError], words: str) -> None:
    """Opening raises that."""
    with told(kind, words):
        open_store(url, SystemClock())


def test_a_wrong_password(database: Database) -> None:
    url = database.server.tcp_url(database.name, password="drow")
    refuses(url, StoreUnavailable, r"at 127\.0\.0\.1:\d+: the password was refused\. Mend the user and password")


def test_a_user_that_is_not_there(database: Database) -> None:
    refuses(database.server.url(database.name, user="nobody"), StoreUnavailable, "refuses this user")


def test_a_database_that_is_not_there() -> None:
    refuses(server().tcp_url("nothing"), StoreUnavailable, "no such database. Make it with CREATE DATABASE")


def test_a_server_that_is_not_there(database: Database) -> None:
    url = database.server.tcp_url(database.name, port=free_port())
    refuses(url, StoreUnavailable, "cannot be reached. Start the server, or mend the host and port")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://{USER}:{PASSWORD}@127.0.0.1/x",
        f"postgresql://{USER}:p4ss%zz@127.0.0.1/x",
        f"postgresql://{USER}:p4ss@127.0.0.1:port/x",
        f"postgresql://{USER}:p4/ss@127.0.0.1/x",
        f"postgresql://{USER}:12/p4ss@127.0.0.1/x",
        f"postgresql://{USER}:p4ss@ss@127.0.0.1/x",
        f"postgresql://{USER}:p4ss@[::1/x",
        f"postgresql://{USER}:p4ss@127.0.0.1/x?p4ss=1",
        f"postgresql://{USER}:p4ss@127.0.0.1",
        f"postgresql://{USER}:p4ss@127.0.0.1/",
    ],
)
def test_a_url_that_is_none(url: str) -> None:
    refuses(url, ConfigError, r"gateway\.store .*postgresql://user:password@host:5432/database")


def test_a_user_without_rights() -> None:
    fresh = fresh_database()
    name = f"poor_{fresh.name}"
    fresh.execute(f"CREATE ROLE {name} LOGIN")
    url = fresh.server.url(fresh.name, user=name)
    refuses(url, StoreUnavailable, "CREATE SCHEMA signoff AUTHORIZATION <user>")
    fresh.execute(f"CREATE SCHEMA signoff AUTHORIZATION {name}")
    assert prepare(Place(url)).schema == max(migrations())


def test_another_programs_schema() -> None:
    fresh = fresh_database()
    fresh.execute("CREATE SCHEMA signoff")
    fresh.execute("CREATE TABLE signoff.off (on_what text)")
    refuses(fresh.url, StoreCorrupt, "another program's.*left as it is")
    assert fresh.execute("SELECT count(*) FROM pg_class WHERE relname = 'about'") == [(0,)]


def test_a_schema_of_a_later_version() -> None:
    fresh = fresh_database()
    prepare(Place(fresh.url))
    fresh.execute("UPDATE signoff.about SET schema = schema + 1")
    refuses(fresh.url, StoreTooNew, "newer Signoff")


def test_a_database_in_another_encoding() -> None:
    ours = server()
    ours.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    refuses(ours.url("latin"), StoreError, "encoded in LATIN1.*ENCODING 'UTF8'")


def test_a_database_that_can_only_be_read(database: Database) -> None:
    alter = database.server.execute
    alter(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    try:
        refuses(database.url, StoreUnavailable, r"as a standby can\. Point gateway\.store at the primary")
    finally:
        alter(f"ALTER DATABASE {database.name} RESET default_transaction_read_only")


def test_a_server_that_is_too_old(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_migrate, "OLDEST", 99)
    refuses(database.url, StoreError, r"is PostgreSQL \d\d; Signoff needs 99 or later")


def test_clocks_that_differ(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert abs(prepare(Place(database.url)).ahead_s) < 1
    monkeypatch.setattr(postgres, "MOST_AHEAD_S", -1.0)
    refuses(database.url, StoreError, r"clock of the server .* differ by \d+\.\d s")


def test_many_may_bring_the_schema_up_at_once() -> None:
    fresh = fresh_database()
    with ThreadPoolExecutor(6) as threads:
        found = [opened.result() for opened in [threads.submit(prepare, Place(fresh.url)) for _ in range(6)]]
    assert {opened.schema for opened in found} == {max(migrations())}
    assert fresh.execute("SELECT count(*) FROM signoff.about") == [(1,)]
    assert fresh.execute("SELECT count(*) FROM signoff.head") == [(1,)]


def test_a_migration_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = fresh_database()
    scripts = {**migrations(), max(migrations()) + 1: "CREATE TABLE signoff.more (x int); SELECT 1 / 0;"}
    monkeypatch.setattr(postgres_migrate, "migrations", lambda: scripts)
    refuses(fresh.url, StoreUnavailable, "division by zero")
    assert fresh.execute("SELECT to_regnamespace('signoff') IS NULL") == [(True,)]
    monkeypatch.undo()
    assert prepare(Place(fresh.url)).schema == max(migrations())


def test_looking_changes_nothing() -> None:
    fresh = fresh_database()
    version, schema = look(Place(fresh.url))
    assert (re.match(r"\d\d", version) is not None, schema) == (True, 0)
    assert fresh.execute("SELECT to_regnamespace('signoff') IS NULL") == [(True,)]
    prepare(Place(fresh.url))
    assert look(Place(fresh.url)) == (version, max(migrations()))


def test_the_schema_has_every_column_and_an_index_for_it(database: Database) -> None:
    prepare(Place(database.url))
    rows = database.execute(
        "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'signoff'"
    )
    indexes = {
        name for (name,) in database.execute("SELECT indexname::text FROM pg_indexes WHERE schemaname = 'signoff'")
    }
    for table in TABLES:
        there = {column for name, column in rows if name == table.name}
        wanted = {"key", "ord", "row", *table.columns}
        wanted |= ({"due_at"} if table.due else set()) | ({"urgency"} if table.urgency else set())
        assert there == wanted
        assert {f"{table.name}_{path}" for path in table.columns} <= indexes
        assert not table.due or f"{table.name}_due" in indexes


def test_the_name_of_the_place_has_no_secret(database: Database) -> None:
    place = Place(database.server.tcp_url(database.name))
    assert place.shown == f"the database {database.name} at 127.0.0.1:{database.server.port}"
    assert Place("postgresql://a:b@db.example,db2.example/x").shown == "the database x at db.example,db2.example"
    assert Place("postgres:///x?host=/run/pg").shown == "the database x at /run/pg"


def test_without_the_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith(("signoff.stores.postgres", "psycopg"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refuses("postgresql://u:p4ss@h/x", ConfigError, r"psycopg is not installed. Run: pip install 'signoff\[postgres\]'")


def test_which_stores_several_gateways_may_serve() -> None:
    assert [shared(url) for url in ("postgresql://h/x", "postgres://h/x", "sqlite:///x", "memory://")] == [
        True,
        True,
        False,
        False,
    ]

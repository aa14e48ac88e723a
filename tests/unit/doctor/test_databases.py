"""A PostgreSQL store as `signoff doctor` and other commands find it: each trouble with its mend, never a password."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.services.postgres import PASSWORD, USER, Database, fresh_database, server, worker_database
from tests.unit.cli.front import Front

from signoff.allowlist_rows import AllowlistRows
from signoff.changes.allowlist import Line
from signoff.clock import SystemClock
from signoff.doctoring.databases import clocks_finding, database_findings, key_findings
from signoff.doctoring.storing import serving_findings
from signoff.key_marks import KeyMarks
from signoff.keyring import load_signer, marks
from signoff.model import Actor
from signoff.settings import Profile
from signoff.stores.open import open_store
from signoff.testing.rows import T0

WRONG = "no such p4ss%/wörd"


@pytest.fixture
def database() -> Database:
    """A database with our schema, emptied; the server has another user, who may connect and no more."""
    return worker_database()


@pytest.fixture
def empty() -> Database:
    """A database without a schema, in which the weak user may make none."""
    made = fresh_database()
    made.execute(f"REVOKE CREATE ON DATABASE {made.name} FROM PUBLIC")
    return made


@pytest.fixture
def weak() -> Iterator[str]:
    """A user who may connect and no more."""
    name = f"weak_{fresh_database().name}"
    server().execute(f"CREATE ROLE {name} LOGIN")
    yield name


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Front:
    """Commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return Front(tmp_path, capsys)


async def test_a_database_that_serves(empty: Database) -> None:
    first, *_ = database_findings(empty.url)
    assert first.level == "ok"
    assert "its schema is made at the first start" in first.text
    assert empty.execute("SELECT to_regnamespace('signoff')") == [(None,)], "nothing is made"
    await open_store(empty.url, SystemClock()).aclose()
    found = list(database_findings(empty.url))
    assert [each.level for each in found] == ["ok", "ok"]
    assert "answers and can be written (PostgreSQL " in found[0].text
    empty.execute("UPDATE signoff.about SET schema = 9999")
    [newer] = database_findings(empty.url)
    assert newer.level == "problem"
    assert "written by a newer Signoff" in newer.text
    assert newer.mend.startswith("Install that version")


def test_each_trouble_has_its_mend_and_no_password(database: Database) -> None:
    ours = database.server
    refused = ours.tcp_url(database.name, password=WRONG)
    for url, text, mend in (
        (refused, "the password was refused", "Mend the user and password"),
        (ours.tcp_url("nowhere"), "there is no such database", "Make it with CREATE DATABASE"),
        (ours.tcp_url(database.name, port=1), "cannot be reached", "Start the server"),
        (f"postgresql://{USER}:{quote(WRONG, safe='')}@", "names no database", "Write postgresql://"),
        (f"postgresql://{USER}:{PASSWORD}@127.0.0.1/x", "cannot be read", "Write postgresql://"),
        (f"postgresql://{USER}:{WRONG.replace('%', '')}@h/x", "cannot be read", "Write postgresql://"),
    ):
        [found] = database_findings(url)
        assert (found.level, text in found.text, found.mend.startswith(mend)) == ("problem", True, True), found
        for secret in (WRONG, "wörd", quote(WRONG, safe=""), PASSWORD, quote(PASSWORD, safe="")):
            assert secret not in str(found)


async def test_what_a_user_may_not(empty: Database, weak: str) -> None:
    url = empty.server.url(empty.name, user=weak)
    found = next(database_findings(url))
    assert found.level == "problem"
    assert "may not make one" in found.text
    assert found.mend == f"Let an administrator run: CREATE SCHEMA signoff AUTHORIZATION {weak}."
    await open_store(empty.url, SystemClock()).aclose()
    assert next(database_findings(url)).level == "problem"
    empty.execute(f"GRANT USAGE ON SCHEMA signoff TO {weak}")
    empty.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA signoff TO {weak}")
    found = next(database_findings(url))
    assert "has tables that user" in found.text
    empty.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA signoff TO {weak}")
    assert next(database_findings(url)).level == "ok"


@pytest.mark.parametrize(("ahead_s", "level"), [(0, "ok"), (5, "ok"), (-6, "problem"), (90, "problem")])
def test_the_servers_clock(ahead_s: int, level: str) -> None:
    found = clocks_finding(T0 + timedelta(seconds=ahead_s), T0)
    assert (found.level, "does not start" in found.text) == (level, level == "problem")


def test_a_running_gateway_that_hears_no_notifications() -> None:
    assert [each.level for each in serving_findings({"status": "ok", "listening": True})] == ["ok"]
    fine, late = serving_findings({"status": "ok", "listening": False})
    assert (fine.level, late.level) == ("ok", "warning")
    assert "seen later" in late.text


# --- commands ----------------------------------------------------------------------------------------


def configured(front: Front, url: str) -> None:
    """A configuration with this store."""
    front.write("signoff.toml", f'[gateway]\nstate_dir = "state"\nstore = "{url}"\n')


async def stored(url: str, *texts: str) -> None:
    """Put lines into the store's allowlist."""
    store, clock = open_store(url, SystemClock()), SystemClock()
    rows = AllowlistRows(store, clock, {"default": Profile()}, Path("/nowhere"))
    await rows.change("default", [Line(list="commands", text=text) for text in texts], (), Actor(type="person"))
    await store.aclose()


def test_the_doctor_tells_of_it(front: Front, database: Database) -> None:
    configured(front, database.server.tcp_url(database.name, password=WRONG))
    front.write("state/allowlist.toml", "commands = []\n")
    out = front("doctor", code=1)
    assert "store, store: The database" in out
    assert "the password was refused" in out
    assert "allowlist.toml is not followed: the store has the allowlist" in out
    assert WRONG not in out
    assert quote(WRONG, safe="") not in out


async def test_the_doctor_tells_of_another_gateways_key(front: Front, database: Database) -> None:
    configured(front, database.url)
    clock, key_file = SystemClock(), Path("state/token.key")
    load_signer(key_file, clock.now())
    store = open_store(database.url, clock)
    load_signer(Path("theirs"), clock.now())
    await KeyMarks(store, clock, marks(Path("theirs"), clock.now())).tell()
    await store.aclose()
    out = await asyncio.to_thread(front, "doctor", code=1)
    assert "Another gateway of the database" in out
    assert "Give every gateway the same key file" in out


async def test_check_judges_by_the_stores_allowlist_and_not_by_the_file(front: Front, database: Database) -> None:
    await stored(database.url, "rm -rf build")
    configured(front, database.url)
    front.write("state/allowlist.toml", 'commands = ["rm -rf dist"]\n')
    for command, rung in (("rm -rf build", "allowlist"), ("rm -rf dist", "person")):
        out = await asyncio.to_thread(front, "check", command)
        assert f"Decided by the rung {rung}" in out


def test_check_without_its_store_admits_nothing_and_says_so(front: Front, empty: Database) -> None:
    front.write("state/allowlist.toml", 'commands = ["rm -rf build"]\n')
    for url, why in ((empty.url, "has no store yet"), (empty.server.tcp_url("nowhere"), "there is no such database")):
        configured(front, url)
        out = front("check", "rm -rf build")
        assert "Decided by the rung person" in out
        assert "judged without the allowlist, which stands in the store: the database" in out
        assert why in out
        assert quote(PASSWORD, safe="") not in out
    assert empty.execute("SELECT to_regnamespace('signoff')") == [(None,)], "nothing is made"


def test_policy_try_reads_the_database(front: Front, database: Database, empty: Database) -> None:
    new = front.write("new.toml", "")
    configured(front, database.url)
    assert front.json("policy", "try", str(new))["requests"] == 0
    configured(front, empty.url)
    assert "has no store yet: start its gateway once" in front("policy", "try", str(new), code=75)


def test_keys_are_made_before_the_first_start(front: Front, empty: Database) -> None:
    configured(front, empty.url)
    assert front("key", "create", "--scope", "ops").startswith("sk_")
    assert "live" in front("key", "list")
    configured(front, empty.server.tcp_url(empty.name, password=WRONG))
    out = front("key", "list", code=75)
    assert "the password was refused. Mend the user and password" in out
    assert WRONG not in out


async def test_two_key_files_on_one_database(database: Database, tmp_path: Path) -> None:
    clock = SystemClock()
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for path in (ours, theirs):
        load_signer(path, clock.now())
    store = open_store(database.url, clock)
    assert list(key_findings(database.url, ours)) == []
    await KeyMarks(store, clock, marks(ours, clock.now())).tell()
    assert [each.level for each in key_findings(database.url, ours)] == ["ok"]
    (found,) = key_findings(database.url, theirs)
    assert (found.level, found.about) == ("problem", "key file")
    assert f"(mark {marks(ours, clock.now()).signs}) that {theirs} does not hold" in found.text
    await store.aclose()

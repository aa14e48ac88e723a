"""A store that an older version wrote: its rows are read with what they do not say left out, and go on working."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.core.harness import BY_ANN, World

from signoff.model import ApprovalRequest, Grant
from signoff.rows import BY_ROW
from signoff.stores.migrate import APPLICATION_ID, migrations
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

PUSH = "git push --force origin main"
NEWER = {
    *("coverage", "standing", "once_only", "unread_file", "likeness", "denied_like", "offer_box", "repeat_short"),
    *("repeat_at", "asked_after", "lifted_by", "exact", "filed", "alike", "covered", "refused_by"),
}
"""Fields that rows of the first schema do not have."""
NEWER_COLUMNS = {"answered", "denied_like", "staged", "to_run"}


def written_before(path: Path, rows: list[Any]) -> None:
    """A file of the first schema with these rows, as the version that made it would have written them."""
    with sqlite3.connect(path) as db:
        db.executescript(migrations()[1])
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 1")
        for row in rows:
            table = BY_ROW[type(row)]
            plain = {name: value for name, value in msgspec.to_builtins(row).items() if name not in NEWER}
            old = msgspec.convert(plain, type(row))
            values: dict[str, Any] = {
                path: read(old) for path, read in table.columns.items() if path not in NEWER_COLUMNS
            }
            values |= {"key": table.key(row), "ord": table.order(row) if table.order else 0.0}
            values["row"] = msgspec.json.encode(plain)
            names, marks = ", ".join(values), ", ".join("?" * len(values))
            db.execute(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", list(values.values()))
    db.close()


@pytest.fixture
async def before() -> tuple[list[Any], ApprovalRequest, ApprovalRequest]:
    """Rows of a life with a grant, a question that waits, and a denial."""
    world = World(open_store("memory://", FakeClock()), FakeClock())
    session = await world.session()
    row = await world.ask(PUSH)
    await world.decide(row, "session")
    (grant,) = await world.broker.grants("default")
    waiting = await world.ask("deploy one")
    denied = await world.ask("deploy two")
    await world.decide(denied, "deny")
    rows = [session, grant, *await world.rows()]
    await world.aclose()
    return rows, await world.row(waiting), await world.row(denied)


async def test_rows_from_before_go_on_working(
    tmp_path: Path, before: tuple[list[Any], ApprovalRequest, ApprovalRequest]
) -> None:
    rows, waiting, denied = before
    file = tmp_path / "signoff.db"
    written_before(file, rows)
    clock = FakeClock()
    store = open_store(f"sqlite://{file}", clock)
    world = World(store, clock)
    try:
        (grant,) = await world.broker.grants("default")
        assert (grant.coverage, grant.exact, grant.filed) == ((), None, False)
        assert (await world.submit(PUSH)).outcome == "approved", "it covers what it was given for"
        assert (await world.submit("git push --force origin dev")).outcome is None, "and nothing more"
        assert (await world.row(waiting)).outcome is None
        await world.decide(waiting, "always")
        assert (await world.submit("deploy one")).outcome == "approved"
        assert (await world.row(denied)).outcome == "denied"
        assert (await world.submit("deploy two")).outcome is None, "nothing was remembered then"
        await world.broker.revoke("default", grant.grant_id, BY_ANN)
        assert (await world.submit(PUSH)).outcome is None
    finally:
        await world.aclose()
        await store.aclose()


def test_the_newer_fields_are_those_that_rows_have() -> None:
    fields = {*ApprovalRequest.__struct_fields__, *Grant.__struct_fields__}
    assert fields >= NEWER

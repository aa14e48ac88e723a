"""Allowlists of gateways that share a database: what one does acts on the others, and nothing is lost or comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.services.postgres import worker_database
from tests.unit.allowlist.sharing import (
    ANN,
    OPERATOR,
    added,
    admits,
    always,
    asked,
    gateway,
    lines,
    removed,
    rows,
    standing,
    until,
    wrote,
)

from signoff.allowlist_rows import AllowlistRows
from signoff.changes import allowlist
from signoff.errors import InvalidInput, StoreUnavailable
from signoff.gateway import Gateway
from signoff.model import AllowlistEntry, Grant
from signoff.settings import Profile
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock
from signoff.testing.rows import putting

PUSH = "git push --force origin main"
CLEAN = "rm -rf build"


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that several gateways may open: a file that is said to be one, or that of a server."""
    on_server = getattr(request, "param", "file") == "postgres"
    return worker_database().url if on_server else f"sqlite://{tmp_path / 'shared' / 'store.db'}"


on_both = pytest.mark.parametrize("url", ["file", "postgres"], indirect=True)
"""Where the engine makes a difference."""


async def events(made: Gateway, kind: str) -> list[dict[str, object]]:
    """What the log says of such events."""
    return [event.data for event in await made.store.events("default", 0, limit=1000) if event.type == kind]


# --- what one does acts on the other -----------------------------------------------------------------


@on_both
async def test_a_line_that_one_adds_or_removes_counts_for_the_other(tmp_path: Path, url: str) -> None:
    async with gateway(tmp_path, "one", url) as one, gateway(tmp_path, "two", url) as two:
        assert await asked(two, PUSH) is None
        await added(one, "git push *")
        assert await asked(one, PUSH) == "approved", "at once where it was said"
        await until(lambda: admits(two) == ("git push *",))
        assert await asked(two, PUSH) == "approved"
        await removed(two, "git push *")
        assert await asked(two, PUSH) is None
        await until(lambda: admits(one) == ())
        assert await asked(one, PUSH) is None


@on_both
async def test_always_is_a_line_that_ends_with_its_grant(tmp_path: Path, url: str) -> None:
    async with gateway(tmp_path, "one", url) as one, gateway(tmp_path, "two", url) as two:
        grant = await always(one, CLEAN)
        [line] = await rows(two).lines("default")
        assert (line.text, line.grant_id, line.by) == (CLEAN, grant.grant_id, ANN), "with the decision's own commit"
        await two.session("other", kind="chat", destination="fake:1")
        assert await asked(two, CLEAN, "other") == "approved"
        await two.revoke(grant.grant_id, ANN)
        assert await asked(one, CLEAN) is None, "at once: the other gateway's next question reads it"
        assert await standing(one) == []


async def test_the_line_of_always_taken_out_revokes_it(tmp_path: Path, url: str) -> None:
    async with gateway(tmp_path, "one", url) as one, gateway(tmp_path, "two", url) as two:
        grant = await always(one, CLEAN)
        assert await added(one, CLEAN) == allowlist.Changed(), "it stands there"
        changed = await removed(two, CLEAN)
        assert [each.grant_id for each in changed.ended] == [grant.grant_id]
        assert await asked(one, CLEAN) is None
        ended = await one.store.get(Grant, f"default\x1f{grant.grant_id}")
        assert ended is not None
        assert ended.revoked_by == OPERATOR


async def test_unattended_lines_count_where_nobody_could_answer(tmp_path: Path, url: str) -> None:
    async with gateway(tmp_path, "one", url) as one, gateway(tmp_path, "two", url) as two:
        await added(one, "git push --force origin nightly", name="unattended_commands")
        await added(one, PUSH)
        await two.session("job", kind="cron")
        await until(lambda: admits(two) == (PUSH,))
        assert await asked(two, "git push --force origin nightly", "job") == "approved"
        assert await asked(two, PUSH, "job") != "approved"


async def test_profiles_keep_their_lines_apart(tmp_path: Path, url: str) -> None:
    text = "[profiles.a]\n[profiles.b]\n"
    async with gateway(tmp_path, "one", url, text) as one, gateway(tmp_path, "two", url, text) as two:
        await added(one, PUSH, profile="a")
        await until(lambda: admits(two, "a") == (PUSH,))
        assert (admits(two, "b"), admits(two)) == ((), ())
        assert await asked(two, PUSH, profile="b") is None
        foreign = [line.id for line in await rows(one).lines("a")]
        assert await rows(one).change("b", (), foreign, OPERATOR) == allowlist.Changed()
        assert await standing(two, "a") == [PUSH]


async def test_a_removal_admits_nothing_though_the_rows_cannot_be_read(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path, "one", url) as one, gateway(tmp_path, "two", url) as two:
        await added(one, PUSH, "git status")
        await until(lambda: admits(two) == (PUSH, "git status"))

        async def fails(*_arguments: object, **_options: object) -> None:
            raise StoreUnavailable("no answer")

        with monkeypatch.context() as broken:
            broken.setattr(rows(two)._store, "find", fails)
            await removed(one, PUSH)
            await until(lambda: admits(two) == ("git status",))
            await until(lambda: "could not be read" in caplog.text)
        await added(one, "git fetch")
        await until(lambda: admits(two) == ("git status", "git fetch"))


@pytest.mark.parametrize("hangs", [False, True])
async def test_rows_that_cannot_be_read_for_ten_seconds_admit_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, hangs: bool
) -> None:
    clock = FakeClock()
    store = open_store("memory://", clock)
    profiles = {"default": Profile()}
    service = AllowlistRows(store, clock, profiles, tmp_path)
    find, broken, mended = store.find, asyncio.Event(), asyncio.Event()

    async def finds(*arguments: Any, **options: Any) -> Any:
        if not broken.is_set():
            return await find(*arguments, **options)
        if hangs:
            await mended.wait()
        raise StoreUnavailable("no answer")

    def admits() -> tuple[str, ...]:
        return profiles["default"].allowlist.commands

    store.find = finds  # type: ignore[method-assign]  # the way to the database is lost
    await service.begin()
    await service.change("default", lines(PUSH), (), OPERATOR)
    running = asyncio.create_task(service.run())
    for _ in range(2):
        broken.set()
        mended.clear()
        seconds = 0
        while admits():
            await clock.advance(1)
            seconds += 1
            assert seconds <= 21  # a read is due every ten seconds
        assert seconds >= 10
        broken.clear()
        mended.set()
        await clock.advance(1)
        assert admits() == (PUSH,)
        await clock.advance(15)
        assert admits() == (PUSH,)
    assert caplog.text.count("no line of its allowlist counts until it can be read") == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await store.aclose()


async def test_a_change_while_the_rows_are_read_is_not_lost(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, "one", url) as one, gateway(tmp_path, "two", url) as two:
        await added(one, PUSH)
        await until(lambda: admits(two) == (PUSH,))
        service = rows(two)
        find, slow = service._store.find, asyncio.Event()
        reading = asyncio.Event()

        async def slowly(*arguments: Any, **options: Any) -> Any:
            found: Any = await find(*arguments, **options)
            reading.set()
            await slow.wait()
            return found

        monkeypatch.setattr(service._store, "find", slowly)
        old = asyncio.create_task(service._read("default"))
        await reading.wait()
        await removed(one, PUSH)
        await until(lambda: admits(two) == ())
        served: list[list[str]] = []
        monkeypatch.setattr(service, "_serve", lambda name: served.append([*service._entries[name]]))
        slow.set()
        await old
        assert served == [], "what was read before the removal is read again, and not judged by"


# --- who added what ----------------------------------------------------------------------------------


async def test_who_added_and_removed_stands_in_the_log_and_in_the_row(tmp_path: Path, url: str) -> None:
    token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    async with gateway(tmp_path, "one", url) as one:
        await added(one, f"deploy --token {token}")
        await removed(one, f"deploy --token {token}")
        [new], [old] = await events(one, "allowlist.added"), await events(one, "allowlist.removed")
        assert (new["by"], new["list"]) == (
            {"type": "person", "platform": "local", "user_id": "0", "via": "cli"},
            "commands",
        )
        assert token not in str((new, old))
        assert await standing(one) == []
        [line] = await rows(one).lines("default", removed=True)
        assert (line.by, line.removed_by) == (OPERATOR, OPERATOR)


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  ", "git\0push", "git \ud800"])
async def test_what_is_no_text_is_refused(tmp_path: Path, url: str, text: str) -> None:
    async with gateway(tmp_path, "one", url) as one:
        with pytest.raises(InvalidInput):
            await added(one, "git status", text)
        assert await standing(one) == [], "nothing of it"


async def test_more_than_a_file_may_hold_is_refused_whole(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.changes.allowlist.MAX_BYTES", 10_000)
    async with gateway(tmp_path, "one", url) as one:
        await added(one, "x" * 9_990)
        with pytest.raises(InvalidInput, match="nothing was changed"):
            await added(one, "git status", "git fetch")
        assert len(await standing(one)) == 1
        [event] = await events(one, "allowlist.added")
        assert event["shown"] == "9,990 characters"


async def test_a_row_that_is_none_of_ours_admits_nothing(tmp_path: Path, url: str) -> None:
    async with gateway(tmp_path, "one", url) as one:
        facts: dict[str, Any] = {"profile": "default", "by": OPERATOR, "created_at": one.clock.now()}
        strange = AllowlistEntry(entry_id="a", list="everything", text="*", **facts)
        blank = AllowlistEntry(entry_id="b", list="commands", text="  ", **facts)
        await one.store.transact(putting(strange, blank))
        await added(one, "git status")
        assert await asked(one, PUSH) is None


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_a_row_that_was_written_by_hand(tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture) -> None:
    """One that says otherwise than its columns admits nothing; one that cannot be read is told once, and what was known
    stays in force until it is mended."""
    database = worker_database()
    database.empty()
    where = "UPDATE signoff.allowlist SET row = convert_to({}, 'UTF8')"
    document = "convert_from(row, 'UTF8')::jsonb"
    async with gateway(tmp_path, "one", url) as one:
        await added(one, "git status")
        for column, value in (("removed_at", '"2026-11-30T00:00:00Z"'), ("profile", '"other"')):
            before = database.execute("SELECT convert_from(row, 'UTF8') FROM signoff.allowlist")[0][0]
            database.execute(where.format(f"({document} || '{{\"{column}\": {value}}}')::text"))
            await rows(one)._follow("default", look=False)
            assert admits(one) == (), column
            database.execute(where.format(f"'{before}'"))
            await rows(one)._follow("default", look=False)
            assert admits(one) == ("git status",)
        database.execute(where.format("'[]'"))
        for _ in range(3):
            await rows(one)._follow("default", look=False)
        assert caplog.text.count("could not be read: a document in allowlist cannot be read") == 1
        assert admits(one) == ("git status",)
        database.execute(where.format(f"'{before}'"))


# --- several at once ---------------------------------------------------------------------------------


@on_both
async def test_many_who_add_and_remove_at_once_lose_nothing_and_bring_nothing_back(tmp_path: Path, url: str) -> None:
    async with gateway(tmp_path, "one", url) as one, gateway(tmp_path, "two", url) as two:
        texts = [f"make part{number}" for number in range(20)]
        await added(one, "old line")
        await asyncio.gather(*(added(made, text) for text in texts for made in (one, two)), removed(two, "old line"))
        assert sorted(await standing(one)) == sorted(texts)
        assert len(await events(one, "allowlist.added")) == len(texts) + 1, "each once, whoever was first"
        await until(lambda: sorted(admits(one)) == sorted(admits(two)) == sorted(texts))
        again = await rows(one).change("default", lines("old line"), (), OPERATOR, again=False)
        assert [entry.text for entry in again.left] == ["old line"]
        assert "old line" not in await standing(two), "an import does not bring back what somebody removed"
        await added(one, "old line")
        assert "old line" in await standing(two), "who types it means it"


@on_both
async def test_imports_beside_somebody_who_removes_bring_nothing_back(tmp_path: Path, url: str) -> None:
    async with gateway(tmp_path, "one", url) as one, gateway(tmp_path, "two", url) as two:
        texts = [f"make part{number}" for number in range(8)]

        async def imported(made: Gateway) -> None:
            for _ in range(4):
                await rows(made).change("default", lines(*texts), (), OPERATOR, again=False)

        async def edited() -> None:
            for text in texts[:4]:
                await until(lambda: text in admits(two))  # noqa: B023  # awaited in this round
                await removed(two, text)

        await asyncio.gather(imported(one), imported(two), edited())
        await imported(one)
        assert sorted(await standing(two)) == texts[4:]
        assert len(await events(one, "allowlist.added")) == len(texts)
        await until(lambda: sorted(admits(one)) == sorted(admits(two)) == texts[4:])


# --- the first start ---------------------------------------------------------------------------------


@on_both
async def test_the_first_start_imports_the_file_and_tells_so(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = wrote(tmp_path, "one", 'commands = ["git push *", 5]\nunattended_commands = ["make"]\n')
    async with gateway(tmp_path, "one", url) as one:
        assert await asked(one, PUSH) == "approved"
        assert "which had no line (2 now)" in caplog.text
        assert "entry 2 is not a text" in caplog.text
        assert {line.source for line in await rows(one).lines("default")} == {str(path)}
        await removed(one, "git push *", "make")
    caplog.clear()
    async with gateway(tmp_path, "one", url) as one:
        assert await standing(one) == [], "what was removed does not come back with a start"
        assert "does not have: 2" in caplog.text


@on_both
async def test_two_first_starts_at_once_import_one_file(tmp_path: Path, url: str) -> None:
    wrote(tmp_path, "one", 'commands = ["a", "b"]\n')
    wrote(tmp_path, "two", 'commands = ["c", "d"]\n')
    async with gateway(tmp_path, "three", url) as three:  # brings the database to its schema
        one, two = gateway(tmp_path, "one", url), gateway(tmp_path, "two", url)
        made = await asyncio.gather(one.__aenter__(), two.__aenter__())
        try:
            assert await standing(three) in (["a", "b"], ["c", "d"])
            await until(lambda: [len(admits(each)) for each in made] == [2, 2])
        finally:
            await asyncio.gather(one.__aexit__(None, None, None), two.__aexit__(None, None, None))


async def test_a_file_is_not_imported_beside_an_always_that_ever_was(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path, "one", url) as one:
        grant = await always(one, CLEAN)
        await one.revoke(grant.grant_id, ANN)
    wrote(tmp_path, "one", f'commands = ["{CLEAN}"]\n')
    async with gateway(tmp_path, "one", url) as one:
        assert await standing(one) == [], "the file may have been exported before it was revoked"
        assert "does not have: 1" in caplog.text


async def test_a_file_that_cannot_be_read_is_told_and_imported_once_it_can(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = wrote(tmp_path, "one", "commands = [")
    async with gateway(tmp_path, "one", url) as one:
        assert "is not TOML" in caplog.text
        assert admits(one) == ()
    path.write_text('commands = ["make"]\n')
    async with gateway(tmp_path, "one", url) as one:
        assert admits(one) == ("make",)


async def test_an_edit_of_the_file_changes_nothing_and_is_told(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, "one", url) as one:
        path = wrote(tmp_path, "one", f'commands = ["{PUSH}"]\n')
        await rows(one)._follow("default", look=True)
        assert await asked(one, PUSH) is None
        assert f"{path} is not followed" in caplog.text

"""`signoff allowlist` against a running gateway whose store has the lines."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.front import Front
from tests.unit.server.world import World, world_on

from signoff.allowlist_file import KEYS, AllowlistFile, Entries
from signoff.cli.allowlist import planned
from signoff.client import AllowlistRecord
from signoff.testing.rows import T0

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
async def served(front: Front) -> AsyncIterator[World]:
    """A gateway on the local socket of the configuration, whose path must be short."""
    with tempfile.TemporaryDirectory(prefix="so-") as folder:
        state = Path(folder) / "state"
        front.write("signoff.toml", f'[gateway]\nstate_dir = "{state}"\n[profiles.second]\n')
        async with world_on("memory://", state_dir=state, shared=True) as world:
            yield world


async def told(front: Front, *arguments: str, code: int = 0) -> str:
    """A command, run while the gateway's loop goes on."""
    return await asyncio.to_thread(lambda: front("allowlist", *arguments, code=code))


async def listed(front: Front, *arguments: str) -> list[tuple[str, str]]:
    """The lines as `list --json` has them."""
    found: Any = json.loads(await told(front, "list", "--json", *arguments))
    return [(line["list"], line["text"]) for line in found["data"]]


def made_anew(path: Path, profile: str) -> tuple[str, ...]:
    """The commands of a file of that profile that was exported where there was none."""
    assert path.parts[-3:] == ("profiles", profile, "allowlist.toml")
    assert "not followed" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    return AllowlistFile(path).read().commands


async def test_lines_are_added_listed_and_taken_out(front: Front, served: World) -> None:
    assert "everything is asked" in await told(front, "list")
    assert "git push *" in await told(front, "add", "git push *", f"deploy --token {TOKEN}")
    assert "also unattended" in await told(front, "add", "--unattended", "make")
    assert "stood there already" in await told(front, "add", "make", "--unattended")
    shown = await told(front, "list")
    assert "the operator (uid" in shown
    assert TOKEN not in shown
    assert "⟨36 masked⟩" in shown
    assert await listed(front) == [
        ("commands", "git push *"),
        ("commands", f"deploy --token {TOKEN}"),
        ("unattended_commands", "make"),
    ]
    assert "is no entry; nothing is changed" in await told(front, "remove", "make", "git pull", code=2)
    assert "Taken out: make" in await told(front, "remove", "make")
    assert await listed(front, "--profile", "second") == []


async def test_a_file_is_shown_before_it_is_imported(front: Front, served: World) -> None:
    await told(front, "add", "old")
    file = front.write("list.toml", '# ours\ncommands = ["new", 5]\nunattended_commands = ["make"]\n')
    out = await told(front, "import", str(file), code=1)
    assert "Needs no question any more:\n  new\n  make  (also unattended)\n" in out
    assert "that stay (--replace takes them out): 1" in out
    assert "entry 2 is not a text" in out
    assert "nothing was changed; --yes does it." in out
    assert await listed(front) == [("commands", "old")]
    planned_only = json.loads((await told(front, "import", str(file), "--json", code=1)).splitlines()[0])
    assert (planned_only["written"], len(planned_only["add"])) == (False, 2)
    assert "Added: 2. Taken out: 0." in await told(front, "import", str(file), "--yes")
    assert "Nothing is to be changed." in await told(front, "import", str(file), "--yes")
    assert "Taken out:\n  old\n" in await told(front, "import", str(file), "--yes", "--replace")
    assert await listed(front) == [("commands", "new"), ("unattended_commands", "make")]


async def test_what_somebody_removed_is_not_imported_again(front: Front, served: World) -> None:
    file = front.write("list.toml", 'commands = ["one", "two"]\n')
    await told(front, "import", str(file), "--yes")
    await told(front, "remove", "one")
    out = await told(front, "import", str(file), "--yes")
    assert "Left out, since it was removed (--again adds it):\n  one  (the operator" in out
    assert await listed(front) == [("commands", "two")]
    await told(front, "import", str(file), "--yes", "--again")
    assert sorted(await listed(front)) == [("commands", "one"), ("commands", "two")]


async def test_an_always_that_was_exported_and_revoked_stays_revoked(front: Front, served: World) -> None:
    agent, approver = await served.pair()
    row = await agent.ask(action={"kind": "command", "command": "rm -rf build"})
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "always"})
    assert "Always (" in await told(front, "list")
    file = front.folder / "list.toml"
    await told(front, "export", str(file))
    assert "Nothing is to be changed." in await told(front, "import", str(file), "--yes"), "its grant is its line"
    await told(front, "remove", "rm -rf build")
    assert "Left out" in await told(front, "import", str(file), "--yes")
    assert await listed(front) == []


async def test_export_keeps_the_files_comments_and_comes_back_as_it_was(front: Front, served: World) -> None:
    await told(front, "add", "b *", 'say "x"', "two\nlines", "\\*")
    await told(front, "add", "--unattended", "make")
    before = await listed(front)
    file = front.write("list.toml", '# head\ncommands = [\n    # why b\n    "b *",\n    "gone",\n]\n# tail\n')
    await told(front, "export", str(file))
    text = file.read_text()
    assert '# head\ncommands = [\n    # why b\n    "b *",\n' in text
    assert "gone" not in text
    assert "# tail" in text
    assert file.stat().st_mode & 0o777 == 0o644, "the file's own mode"
    await told(front, "import", str(file), "--yes", "--profile", "second")
    assert await listed(front, "--profile", "second") == before


async def test_the_files_of_the_state_folder_are_meant_unless_another_is_named(front: Front, served: World) -> None:
    assert "There is no file" in await told(front, "import", code=2)
    await told(front, "add", "make", "--profile", "second")
    out = await told(front, "export", "--profile", "second")
    assert made_anew(Path(out.partition(" in ")[2].partition(": 1")[0]), "second") == ("make",)


async def test_a_file_that_is_no_toml_changes_nothing(front: Front, served: World) -> None:
    await told(front, "add", "make")
    file = front.write("list.toml", "commands = [")
    assert "is not TOML" in await told(front, "import", str(file), "--yes", "--replace", code=2)
    assert "is not TOML" in await told(front, "export", str(file), code=2)
    assert file.read_text() == "commands = ["
    assert await listed(front) == [("commands", "make")]


async def test_an_agents_key_may_not(front: Front, served: World, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await served.client("agent")
    monkeypatch.setenv("SIGNOFF_URL", served.bound.api)
    monkeypatch.setenv("SIGNOFF_KEY", str(agent.key))
    for arguments in (("list",), ("add", "*"), ("remove", "x")):
        assert "needs a key of scope admin" in await told(front, *arguments, code=1)
    assert "Name a file" in await told(front, "import", code=2), "the gateway may stand on another machine"
    admin = await served.client("admin", principal="ann")
    monkeypatch.setenv("SIGNOFF_KEY", str(admin.key))
    assert await listed(front) == []
    file = front.write("list.toml", 'commands = ["make"]\n')
    await told(front, "import", str(file), "--yes")
    assert await listed(front) == [("commands", "make")]


async def test_with_a_file_that_is_said(front: Front) -> None:
    with tempfile.TemporaryDirectory(prefix="so-") as folder:
        state = Path(folder) / "state"
        front.write("signoff.toml", f'[gateway]\nstate_dir = "{state}"\n')
        assert "No gateway runs here" in await told(front, "list", code=75)
        async with world_on("memory://", state_dir=state):
            front.write("list.toml", "commands = []\n")
            for arguments in (("list",), ("add", "x"), ("remove", "x"), ("import", "list.toml"), ("export", "a.toml")):
                assert "allowlist.toml is the allowlist: edit that file" in await told(front, *arguments, code=1)
    assert not (front.folder / "a.toml").exists()


texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), unique=True)
wanted = st.builds(lambda one, two: Entries(commands=tuple(one), unattended_commands=tuple(two)), texts, texts)


@given(file=wanted, store=wanted, gone=wanted, exactly=st.booleans(), again=st.booleans())
def test_a_plan_does_what_it_says(file: Entries, store: Entries, gone: Entries, exactly: bool, again: bool) -> None:
    def at(entries: Entries) -> set[tuple[str, str]]:
        return {(name, text) for name in KEYS for text in getattr(entries, name)}

    lines = [AllowlistRecord(id=f"{line}", list=line[0], text=line[1]) for line in at(store)]
    lines += [AllowlistRecord(id=f"-{line}", list=line[0], text=line[1], removed_at=T0) for line in at(gone)]
    plan = planned(file, lines, exactly=exactly, again=again)
    after = (at(store) | set(plan.add)) - {(line.list, line.text) for line in plan.remove}
    expected = at(file) if again else at(file) - (at(gone) - at(store))
    assert after == (expected if exactly else expected | at(store))
    assert len(plan.add) == len(set(plan.add))
    assert {(line.list, line.text) for line in plan.left} == (set() if again else at(file) & at(gone) - at(store))

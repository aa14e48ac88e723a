"""`signoff policy`: a changed policy tried on what was asked before, and the rules in force."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

from tests.unit.cli.front import Front

from signoff.clock import SystemClock
from signoff.ids import new_id
from signoff.model import Actor, ApprovalRequest, Command, replace
from signoff.ports import Store, Tx
from signoff.stores.history import PAGE
from signoff.stores.open import open_store

ANA = Actor(type="person", name="Ana")
GRANT = Actor(type="grant", grant_id="G1")
POLICY = Actor(type="policy", rule="rules")
T0 = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def asked(command: str, number: int = 0, **facts: object) -> ApprovalRequest:
    row = ApprovalRequest(
        request_id=new_id("req"),
        profile="default",
        short_id=f"A{number:04}",
        session_id="s1",
        kind="chat",
        action=Command(command=command),
        digest="0" * 64,
        severity="high",
        created_at=T0 + timedelta(seconds=number),
        outcome="approved",
        decided_by=(ANA,),
    )
    return replace(row, **facts)


@asynccontextmanager
async def opened(front: Front) -> AsyncIterator[Store]:
    store = open_store(f"sqlite://{front.folder}/state/signoff.db", SystemClock())
    try:
        yield store
    finally:
        await store.aclose()


def _put(tx: Tx, *, rows: list[ApprovalRequest]) -> None:
    for row in rows:
        tx.put(row)


async def stored(front: Front, rows: Iterable[ApprovalRequest]) -> None:
    async with opened(front) as store:
        await store.transact(partial(_put, rows=list(rows)))


async def test_what_a_policy_would_have_saved_and_let_pass(front: Front) -> None:
    rows = [
        asked("rm -rf build", 1),
        asked("rm -rf build", 2, outcome="denied"),
        asked("git push --force", 3, severity="critical"),
        asked("rm -rf cache", 4, decided_by=(GRANT,)),
        asked("make deploy", 5, decided_by=(POLICY,)),
        asked("rm -rf /", 6, outcome="blocked", decided_by=(Actor(type="policy", rule="floor.delete_root"),)),
    ]
    await stored(front, rows)
    front.write("new.toml", '[approvals]\ndeny = ["make *"]\n')
    front.write("new-allowlist.toml", 'commands = ["rm -rf *", "git push --force"]\n')
    front.write("same.toml", "")
    found = front.json("policy", "try", "same.toml")
    assert (found["requests"], found["questions"], found["kept"], found["saved"]) == (6, 3, 3, 0)
    assert (found["dangers"], found["newly_forbidden"]) == (0, 0)

    found = front.json("policy", "try", "new.toml", "--allowlist", "new-allowlist.toml", code=1)
    assert (found["questions"], found["kept"], found["saved"], found["newly_forbidden"]) == (3, 0, 3, 1)
    assert [(each["short_id"], each["dangers"]) for each in found["dangerous"]] == [
        ("A0002", ["denied"]),
        ("A0003", ["critical"]),
    ]
    assert found["dangerous"][0]["denied_by"] == "Ana"
    assert [each["short_id"] for each in found["asked_now"]] == ["A0005"]
    assert dict(map(tuple, found["saved_by"])) == {"allowlist:rm -rf *": 2, "allowlist:git push --force": 1}


async def test_people_read_a_table(front: Front) -> None:
    await stored(front, [asked("rm -rf build", 1, outcome="denied")])
    front.write("new.toml", '[approvals]\nmode = "off"\n')
    out = front("policy", "try", "new.toml", code=1)
    assert [line.split()[-1] for line in out.splitlines() if "saved: run unasked" in line] == ["1"]
    assert "denied by Ana" in out
    assert "rm -rf build" in out


async def test_a_long_action_is_cut_and_the_operator_is_named(front: Front) -> None:
    by = (Actor(type="person", platform="local", user_id="0"),)
    await stored(front, [asked("rm -rf " + "build " * 200, 1, outcome="denied", decided_by=by)])
    front.write("new.toml", '[approvals]\nmode = "off"\n')
    out = front("policy", "try", "new.toml", code=1)
    assert "denied by the operator (uid 0)" in out
    [line] = [line for line in out.splitlines() if "rm -rf build build" in line]
    assert line.endswith("…") and len(line) < 250


async def test_it_reads_beside_whoever_writes_and_changes_nothing(front: Front) -> None:
    async with opened(front) as store:
        await store.transact(partial(_put, rows=[asked("rm -rf build", n) for n in range(2 * PAGE + 3)]))
        before = {path.name: path.read_bytes() for path in (front.folder / "state").glob("signoff.db")}
        front.write("new.toml", "")
        assert front.json("policy", "try", "new.toml")["requests"] == 2 * PAGE + 3
        assert {path.name: path.read_bytes() for path in (front.folder / "state").glob("signoff.db")} == before


def test_without_a_store_it_says_so(front: Front) -> None:
    front.write("new.toml", "")
    assert "There is no store" in front("policy", "try", "new.toml", code=75)
    assert not (front.folder / "state").exists()


def test_a_store_that_lives_in_its_gateway_cannot_be_read(front: Front) -> None:
    front.write("signoff.toml", '[gateway]\nstate_dir = "state"\nstore = "memory://"\n')
    front.write("new.toml", "")
    assert "memory:// lives in its gateway alone" in front("policy", "try", "new.toml", code=2)


def test_rules_in_force(front: Front) -> None:
    front.configure('[[rules]]\nkey = "ours.deploy"\nverdict = "ask"\nprograms = ["deploy"]\nsentence = "deploys it"\n')
    rows = front.json("policy", "rules")["data"]
    assert {row["origin"] for row in rows} == {"floor", "own", "shipped"}
    assert [row["key"] for row in front.json("policy", "rules", "deploys it")["data"]] == ["ours.deploy"]
    assert "delete.recursive" in front("policy", "rules", "delete.rec")
    assert front("policy", "rules", "there-is-none") == "No rule is like that.\n"


async def test_approvals_that_are_off_are_a_danger(front: Front) -> None:
    by_a_rule = (Actor(type="policy", rule="rules"),)
    await stored(front, [asked("git push --force", 1), asked("rm -rf cache", 2, decided_by=by_a_rule)])
    front.write("off.toml", '[approvals]\nmode = "off"\n')
    found = front.json("policy", "try", "off.toml", code=1)
    assert (found["saved"], found["dangers"]) == (1, 1)
    assert [(each["short_id"], each["dangers"]) for each in found["dangerous"]] == [("A0001", ["off"])]
    assert "asked then, approvals off" in front("policy", "try", "off.toml", code=1)


def test_a_device_without_an_end_is_not_read(front: Front) -> None:
    assert "/dev/zero is no plain file" in front("policy", "try", "/dev/zero", code=2)
    assert "larger than 4 MiB" in front("check", "--config", "/dev/zero", "ls", code=2)


def test_whole_words_and_programs_come_first(front: Front) -> None:
    keys = [row["key"] for row in front.json("policy", "rules", "rm")["data"]]
    assert keys.index("delete.recursive") < keys.index("floor.permissions_root"), "a word that only holds it is last"
    assert keys[0] == "floor.delete_root"
    assert keys == [row["key"] for row in front.json("policy", "rules", "RM", "no-such-word")["data"]]


def test_the_list_of_rules_fits_a_terminal(front: Front) -> None:
    out = front("policy", "rules")
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "delete.recursive  ask high (shipped)\n    deletes folders and everything in them\n" in out

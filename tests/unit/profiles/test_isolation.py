"""Two profiles in one process share nothing: what one has is nowhere in the other's rows, files, answers and pages."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.forked import fork_module
from tests.unit.profiles.tenants import (
    BLUE,
    COMMAND,
    ELSEWHERE,
    PERSON,
    PLACE,
    RED,
    REQUEST,
    SESSION,
    Tenant,
    Two,
    allowlisted,
    live,
    rows_of,
    text_of,
    two_tenants,
)
from tests.unit.server.world import until

from signoff.console.door import INSIDE
from signoff.errors import GrantNotFound, RequestNotFound, SessionNotFound
from signoff.model import Notifier
from signoff.rows import session_key
from signoff.server.table import ROUTES
from signoff.wording import t

BODIES: dict[str, Any] = {
    "decide": {"choice": "once"},
    "claim": {"digest": "0" * 64, "claim_id": "c"},
    "result": {"status": "succeeded"},
    "ask": {"session_id": "{session_id}", "action": {"kind": "command", "command": "rm -rf x"}},
    "check": {"session_id": "{session_id}", "action": {"kind": "command", "command": "rm -rf x"}},
}
"""What a route needs beside its path."""
OWN = {"declare_session", "detach_notifier"}
"""Routes that make an object of the caller's own, whatever another profile has, or say of whatever is asked for that it
is gone."""


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    """Both have lived, and the first alone has said "always"."""
    async with two_tenants(tmp_path) as made:
        await live(made.red, always=True)
        await live(made.blue, always=False)
        yield made


# --- 3: the same session, request id and command, and one "always" --------------------------------


async def test_one_always_is_that_profiles_alone(two: Two) -> None:
    # behaviour 7.6, 12.2 multiplexed profiles
    red, blue = two.red, two.blue
    file = await allowlisted(two, RED, COMMAND)
    assert BLUE not in file.read_text()
    assert not (file.parent.parent / BLUE / "allowlist.toml").exists()
    assert (await red.record(REQUEST))["outcome"] == "approved"
    assert (await blue.record(REQUEST))["status"] == "pending"
    assert (await red.ask(COMMAND, session=ELSEWHERE))["outcome"] == "approved"
    asked = await blue.ask(COMMAND)
    assert (asked["status"], asked["leader_id"]) == ("pending", REQUEST)
    assert (await blue.ask(COMMAND, session=ELSEWHERE))["status"] == "pending"
    await _revoked_and_asked_again(two, file)


async def _revoked_and_asked_again(two: Two, file: Path) -> None:
    red, blue = two.red, two.blue
    await asyncio.to_thread(file.write_text, "commands = []\n")

    async def ended() -> bool:
        return "always" not in {grant.scope for grant in await two.gateway.grants(profile=RED)}

    await until(ended)
    assert (await red.ask(COMMAND, session=ELSEWHERE))["status"] == "pending"
    await blue.approver("POST", f"/v1/approvals/{REQUEST}/decision", {"choice": "always"})
    await allowlisted(two, BLUE, COMMAND)
    assert (await blue.ask(COMMAND, session=ELSEWHERE))["outcome"] == "approved"
    assert (await red.ask(COMMAND, session=ELSEWHERE))["status"] == "pending"


async def test_rules_deny_lists_and_bypasses_are_that_profiles_alone(two: Two) -> None:
    for mine, other in two.both():
        assert (await mine.ask(f"{other.word}-forbidden thing"))["outcome"] == "approved"
        foreign = await mine.agent(
            "POST", "/v1/check", {"action": {"kind": "command", "command": f"{other.word}-tool now"}}
        )
        assert foreign.body["verdict"] == "allow"
        own = {"action": {"kind": "command", "command": f"{mine.word}-tool now"}}
        assert (await mine.agent("POST", "/v1/check", own)).body["rule_keys"] == [f"{mine.word}.own"]
    await two.red.approver("POST", f"/v1/sessions/{SESSION}/bypass", {"minutes": 5})
    assert (await two.red.ask("rm -rf build"))["outcome"] == "approved"
    assert (await two.blue.ask("rm -rf build"))["status"] == "pending"


async def test_no_row_and_no_file_of_one_has_a_word_of_the_other(tmp_path: Path) -> None:
    async with two_tenants(tmp_path) as two:
        await live(two.red, always=True)
        await live(two.blue, always=True)
        for mine, _other in two.both():
            await allowlisted(two, mine.word, COMMAND)
        for mine, other in two.both():
            await _pressed_in_the_wrong_chat(mine, other)
        state = two.config.gateway.state_dir
        modes = [(path, stat.S_IMODE(path.stat().st_mode)) for path in (state, *state.rglob("*"))]
        assert [(path, mode) for path, mode in modes if mode != (0o700 if path.is_dir() else 0o600)] == []
    found = list(rows_of(state / "signoff.db"))
    assert {RED in text for _, text in found} == {BLUE in text for _, text in found} == {True, False}
    assert [(table, text) for table, text in found if RED in text and BLUE in text] == []
    tables = {word: {table for table, text in found if word in text} for word in (RED, BLUE)}
    every = {"requests", "sessions", "turns", "copies", "grants", "keys", "events", "notes"}
    assert tables[RED] == tables[BLUE] >= every
    for word, others in ((RED, BLUE), (BLUE, RED)):
        files = [path for path in (state / "profiles" / word).rglob("*") if path.is_file()]
        assert [path.name for path in files if others in path.read_text()] == []
        assert "allowlist.toml" in {path.name for path in files}


async def test_kept_calls_and_hooks_are_that_profiles_alone(two: Two) -> None:
    for mine, other in two.both():
        action = mine.ids["action_id"]
        assert (await mine.approver("POST", f"/v1/actions/{action}/approve")).status == 200
        await until(lambda tenant=mine: len(tenant.ran) == 1)  # type: ignore[misc]  # of this round
        assert (mine.ran[0].profile, mine.ran[0].executor) == (mine.word, f"{mine.word}-mailer")
        assert mine.ran[0].arguments == {"to": f"{mine.word}@example.org"}
        await until(lambda tenant=mine: any(f"{tenant.word}-mail" in body for body in tenant.told))  # type: ignore[misc]
        assert not any(other.word in body for body in mine.told)
    assert [len(tenant.ran) for tenant in (two.red, two.blue)] == [1, 1]


# --- HTTP ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["agent", "approver", "ops", "admin"])
async def test_anothers_object_does_not_exist_on_any_route(two: Two, scope: Any) -> None:
    before = await two.gateway.store.last_seq(RED)
    client, tried = two.blue.keys[scope], 0
    for route in ROUTES:
        body = BODIES.get(route.name)
        if scope not in route.scopes or ("{" not in route.path and body is None) or route.name in OWN:
            continue
        path = route.path.format(**two.red.ids)
        if body is not None and "session_id" in body:
            body = {**body, "session_id": two.red.ids["session_id"]}
        answer = await client(route.method, path, {} if body is None and route.body is not None else body)
        assert answer.status == 404, (route.name, answer)
        assert RED not in text_of(answer.body)
        tried += 1
    assert tried >= 3
    if scope in ("approver", "admin"):
        gone = await client("DELETE", f"/v1/sessions/{two.red.ids['session_id']}/notifiers/desk")
        assert gone.body == (await client("DELETE", "/v1/sessions/nowhere/notifiers/desk")).body
    assert await two.gateway.store.find(Notifier, "session", session_key(RED, two.red.ids["session_id"]))
    assert await two.gateway.store.last_seq(RED) == before
    assert (await two.red.agent("GET", f"/v1/sessions/{two.red.ids['session_id']}")).status == 200


async def test_a_session_of_the_same_name_is_another(two: Two) -> None:
    assert (await two.blue.agent("DELETE", f"/v1/sessions/{SESSION}")).status == 200
    assert (await two.blue.record(REQUEST))["cause"] == "session_ended"
    assert (await two.red.agent("GET", f"/v1/sessions/{SESSION}")).body["generation"] == 0
    assert (await two.red.record(two.red.ids["request_id"]))["status"] == "pending"
    assert len((await two.red.approver("GET", "/v1/grants")).body["data"]) == 3
    assert (await two.blue.approver("GET", "/v1/grants")).body["data"] == []


async def test_no_answer_tells_a_word_of_the_other(two: Two) -> None:
    for mine, other in two.both():
        for scope, client in mine.keys.items():
            for route in ROUTES:
                if route.method != "GET" or route.name == "events" or (route.scopes and scope not in route.scopes):
                    continue
                answer = await client("GET", route.path.format(**mine.ids))
                # This store's allowlists are files, which the answer says of the profile's own.
                assert answer.status == (409 if route.name == "allowlist" else 200), (route.name, answer)
                assert other.word not in text_of(answer.body), route.name
        detailed = (await mine.keys["ops"]("GET", "/health/detailed")).body["parts"]["platforms"]
        assert set(detailed) == {f"{mine.word}/chat", f"{mine.word}/console"}


async def test_a_stream_has_its_own_profiles_events(two: Two) -> None:
    for mine, other in two.both():
        async with mine.keys["ops"].events("?after=0") as reader:
            await other.ask(f"rm -rf {other.word}-late")
            own = await mine.ask(f"rm -rf {mine.word}-late")
            seen = [await reader.next()]
            while (seen[-1]["approval"] or {}).get("request_id") != own["request_id"]:
                seen.append(await reader.next())
        assert len(seen) > 10
        assert mine.word in str(seen)
        assert other.word not in str(seen)


async def test_the_embedders_verbs_take_the_profile(two: Two) -> None:
    gateway, by = two.gateway, (await two.gateway.broker.pending(BLUE))[0].decided_by
    assert by == ()
    with pytest.raises(RequestNotFound):
        await gateway.get(two.red.ids["request_id"], profile=BLUE)
    with pytest.raises(SessionNotFound):
        await gateway.stop(two.red.ids["session_id"], profile=BLUE)
    grant = (await gateway.grants(profile=RED))[0]
    with pytest.raises(GrantNotFound):
        await gateway.revoke(grant.grant_id, grant.by, profile=BLUE)
    assert RED not in str(await gateway.pending(profile=BLUE))


# --- the chat ------------------------------------------------------------------------------------


async def _pressed_in_the_wrong_chat(mine: Tenant, other: Tenant) -> None:
    """Every button that one shows, pressed in the other's chat of the same name by somebody who may decide there."""
    tokens = {button.token for each in mine.chat.shown() for row in each.card.rows for button in row if button.token}
    assert len(tokens) >= 4
    for token in tokens:
        answer = await other.chat.press(
            token, by=PERSON, name=f"{other.word}-ana", message_id=mine.ids["card"], destination=PLACE
        )
        assert (answer.text, answer.lost) == (t("tap.unknown"), False)


async def test_a_button_decides_nothing_in_the_others_chat(two: Two) -> None:
    before = {word: await _state(tenant) for word, tenant in ((RED, two.red), (BLUE, two.blue))}
    for mine, other in two.both():
        await _pressed_in_the_wrong_chat(mine, other)
    assert {word: await _state(tenant) for word, tenant in ((RED, two.red), (BLUE, two.blue))} == before
    refused = [row for row in await two.gateway.store.events(BLUE, 0, limit=1000) if row.type == "tap.refused"]
    assert {row.data["why"] for row in refused} >= {"unknown"}
    assert all(row.request_id is None for row in refused if row.data["why"] == "unknown")


async def _state(tenant: Tenant) -> Any:
    pending = (await tenant.approver("GET", "/v1/approvals?status=pending")).body["data"]
    grants = (await tenant.approver("GET", "/v1/grants")).body["data"]
    return sorted(row["request_id"] for row in pending), grants


async def test_typed_commands_reach_their_own_profile(two: Two) -> None:
    red, blue = two.red, two.blue
    before, short = await _state(blue), two.blue.ids["short"]
    for text in (f"/approve {short}", f"/deny {short}", f"/why {short}", f"/revoke {two.blue.ids['grant_id']}",
                 "/pending", "/grants", f"/undo {short}"):  # fmt: skip
        assert BLUE not in await red.typed(text), text
    # A reply names a message by an id that stands in the other's chat too.
    assert BLUE not in await red.typed("/why", reply_to=two.blue.ids["card"])
    listed = await red.typed("/approve all")
    assert BLUE not in listed
    assert BLUE not in await red.typed("/stop")
    assert (await _state(red))[0] == [red.ids["action_id"]]  # what is kept outlives a stop
    assert await _state(blue) == before


# --- the console ---------------------------------------------------------------------------------

PAGES = sorted(
    pattern.removesuffix("/?").replace("\\", "")
    for method, pattern, _ in INSIDE
    if method == "GET" and "(" not in pattern
)
"""Every page that needs no id."""
FORMS = sorted(pattern for method, pattern, _ in INSIDE if method == "POST" and not pattern.endswith("/logout"))


async def test_the_pages_show_one_profile(two: Two) -> None:
    assert len(PAGES) >= 8
    for mine, other in two.both():
        assert mine.person is not None
        for page in PAGES:
            if page == "/console/events":
                continue  # it does not end
            found = await mine.person.get(page)
            assert found.status in (200, 204), page
            assert other.word not in found.text, page
        theirs, own = other.ids["request_id"], mine.ids["request_id"]
        for path in ("r/{}", "r/{}/record.json", "card/{}"):
            assert (await mine.person.get(f"/console/{path.format(own)}")).status == 200
            assert (await mine.person.get(f"/console/{path.format(theirs)}")).status == 404
        assert (await mine.person.get(f"/console/drills/{other.ids['drill_id']}")).status == 404


async def test_forms_of_the_console_reach_their_own_profile(two: Two) -> None:
    assert len(FORMS) >= 12
    for mine, other in two.both():
        assert mine.person is not None
        before = await two.gateway.store.last_seq(other.word)
        page = await mine.person.get("/console")
        form = page.fields("/console/decide", mine.ids["request_id"])
        row = await other.record(other.ids["request_id"])
        theirs = {
            "id": row["request_id"], "digest": row["digest"], "choice": "once", "session": other.ids["session_id"],
            "grant": other.ids["grant_id"], "listed": f"{row['request_id']} {row['digest']} 0 0", "minutes": "5",
            "request": row["request_id"], "action": other.ids["action_id"],
        }  # fmt: skip
        for path in FORMS:
            told = await mine.person.post(path, {**form, **theirs}, Accept="application/json")
            assert told.status < 500, (path, told.text)
            text = told.text
            for value in theirs.values():  # what was typed into the form stands in it again
                text = text.replace(value, "")
            assert other.word not in text, path
        assert await two.gateway.store.last_seq(other.word) == before


async def test_a_sign_in_is_of_its_profile(two: Two) -> None:
    red, blue = two.red, two.blue
    assert red.person is not None
    assert blue.person is not None
    page = await red.person.get("/console/sessions")
    assert f"{RED}-session" in page.text
    left = await blue.person.get("/console")
    await blue.person.post("/console/logout", left.fields("/console/logout"))
    assert (await red.person.get("/console/here")).status == 204
    # The link of one opens that one, whoever follows it.
    opened = await blue.person.get(red.ids["link"])
    await blue.person.post(red.ids["link"], opened.fields(red.ids["link"]))
    assert f"{RED}-eve" in (await blue.person.get("/console")).text


async def test_many_sign_ins_of_one_put_nobody_out_in_the_other(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.console.seats.MOST_KEPT", 3)
    assert two.red.person is not None
    for scope in ("approver", "ops", "admin"):
        for _ in range(3):
            entered = await two.red.person.post("/console/login", {"key": str(two.blue.keys[scope].key)})
            assert entered.status == 303
    red = await two.gateway.keys.create(RED, "ops")
    entered = await two.red.person.post("/console/login", {"key": red.text})
    for _ in range(4):
        await two.console.desk.seats.open(profile=BLUE, scope="ops", principal=None, key_id=None)
    assert (await two.red.person.get("/console/here")).status == 204


# --- reached from the command line ---------------------------------------------------------------


async def test_the_command_line_takes_a_profile(two: Two) -> None:
    async def signoff(*words: str) -> tuple[int, str]:
        given = (*words, "--config", str(two.config.file))
        process = await fork_module("signoff", *given, cwd=Path.cwd(), env=_environment())
        out, errors = await process.communicate()
        return await process.wait(), (out + errors).decode()

    for mine, other in two.both():
        for command in ("pending", "grants", "key list", "actions", f"why {mine.ids['request_id']}"):
            code, out = await signoff(*command.split(), "--profile", mine.word)
            assert (code, mine.word in out, other.word in out) == (0, True, False), (command, out)
        code, out = await signoff("deny", other.ids["request_id"], "--profile", mine.word)
        assert (code, other.word in out.replace(other.ids["request_id"], "")) == (1, False), out
        assert (await other.record(other.ids["request_id"]))["status"] == "pending"
    code, out = await signoff("pending", "--profile", "nowhere")
    assert (code, "There is no profile 'nowhere'" in out) == (2, True), out


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SIGNOFF_")}

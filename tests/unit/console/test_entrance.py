"""Coming in: keys, one-time links, cookies, roles, forms of strangers, and what ends a log-in."""

from __future__ import annotations

import asyncio
import html
import re
import socket
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from tests.unit.console.world import Person, Place, place, place_on
from tests.unit.server.world import world_on

from signoff.clock import SystemClock
from signoff.errors import ConfigError
from signoff.model import Note
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

PAGES = ("", "/history", "/sessions", "/grants", "/health")


async def test_the_root_leads_to_the_console_and_that_to_the_log_in(here: Place) -> None:
    page = await here.stranger().get("/")
    assert page.status == 200
    assert page.url == f"{here.base}/console/login"


@pytest.mark.parametrize("path", [*PAGES[1:], "/r/7Q2MK", "/card/req_1", "/history.csv"])
async def test_nothing_is_shown_to_a_stranger(here: Place, path: str) -> None:
    page = await here.stranger().get(f"/console{path}")
    assert "/console/login?next=" in page.url
    assert (await here.stranger().get("/console/events")).status == 401


async def test_every_page_forbids_what_it_does_not_need(here: Place) -> None:
    person = await here.person()
    for page in [await person.get(f"/console{path}") for path in PAGES]:
        policy = page.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["Referrer-Policy"] == "same-origin"
        assert "style=" not in page.text
        assert "<script>" not in page.text


async def test_the_cookie_is_for_these_pages_alone(here: Place) -> None:
    key = (await here.core.keys.create("default", "approver", principal="ann")).text
    plain = await here.stranger().post("/console/login", {"key": key})
    cookie = plain.headers["Set-Cookie"]
    for part in ("HttpOnly", "Path=/console", "SameSite=Strict", "Max-Age=43200"):
        assert part in cookie
    assert "Secure" not in cookie
    host = here.base.partition("//")[2]
    behind_tls = await here.stranger().post("/console/login", {"key": key}, Origin=f"https://{host}")
    assert "Secure" in behind_tls.headers["Set-Cookie"]
    forwarded = await here.stranger().post("/console/login", {"key": key}, **{"X-Forwarded-Proto": "https"})
    assert "Secure" not in forwarded.headers["Set-Cookie"]


async def test_only_a_hash_of_the_cookie_is_kept(here: Place) -> None:
    person = await here.person()
    (cookie,) = person.http.cookie_jar
    note = await here.core.store.get(Note, "console:seats")
    assert note is not None
    assert cookie.value not in note.value


async def test_wrong_keys_and_agents_do_not_get_in(here: Place) -> None:
    agent = (await here.core.keys.create("default", "agent", agent="builder")).text
    for key in ("", "sk_nonsense", "sk_" + "a" * 12 + "_" + "b" * 43, agent):
        person = here.stranger()
        page = await person.post("/console/login", {"key": key})
        assert page.status == 403
        assert "Set-Cookie" not in page.headers
        assert (await person.get("/console")).url.endswith("/console/login")


async def test_guessing_is_slowed_down_and_waiting_helps() -> None:
    clock = FakeClock()
    async with place(clock=clock) as here:
        stranger = here.stranger()
        for _ in range(10):
            assert (await stranger.post("/console/login", {"key": "sk_wrong"})).status == 403
        refused = await stranger.post("/console/login", {"key": "sk_wrong"})
        assert refused.status == 429
        assert refused.headers["Retry-After"] == "60"
        assert (await stranger.get("/console/link/nothing")).status == 429
        assert (await stranger.post("/console/link/nothing", {})).status == 429
        await clock.advance(61)
        assert (await stranger.post("/console/login", {"key": "sk_wrong"})).status == 403


async def test_guessing_locks_nobody_out(here: Place) -> None:
    key = (await here.core.keys.create("default", "approver", principal="ann")).text
    token = await here.console.desk.seats.make_link(profile="default", principal="ana", view=False)
    for _ in range(12):
        await here.stranger().post("/console/login", {"key": "sk_wrong"})
    assert (await here.stranger().post("/console/login", {"key": "sk_wrong"})).status == 429
    assert (await here.stranger().post("/console/login", {"key": key})).status == 303
    assert (await here.stranger().get(f"/console/link/{token}")).status == 200
    assert (await here.stranger().post(f"/console/link/{token}", {})).status == 303


async def test_a_guessed_link_costs_no_write(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    monkeypatch.setattr(here.core.store, "transact", written.append)
    assert (await here.stranger().post("/console/link/nothing", {})).status == 403
    assert written == []


LEAVING = [
    "https://evil.example",
    "//evil.example",
    "/\\evil",
    "/console\\..",
    "/v1/keys",
    "/console/../v1/keys",
    "/console/%2E%2e/v1/keys",
    "/console/r/.%2e/../../v1",
    "/console//evil.example",
]


@pytest.mark.parametrize("following", LEAVING)
async def test_a_log_in_leads_to_a_page_of_the_console_only(here: Place, following: str) -> None:
    key = (await here.core.keys.create("default", "ops")).text
    answer = await here.stranger().post("/console/login", {"key": key, "next": following})
    assert answer.headers["Location"] == "/console"


async def test_a_log_in_goes_on_where_it_was_asked_for(here: Place) -> None:
    key = (await here.core.keys.create("default", "ops")).text
    answer = await here.stranger().post("/console/login", {"key": key, "next": "/console/r/7Q2MK"})
    assert answer.headers["Location"] == "/console/r/7Q2MK"


CHAT = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
"""With a link that was followed on another site; browsers then send no cookie of ours."""


async def test_a_link_on_another_site_comes_over_the_log_in(here: Place) -> None:
    person, story = await here.person("ops"), "/console/history?place=console:main"
    page = await here.stranger().get(story, **CHAT)
    assert (page.status, page.url) == (200, f"{here.base}/console/history?place=console:main")
    (onward,) = re.findall(r'<meta http-equiv="refresh" content="0; url=([^"]+)">', page.text)
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    same = {**CHAT, "Sec-Fetch-Site": "same-origin"}
    assert (await person.get(html.unescape(onward), **same)).url == f"{here.base}{story}"
    login = await here.stranger().get(html.unescape(onward), **same)
    assert "API key" in login.text
    assert f'name="next" value="{story}"' in login.text
    # The log-in itself never sends on: whoever is logged out stays there, wherever they come from.
    for where in ("/console/login", "/console/login?next=/console/login"):
        assert "refresh" not in (await here.stranger().get(where, **CHAT)).text


@pytest.mark.parametrize(
    ("headers", "sent_on"),
    [
        (CHAT, True),
        ({"Accept": "text/html,*/*"}, True),  # over plain http browsers do not say where they come from
        ({**CHAT, "Sec-Fetch-Site": "same-origin"}, False),
        ({**CHAT, "Sec-Fetch-Site": "none"}, False),
        ({**CHAT, "Sec-Fetch-Dest": "iframe"}, False),
        ({**CHAT, "Sec-Fetch-Dest": "image"}, False),
        ({**CHAT, "Cookie": "signoff_console=gone"}, False),
        ({**CHAT, "Accept": "application/json"}, False),
    ],
)
async def test_only_who_may_have_lost_the_cookie_is_sent_on(
    here: Place, headers: dict[str, str], sent_on: bool
) -> None:
    page = await here.stranger().get("/console/sessions", **headers)
    assert ('http-equiv="refresh"' in page.text) == sent_on


@pytest.mark.parametrize("following", LEAVING)
async def test_who_is_logged_in_is_sent_on_within_the_console_only(here: Place, following: str) -> None:
    person = await here.person("ops")
    found = await person.get(f"/console/login?next={quote(following, safe='')}")
    assert found.url == f"{here.base}/console"


# --- one-time links --------------------------------------------------------------------------------


async def test_a_link_is_looked_at_often_and_used_once(stored: Place) -> None:
    token = await stored.console.desk.seats.make_link(profile="default", principal="ana", view=False)
    for _ in range(3):
        preview = await stored.stranger().get(f"/console/link/{token}")
        assert preview.status == 200
        assert "ana" in preview.text
        assert "Set-Cookie" not in preview.headers
    people = [stored.stranger() for _ in range(8)]
    answers = await asyncio.gather(*(person.post(f"/console/link/{token}", {}) for person in people))
    assert sorted(answer.status for answer in answers) == [303] + [403] * 7
    assert (await stored.stranger().get(f"/console/link/{token}")).status == 403


async def test_a_link_lapses_after_ten_minutes() -> None:
    clock = FakeClock()
    async with place(clock=clock) as here:
        token = await here.console.desk.seats.make_link(profile="default", principal=None, view=True)
        await clock.advance(599)
        assert (await here.stranger().get(f"/console/link/{token}")).status == 200
        await clock.advance(1)
        assert (await here.stranger().post(f"/console/link/{token}", {})).status == 403


async def test_links_are_made_for_administrators_alone(here: Place) -> None:
    admin, approver = await here.client("admin"), await here.client("approver")
    made = await admin("POST", "/console/links", {"principal": "ana"})
    assert made.status == 201
    assert made.body["url"] == here.base + made.body["path"]
    assert (await approver("POST", "/console/links", {"principal": "ana"})).code == "insufficient_scope"
    assert (await admin("POST", "/console/links", {})).code == "invalid_request"
    assert (await admin("POST", "/console/links", {"principal": "a b"})).code == "invalid_request"
    assert (await admin("POST", "/console/links", {"who": "ana"})).code == "invalid_request"
    assert (await admin("POST", "/console/links", b"{")).code == "invalid_json"
    async with here.http.post(f"{here.base}/console/links", data=b"{}") as answer:
        assert answer.status == 401


async def test_a_link_names_the_public_address() -> None:
    async with place(public="https://signoff.example.org") as here:
        admin = await here.client("admin")
        made = await admin("POST", "/console/links", {"view": True})
        assert made.body["url"] == f"https://signoff.example.org{made.body['path']}"
        # Through the proxy the browser names the public host.
        headers = {"Host": "signoff.example.org", "Origin": "https://signoff.example.org"}
        answer = await here.stranger().post(made.body["path"], {}, **headers)
        assert answer.status == 303
        assert "Secure" in answer.headers["Set-Cookie"]


# --- forms of strangers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ""},
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_form_of_another_site_does_nothing(here: Place, headers: dict[str, str]) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await here.person()
    page = await person.get("/console")
    form = {**page.fields("/console/decide", record["request_id"]), "choice": "once"}
    assert (await person.post("/console/decide", form, **headers)).status == 403
    assert (await person.post("/console/login", {"key": "x"}, **headers)).status == 403
    assert (await agent("GET", f"/v1/approvals/{record['request_id']}")).body["status"] == "pending"


@pytest.mark.parametrize("token", [None, "", "0" * 64, "é", "other"])
async def test_a_form_carries_the_token_of_its_log_in(here: Place, token: str | None) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person, other = await here.person(), await here.person()
    page = await person.get("/console")
    form = {**page.fields("/console/decide", record["request_id"]), "choice": "once"}
    if token is None:
        del form["csrf"]
    else:
        form["csrf"] = (await other.get("/console")).fields("/console/logout")["csrf"] if token == "other" else token
    assert (await person.post("/console/decide", form)).status == 403
    assert (await agent("GET", f"/v1/approvals/{record['request_id']}")).body["status"] == "pending"


# --- a cookie that another port of the same host got ----------------------------------------------


async def logged_in(here: Place, bond: str) -> Person:
    """Somebody whose browser keeps that secret for the console's own port."""
    key = (await here.core.keys.create("default", "approver", principal="ann")).text
    person = here.stranger()
    assert (await person.post("/console/login", {"key": key, "bond": bond})).status == 303
    return person


@pytest.mark.parametrize("bond", [None, "", "0" * 64, "é", "\x00"])
async def test_the_cookie_alone_does_not_decide(here: Place, bond: str | None) -> None:
    agent = await here.agent()
    record = await agent.ask()
    thief = await logged_in(here, "s" * 64)
    page = await thief.get("/console")
    assert record["short_id"] in page.text, "it looks"
    form = {**page.fields("/console/decide", record["request_id"]), "choice": "once"}
    for path in ("/console/decide", "/console/all", "/console/reveal", "/console/drill", "/console/logout"):
        answer = await thief.post(path, {**form, **({} if bond is None else {"bond": bond})})
        assert answer.status == 403, path
        assert "the browser that logged in" in answer.text
    assert (await agent("GET", f"/v1/approvals/{record['request_id']}")).body["status"] == "pending"


async def test_with_the_secret_it_does(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await logged_in(here, "s" * 64)
    form = (await person.get("/console")).fields("/console/decide", record["request_id"])
    told = await person.script("/console/decide", {**form, "choice": "deny", "bond": "s" * 64})
    assert told["how"] == "done"


async def test_a_link_binds_too_and_only_a_hash_is_kept(stored: Place) -> None:
    token = await stored.console.desk.seats.make_link(profile="default", principal="ana", view=False)
    person = stored.stranger()
    assert (await person.post(f"/console/link/{token}", {"bond": "s" * 64})).status == 303
    form = (await person.get("/console")).fields("/console/logout")
    assert (await person.post("/console/logout", form)).status == 403
    note = await stored.core.store.get(Note, "console:seats")
    assert note is not None
    assert "s" * 64 not in note.value
    assert (await person.post("/console/logout", {**form, "bond": "s" * 64})).status == 303


# --- a host name that browsers look for on [::1] first ----------------------------------------------


def ipv6_socket(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    sock.bind(("::1", port))
    return sock


@pytest.fixture
def ipv6() -> None:
    """Only where the machine has IPv6."""
    try:
        ipv6_socket(0).close()
    except OSError:
        pytest.skip("this machine has no IPv6")


@pytest.mark.usefixtures("ipv6")
@pytest.mark.parametrize("name", ["signoff-5d1c.localhost", "LOCALHOST.", "a.b.localhost"])
async def test_a_name_of_localhost_is_answered_on_both_addresses(name: str) -> None:
    async with world_on("memory://", host_names=(name,)) as world:
        port = world.bound.api.rpartition(":")[2]
        for address in ("127.0.0.1", "[::1]"):
            async with world.http.get(f"http://{address}:{port}/health", headers={"Host": f"{name}:{port}"}) as answer:
                assert answer.status == 200


@pytest.mark.usefixtures("ipv6")
async def test_whoever_holds_the_other_address_keeps_the_gateway_from_starting() -> None:
    with ipv6_socket(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=r"\[::1\]:\d+ is taken, which browsers call first"):
            async with world_on("memory://", port=port, host_names=("signoff-5d1c.localhost",)):
                pass
        async with world_on("memory://", port=port, host_names=("signoff.example.org", "notlocalhost")) as world:
            assert world.bound.api.endswith(f":{port}")


async def test_a_page_of_another_name_is_not_served(here: Place) -> None:
    page = await here.stranger().get("/console/login", Host="evil.example")
    assert page.status == 421


async def test_forms_only(here: Place) -> None:
    person = await here.person()
    async with person.http.post(
        f"{here.base}/console/decide", json={"id": "x"}, headers={"Origin": here.base}
    ) as answer:
        assert answer.status == 415
    assert (await person.get("/console/decide")).status == 405
    assert (await person.get("/console/nothing")).status == 404


# --- what ends a log-in ----------------------------------------------------------------------------


async def test_logging_out_ends_it_everywhere(here: Place) -> None:
    person = await here.person()
    page = await person.get("/console")
    (cookie,) = person.http.cookie_jar
    async with person.http.get(f"{here.base}/console/events") as stream:
        assert stream.status == 200
        answer = await person.post("/console/logout", page.fields("/console/logout"))
        assert answer.headers["Location"] == "/console/login"
        async with asyncio.timeout(15):
            assert b"event: over" in await stream.content.read()
    async with (
        aiohttp.ClientSession(cookies={"signoff_console": cookie.value}) as thief,
        thief.get(f"{here.base}/console/history", allow_redirects=False) as again,
    ):
        assert again.status == 303


async def test_a_revoked_key_ends_its_log_ins_and_their_streams(here: Place) -> None:
    key = await here.core.keys.create("default", "approver", principal="ann")
    person = here.stranger()
    await person.post("/console/login", {"key": key.text})
    async with person.http.get(f"{here.base}/console/events") as stream:
        await stream.content.readline()
        await here.core.keys.revoke("default", key.key.key_id)
        async with asyncio.timeout(15):
            await stream.content.read()
    assert (await person.get("/console")).url.endswith("/console/login")


async def test_a_log_in_lasts_twelve_hours() -> None:
    clock = FakeClock()
    async with place(clock=clock) as here:
        person = await here.person()
        (cookie,) = person.http.cookie_jar
        await clock.advance(timedelta(hours=12).total_seconds() - 1)
        assert await here.console.desk.seats.find(cookie.value) is not None
        await clock.advance(1)
        assert await here.console.desk.seats.find(cookie.value) is None


async def test_a_log_in_outlives_a_restart(tmp_path: Path) -> None:
    clock = SystemClock()
    url = f"sqlite://{tmp_path}/store.db"
    first = open_store(url, clock)
    async with place_on(first, clock) as here:
        person = await here.person()
        port = int(here.base.rpartition(":")[2])
        cookies = {cookie.key: cookie.value for cookie in person.http.cookie_jar}
    await first.aclose()
    second = open_store(url, clock)
    async with (
        place_on(second, clock, port=port) as here,
        aiohttp.ClientSession(cookies=cookies) as http,
        http.get(f"{here.base}/console") as answer,
    ):
        assert answer.url.path == "/console"
    await second.aclose()


async def test_the_oldest_log_ins_make_room(here: Place) -> None:
    seats = here.console.desk.seats
    first = await seats.open(profile="default", scope="ops", principal=None, key_id=None)
    for _ in range(500):
        newest = await seats.open(profile="default", scope="ops", principal=None, key_id=None)
    assert await seats.find(first) is None
    assert await seats.find(newest) is not None


async def test_one_key_puts_out_its_own_log_ins_only(here: Place) -> None:
    ann, looker = await here.person(), await here.core.keys.create("default", "ops")
    seats = here.console.desk.seats
    key_id = looker.key.key_id
    own = [await seats.open(profile="default", scope="ops", principal=None, key_id=key_id) for _ in range(520)]
    assert (await ann.get("/console")).url == f"{here.base}/console"
    live = [secret for secret in own if await seats.find(secret) is not None]
    assert live == own[-20:]


async def test_a_defect_is_logged_without_the_token_of_a_link(
    here: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seats = here.console.desk.seats
    token = await seats.make_link(profile="default", principal="ana", view=False)

    async def broken(_: str) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(seats, "link", broken)
    assert (await here.stranger().get(f"/console/link/{token}")).status == 500
    assert "/console/link" in caplog.text
    assert token not in caplog.text

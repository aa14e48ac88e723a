"""Whatever comes in, the answer is an error in our form with a code, never a 500."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.server.world import COMMAND, World, world_on
from yarl import URL

from signoff.loopback import is_loopback
from signoff.server.faults import WrongHost
from signoff.server.limits import MAX_BODY_BYTES, Hosts, too_deep

ASK = {"session_id": "s1", "action": COMMAND}


def asked(**facts: Any) -> str:
    return json.dumps({**ASK, **facts})


def acting(**facts: Any) -> str:
    return json.dumps({**ASK, "action": {**COMMAND, **facts}})


BODIES = {
    "empty": (b"", 400, "invalid_json", None),
    "cut": (b'{"session_id"', 400, "invalid_json", None),
    "no json": (b"hello", 400, "invalid_json", None),
    "trailing": (asked() + "{}", 400, "invalid_json", None),
    "byte order mark": (b"\xef\xbb\xbf{}", 400, "invalid_json", None),
    "not utf-8": (b'{"session_id": "\xff"}', 400, "invalid_json", None),
    "half a pair": (b'{"session_id": "\\ud800"}', 400, "invalid_json", None),
    "nan": (asked(timeout_s=float("nan")), 400, "invalid_json", None),
    "array": (b"[]", 422, "invalid_request", None),
    "null": (b"null", 422, "invalid_request", None),
    "nothing in it": (b"{}", 422, "invalid_request", "action"),
    "unknown field": (asked(sesion_id="x"), 422, "invalid_request", "sesion_id"),
    "unknown field in the action": (acting(comand="x"), 422, "invalid_request", "action.comand"),
    "unknown kind": (acting(kind="shell"), 422, "invalid_request", "action.kind"),
    "no kind": (json.dumps({**ASK, "action": {"command": "ls"}}), 422, "invalid_request", "action.kind"),
    "text for a number": (asked(timeout_s="60"), 422, "invalid_request", "timeout_s"),
    "yes for a number": (asked(timeout_s=True), 422, "invalid_request", "timeout_s"),
    "zero": (asked(timeout_s=0), 422, "invalid_request", "timeout_s"),
    "negative": (asked(timeout_s=-1), 422, "invalid_request", "timeout_s"),
    "beyond floats": (b'{"session_id": "s1", "timeout_s": 1e999}', 422, "invalid_request", "timeout_s"),
    "number for an id": (asked(session_id=5), 422, "invalid_request", "session_id"),
    "empty id": (asked(request_id=""), 422, "invalid_request", "request_id"),
    "long id": (asked(request_id="x" * 65), 422, "invalid_request", "request_id"),
    "id with a zero byte": (asked(request_id="a\0b"), 422, "invalid_request", "request_id"),
    "unknown choice": (asked(choices=["maybe"]), 422, "invalid_request", "choices"),
    "no way to approve": (asked(choices=["deny"]), 422, "invalid_request", "choices"),
    "long reason": (asked(reason="x" * 5000), 422, "invalid_request", "reason"),
    "unknown session": (asked(session_id="nowhere"), 404, "session_not_found", None),
    "session with a zero byte": (asked(session_id="a\0"), 404, "session_not_found", None),
    "unknown turn": (asked(turn_id="nowhere"), 404, "turn_not_found", None),
    "whole number too large for the digest": (
        json.dumps({**ASK, "action": {"kind": "tool", "name": "t", "arguments": {"n": 2**60}}}),
        422,
        "invalid_request",
        "action",
    ),
    "deep": (
        b'{"session_id": "s1", "action": {"kind": "tool", "name": "t", "arguments": {"a": '
        + b"[" * 70
        + b"]" * 70
        + b"}}}",
        422,
        "invalid_request",
        "action",
    ),
    "deeper than the stack": (
        b'{"session_id": "s1", "action": {"kind": "tool", "name": "t", "arguments": {"a": '
        + b"[" * 100_000
        + b"]" * 100_000
        + b"}}}",
        422,
        "invalid_request",
        None,
    ),
    "over 1 MiB": (acting(command="x" * MAX_BODY_BYTES), 413, "body_too_large", None),
}


@pytest.mark.parametrize("case", BODIES, ids=str)
async def test_bodies_of_a_question(quick: World, case: str) -> None:
    agent, _ = await quick.pair()
    body, status, code, param = BODIES[case]
    answer = await agent("POST", "/v1/approvals", body)
    assert (answer.status, answer.code, answer.body["error"]["param"]) == (status, code, param), answer.body
    assert answer.headers["Content-Type"] == "application/json"


async def test_an_unknown_field_is_answered_with_the_nearest(quick: World) -> None:
    agent, _ = await quick.pair()
    top = await agent("POST", "/v1/approvals", asked(sesion_id="x"))
    assert top.body["error"]["message"] == "There is no field 'sesion_id'. Did you mean session_id?"
    inner = await agent("POST", "/v1/approvals", acting(comand="x"))
    assert inner.body["error"]["message"] == "There is no field 'action.comand'. Did you mean command?"
    query = await agent("GET", "/v1/approvals?sesion=x")
    assert query.body["error"]["message"] == "There is no field 'sesion'. Did you mean session_id?"


CALLS = {
    "no such route": ("GET", "/v1/nothing", None, 404, "route_not_found"),
    "root": ("GET", "/", None, 404, "route_not_found"),
    "half a route": ("GET", "/v1", None, 404, "route_not_found"),
    "trailing slash": ("GET", "/v1/approvals/", None, 404, "route_not_found"),
    "doubled slash": ("GET", "//v1/approvals", None, 404, "route_not_found"),
    "wrong method": ("PATCH", "/v1/approvals", None, 405, "method_not_allowed"),
    "made-up method": ("BREW", "/v1/approvals", None, 400, "bad_request"),
    "trace": ("TRACE", "/v1/approvals", None, 405, "method_not_allowed"),
    "options": ("OPTIONS", "/v1/approvals", None, 405, "method_not_allowed"),
    "path not utf-8": ("GET", "/v1/approvals/%FF", None, 400, "bad_request"),
    "query not utf-8": ("GET", "/v1/approvals?after=%FF", None, 400, "bad_request"),
    "query twice": ("GET", "/v1/approvals?limit=1&limit=2", None, 400, "bad_request"),
    "query with many parts": (
        "GET",
        "/v1/approvals?" + "&".join(f"a{n}=1" for n in range(99)),
        None,
        400,
        "bad_request",
    ),
    "zero byte": ("GET", "/v1/approvals/%00", None, 404, "approval_not_found"),
    "slash in an id": ("GET", "/v1/approvals/a%2Fb", None, 404, "approval_not_found"),
    "negative wait": ("GET", "/v1/approvals/x?wait=-1", None, 422, "invalid_request"),
    "long wait": ("GET", "/v1/approvals/x?wait=61", None, 422, "invalid_request"),
    "nan wait": ("GET", "/v1/approvals/x?wait=nan", None, 422, "invalid_request"),
    "text wait": ("GET", "/v1/approvals/x?wait=long", None, 422, "invalid_request"),
    "empty wait": ("GET", "/v1/approvals/x?wait=", None, 422, "invalid_request"),
    "limit zero": ("GET", "/v1/approvals?limit=0", None, 422, "invalid_request"),
    "limit huge": ("GET", "/v1/approvals?limit=" + "9" * 500, None, 422, "invalid_request"),
    "limit broken": ("GET", "/v1/approvals?limit=1.5", None, 422, "invalid_request"),
    "unknown status": ("GET", "/v1/approvals?status=open", None, 422, "invalid_request"),
    "unknown query": ("GET", "/v1/approvals?state=open", None, 422, "invalid_request"),
    "query where none is": ("GET", "/v1/capabilities?x=1", None, 422, "invalid_request"),
    "negative position": ("GET", "/v1/events?after=-1", None, 422, "invalid_request"),
    "position ahead": ("GET", "/v1/events?after=99999", None, 400, "invalid_position"),
    "half a place": ("PUT", "/v1/sessions/s2", '{"platform": "telegram"}', 422, "invalid_request"),
    "number for a chat": ("PUT", "/v1/sessions/s2", '{"platform": "telegram", "chat_id": 5}', 422, "invalid_request"),
    "place not served": (
        "PUT",
        "/v1/sessions/s2",
        '{"platform": "telegram", "chat_id": "5"}',
        403,
        "destination_not_allowed",
    ),
    "kind not allowed": ("PUT", "/v1/sessions/s2", '{"kind": "child", "parent": "nowhere"}', 404, "session_not_found"),
    "session id with a line end": ("PUT", "/v1/sessions/a%0Ab", "{}", 422, "invalid_request"),
    "session id too long": ("PUT", "/v1/sessions/" + "x" * 201, "{}", 422, "invalid_request"),
    "lease too short": ("POST", "/v1/sessions/s1/turns", '{"lease_s": 1}', 422, "invalid_request"),
    "unknown turn": ("POST", "/v1/turns/nowhere/heartbeat", None, 404, "turn_not_found"),
    "unknown cause": ("DELETE", "/v1/turns/nowhere?cause=bored", None, 422, "invalid_request"),
    "cause of another": ("DELETE", "/v1/turns/nowhere?cause=undone", None, 422, "invalid_request"),
    "claim without a digest": ("POST", "/v1/approvals/x/claim", "{}", 422, "invalid_request"),
    "exit code of text": (
        "POST",
        "/v1/approvals/x/result",
        '{"status": "failed", "exit_code": "1"}',
        422,
        "invalid_request",
    ),
    "exit code beyond": (
        "POST",
        "/v1/approvals/x/result",
        '{"status": "failed", "exit_code": 99999999999}',
        422,
        "invalid_request",
    ),
    "body where none is read": ("DELETE", "/v1/turns/x", "x" * (MAX_BODY_BYTES + 1), 413, "body_too_large"),
}


@pytest.mark.parametrize("case", CALLS, ids=str)
async def test_calls(quick: World, case: str) -> None:
    agent, _ = await quick.pair()
    method, path, body, status, code = CALLS[case]
    headers = {"Authorization": f"Bearer {agent.key}"}
    url = URL(quick.bound.api + path, encoded=True)  # as it is written here
    data = io.BytesIO(body.encode()) if body else None
    async with quick.http.request(method, url, data=data, headers=headers) as response:
        answer = await response.json()
    assert (response.status, answer["error"]["code"]) == (status, code), answer
    if status == 405:
        assert response.headers["Allow"] == "GET, POST"
    assert "Access-Control-Allow-Origin" not in response.headers


async def raw(world: World, data: bytes, *, within_s: float = 10.0) -> bytes:
    """Send bytes as they are; return the whole answer."""
    parts = urlsplit(world.bound.api)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(data)
        await writer.drain()
        async with asyncio.timeout(within_s):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            return head + await reader.readexactly(int(length.partition(b":")[2]))
    finally:
        writer.close()


HOST = b"Host: localhost\r\n"
RAW = {
    "no http": (b"hello\r\n\r\n", b"400", b"bad_request"),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400", b"bad_request"),
    "bad version": (b"GET / HTTP/9.9\r\n" + HOST + b"\r\n", b"400", b"bad_request"),
    "huge header": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 20_000 + b"\r\n\r\n", b"400", b"bad_request"),
    "many headers": (
        b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: a\r\n" % n for n in range(500)) + b"\r\n",
        b"400",
        b"bad_request",
    ),
    "huge address": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", b"400", b"bad_request"),
    "header without a colon": (b"GET / HTTP/1.1\r\n" + HOST + b"nonsense\r\n\r\n", b"400", b"bad_request"),
    "zero byte in a header": (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n", b"400", b"bad_request"),
    "two lengths": (
        b"POST /v1/keys HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"400",
        b"bad_request",
    ),
    "negative length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", b"400", b"bad_request"),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", b"400", b"bad_request"),
    "two hosts": (b"GET /health HTTP/1.1\r\n" + HOST + HOST + b"\r\n", b"400", b"bad_request"),
    "a stranger's host": (b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421", b"wrong_host"),
    "a stranger's host with our port": (
        b"GET /health HTTP/1.1\r\nHost: evil.example:8787\r\n\r\n",
        b"421",
        b"wrong_host",
    ),
    "an odd expectation": (
        b"POST /v1/keys HTTP/1.1\r\n" + HOST + b"Expect: coffee\r\nContent-Length: 2\r\n\r\n{}",
        b"401",
        b"invalid_api_key",
    ),
}


@pytest.mark.parametrize("case", RAW, ids=str)
async def test_bytes_that_are_hardly_http(quick: World, case: str) -> None:
    data, status, code = RAW[case]
    answer = await raw(quick, data)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == status, answer
    assert json.loads(body)["error"]["code"] == code.decode()


@pytest.mark.parametrize("host", [b"localhost", b"LOCALHOST:1", b"127.0.0.1", b"[::1]:80", b"10.1.2.3:99"])
async def test_our_own_hosts_are_served(quick: World, host: bytes) -> None:
    answer = await raw(quick, b"GET /health HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")


async def test_a_chunked_body_over_the_limit(quick: World) -> None:
    agent, _ = await quick.pair()

    async def chunks() -> Any:
        for _ in range(40):
            yield b"x" * 32_768

    answer = await agent("POST", "/v1/approvals", None, data=chunks())
    assert (answer.status, answer.code) == (413, "body_too_large")


async def test_a_broken_chunk(quick: World) -> None:
    agent, _ = await quick.pair()
    head = b"POST /v1/approvals HTTP/1.1\r\n" + HOST + f"Authorization: Bearer {agent.key}\r\n".encode()
    answer = await raw(quick, head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
    assert b" 400 " in answer.split(b"\r\n")[0]


async def test_expect_continue_is_answered_before_the_body(quick: World) -> None:
    agent, _ = await quick.pair()
    body = json.dumps(ASK).encode()
    parts = urlsplit(quick.bound.api)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = f"Authorization: Bearer {agent.key}\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(b"POST /v1/approvals HTTP/1.1\r\n" + HOST + head.encode())
    async with asyncio.timeout(15):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await reader.readline()).startswith(b"HTTP/1.1 201")
    writer.close()


KEYS = [
    "",
    "Bearer",
    "Bearer ",
    "Bearer x",
    "Basic dTpw",
    "sk_x_y",
    "Bearer sk_" + "a" * 12 + "_" + "b" * 43,
    "Bearer \xff",
]


@pytest.mark.parametrize("given", KEYS)
async def test_keys_that_are_none(quick: World, given: str) -> None:
    answer = await raw(
        quick, b"GET /v1/grants HTTP/1.1\r\n" + HOST + b"Authorization: " + given.encode("latin-1") + b"\r\n\r\n"
    )
    assert b" 401 " in answer.split(b"\r\n")[0]
    assert b'"invalid_api_key"' in answer
    assert b"WWW-Authenticate: Bearer" in answer


async def test_two_authorization_headers(quick: World) -> None:
    agent, _ = await quick.pair()
    line = f"Authorization: Bearer {agent.key}\r\n".encode()
    answer = await raw(quick, b"GET /v1/approvals HTTP/1.1\r\n" + HOST + line + line + b"\r\n")
    assert b" 400 " in answer.split(b"\r\n")[0]


async def test_head_is_get_without_a_body(quick: World) -> None:
    async with quick.http.head(f"{quick.bound.api}/health") as response:
        assert (response.status, await response.read()) == (200, b"")
    ops = await quick.client("ops")
    assert (await ops("HEAD", "/v1/events")).status == 405


async def test_a_defect_is_logged_with_its_id_and_tells_nothing(
    quick: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, _ = await quick.pair()

    async def broken(*_args: object) -> None:
        raise KeyError("inner detail")

    monkeypatch.setattr(quick.core.sessions, "get", broken)
    answer = await agent("GET", "/v1/sessions/s1")
    assert (answer.status, answer.code) == (500, "internal_error")
    assert "inner detail" not in str(answer.body)
    lines = [record.getMessage() for record in caplog.records if record.name == "signoff.server"]
    assert len(lines) == 1
    error_id = lines[0].split()[1].rstrip(":")
    assert error_id in answer.body["error"]["message"]
    metrics = (await agent("GET", "/metrics")).body.decode()
    assert "signoff_unexpected_errors_total 1.0" in metrics


async def test_a_store_that_cannot_save_is_no_success(quick: World) -> None:
    """What was not applied is never a 2xx, the question stays answerable, and the retry works."""
    agent, approver = await quick.pair()
    row = await agent.ask()
    store: Any = quick.core.store
    path = f"/v1/approvals/{row['request_id']}/decision"
    store._closed = True
    refused = await approver("POST", path, {"choice": "once"})
    assert (refused.status, refused.code) == (503, "store_unavailable")
    assert refused.headers["Retry-After"] == "1"
    store._closed = False
    assert (await approver("GET", f"/v1/approvals/{row['request_id']}")).body["status"] == "pending"
    assert (await approver("POST", path, {"choice": "once"})).status == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(["session_id", "action", "request_id", "timeout_s", "choices", "reason", "host", "turn_id"])


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(bodies=st.lists(st.dictionaries(NAMES, JSON, max_size=6) | JSON, min_size=4, max_size=8))
def test_any_json_is_understood_or_refused(bodies: list[Any]) -> None:
    async def run() -> None:
        async with world_on("memory://") as world:
            agent, _ = await world.pair()
            for body in bodies:
                sent = {**ASK, **body} if isinstance(body, dict) else body
                answer = await agent("POST", "/v1/approvals", json.dumps(sent))
                assert answer.status in (200, 201, 400, 404, 409, 422), (sent, answer)
                if answer.status > 201:
                    assert answer.code

    asyncio.run(run())


@given(st.integers(0, 200), st.integers(1, 80))
def test_depth_is_counted(depth: int, limit: int) -> None:
    value: Any = []
    for _ in range(depth):
        value = [value] if depth % 2 else {"a": value}
    assert too_deep(value, limit) == (depth > limit)


async def test_only_a_gateway_on_loopback_minds_the_name_it_is_called_by() -> None:
    request = make_mocked_request("GET", "/health", headers={"Host": "signoff.internal"})
    Hosts(frozenset(), reachable=not is_loopback("0.0.0.0")).check(request)
    for host in ("127.0.0.1", "::1", "localhost"):
        with pytest.raises(WrongHost):
            Hosts(frozenset(), reachable=not is_loopback(host)).check(request)

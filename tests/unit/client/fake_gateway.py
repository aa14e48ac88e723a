"""A gateway of few lines that loses answers, fails, goes away and comes back on the same port, when it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from tests.ports import free_port

from signoff.digest import digest_of
from signoff.expected import action_of

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FakeGateway:
    """What a client sees of a gateway. State outlives `down()` and `up()`, as a store does."""

    def __init__(self) -> None:
        self.port = free_port()
        self.approvals: dict[str, dict[str, Any]] = {}
        self.turns: dict[str, str | None] = {}
        """Each turn's cause; None while it is open."""
        self.sessions: dict[str, dict[str, Any]] = {}
        self.seen: list[str] = []
        """`METHOD /path` of every request that was acted on."""
        self.lose: list[str] = []
        self.arrived = 0
        """How many questions have come, stored or not."""
        """Beginnings of `METHOD /path`: the next such request is acted on, and its answer lost."""
        self.fail: list[tuple[str, int]] = []
        """The next such request is answered with this status and not acted on."""
        self.failure = "<html>no JSON</html>"
        """What is written then."""
        self.outcome: str | None = None
        """How new questions end at once."""
        self.digest: str | None = None
        """A wrong digest for new records."""
        self.events: list[str] = []
        self.last_event_ids: list[str] = []
        self.cut_streams = 0
        """So many event streams are cut before they send an event."""
        self.late: asyncio.Event | None = None
        """Questions are stored only once this is set, whether or not the asker still waits."""
        self.headers: dict[str, str] = {}
        self.changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def up(self, socket: Path | None = None) -> None:
        """Listen, on the same port as before."""
        app = web.Application(middlewares=[self._disturb])
        app.router.add_routes(
            [
                web.get("/health", self._health),
                web.post("/v1/approvals", self._submit),
                web.get("/v1/approvals", self._list),
                web.get("/v1/approvals/{id}", self._get),
                web.post("/v1/approvals/{id}/{verb}", self._verb),
                web.get("/v1/sessions", self._sessions),
                web.get("/v1/sessions/{id}", self._session),
                web.put("/v1/sessions/{id}", self._session),
                web.delete("/v1/sessions/{id}", self._session),
                web.post("/v1/sessions/{id}/stop", self._stop),
                web.post("/v1/sessions/{id}/turns", self._open_turn),
                web.post("/v1/turns/{id}/heartbeat", self._heartbeat),
                web.delete("/v1/turns/{id}", self._end_turn),
                web.get("/v1/events", self._events),
                web.get("/v1/grants", self._grants),
                web.get("/v1/allowlist", self._allowlist),
                web.delete("/v1/grants/{id}", self._revoke),
            ]
        )
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        if socket is not None:
            await web.UnixSite(self._runner, str(socket)).start()
            return
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def down(self) -> None:
        """Cut every connection and stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # --- what a test does ----------------------------------------------------------------------

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once something is true that a request may have changed."""
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(holds)

    async def asked(self) -> str:
        """The id of the newest question, once there is one."""
        await self.until(lambda: bool(self.approvals))
        return next(reversed(self.approvals))

    async def decide(self, request_id: str, outcome: str, **facts: Any) -> None:
        """End a question."""
        self.end(request_id, outcome, **facts)
        await self._tell()

    def end(self, request_id: str, outcome: str, **facts: Any) -> None:
        """The same, without waking those that wait."""
        self.approvals[request_id] |= {"status": "resolved", "outcome": outcome, **facts}
        if outcome != "approved":
            self.approvals[request_id].setdefault("message", f"BLOCKED: {outcome}.")

    def count(self, call: str) -> int:
        """How many requests began like that."""
        return sum(each.startswith(call) for each in self.seen)

    # --- disturbances --------------------------------------------------------------------------

    @web.middleware
    async def _disturb(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        call = f"{request.method} {request.path}"
        self.headers = dict(request.headers)
        await self._tell()
        for failure in self.fail:
            if call.startswith(failure[0]):
                self.fail.remove(failure)
                await self._tell()
                return web.Response(status=failure[1], text=self.failure)
        lost = next((each for each in self.lose if call.startswith(each)), None)
        if lost is not None:
            self.lose.remove(lost)
        answer = await handler(request)
        self.seen.append(call)
        await self._tell()
        if lost is not None and request.transport is not None:
            request.transport.abort()
        return answer

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    # --- routes --------------------------------------------------------------------------------

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _submit(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        self.arrived += 1
        await self._tell()
        if self.late is not None:
            return await asyncio.shield(asyncio.ensure_future(self._store_late(self.late, body)))
        return self._store(body)

    async def _store_late(self, late: asyncio.Event, body: dict[str, Any]) -> web.Response:
        await late.wait()
        return self._store(body)

    def _store(self, body: dict[str, Any]) -> web.Response:
        request_id = body["request_id"]
        if body["session_id"] not in self.sessions:
            return error(404, "session_not_found", "No session with this id is known to this key.")
        known = self.approvals.get(request_id)
        if known is None:
            digest = digest_of(action_of(body["action"]), body.get("host"))
            self.approvals[request_id] = {
                "object": "signoff.approval",
                "request_id": request_id,
                "short_id": "K7M2Q",
                "session_id": body["session_id"],
                "turn_id": body.get("turn_id"),
                "status": "pending",
                "outcome": None,
                "digest": self.digest or digest,
                "action": body["action"],
                "created_at": datetime.now(UTC).isoformat(),
                "execution": {"state": "none"},
                "claimed_here": True,
                "body": body,
            }
            if self.outcome is not None:
                self.end(request_id, self.outcome)
        return web.json_response(self.approvals[request_id], status=200 if known else 201)

    async def _get(self, request: web.Request) -> web.Response:
        row = self._row(request)
        if row is None:
            return self._unknown()
        wait_s = float(request.query.get("wait", 0))
        try:
            async with asyncio.timeout(wait_s), self.changed:
                await self.changed.wait_for(lambda: row["status"] == "resolved")
        except TimeoutError:
            pass
        return web.json_response(row)

    def _unknown(self) -> web.Response:
        if self.late is not None:
            self.late.set()
        return error(404, "approval_not_found", "No approval request with this id.")

    async def _list(self, request: web.Request) -> web.Response:
        rows = [row for row in self.approvals.values() if row["status"] == "pending"]
        after = request.query.get("after")
        ids = [row["request_id"] for row in rows]
        rows = rows[ids.index(after) + 1 :] if after else rows
        following = rows[1]["request_id"] if len(rows) > 2 else None
        return web.json_response({"object": "list", "data": rows[:2] if following else rows, "next": following})

    async def _verb(self, request: web.Request) -> web.Response:
        row = self._row(request)
        if row is None:
            return self._unknown()
        body = json.loads(await request.read())
        handler: Callable[[dict[str, Any], dict[str, Any]], web.Response] = getattr(
            self, f"_do_{request.match_info['verb']}"
        )
        return handler(row, body)

    def _do_claim(self, row: dict[str, Any], body: dict[str, Any]) -> web.Response:
        ran = row["execution"]
        if ran.get("claim_id") == body["claim_id"]:
            return web.json_response(row)
        if row["outcome"] != "approved":
            return error(409, "not_approved", "This action is not approved.")
        if body["digest"] != row["digest"]:
            return error(409, "digest_mismatch", "This is not the action that was approved.")
        if ran["state"] == "not_run":
            return error(409, "cancelled", "The approval was taken back before it was started.")
        if ran["state"] != "none":
            return error(409, "already_claimed", "BLOCKED: already_claimed. This approval was used once.")
        if (row["body"]["action"].get("operands") or []) != (body.get("operands") or []):
            row["execution"] = {"state": "not_run", "cause": "changed_since_review"}
            return error(409, "changed_since_review", "A file changed after a person looked at it.")
        row["execution"] = {"state": "claimed", "claim_id": body["claim_id"]}
        row["message"] = "Approved once. Run exactly this action, once, now."
        return web.json_response(row)

    def _do_result(self, row: dict[str, Any], body: dict[str, Any]) -> web.Response:
        if row["execution"]["state"] != "claimed":
            return error(409, "conflict", "Nothing is running for this request.")
        row["execution"] |= {"state": body["status"], "exit_code": body.get("exit_code")}
        return web.json_response(row)

    def _do_cancel(self, row: dict[str, Any], body: dict[str, Any]) -> web.Response:
        if row["status"] == "pending":
            self.end(row["request_id"], "cancelled", cause=body["cause"])
        elif row["outcome"] == "approved" and row["execution"]["state"] == "none":
            row["execution"] = {"state": "not_run", "cause": body["cause"]}
        return web.json_response(row)

    def _do_decision(self, row: dict[str, Any], body: dict[str, Any]) -> web.Response:
        if row["status"] == "resolved":
            return web.json_response(
                {"error": {"message": "It had ended.", "code": "already_resolved"}, "approval": row}, status=409
            )
        outcome = "denied" if body["choice"] == "deny" else "approved"
        self.end(row["request_id"], outcome, choice=body["choice"], reason=body.get("reason"))
        row["user_summary"] = f"{outcome.capitalize()} by Ana"
        return web.json_response(row)

    def _do_undo(self, row: dict[str, Any], body: dict[str, Any]) -> web.Response:
        row["execution"] = {"state": "not_run", "cause": "undone"}
        return web.json_response(row)

    async def _session(self, request: web.Request) -> web.Response:
        session_id = request.match_info["id"]
        if request.method == "DELETE":
            self.sessions.pop(session_id, None)
            return web.json_response({"object": "signoff.stopped", "session_id": session_id})
        if request.method == "GET":
            if session_id not in self.sessions:
                return error(404, "session_not_found", "No session with this id is known to this key.")
            kind = self.sessions[session_id].get("kind", "api")
            return web.json_response({"session_id": session_id, "kind": kind, "generation": 0})
        self.sessions[session_id] = json.loads(await request.read())
        return web.json_response({"session_id": session_id, "kind": "api", "generation": 0})

    async def _sessions(self, request: web.Request) -> web.Response:
        found = [{"session_id": name, "kind": each.get("kind", "api")} for name, each in self.sessions.items()]
        return web.json_response({"object": "list", "data": found, "next": None})

    async def _allowlist(self, request: web.Request) -> web.Response:
        return error(409, "allowlist_in_file", "With this store a file is the allowlist.")

    async def _stop(self, request: web.Request) -> web.Response:
        return web.json_response({"session_id": request.match_info["id"], "cancelled": ["a"], "turns": ["t"]})

    async def _open_turn(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        if request.match_info["id"] not in self.sessions:
            return error(404, "session_not_found", "No session with this id is known to this key.")
        self.turns[body["turn_id"]] = None
        return web.json_response({"turn_id": body["turn_id"], "lease_s": body["lease_s"]}, status=201)

    async def _heartbeat(self, request: web.Request) -> web.Response:
        turn_id = request.match_info["id"]
        if self.turns[turn_id] is not None:
            return web.json_response(
                {"error": {"message": "It ended.", "code": "turn_ended"}, "cause": self.turns[turn_id]}, status=409
            )
        return web.json_response({"turn_id": turn_id, "lease_s": 60})

    async def _end_turn(self, request: web.Request) -> web.Response:
        turn_id = request.match_info["id"]
        if self.turns.get(turn_id) is None:
            self.turns[turn_id] = request.query["cause"]
        return web.json_response({"turn_id": turn_id, "lease_s": 60})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        after = request.headers.get("Last-Event-ID", request.query.get("after", ""))
        self.last_event_ids.append(after)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": hello\n\n")
        if after and self.cut_streams and request.transport is not None:
            self.cut_streams -= 1
            request.transport.abort()
            return response
        for number, kind in enumerate(self.events, 1):
            if after and number <= int(after):
                continue
            data = json.dumps({"seq": number, "type": kind, "at": "2026-01-01T00:00:00Z", "session_id": "s"})
            await response.write(f"id: {number}\nevent: {kind}\ndata: {data}\n\n".encode())
            if kind == "cut" and request.transport is not None:
                request.transport.abort()
                return response
        async with self.changed:
            await self.changed.wait_for(lambda: False)
        return response

    async def _grants(self, request: web.Request) -> web.Response:
        by = {"type": "person", "platform": "local", "user_id": "0"}
        found = [{"grant_id": "G1", "scope": "always", "by": by}]
        return web.json_response({"object": "list", "data": found, "next": None})

    async def _revoke(self, request: web.Request) -> web.Response:
        if request.match_info["id"] != "G1":
            return error(404, "grant_not_found", "No live grant with this id.")
        return web.json_response({"grant_id": "G1"})

    def _row(self, request: web.Request) -> dict[str, Any] | None:
        wanted = request.match_info["id"]
        return next((r for r in self.approvals.values() if wanted in (r["request_id"], r["short_id"])), None)


def error(status: int, code: str, message: str) -> web.Response:
    """An error as the gateway writes it."""
    return web.json_response({"error": {"message": message, "type": "x", "code": code, "param": None}}, status=status)

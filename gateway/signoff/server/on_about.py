"""Routes about the gateway itself: health, metrics, capabilities and the OpenAPI document."""

from __future__ import annotations

from typing import Any

from signoff.errors import StoreError
from signoff.model import Action
from signoff.server.caller import Caller
from signoff.server.limits import MAX_BODY_BYTES, MAX_DEPTH
from signoff.server.openapi import document
from signoff.server.routes import OPS, READ, Call, Reply, Route, route
from signoff.server.views import Alive, Capabilities, Endpoint, HealthView, Ready
from signoff.server.wire import MAX_PAGE, MAX_WAIT_S
from signoff.sessions import MAX_LEASE_S, MIN_LEASE_S
from signoff.telemetry import CONTENT_TYPE

FEATURES = (
    "approval_wait",
    "approval_decision",
    "approval_claim",
    "approval_undo",
    "approval_events",
    "answer_clients",
    "turn_leases",
    "child_sessions",
    "grants",
    "keys",
    "staged_actions",
    "tool_gate",
)
"""Each is true: what a gateway cannot do is not named."""


async def _alive(_call: Call) -> Reply:
    return Reply(Alive())


async def _ready(call: Call) -> Reply:
    ready = call.core.ready and not call.door.hall.closing
    return Reply(Ready(status="ready" if ready else "starting"), 200 if ready else 503)


async def _detailed(call: Call) -> Reply:
    core = call.core
    view = HealthView(
        status="ready" if core.ready else "starting",
        version=call.door.version,
        started_at=core.started_at,
        parts=_told(call.who, await core.health()),
    )
    return Reply(view)


def _told(who: Caller, parts: dict[str, Any]) -> dict[str, Any]:
    """A key is told of its own profile's platforms and hooks; whoever reached the local socket runs them all."""
    if who.key_id is None:
        return parts
    return {
        part: {name: each for name, each in facts.items() if name.partition("/")[0] == who.profile}
        if part in ("platforms", "hooks", "executors", "unasked")
        else facts
        for part, facts in parts.items()
    }


async def _metrics(call: Call) -> Reply:
    core = call.core
    return Reply(await core.telemetry.render(core.store, core.clock), content_type=CONTENT_TYPE)


async def _capabilities(call: Call) -> Reply:
    who = call.who
    view = Capabilities(
        version=call.door.version,
        profile=who.profile,
        scope=who.scope,
        platforms=tuple(sorted(platform for profile, platform in call.core.adapters if profile == who.profile)),
        action_kinds=tuple(sorted(str(kind.__struct_config__.tag) for kind in Action.__args__)),
        features=dict.fromkeys(FEATURES, True),
        limits={
            "body_bytes": MAX_BODY_BYTES,
            "action_depth": MAX_DEPTH,
            "wait_s": MAX_WAIT_S,
            "page": MAX_PAGE,
            "lease_min_s": MIN_LEASE_S,
            "lease_max_s": MAX_LEASE_S,
        },
        endpoints={
            entry.name: Endpoint(method=entry.method, path=entry.path)
            for entry in call.door.routes
            if not entry.scopes or who.scope in entry.scopes
        },
    )
    return Reply(view)


async def _openapi(call: Call) -> Reply:
    return Reply(document(call.door.routes, call.door.version))


ROUTES: tuple[Route, ...] = (
    route(name="health", method="GET", path="/health", handler=_alive, answer=Alive, text="The process answers."),
    route(
        name="health_ready",
        method="GET",
        path="/health/ready",
        handler=_ready,
        answer=Ready,
        statuses=(200, 503),
        text="200 while the store serves and no loop keeps failing, once every platform had its first round; else 503.",
    ),
    route(
        name="health_detailed",
        method="GET",
        path="/health/detailed",
        handler=_detailed,
        scopes=OPS,
        answer=HealthView,
        text="Facts per adapter and of the store.",
    ),
    route(
        name="metrics",
        method="GET",
        path="/metrics",
        handler=_metrics,
        content_type="text/plain",
        errors=(StoreError,),
        text="Metrics for Prometheus. They hold counts, no text of anybody.",
    ),
    route(
        name="openapi",
        method="GET",
        path="/openapi.json",
        handler=_openapi,
        text="This document.",
    ),
    route(
        name="capabilities",
        method="GET",
        path="/v1/capabilities",
        handler=_capabilities,
        scopes=READ,
        answer=Capabilities,
        text="What this gateway can do for this key. Only what exists is named.",
    ),
)

"""Health, metrics, capabilities and the OpenAPI document."""

from __future__ import annotations

import json
import re

from tests.unit.server.world import World

from signoff.server.openapi import errors_of
from signoff.server.table import ROUTES


async def test_health_is_live_ready_and_detailed(quick: World) -> None:
    nobody = await quick.client("agent")
    nobody.key = None
    assert (await nobody("GET", "/health")).body == {"status": "ok"}
    assert (await nobody("GET", "/health/ready")).status == 200
    quick.core.ready = False
    starting = await nobody("GET", "/health/ready")
    assert (starting.status, starting.body) == (503, {"status": "starting"})
    ops = await quick.client("ops")
    detailed = (await ops("GET", "/health/detailed")).body
    assert detailed["parts"]["store"]["engine"] == "memory"
    assert detailed["status"] == "starting"


async def test_metrics_count_every_ending(world: World) -> None:
    agent, approver = await world.pair()
    one = await agent.ask()
    two = await agent.ask(action={"kind": "code", "language": "sh", "code": "x"})
    await agent.ask(action={"kind": "code", "language": "sh", "code": "y"})
    await approver("POST", f"/v1/approvals/{one['request_id']}/decision", {"choice": "deny"})
    await agent("POST", f"/v1/approvals/{two['request_id']}/cancel")
    answer = await agent("GET", "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = set(answer.body.decode().splitlines())
    assert 'signoff_approvals_total{cause="none",outcome="denied"} 1.0' in lines
    assert 'signoff_approvals_total{cause="withdrawn",outcome="cancelled"} 1.0' in lines
    assert "signoff_approvals_pending 1.0" in lines
    assert 'signoff_decision_seconds_count{outcome="denied"} 1.0' in lines
    assert "signoff_outbox_depth 0.0" in lines


async def test_capabilities_name_only_what_exists(quick: World) -> None:
    agent = await quick.client("agent")
    capabilities = (await agent("GET", "/v1/capabilities")).body
    known = {(route.method, route.path) for route in ROUTES}
    named = {(e["method"], e["path"]) for e in capabilities["endpoints"].values()}
    assert named <= known
    assert ("POST", "/v1/approvals") in named
    assert ("POST", "/v1/keys") not in named, "this key may not"
    assert all(capabilities["features"].values())
    assert (capabilities["profile"], capabilities["scope"], capabilities["platforms"]) == ("default", "agent", [])


async def test_the_document_and_the_routes_are_one(quick: World) -> None:
    nobody = await quick.client("agent")
    nobody.key = None
    document = (await nobody("GET", "/openapi.json")).body
    assert document["openapi"] == "3.1.0"
    written = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert written == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        codes = {int(status) for status in operation["responses"]}
        assert codes == {*route.statuses, *errors_of(route)}
        assert operation["security"] == ([{"key": []}] if route.scopes else [])
        named = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"]
        assert named == re.findall(r"{(\w+)}", route.path)
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert references <= set(document["components"]["schemas"])
    assert len({route.name for route in ROUTES}) == len(ROUTES)

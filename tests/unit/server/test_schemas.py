"""The OpenAPI document and the running server against each other, by generated calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from tests.unit.server.world import world_on

from signoff.server.table import ROUTES

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]


@dataclass
class Running:
    """A server in a thread of its own."""

    base: str = ""
    key: str = ""


@contextmanager
def running() -> Iterator[Running]:
    """Serve until the block is left; the admin key may call every route."""
    found, ready, loop = Running(), threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def run() -> None:
        async with world_on("memory://") as world:
            agent, _ = await world.pair()
            await agent.ask(request_id="r1")
            found.base, found.key = world.bound.api, str((await world.client("admin")).key)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    try:
        assert ready.wait(60)
        yield found
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(60)
        loop.close()


def _run(examples: int) -> int:
    """Call every operation that ends by itself with fitting and unfitting input; returns how many calls were made."""
    calls = 0
    with running() as server:
        schema = schemathesis.openapi.from_url(f"{server.base}/openapi.json")
        headers = {"Authorization": f"Bearer {server.key}"}
        steady = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )

        def call(case: Any) -> None:
            nonlocal calls
            calls += 1
            if case.query:
                case.query.pop("wait", None)
            case.call_and_validate(headers=headers, checks=CHECKS, timeout=10)

        for result in schema.get_all_operations():
            operation: Any = result.ok()  # type: ignore[union-attr]  # an error in the document fails here
            if operation.path == "/v1/events":
                continue
            for mode in _modes(operation):
                decorated: Any = given(operation.as_strategy(generation_mode=mode))
                steady(decorated(call))()
    return calls


def _modes(operation: Any) -> list[GenerationMode]:
    """Input that fits; and input that does not, where an operation takes any."""
    takes = operation.body or operation.query or operation.path_parameters
    return [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if takes else [])]


def test_the_server_keeps_to_its_document() -> None:
    assert _run(examples=6) >= len(ROUTES)


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_the_server_keeps_to_its_document_at_length() -> None:
    assert _run(examples=200) >= 100 * len(ROUTES) // 2

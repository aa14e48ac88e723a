"""A client asks in the session that is bound around the call; the environment counts for what was never set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.client.fake_gateway import FakeGateway

from signoff.client import BlockingClient, Client
from signoff.context import ContextThreadPool, absent, bind, child, within
from signoff.errors import InvalidInput
from signoff.model import Command

ACTION = Command(command="rm -rf build")
ENVIRON = {
    "SIGNOFF_SESSION_ID": "of-environ",
    "SIGNOFF_TURN_ID": "t-environ",
    "SIGNOFF_TOOL_CALL_ID": "c-environ",
    "SIGNOFF_PROFILE": "team-environ",
}


@pytest.fixture
async def gateway() -> AsyncIterator[FakeGateway]:
    fake = FakeGateway()
    fake.outcome = "denied"
    await fake.up()
    for name in ("a", "b", "s", "of-environ", "given"):
        fake.sessions[name] = {"kind": "cron"} if name == "b" else {}
    fake.turns.update(dict.fromkeys(("t-environ", "t-bound", "t-given")))
    yield fake
    await fake.down()


async def asked(gateway: FakeGateway, client: Client, **facts: Any) -> tuple[str | None, str | None, str | None]:
    """Session, turn and tool call of one question; a turn that was opened for it counts as none."""
    record = await client.request(ACTION, **facts)
    turn = record.turn_id if record.turn_id in ("t-environ", "t-bound", "t-given") else None
    return record.session_id, turn, gateway.approvals[record.request_id]["body"].get("tool_call_id")


async def test_what_is_bound_counts_before_the_environment(gateway: FakeGateway) -> None:  # 2.1.2, 2.1.7
    async with Client(gateway.url, "sk_a_b", environ=ENVIRON) as client:
        assert await asked(gateway, client) == ("of-environ", "t-environ", "c-environ")
        with bind("a", kind="chat", turn_id="t-bound", tool_call_id="c-bound"):
            assert await asked(gateway, client) == ("a", "t-bound", "c-bound")
            with bind("b", kind="cron"):
                assert await asked(gateway, client) == ("b", None, None)
            with within(turn_id="t-given"):
                assert await asked(gateway, client) == ("a", "t-given", "c-bound")
            assert await asked(gateway, client, session_id="given") == ("given", None, None)
            assert await asked(gateway, client, session_id="a") == ("a", "t-bound", "c-bound")
            assert await asked(gateway, client, session_id="given", turn_id="t-given", tool_call_id="c") == (
                "given",
                "t-given",
                "c",
            )
        assert await asked(gateway, client) == ("of-environ", "t-environ", "c-environ")


async def test_bound_absent_the_environment_names_nobody(gateway: FakeGateway) -> None:  # 2.1.2, G2-19
    async with Client(gateway.url, "sk_a_b", environ=ENVIRON) as client:
        with absent(), pytest.raises(InvalidInput, match="Which session"):
            await client.request(ACTION)
    assert gateway.approvals == {}


async def test_a_client_of_one_session_asks_there(gateway: FakeGateway) -> None:
    """What a client was made with was said of this client; a context is around many."""
    async with Client(gateway.url, "sk_a_b", session_id="s", environ=ENVIRON) as client:
        with bind("a", kind="chat", turn_id="t-bound"):
            assert await asked(gateway, client) == ("s", None, None)
        assert await asked(gateway, client) == ("s", None, None), "the environment's turn is of another session"
    async with Client(gateway.url, "sk_a_b", session_id="s", environ={"SIGNOFF_TURN_ID": "t-environ"}) as client:
        assert await asked(gateway, client) == ("s", "t-environ", None)


async def test_the_bound_profile(gateway: FakeGateway) -> None:
    for binding, wanted in ((bind("a", profile="team"), "team"), (absent(), None)):
        with binding:
            async with Client(gateway.url, "sk_a_b", environ=ENVIRON) as client:
                await client.request(ACTION, session_id="a")
                assert gateway.headers.get("X-Signoff-Profile") == wanted


async def test_threads_that_share_a_client(gateway: FakeGateway) -> None:  # G2-22, 2.1.4
    """One blocking client, one pool: each work asks in the session of who handed it in."""

    def work() -> str | None:
        return client.request(ACTION).session_id

    def everything() -> list[str | None]:
        with ContextThreadPool(2) as pool:
            handed = []
            for name in ("a", "b") * 3:
                with bind(name, kind="chat"):
                    handed.append(pool.submit(work))
            with bind("a", kind="chat"), child("s"):
                handed.append(pool.submit(work))
            return [each.result() for each in handed]

    with BlockingClient(gateway.url, "sk_a_b", environ={}) as client:
        assert await asyncio.to_thread(everything) == ["a", "b"] * 3 + ["s"]
        with pytest.raises(InvalidInput, match="Which session"):
            await asyncio.to_thread(work)

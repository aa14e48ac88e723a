"""The whole gateway with a registered executor: through its front door, over a restart, and from threads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN

from signoff import BlockingGateway, Gateway
from signoff.config import load_config
from signoff.errors import InvalidInput
from signoff.executors import Call
from signoff.model import Tool
from signoff.testing.fake_adapter import FakeAdapter

SETTINGS = """
[approvals]
staged_destination = "fake:900"
[approvals.tool_gate]
require_approval = ["send_*"]
default_mode = "deferred"
"""


def gateway(folder: Path, store: str, ran: list[Call], fake: FakeAdapter | None = None) -> Gateway:
    """A gateway with an executor of this program."""
    state = folder / "state"
    where = f"sqlite://{folder}/signoff.db" if store == "sqlite" else "memory://"
    file = folder / "signoff.toml"
    file.write_text(
        f'[gateway]\nstate_dir = "{state}"\nstore = "{where}"\n{SETTINGS.replace("fake:900", "console:900")}'
    )
    made = Gateway(load_config(file, {}), adapters={("default", "fake"): fake or FakeAdapter()})
    made.executor("mailer", tools=("send_*",), run=ran.append)
    return made


async def ended(gateway: Gateway, action_id: str) -> str:
    """The state of a kept action once its run has ended."""
    async with asyncio.timeout(20):
        while (state := await state_of(gateway, action_id)) in ("approved", "running"):  # noqa: ASYNC110  # in a thread
            await asyncio.sleep(0.01)
    return state


async def state_of(gateway: Gateway, action_id: str) -> str:
    """Where a kept action stands."""
    return next(each.state for each in await gateway.actions() if each.id == action_id)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_kept_approved_run(tmp_path: Path, store: str) -> None:  # 1.4.10
    ran: list[Call] = []
    async with gateway(tmp_path, store, ran) as made:
        await made.session("job", kind="cron")
        called = await made.gate.call("send_email", {"to": "ana"}, session_id="job")
        assert called.outcome == "staged"
        (action,) = await made.actions()
        await made.approve_action(action.short_id, BY_ANN)
        assert await ended(made, action.id) == "succeeded"
    assert [call.arguments for call in ran] == [{"to": "ana"}]


@pytest.mark.parametrize("kept", [0, 2, 5])
async def test_all_that_is_kept_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setattr("signoff.action_verbs.PAGE", 2)
    async with gateway(tmp_path, "memory", []) as made:
        await made.session("job", kind="cron")
        for number in range(kept):
            await made.gate.call("send_email", {"n": number}, session_id="job")
        listed = [each.approval.action for each in await made.actions()]
        assert [each.arguments["n"] for each in listed if isinstance(each, Tool)] == list(range(kept))


async def test_a_restart_keeps_what_waits_and_runs_what_was_approved_meanwhile(tmp_path: Path) -> None:
    ran: list[Call] = []
    async with gateway(tmp_path, "sqlite", ran) as made:
        await made.session("job", kind="cron")
        await made.gate.call("send_email", {"n": 1}, session_id="job")
        await made.gate.call("send_email", {"n": 2}, session_id="job")
    async with gateway(tmp_path, "sqlite", ran) as made:
        one, two = await made.actions()
        assert (one.state, two.state) == ("waits", "waits")
        await made.approve_action(one.id, BY_ANN)
        await made.reject_action(two.id, BY_ANN, "no")
        assert await ended(made, one.id) == "succeeded"
        assert await state_of(made, two.id) == "denied"
    assert [call.arguments for call in ran] == [{"n": 1}]


async def test_an_executor_that_is_registered_later_runs_what_waited_for_it(tmp_path: Path) -> None:
    ran: list[Any] = []
    async with gateway(tmp_path, "memory", ran) as made:
        await made.session("job", kind="cron")
        assert (
            await made.check({"kind": "command", "command": "git push --force"}, session_id="job")
        ).verdict == "block"
        profile = made.profiles["default"]
        made.executor("shell", kinds=("command",), run=ran.append)
        assert made.profiles["default"].executors.keys() == {"mailer", "shell"}
        assert profile.executors.keys() == {"mailer"}
        for name, facts in (("shell", {"kinds": ("code",)}), ("other", {"kinds": ("command",)}), ("none", {})):
            with pytest.raises(InvalidInput):
                made.executor(name, run=print, **facts)  # type: ignore[arg-type]  # kinds or nothing
        with pytest.raises(InvalidInput):
            made.executor("x", run=print, tools=("a",), profile="nobody")


async def test_threads_call_tools_and_answer(tmp_path: Path) -> None:
    ran: list[Call] = []
    async with gateway(tmp_path, "memory", ran) as made:
        await made.session("job", kind="cron")
        door = BlockingGateway(made)

        def work() -> list[str]:
            assert door.call_tool("read", {"a": 1}, run=lambda arguments: arguments["a"], session_id="job").value == 1
            kept = [door.call_tool("send_email", {"n": n}, session_id="job") for n in range(2)]
            assert [each.outcome for each in kept] == ["staged", "staged"]
            one, two = door.actions()
            door.reject_action(two.id, BY_ANN)
            door.approve_action(one.id, BY_ANN)
            return [one.id, two.id]

        one, two = await asyncio.to_thread(work)
        assert await ended(made, one) == "succeeded"
        assert await state_of(made, two) == "denied"
        door.close()


async def test_check_tells_that_it_would_be_kept(tmp_path: Path) -> None:
    async with gateway(tmp_path, "memory", []) as made:
        await made.session("job", kind="cron")
        call = {"kind": "tool", "name": "send_email", "arguments": {}}
        checked = await made.check(call, session_id="job", explain=True)
        assert (checked.verdict, checked.rung) == ("stage", "tool_gate")
        assert await made.actions() == []

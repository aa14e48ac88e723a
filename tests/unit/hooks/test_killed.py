"""A gateway that is killed while a receiver hangs: after its start nothing is lost, reordered or under another id."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.gateways import GatewayProcess
from tests.unit.hooks.receiver import SECRET, Receiver

from signoff.client import Client
from signoff.settings import HOOK_NAMES

ROUNDS = 2


async def test_sigkill_between_and_within_deliveries(tmp_path: Path, receiver: Receiver) -> None:
    hook = f'[hooks.audit]\nurl = "{receiver.url}"\nsecret = "{SECRET}"\nevents = {list(HOOK_NAMES[:2])}\n'
    gateway = GatewayProcess(tmp_path, hook.replace("'", '"'))
    asked: list[str] = []
    try:
        for number in range(ROUNDS):
            await gateway.start()
            async with Client(socket=gateway.socket, environ={}) as admin:
                await admin.session("s", kind="api")
                for step in range(3):
                    if step == 2:
                        # The first message of the last question is on its way when the process dies.
                        await receiver.took(len(asked) * 2)
                        receiver.plan.append("hang")
                    command = {"kind": "command", "command": f"git show {number}{step}"}
                    asked.append((await admin.request(command, session_id="s")).request_id)
            tried = len(asked) * 2 - 1
            await receiver.until(lambda: len({heard.seq for heard in receiver.tried}) >= tried)  # noqa: B023  # called at once
            await gateway.kill()
        await gateway.start()
        await receiver.until(lambda: len({heard.seq for heard in receiver.taken}) == len(asked) * 2)
        assert gateway.defects() == []
    finally:
        await gateway.aclose()
    receiver.each_once_in_order()
    told = dict.fromkeys((heard.body["request_id"], heard.hook) for heard in receiver.taken)
    assert list(told) == [(name, hook) for name in asked for hook in HOOK_NAMES[:2]]

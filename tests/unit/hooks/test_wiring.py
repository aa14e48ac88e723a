"""The hooks of a gateway as it is opened by whoever embeds it: nothing has to be wired up by hand."""

from __future__ import annotations

from pathlib import Path

from tests.unit.hooks.receiver import SECRET, Receiver, eventually

from signoff import Command, Gateway, load_config
from signoff.settings import HOOK_NAMES


# #54453 #37250 #29483 #29496 #54429 5.6.2
async def test_an_opened_gateway_tells_every_hook(receiver: Receiver, tmp_path: Path) -> None:
    environ = {
        "SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path),
        "SIGNOFF_GATEWAY__STORE": "memory://",
        "SIGNOFF_HOOKS__AUDIT__URL": receiver.url,
        "SIGNOFF_HOOKS__AUDIT__SECRET": SECRET,
        "SIGNOFF_HOOKS__AUDIT__EVENTS": ",".join(HOOK_NAMES),
    }
    called: set[str] = set()
    async with Gateway(load_config(None, environ), adapters={}) as gateway:
        for name in HOOK_NAMES:
            gateway.hooks.on(name, lambda payload: called.add(payload.__struct_config__.tag))
        await gateway.session("s")
        async with gateway.turn("s") as turn:
            await gateway.request(Command(command="git status"), session_id="s", turn_id=turn.turn_id)
        posted = {heard.hook for heard in await receiver.took(len(HOOK_NAMES))}
        await eventually(lambda: len(called) == len(HOOK_NAMES))
    assert posted == called == set(HOOK_NAMES)

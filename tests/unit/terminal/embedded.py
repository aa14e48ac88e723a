"""A program with a gateway inside that asks at its own terminal: `embedded.py STATE ACTION`. Prints the records."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from signoff.config import load_config
from signoff.gateway import Gateway
from signoff.terminal import TerminalPrompt

FORM = {
    "type": "object",
    "properties": {"project": {"type": "string", "enum": ["web", "api"]}, "days": {"type": "integer", "minimum": 1}},
    "required": ["project"],
}


async def commands(gateway: Gateway) -> list[Any]:
    """Two questions, one of a child's."""
    first = await gateway.request({"kind": "command", "command": "rm -rf ./one"}, session_id="here")
    await gateway.session("below", kind="child", parent="here")
    second = await gateway.request({"kind": "command", "command": "rm -rf ./two"}, session_id="below")
    return [[row.outcome, row.cause, [by.platform for by in row.decided_by]] for row in (first, second)]


async def question(gateway: Gateway) -> list[Any]:
    """A tool server's."""
    answer = await gateway.elicit("jira", "Which project?", FORM, session_id="here")
    return [answer.action, answer.content]


async def main() -> None:
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": sys.argv[1], "SIGNOFF_GATEWAY__STORE": "memory://"}
    async with Gateway(load_config(None, environ), adapters={}) as gateway:
        await gateway.session("here", kind="cli")
        async with TerminalPrompt(gateway, "here") as prompt:
            told = await (commands if sys.argv[2] == "commands" else question)(gateway)
            print(json.dumps({"told": told, "gone": prompt.gone}))


asyncio.run(main())

"""A platform that is away for a while: who is there again reads once what ended meanwhile, and asks for it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios import several
from tests.scenarios.gateways import soon
from tests.scenarios.several import STREAMS
from tests.scenarios.stage import WINDOW_S, staged
from tests.scenarios.transport import Transport

AWAY_S = 3.0
"""From so long on it counts here that the platform was away."""
BACK_WITHIN_S = 40.0


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=kind.name, marks=[] if kind is STREAMS[0] else pytest.mark.heavy) for kind in STREAMS],
)
async def test_a_platform_that_was_away_tells_once_what_ended_meanwhile(kind: type[Transport], tmp_path: Path) -> None:
    async with kind.opened() as chat, staged(chat, tmp_path, "--away", str(AWAY_S), "--leaps") as stage:
        platform, place = several.platform_of(chat), await chat.group()
        session = await stage.session("night", place)
        asked = stage.ask("deploy ./build", session, timeout_s=WINDOW_S)
        card = await chat.card(place, "./build")
        await chat.down()

        async def away() -> bool:
            return bool((await several.health(stage, platform))["state"] == "degraded")

        await soon(away, BACK_WITHIN_S)
        await stage.runs_out(card)
        record = await asked
        assert record.outcome == "timeout"
        await chat.up()
        message = await chat.reads(place, "While nobody could answer", BACK_WITHIN_S)
        assert "1 timeout" in message.text
        (line,) = [line for line in message.text.splitlines() if record.short_id in line]
        assert line.startswith(f"{record.short_id} timeout ")
        assert "deploy ./build · builder" in line
        told = await chat.tapped("ana", message, f"Ask again: {record.short_id}")
        assert told in ("builder is away; it is told when it returns.", "builder is told that you want to be asked.")
        (event,) = await stage.events("approval.ask_again")
        assert (event.approval or {})["request_id"] == record.request_id
        later = stage.ask("deploy ./later", session)
        await chat.tapped("bo", await chat.card(place, "./later"), "Deny")
        assert (await later).outcome == "denied"
        assert sum("While nobody could answer" in each.text for each in await chat.seen(place)) == 1

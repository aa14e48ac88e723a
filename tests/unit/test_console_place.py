"""The console is a place to ask in only where its pages are served."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from signoff.config import load_config
from signoff.console import Console
from signoff.errors import DestinationNotAllowed
from signoff.gateway import Gateway
from signoff.model import Command, Destination

PLACE = Destination("console", "main")
PUSH = Command(command="git push --force origin main")
SETTINGS = """
[gateway]
state_dir = "{folder}"
store = "memory://"

[approvals]
fallback_destination = "console:main"
"""


@pytest.fixture
def embedded(tmp_path: Path) -> Gateway:
    """A gateway in a program, not opened yet."""
    file = tmp_path / "signoff.toml"
    file.write_text(SETTINGS.format(folder=tmp_path))
    return Gateway(load_config(file, {}))


async def test_without_pages_nobody_is_asked_there(embedded: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    async with embedded as gateway:
        with pytest.raises(DestinationNotAllowed, match="`signoff serve` serves the web console"):
            await gateway.session("s", kind="chat", destination=PLACE)
        await gateway.session("s", kind="chat")
        record = await gateway.request(PUSH, session_id="s", timeout_s=30)
        assert (record.outcome, record.delivered_to) == ("blocked", ())
        assert "nobody was asked" in record.user_summary
    assert (
        "no place can ask anybody now (this gateway serves no console; in a program `signoff.serve` does" in caplog.text
    )


async def test_with_pages_the_question_waits_there(embedded: Gateway) -> None:
    async with embedded as gateway:
        console = Console(gateway)
        await gateway.session("s", kind="chat", destination=PLACE)
        asking = asyncio.ensure_future(gateway.request(PUSH, session_id="s", timeout_s=30))
        async with asyncio.timeout(60):
            while not (waiting := await gateway.pending()):  # noqa: ASYNC110  # the store tells no waiter of it
                await asyncio.sleep(0)
        assert [record.destinations for record in waiting] == [("console:main",)]
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        console.close()

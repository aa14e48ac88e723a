"""Kept actions and the catch-up in a real browser."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.house import House, enter, open_house
from tests.browser.test_reading import grave

MAIL = {"kind": "tool", "name": "send_email", "arguments": {"to": "214 addresses"}}
RUNS = """import sys, time
file = open({ran!r}, "a+")
file.write("run" + chr(10))
file.seek(0)
time.sleep(60 if len(file.readlines()) == 1 else 0)
"""
"""Its first run hangs."""


@pytest.fixture
async def deferring(tmp_path: Path) -> AsyncIterator[House]:
    """A gateway that keeps calls of one tool; its executor's first run is ended, so that nobody knows what it did."""
    command = json.dumps([sys.executable, "-c", RUNS.format(ran=str(tmp_path / "ran"))])
    more = (
        '[approvals]\ncron_mode = "defer"\n'
        f'[executors.mailer]\ntools = ["send_email"]\ntimeout_s = 1.0\ncommand = {command}\n'
    )
    async with open_house(tmp_path, more=more) as house:
        await house.call("PUT", "/v1/sessions/weekly-mail", {"kind": "cron"})
        yield house


async def test_from_the_kept_action_to_the_second_run(browser: Browser, deferring: House, tmp_path: Path) -> None:
    record = await deferring.ask("", session="weekly-mail", action=MAIL)
    assert record["outcome"] == "staged"
    page = await enter(browser, deferring)
    await expect(page.get_by_text("Approving runs it now, as shown, by executor mailer.")).to_be_visible()
    assert await grave(page) == []
    await page.get_by_role("button", name="Approve and run").click()
    await page.get_by_role("link", name="Staged: ").click()
    await page.wait_for_url("**/console/staged")
    await expect(page.get_by_text("It may have run.")).to_be_visible()
    await expect(page.get_by_role("button", name="It did run")).to_be_visible()
    assert await grave(page) == []
    await page.get_by_role("button", name="Run it again…").click()
    await expect(page.get_by_text("may have run already. Run it once more?")).to_be_visible()
    assert (tmp_path / "ran").read_text() == "run\n"
    await page.get_by_role("button", name="Yes, run it once more").click()
    await expect(page.get_by_text("Succeeded: exit code 0").or_(page.get_by_text("Succeeded after"))).to_be_visible()
    assert (tmp_path / "ran").read_text() == "run\nrun\n"


async def test_asking_again_after_an_absence(browser: Browser, deferring: House) -> None:
    record = await deferring.ask("npm publish", session="weekly-mail")
    assert record["outcome"] == "blocked"
    page = await enter(browser, deferring)
    await page.goto(f"{deferring.api}/console/catch-up")
    row = page.get_by_role("row").filter(has_text=record["short_id"])
    async with asyncio.timeout(20):
        while not await row.count():  # the list is gathered behind the commit, and the page does not change by itself
            await page.reload()
    await expect(row).to_contain_text("No executor could run it later.")
    assert await grave(page) == []
    await row.get_by_role("button", name="Ask again").click()
    await expect(page.get_by_text("deploy-bot is away; it is told when it returns.")).to_be_visible()
    await expect(row).to_contain_text("ana wants to be asked.")

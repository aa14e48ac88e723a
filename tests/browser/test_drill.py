"""A drill from the button on the console to the tap in a chat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.house import House, enter, open_house
from tests.browser.test_reading import grave
from tests.platforms.telegram import TelegramPlatform, TelegramServer

TOKEN, ANA, GROUP = "123456:TEST", 81, -1001


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramPlatform]:
    async with TelegramServer() as server:
        place = server.platform
        await place.add_bot(TOKEN, "ops_signoff_bot")
        await place.add_user(ANA, "Ana")
        await place.add_group(GROUP, "ops", members=[ANA])
        yield place


@pytest.fixture
async def drilled(tmp_path: Path, telegram: TelegramPlatform) -> AsyncIterator[House]:
    """A gateway whose settings name two places, one of which does not exist."""
    url = (await telegram.where()).url
    more = (
        f'[approvals]\nalso_to = ["telegram:{GROUP}", "telegram:-999"]\n'
        f'[platforms.telegram]\ntoken = "{TOKEN}"\napi_base_url = "{url}"\napprovers = ["{ANA}"]\n'
    )
    async with open_house(tmp_path, gateway="hooks_port = 0", more=more) as house:
        yield house


@pytest.mark.parametrize("script", [True, False])
async def test_the_button_shows_until_somebody_tapped(
    browser: Browser, drilled: House, telegram: TelegramPlatform, script: bool
) -> None:
    page = await enter(browser, drilled, java_script_enabled=script)
    await page.get_by_role("link", name="Health").click()
    await page.get_by_role("button", name="Start a drill…").click()
    await expect(page.get_by_text(f"telegram:{GROUP}", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Send 2 cards").click()
    await page.wait_for_url("**/console/drills/*")
    row = page.get_by_role("row").filter(has_text=f"telegram:{GROUP}")
    await expect(row).to_contain_text("waits for a tap")
    if script:
        assert await grave(page) == []
    card = await telegram.wait_for_message(GROUP, lambda m: m.text.startswith("Drill: nothing"), timeout_s=15)
    assert card.text.splitlines()[1] == "Ana rehearses that questions reach people here."
    # The page draws itself anew, by an event or, for what tells none, after a while.
    await expect(page.get_by_role("row").filter(has_text="telegram:-999")).to_contain_text("not sent")
    await telegram.press(ANA, GROUP, card.message_id, "I see it")
    await expect(row).to_contain_text("by Ana after")
    await expect(page.get_by_role("main")).to_contain_text("1 of 2 places saw it.")
    await page.get_by_role("link", name="‹ Health").click()
    await expect(page.get_by_text("The last one was")).to_be_visible()


@pytest.mark.quick
async def test_an_open_page_shows_new_cards_after_a_drill(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    for branch in ("main", "next"):
        await house.local("POST", "/v1/drills", {"destinations": ["console:main"]})
        await expect(page.get_by_text("Drill: nothing will run")).to_be_visible()
        await expect(page.get_by_role("button", name="Notify me of new cards")).to_be_visible()
        record = await house.ask(f"git push --force origin {branch}")
        card = page.locator(f"#r-{record['short_id']}")
        await expect(card).to_be_visible()
        await expect(page.get_by_text("Nothing waits.")).to_be_hidden()
        await card.get_by_role("button", name="Deny, request").click()
        await expect(card).to_contain_text("Denied by ana")
        await page.get_by_role("button", name="I see it").click()
        await expect(page.get_by_text("Drill: nothing will run")).to_be_hidden()

"""Finding and seeing: one place or session only, the exact text of an action, how quickly people answer."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.browser.house import House, enter
from tests.browser.test_reading import TOKEN

SECRET: dict[str, Any] = {"kind": "command", "command": f"deploy --token {TOKEN}", "cwd": "/srv/app"}


async def places(house: House) -> tuple[dict[str, Any], dict[str, Any]]:
    """A question in each of two places."""
    await house.session("nightly-ci", chat_id="ci")
    return await house.ask("git push --force origin main"), await house.ask("rm -rf ./build", session="nightly-ci")


def card(page: Page, record: dict[str, Any]) -> Any:
    return page.locator(f"#r-{record['short_id']}")


async def test_one_place_only_by_keys(browser: Browser, house: House) -> None:
    one, other = await places(house)
    page = await enter(browser, house)
    field = page.get_by_role("combobox", name="Place")
    await field.focus()
    await page.keyboard.press("ArrowDown")
    await expect(field).to_have_value("console:ci")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/console?place=console%3Aci&session=")
    await expect(card(page, other)).to_be_visible()
    await expect(card(page, one)).to_have_count(0)
    # What comes is shown where it fits, and counted where it does not.
    hidden = await house.ask("npm publish")
    shown = await house.ask("chmod -R 777 /srv/app", session="nightly-ci")
    await expect(card(page, shown)).to_be_visible()
    await expect(card(page, hidden)).to_have_count(0)
    await expect(page.locator("[data-count]")).to_have_text("4")
    await page.get_by_role("button", name="Deny all 2").click()
    await expect(page.get_by_role("status")).to_contain_text("2 of 2 denied")
    for record, outcome in ((one, None), (hidden, None), (other, "denied"), (shown, "denied")):
        assert (await house.record(record["request_id"]))["outcome"] == outcome
    await page.get_by_role("link", name="Show all").click()
    await expect(card(page, one)).to_be_visible()


async def test_one_place_only_without_a_script(browser: Browser, house: House) -> None:
    one, other = await places(house)
    page = await enter(browser, house, java_script_enabled=False)
    await page.get_by_role("combobox", name="Session").select_option("nightly-ci")
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(card(page, one)).to_have_count(0)
    await card(page, other).get_by_role("button", name="Deny, request").click()
    await page.wait_for_url("**/console?session=nightly-ci")
    await expect(card(page, one)).to_have_count(0)
    await page.goto(f"{house.api}/console/history?place=console:main")
    await expect(page.get_by_text("Nothing that ended fits these words.")).to_be_visible()
    await page.goto(f"{house.api}/console/history?place=console:ci")
    await expect(page.get_by_role("link", name=other["short_id"])).to_be_visible()


async def test_the_exact_text_is_revealed_and_gone_again(browser: Browser, house: House) -> None:
    record = await house.ask("", action=SECRET)
    page = await enter(browser, house)
    await page.goto(f"{house.api}/console/r/{record['short_id']}")
    assert TOKEN not in await page.content()
    await page.get_by_role("button", name="Reveal the exact text…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("That you saw it is recorded.")
    await expect(dialog.get_by_text("Close")).to_be_focused()
    await dialog.get_by_text("Close").click()
    await expect(page.locator(".story")).not_to_contain_text("The exact text was shown")
    await page.get_by_role("button", name="Reveal the exact text…").click()
    await dialog.get_by_role("button", name="Reveal it").click()
    await expect(dialog).to_contain_text(f"deploy --token {TOKEN}")
    await page.keyboard.press("Escape")
    await expect(page.locator(".story")).to_contain_text("The exact text was shown to ana.")
    assert TOKEN not in await page.content()
    await page.reload()
    assert TOKEN not in await page.content()


async def test_it_is_revealed_without_a_script_too(browser: Browser, house: House) -> None:
    record = await house.ask("", action=SECRET)
    page = await enter(browser, house, java_script_enabled=False)
    await page.goto(f"{house.api}/console/r/{record['short_id']}")
    await page.get_by_role("button", name="Reveal the exact text…").click()
    await page.get_by_role("button", name="Reveal it").click()
    await expect(page.get_by_role("main")).to_contain_text(f"deploy --token {TOKEN}")
    await page.get_by_role("link", name="Close").click()
    await expect(page.locator(".story")).to_contain_text("The exact text was shown to ana.")


async def test_how_quickly_people_answer(browser: Browser, house: House) -> None:
    one, other = await places(house)
    page = await enter(browser, house)
    for record in (one, other):
        await card(page, record).get_by_role("button", name="Deny, request").click()
        await expect(card(page, record)).to_contain_text("Denied by ana")
    await page.get_by_role("link", name="History").click()
    figures = page.locator(".figures")
    await expect(figures.get_by_role("table")).to_be_hidden()
    await figures.locator("summary").press("Enter")
    await expect(figures.get_by_role("row")).to_have_count(4)
    await figures.get_by_role("link", name="console:ci").click()
    await expect(page.get_by_role("link", name=other["short_id"])).to_be_visible()
    await expect(page.get_by_role("link", name=one["short_id"])).to_have_count(0)

"""How an action is judged, in front of a person: tried beforehand, told in the story, a denial lifted, a time box."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.house import House, enter
from tests.browser.test_reading import HOSTILE, grave, overflow

LINE = "cd /srv && sudo nohup rm -rf ./build"


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1200, "dark")])
async def test_a_command_is_tried_by_keys_alone(browser: Browser, house: House, width: int, scheme: str) -> None:
    page = await enter(
        browser, house, view=True, principal=None, viewport={"width": width, "height": 740},
        color_scheme=scheme, reduced_motion="reduce",
    )  # fmt: skip
    await page.get_by_role("link", name="Try").focus()
    await page.keyboard.press("Enter")
    await page.get_by_label("Command").focus()
    await page.keyboard.type(LINE)
    for _ in range(3):
        await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Judge it")).to_be_focused()
    await page.keyboard.press("Enter")
    head = page.get_by_role("heading", name="A person would be asked")
    await expect(head).to_be_focused()
    await expect(page).to_have_title("A person would be asked · Try · signoff")
    result = page.get_by_role("region", name="A person would be asked")
    await expect(result.get_by_role("listitem").filter(has_text="2.1.1")).to_contain_text("inside sudo › nohup")
    assert await grave(page) == []
    assert await overflow(page) == []

    await page.get_by_label("Command").fill(HOSTILE + "\n" + HOSTILE)
    await page.get_by_role("button", name="Judge it").click()
    await expect(page.get_by_role("heading", level=2).first).to_be_focused()
    assert await page.evaluate("window.hacked") is None
    assert await overflow(page) == []

    await page.get_by_label("Command").fill("x" * 16_001)
    await page.get_by_role("button", name="Judge it").click()
    await expect(page.get_by_role("alert").filter(has_text="at most 16,000")).to_be_visible()
    await expect(page.get_by_label("Command")).to_be_focused()
    assert await grave(page) == []


@pytest.mark.parametrize("script", [True, False])
async def test_a_denial_is_lifted_on_its_page(browser: Browser, house: House, script: bool) -> None:
    page = await enter(browser, house, java_script_enabled=script)
    record = await house.ask(LINE)
    await page.goto(f"{house.api}/console/r/{record['short_id']}")
    await page.get_by_role("button", name="Deny, request").click()
    await expect(page.locator("article")).to_contain_text("Denied by ana")
    repeat = await house.ask(LINE)
    assert repeat["outcome"] == "denied"
    if not script:
        await page.reload()
    await expect(page.locator(".story")).to_contain_text("Not asked again: denied by ana, and that still holds.")
    await expect(page.locator(".tree")).to_contain_text("delete.recursive")
    if script:
        assert await grave(page) == []
    await page.get_by_role("button", name="Let it ask again").click()
    await expect(page.locator("[data-said]")).to_contain_text("Nothing is approved.")
    await expect(page.locator("article")).to_contain_text("ana lets it ask again.")
    await expect(page.get_by_role("button", name="Let it ask again")).to_have_count(0)
    assert (await house.ask(LINE))["status"] == "pending"
    assert (await house.record(record["request_id"]))["outcome"] == "denied"


async def test_a_time_box_in_the_open_and_what_revoking_ends(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    for _ in range(3):
        record = await house.ask("git stash clear")
        article = page.locator(f"#r-{record['short_id']}")
        await article.get_by_role("button", name="Approve once").click()
        await expect(article).to_contain_text("Approved once by ana")
    record = await house.ask("git stash clear")
    article = page.locator(f"#r-{record['short_id']}")
    await expect(article).to_contain_text("People approved exactly this three times or more in this session.")
    assert await grave(page) == []
    await article.get_by_role("button", name="30 min:").click()
    await expect(article).to_contain_text("Approved by ana until")
    always = await house.ask("rm -rf ./dist")
    article = page.locator(f"#r-{always['short_id']}")
    await article.get_by_text("More…").click()
    await article.get_by_role("button", name="Always:").click()
    await expect(article).to_contain_text("Approved by ana, always")
    await page.get_by_role("link", name="Grants").click()
    row = page.get_by_role("row").filter(has_text="exactly this text")
    await expect(page.get_by_role("row").filter(has_text="and ends with it")).to_contain_text(
        "Recursive deletes (by rm: in "
    )
    assert await grave(page) == []
    await row.get_by_role("button", name="Revoke").click()
    await expect(page.locator("[data-said]")).to_contain_text("With it ended")
    await expect(page.get_by_role("row")).to_have_count(2)

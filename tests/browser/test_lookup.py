"""Finding and seeing: one place or session only, the exact text of an action, how quickly people answer."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
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


@pytest.mark.quick
async def test_a_page_that_is_drawn_anew_takes_nothing_away(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    await page.clock.install()
    await page.goto(f"{house.api}/console/sessions")
    button, waits = page.get_by_role("button", name="Stop… nightly-fix"), page.get_by_role("link", name="waiting, show")
    await button.focus()
    record = await house.ask("git push --force origin main")
    await expect(waits).to_be_visible()
    await expect(button).to_be_focused()
    # A fold that was opened stays open where it went, and takes no other with it.
    opened = await page.evaluate(
        """() => {
          const list = document.createElement("table");
          const draw = (names) => { list.innerHTML = names.map((name) =>
            `<tr data-key="${name}"><td><details><summary>Lately</summary></details></td></tr>`).join(""); };
          draw(["slack", "telegram"]);
          list.querySelectorAll("details")[1].open = true;
          const restore = keeping(list);
          draw(["discord", "slack", "telegram"]);
          restore(list);
          return [...list.querySelectorAll("details")].map((each) => each.open);
        }"""
    )
    assert opened == [False, False, True]
    await page.goto(f"{house.api}/console/history")
    search, outcome = page.get_by_label("Search"), page.get_by_role("combobox", name="Outcome")
    await outcome.select_option("denied")
    await search.fill("force")
    await house.call("POST", f"/v1/approvals/{record['request_id']}/cancel", {})
    # Whoever types is left alone; the page changes once they are done.
    await expect(page.locator("[data-count]")).to_have_text("0")
    await page.clock.run_for(600)
    await expect(page.get_by_role("link", name=record["short_id"])).to_have_count(0)
    find = page.get_by_role("button", name="Find")
    await find.focus()
    await expect(page.get_by_role("link", name=record["short_id"])).to_be_visible()
    await expect(find).to_be_focused()
    await expect(search).to_have_value("force")
    await expect(outcome).to_have_value("denied")


@pytest.mark.quick
async def test_on_a_phone_elsewhere_whose_clock_is_ahead(browser: Browser, house: House) -> None:
    schema = {"type": "object", "properties": {"days": {"type": "integer", "title": "Days"}}}
    for branch in range(4):
        await house.ask(f"git push --force origin b{branch}")
    asked = await house.ask("", action={"kind": "elicitation", "server": "jira", "message": "How?", "schema": schema})
    page = await enter(browser, house, viewport={"width": 360, "height": 740}, timezone_id="Asia/Kolkata")
    await page.clock.install(time=datetime.now(UTC) + timedelta(hours=1))
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    await page.reload()
    await expect(page.locator("time[data-left]").first).to_have_text(re.compile(r"^4:\d\d left$"))
    # Answers are in sight wherever the page stands.
    article = card(page, asked)
    await article.get_by_label("Days").fill("none")
    await article.get_by_role("button", name="Accept").click()
    said = page.get_by_role("status")
    await expect(said).to_contain_text("whole number")
    await expect(said).to_be_in_viewport(ratio=1)
    assert await page.evaluate("scrollY") > 740
    await article.get_by_role("button", name="Decline").click()
    # Browsers on phones have notifications, and throw where a page sends one.
    await page.evaluate(
        """() => {
          window.Notification = class {
            static permission = "granted";
            static requestPermission = async () => "granted";
            constructor() { throw new TypeError("Illegal constructor"); }
          };
        }"""
    )
    bell = page.get_by_role("button", name="Notify me of new cards")
    await bell.click()
    await expect(said).to_contain_text("This browser shows no notifications of a page")
    await expect(bell).to_be_hidden()
    assert wrong == []
    # Times are told in one zone.
    await page.goto(f"{house.api}/console/r/{asked['short_id']}")
    ended = datetime.fromisoformat((await house.record(asked["request_id"]))["decided_at"])
    local = ended.astimezone(timezone(timedelta(hours=5.5)))
    await expect(page.locator(".verdict")).to_contain_text(f"{local:%H:%M}")
    await expect(page.locator(".story time").last).to_have_text(f"{local:%H:%M:%S}")
    await expect(page.locator(".verdict, .about")).not_to_contain_text(["UTC", "UTC"])

"""A person in front of the pages: from the card to the decision, in several tabs, by keys, over a restart."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Browser, expect

from tests.browser.house import House, enter

PUSH = "git push --force origin main"


@pytest.mark.quick
async def test_from_the_first_card_to_the_decision(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    await expect(page.get_by_text("Nothing waits.")).to_be_visible()
    record = await house.ask(PUSH, reason="main was rebased")
    article = page.locator(f"#r-{record['short_id']}")
    await expect(article.locator("pre")).to_have_text(PUSH)
    await expect(page.get_by_text("Nothing waits.")).to_be_hidden()
    await expect(page.get_by_role("status")).to_contain_text(
        f"{record['severity'].capitalize()} request {record['short_id']}"
    )
    await expect(article.locator("time[data-left]")).to_contain_text("left")
    waiting = asyncio.create_task(house.record(record["request_id"], 10))
    await article.get_by_role("button", name="Approve once, request").click()
    assert (await waiting)["outcome"] == "approved"
    await expect(article).to_contain_text("Approved once by ana in the console")
    await expect(page.get_by_role("status")).to_contain_text("Approved once. The agent is told.")
    await article.get_by_role("button", name="Undo").click()
    await expect(article).to_contain_text("took the approval back")
    assert (await house.record(record["request_id"]))["execution"]["state"] == "not_run"


async def test_deny_because(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    one, two = await house.ask(PUSH), await house.ask("rm -rf ./build")
    article = page.locator(f"#r-{one['short_id']}")
    await article.get_by_text("Deny, because…").click()
    await article.get_by_role("button", name="Wrong target").click()
    await expect(article).to_contain_text("Reason given: “wrong target”")
    article = page.locator(f"#r-{two['short_id']}")
    await article.get_by_text("Deny, because…").click()
    await article.get_by_label("Reason", exact=True).fill("not on a Friday")
    await article.get_by_label("Reason", exact=True).press("Enter")
    await expect(article).to_contain_text("Reason given: “not on a Friday”")
    assert (await house.record(two["request_id"]))["outcome"] == "denied"


async def test_typing_a_reason_outlives_a_change_of_the_card(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    record = await house.ask(PUSH)
    article = page.locator(f"#r-{record['short_id']}")
    await article.get_by_text("Deny, because…").click()
    field = article.get_by_label("Reason", exact=True)
    await field.fill("half a")
    await house.ask(PUSH)
    await expect(article).to_contain_text("2 identical requests wait.")
    await expect(field).to_have_value("half a")
    await expect(field).to_be_focused()


async def test_a_decision_shows_in_the_other_tab(browser: Browser, house: House) -> None:
    ana, ben = await enter(browser, house), await enter(browser, house, principal="ben")
    record = await house.ask(PUSH)
    for page in (ana, ben):
        await expect(page.locator(f"#r-{record['short_id']}")).to_be_visible()
    await ana.locator(f"#r-{record['short_id']}").get_by_role("button", name="Deny, request").click()
    await expect(ben.locator(f"#r-{record['short_id']}")).to_contain_text("Denied by ana in the console")
    await expect(ben.locator(f"#r-{record['short_id']}").get_by_role("button")).to_have_count(0)
    await expect(ben.locator("[data-count]")).to_have_text("0")


@pytest.mark.quick
async def test_a_tab_left_open_over_a_restart_comes_back_by_itself(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    record = await house.ask(PUSH)
    article = page.locator(f"#r-{record['short_id']}")
    await expect(article).to_be_visible()
    await house.stop()
    await expect(page.get_by_text("Connection lost since")).to_be_visible()
    await article.get_by_role("button", name="Approve once, request").click(force=True)
    await house.start()
    await expect(page.get_by_text("Connection lost since")).to_be_hidden(timeout=30_000)
    assert (await house.record(record["request_id"]))["status"] == "pending"
    later = await house.ask("rm -rf ./build")
    await expect(page.locator(f"#r-{later['short_id']}")).to_be_visible()
    await article.get_by_role("button", name="Approve once, request").click()
    await expect(article).to_contain_text("Approved once by ana")


async def test_logging_out_in_one_tab_is_told_in_the_other(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    other = await page.context.new_page()
    await other.goto(f"{house.api}/console")
    await other.get_by_role("button", name="Log out").click()
    await expect(page.get_by_text("You are logged out.")).to_be_visible()


async def test_keys_move_and_open_and_decide_nothing(browser: Browser, house: House) -> None:
    records = [await house.ask(f"git push --force origin b{number}") for number in range(3)]
    page = await enter(browser, house)
    names = [record["short_id"] for record in records]
    await page.keyboard.press("j")
    await expect(page.locator(f"#r-{names[0]}")).to_be_focused()
    await page.keyboard.press("j")
    await expect(page.locator(f"#r-{names[1]}")).to_be_focused()
    await page.keyboard.press("k")
    await expect(page.locator(f"#r-{names[0]}")).to_be_focused()
    await page.keyboard.press("w")
    await expect(page.locator(f"#r-{names[0]}").get_by_text("Step that decided")).to_be_visible()
    for key in "adyoxAD1 ":
        await page.keyboard.press(key)
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("No single key decides anything.")
    await page.keyboard.press("Escape")
    await page.locator(f"#r-{names[0]}").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{house.api}/console/r/{names[0]}")
    for record in records:
        assert (await house.record(record["request_id"]))["status"] == "pending"


async def test_wide_answers_take_a_dialog(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    code = {"kind": "code", "language": "python", "code": "import shutil\nshutil.rmtree('x')"}
    record = await house.ask("", action=code)
    article = page.locator(f"#r-{record['short_id']}")
    await article.get_by_text("More…").click()
    await article.get_by_role("button", name="Always:").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("in every session of profile default, until revoked. Agreed?")
    await expect(dialog.get_by_text("Close")).to_be_focused()
    await dialog.get_by_text("Close").click()
    assert (await house.record(record["request_id"]))["status"] == "pending"
    await article.get_by_role("button", name="Always:").click()
    await dialog.get_by_role("button", name="Yes, always").click()
    await expect(article).to_contain_text("Approved by ana, always")


async def test_approving_all_asks_once_more(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    records = [await house.ask(f"git push --force origin b{number}") for number in range(3)]
    await page.get_by_role("button", name="Approve 3 once…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Yes, approve these 3").click()
    await expect(page.get_by_role("status")).to_contain_text("3 of 3 approved once, no grant made")
    for record in records:
        assert (await house.record(record["request_id"]))["outcome"] == "approved"
        await expect(page.locator(f"#r-{record['short_id']}")).to_contain_text("Approved once by ana")


async def test_it_all_works_without_a_script(browser: Browser, house: House) -> None:
    record, other = await house.ask(PUSH), await house.ask("rm -rf ./build")
    page = await enter(browser, house, java_script_enabled=False)
    article = page.locator(f"#r-{record['short_id']}")
    await article.get_by_role("button", name="Approve once, request").click()
    await expect(page.locator("[data-said]")).to_contain_text("Approved once. The agent is told.")
    await expect(article).to_contain_text("Approved once by ana in the console")
    await article.get_by_role("button", name="Undo").click()
    await expect(article).to_contain_text("took the approval back")
    article = page.locator(f"#r-{other['short_id']}")
    await article.get_by_text("Deny, because…").click()
    await article.get_by_role("button", name="Not now").click()
    assert (await house.record(other["request_id"]))["reason"] == "not now"
    await page.get_by_role("link", name="Sessions").click()
    await page.get_by_role("button", name="Stop… nightly-fix").click()
    await page.get_by_role("button", name="Yes, stop it").click()
    await expect(page.locator("[data-said]")).to_contain_text("Session nightly-fix is stopped.")


async def test_a_browser_whose_clock_is_ahead_counts_by_the_gateways(browser: Browser, house: House) -> None:
    await house.ask(PUSH)
    page = await enter(browser, house)
    await page.clock.install(time=datetime.now(UTC) + timedelta(hours=1))
    await page.reload()
    left = page.locator("time[data-left]")
    await expect(left).to_have_text(re.compile(r"^4:\d\d left$"))
    # One that truly is over is asked for once, not at every redrawing of its card.
    fetched: list[str] = []
    page.on("requestfinished", lambda request: fetched.append(request.url))
    async with page.expect_response("**/console/card/*"):
        await page.clock.run_for(310_000)
    for _ in range(5):
        await page.clock.run_for(2_000)
        await expect(left).to_have_text("Time is up")
    assert len([url for url in fetched if "/card/" in url]) == 1


async def test_a_notification_says_headline_and_place_only(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    await page.context.grant_permissions(["notifications"], origin=house.api)
    await page.evaluate(
        """() => {
          window.told = [];
          window.Notification = class extends EventTarget {
            static permission = "granted";
            static requestPermission = async () => "granted";
            constructor(title, facts) { super(); window.told.push([title, facts.body]); }
          };
          Object.defineProperty(document, "hidden", { get: () => true });
        }"""
    )
    await page.get_by_role("button", name="Notify me of new cards").click()
    await expect(page.get_by_role("status")).to_contain_text("You are notified of new cards.")
    record = await house.ask("git push --force origin secret-branch")
    await page.wait_for_function("window.told.length === 2")
    (first, _), (title, place) = await page.evaluate("window.told")
    assert first == "You are notified of new cards."
    assert title.startswith(f"{record['severity'].capitalize()}: ")
    assert place == "prod-db-1"
    assert "secret-branch" not in title + place

"""The form of a tool server's question on the console's card."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.house import House, enter

COLOURS = ["amber", "green", "blue"]
ASKS = {
    "kind": "elicitation",
    "server": "jira",
    "message": "Which project?",
    "schema": {
        "type": "object",
        "properties": {
            "project": {"type": "string", "title": "Project", "enum": ["web", "api"]},
            "note": {"type": "string", "title": "Note"},
            "days": {"type": "integer", "title": "Days", "minimum": 1},
            "tags": {"type": "array", "title": "Tags", "items": {"enum": COLOURS}, "default": ["amber"]},
        },
        "required": ["project"],
    },
}


async def test_a_form_is_filled_in_and_accepted(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    record = await house.ask("", action=ASKS)
    article = page.locator(f"#r-{record['short_id']}")
    await expect(article).to_contain_text("Question from jira (MCP server)")
    accept = article.get_by_role("button", name="Accept, request")
    await accept.click()  # what is required is missing, which the browser says itself
    assert (await house.record(record["request_id"]))["status"] == "pending"
    await article.get_by_label("Project").select_option("web")
    await article.get_by_label("Note").fill("half a")
    await article.get_by_label("amber").uncheck()
    await article.get_by_label("green").check()
    await article.get_by_label("blue").check()
    await house.ask("", action=ASKS)
    await expect(article).to_contain_text("2 identical requests wait.")
    await expect(article.get_by_label("Project")).to_have_value("web")
    await expect(article.get_by_label("Note")).to_have_value("half a")
    for label, ticked in (("amber", False), ("green", True), ("blue", True)):
        await expect(article.get_by_label(label)).to_be_checked(checked=ticked)
    await article.get_by_label("Days").fill("none")
    await article.get_by_role("button", name="Accept 1 of 2, request").click()
    await expect(page.get_by_role("status")).to_contain_text("days must be a whole number.")
    await article.get_by_label("Days").fill("3")
    await article.get_by_role("button", name="Accept 1 of 2, request").click()
    await expect(article).to_contain_text("accepted by ana (1 of 2) in the console")
    ended = await house.record(record["request_id"])
    assert (ended["outcome"], ended["elicitation"]["action"]) == ("approved", "accept")


@pytest.mark.parametrize("width", [390, 1280])
async def test_the_yes_and_the_no_to_a_form_stand_side_by_side(browser: Browser, house: House, width: int) -> None:
    page = await enter(browser, house, viewport={"width": width, "height": 800})
    record = await house.ask("", action=ASKS)
    article = page.locator(f"#r-{record['short_id']}")
    await expect(article.get_by_role("button", name="Decline, request")).to_be_visible()
    # In one go, since the card may be drawn anew at any time.
    yes, no, because, more = await page.evaluate(
        """(id) => ["[value=once]", "[value=deny]", "summary", "details + details > summary"]
          .map((what) => document.querySelector(`#${id} ${what}`).getBoundingClientRect())
          .map((each) => [each.top, each.width, each.height])""",
        f"r-{record['short_id']}",
    )
    assert yes == no and yes[1] > 100
    assert because == more and because[1] > 100
    await expect(article.locator("summary").nth(0)).to_have_text("Decline, because…")


async def test_it_is_declined_without_filling_in_anything(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    record = await house.ask("", action=ASKS)
    article = page.locator(f"#r-{record['short_id']}")
    await article.get_by_role("button", name="Decline, request").click()
    await expect(article).to_contain_text("declined by ana in the console")
    ended = await house.record(record["request_id"])
    assert (ended["elicitation"]["action"], ended["elicitation"]["content"]) == ("decline", None)


async def test_what_needs_an_answer_of_its_own_is_not_counted_among_all(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    plain = [await house.ask(f"git push --force origin b{number}") for number in range(2)]
    question = await house.ask("", action=ASKS)
    await expect(page.locator(f"#r-{question['short_id']}")).to_be_visible()
    await expect(page.get_by_role("button", name="Deny all 3")).to_be_visible()
    await page.get_by_role("button", name="Approve 2 once…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("These stay:")
    await expect(dialog.get_by_role("listitem")).to_have_count(3)
    await dialog.get_by_role("button", name="Yes, approve these 2").click()
    status = page.get_by_role("status")
    await expect(status).to_contain_text("2 of 3 approved once")
    await expect(status).to_contain_text(f"Left {question['short_id']} · it needs an answer of its own")
    for each in plain:
        assert (await house.record(each["request_id"]))["outcome"] == "approved"

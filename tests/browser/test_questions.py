"""The form of a tool server's question on the console's card."""

from __future__ import annotations

from playwright.async_api import Browser, expect

from tests.browser.house import House, enter

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
    await house.ask("", action=ASKS)
    await expect(article).to_contain_text("2 identical requests wait.")
    await expect(article.get_by_label("Project")).to_have_value("web")
    await expect(article.get_by_label("Note")).to_have_value("half a")
    await article.get_by_label("Days").fill("none")
    await article.get_by_role("button", name="Accept 1 of 2, request").click()
    await expect(page.get_by_role("status")).to_contain_text("days must be a whole number.")
    await article.get_by_label("Days").fill("3")
    await article.get_by_role("button", name="Accept 1 of 2, request").click()
    await expect(article).to_contain_text("accepted by ana (1 of 2) in the console")
    ended = await house.record(record["request_id"])
    assert (ended["outcome"], ended["elicitation"]["action"]) == ("approved", "accept")


async def test_it_is_declined_without_filling_in_anything(browser: Browser, house: House) -> None:
    page = await enter(browser, house)
    record = await house.ask("", action=ASKS)
    article = page.locator(f"#r-{record['short_id']}")
    await article.get_by_role("button", name="Decline, request").click()
    await expect(article).to_contain_text("declined by ana in the console")
    ended = await house.record(record["request_id"])
    assert ended["elicitation"] == {"action": "decline", "content": None}

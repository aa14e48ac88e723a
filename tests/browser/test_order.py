"""An answer and a live change may reach a page in either order."""

from __future__ import annotations

from playwright.async_api import Browser, Route, expect

from tests.browser.house import House, enter


async def test_a_page_never_goes_back_to_an_older_state(browser: Browser, house: House) -> None:
    page, other = await enter(browser, house), await enter(browser, house)
    record = await house.ask("rm -rf ./build")
    mine, theirs = (each.locator(f"#r-{record['short_id']}") for each in (page, other))
    late: list[str] = []

    async def held_up(route: Route) -> None:
        """The answer to the tap comes when the approval was taken back already."""
        answer = await route.fetch()
        await theirs.get_by_role("button", name="Undo").click()
        await expect(mine).to_contain_text("took the approval back")
        late.append(await answer.text())
        await route.fulfill(response=answer)

    await page.route("**/console/decide", held_up)
    await mine.get_by_role("button", name="Approve once, request").click()
    await expect(page.get_by_role("status")).to_contain_text("Approved once. The agent is told.")
    assert len(late) == 1
    await expect(mine).to_contain_text("took the approval back")

"""What the pages are to those who read them: hostile text, narrow screens, assistive technology, dark rooms."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]  # it carries no types
from playwright.async_api import Browser, Page, expect

from tests.browser.house import House, enter

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
LONG_WORD = "x" * 400
HOSTILE = f"<script>window.hacked=1</script>\"'><img src=x onerror=window.hacked=1>{LONG_WORD}\u202egpj.exe\u2066"
PATHS = ("", "/history", "/sessions", "/grants", "/try", "/health")


async def fill(house: House) -> list[dict[str, Any]]:
    """Questions with hostile text in every field."""
    await house.session("<b>hostile\"'" + LONG_WORD[:150])
    name = "<b>hostile\"'" + LONG_WORD[:150]
    actions = [
        {"kind": "command", "command": f"rm -rf {HOSTILE}", "cwd": f"/{HOSTILE}"},
        {"kind": "code", "language": HOSTILE[:60], "code": HOSTILE + "\n" * 30},
        {"kind": "tool", "name": HOSTILE, "arguments": {HOSTILE: HOSTILE}},
        {"kind": "file_write", "path": HOSTILE, "diff": f"+{HOSTILE}\n-{HOSTILE}"},
        {"kind": "elicitation", "server": HOSTILE, "message": HOSTILE},
        {"kind": "rule", "tool": HOSTILE, "rule_key": HOSTILE, "reason": HOSTILE},
    ]
    return [
        await house.ask("", session=name, action=action, host=HOSTILE, reason=HOSTILE, claimed_for=HOSTILE)
        for action in actions
    ]


async def overflow(page: Page) -> Any:
    """What stands out of the page at the side."""
    return await page.evaluate(
        """() => {
          const wide = document.documentElement.clientWidth;
          return [...document.querySelectorAll("body *")]
            .filter((each) => each.getBoundingClientRect().right > wide + 1 && each.checkVisibility())
            .filter((each) => !each.closest(".unseen, .skip, thead"))
            .map((each) => `${each.tagName}.${each.className}`).slice(0, 5);
        }"""
    )


@pytest.mark.parametrize("width", [360, 1200])
async def test_hostile_text_runs_nothing_and_stands_out_nowhere(browser: Browser, house: House, width: int) -> None:
    page = await enter(browser, house, viewport={"width": width, "height": 740})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    records = await fill(house)
    await expect(page.locator("article")).to_have_count(len(records))
    first = page.locator(f"#r-{records[0]['short_id']}")
    await expect(first.locator("pre")).to_contain_text("⟨U+202E⟩")
    for details in await page.locator("article details summary").all():
        await details.click()
    assert await overflow(page) == []
    await first.get_by_label("Reason", exact=True).fill(HOSTILE[:280])
    await first.get_by_role("button", name="Deny with this reason").click()
    await expect(first).to_contain_text("Denied by ana")
    await page.locator(f"#r-{records[1]['short_id']}").get_by_role("button", name="This session:").click()
    await expect(page.locator(f"#r-{records[1]['short_id']}")).to_contain_text("Approved by ana")
    filtered = ("?session=" + quote(records[0]["session_id"]), "/history?place=" + quote(HOSTILE))
    for path in (*PATHS, *filtered, *(f"/r/{record['short_id']}" for record in records)):
        await page.goto(f"{house.api}/console{path}")
        for summary in await page.locator("main summary").all():
            await summary.click()
        assert await overflow(page) == [], path
        assert await page.evaluate("window.hacked") is None
        assert "\u202e" not in await page.content()
    secret = {"kind": "tool", "name": HOSTILE, "arguments": {"token": f"{TOKEN}{HOSTILE}"}}
    record = await house.ask("", action=secret)
    await page.goto(f"{house.api}/console/r/{record['short_id']}")
    await page.get_by_role("button", name="Reveal the exact text…").click()
    await page.get_by_role("button", name="Reveal it").click()
    await expect(page.get_by_role("dialog")).to_contain_text(TOKEN)
    assert await overflow(page) == []
    assert await page.evaluate("window.hacked") is None
    assert wrong == []


async def grave(page: Page) -> list[Any]:
    """What axe finds serious, or worse."""
    found = await Axe().run(page)
    return [
        (each["id"], [node["html"][:200] for node in each["nodes"][:3]])
        for each in found.response["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
async def test_no_page_has_a_serious_finding(browser: Browser, house: House, scheme: Any, width: int) -> None:
    await house.ask("git push --force origin main", reason="main was rebased")
    denied = await house.ask("rm -rf ./build && make deploy")
    code = await house.ask("", action={"kind": "code", "language": "python", "code": "print(1)\n" * 40})
    page = await enter(browser, house, color_scheme=scheme, viewport={"width": width, "height": 740})
    await page.locator(f"#r-{denied['short_id']}").get_by_role("button", name="Deny, request").click()
    await page.locator(f"#r-{code['short_id']}").get_by_text("More…").click()
    await page.locator(f"#r-{code['short_id']}").get_by_role("button", name="This session:").click()
    await expect(page.locator(f"#r-{code['short_id']}")).to_contain_text("Approved by ana")
    secret = await house.ask(f"deploy --token {TOKEN}")
    await house.session("nightly-ci", chat_id="ci")
    await house.ask("npm publish", session="nightly-ci")
    for path in (*PATHS, "?place=console:ci", f"/r/{denied['short_id']}", "/login", "/r/nothing"):
        await page.goto(f"{house.api}/console{path}")
        for summary in await page.locator("main summary").all():
            await summary.click()
        assert await grave(page) == [], path
    await page.goto(f"{house.api}/console/r/{secret['short_id']}")
    await page.get_by_role("button", name="Reveal the exact text…").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await grave(page) == [], "the second step"
    await page.get_by_role("button", name="Reveal it").click()
    await expect(page.get_by_role("dialog")).to_contain_text(TOKEN)
    assert await grave(page) == [], "the exact text"
    await page.goto(f"{house.api}/console")
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == {
        "light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)",
    }[scheme]  # fmt: skip


async def broken_words(page: Page) -> Any:
    """The words of up to 16 letters that go on in the next line."""
    return await page.evaluate(
        """() => {
          const found = [], range = document.createRange();
          const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          while (texts.nextNode()) {
            const text = texts.currentNode;
            if (!text.parentElement.checkVisibility() || text.parentElement.closest(".unseen, .skip, thead")) continue;
            for (const word of text.data.matchAll(/[\\w.:]+/g)) {
              if (word[0].length > 16) continue;
              range.setStart(text, word.index);
              range.setEnd(text, word.index + word[0].length);
              const tops = [...range.getClientRects()].map((each) => Math.round(each.top));
              if (new Set(tops).size > 1) found.push(word[0]);
            }
          }
          return found;
        }"""
    )


@pytest.mark.parametrize("width", [390, 1280])
async def test_no_short_word_is_broken_inside(browser: Browser, house: House, width: int) -> None:
    await house.session("nightly", kind="cron", platform=None, chat_id=None)
    record = await house.ask("npm publish")
    blocked = await house.ask("npm publish", session="nightly")
    assert blocked["outcome"] == "blocked"
    page = await enter(browser, house, viewport={"width": width, "height": 800})
    card = page.locator(f"#r-{record['short_id']}")
    await card.get_by_text("More…").click()
    await card.get_by_role("button", name="This session:").click()
    await expect(card).to_contain_text("Approved by ana")
    await house.ask("npm publish")
    waits = await house.ask("rm -rf ./build")
    for path in (*PATHS, f"/r/{waits['short_id']}", f"/r/{record['short_id']}"):
        await page.goto(f"{house.api}/console{path}")
        assert await broken_words(page) == [], path
        assert await overflow(page) == [], path


async def test_everything_that_is_pressed_is_large_enough(browser: Browser, house: House) -> None:
    await house.ask("git push --force origin main")
    page = await enter(browser, house, viewport={"width": 360, "height": 740})
    for path in PATHS:
        await page.goto(f"{house.api}/console{path}")
        small = await page.evaluate(
            """() => [...document.querySelectorAll("button, summary, nav a, select, textarea, input, .check")]
              .filter((each) => !["hidden", "checkbox"].includes(each.type))
              .filter((each) => each.checkVisibility())
              .filter((each) => each.getBoundingClientRect().height < 43.5 || each.getBoundingClientRect().width < 24)
              .map((each) => each.outerHTML.slice(0, 120))"""
        )
        assert small == [], path


async def test_the_tabs_stand_in_one_row_on_a_phone(browser: Browser, house: House) -> None:
    page = await enter(browser, house, viewport={"width": 360, "height": 740})
    for path in PATHS:
        await page.goto(f"{house.api}/console{path}")
        rows = await page.evaluate(
            """() => {
              document.querySelector("[data-count]").textContent = "1,000";
              const tabs = [...document.querySelectorAll(".top nav a")];
              return new Set(tabs.map((each) => each.getBoundingClientRect().top)).size;
            }"""
        )
        assert rows == 1, path
    # On a narrower one they stand in two, and no smaller than the rest.
    await page.set_viewport_size({"width": 320, "height": 740})
    tabs = await page.evaluate(
        """() => [...document.querySelectorAll(".top nav a")]
          .map((each) => [getComputedStyle(each).fontSize, each.getBoundingClientRect().left])"""
    )
    assert {size for size, _ in tabs} == {"16px"}
    assert [left for _, left in tabs[:3]] == [left for _, left in tabs[3:]]
    assert await overflow(page) == []


async def test_who_looks_sees_no_buttons(browser: Browser, house: House) -> None:
    record = await house.ask("git push --force origin main")
    page = await enter(browser, house, view=True, principal=None)
    await expect(page.get_by_text("You can look, not decide.")).to_be_visible()
    await expect(page.locator(f"#r-{record['short_id']}").get_by_role("button")).to_have_count(0)
    later = await house.ask("rm -rf ./build")
    await expect(page.locator(f"#r-{later['short_id']}")).to_be_visible()
    await expect(page.locator(f"#r-{later['short_id']}").get_by_role("button")).to_have_count(0)


async def test_the_history_is_found_again_by_its_link(browser: Browser, house: House) -> None:
    record = await house.ask("git push --force origin main")
    page = await enter(browser, house)
    await page.locator(f"#r-{record['short_id']}").get_by_role("button", name="Deny, request").click()
    await expect(page.locator(f"#r-{record['short_id']}")).to_contain_text("Denied by ana")
    await page.get_by_role("link", name="History").click()
    await page.get_by_label("Search").fill("force")
    await page.get_by_role("button", name="Find").click()
    await page.get_by_role("link", name=record["short_id"]).click()
    await expect(page.locator(".story")).to_contain_text("Denied by ana, not run.")


@pytest.mark.parametrize("script", [True, False])
async def test_a_long_action_says_that_it_goes_on_and_opens_by_keyboard(
    browser: Browser, house: House, script: bool
) -> None:
    steps = "\n".join(f"echo step {number} of a long night" for number in range(40))
    record = await house.ask(f"{steps}\ngit push --force origin main")
    page = await enter(browser, house, java_script_enabled=script, viewport={"width": 360, "height": 740})
    card = page.locator(f"#r-{record['short_id']}")
    code = card.get_by_role("group", name="The action")
    await expect(code.get_by_text("git push --force origin main")).to_be_visible()
    await expect(code.get_by_text("echo step 20 of a long night")).to_be_hidden()
    more = card.locator("summary", has_text="28 more lines")
    await more.focus()
    await page.keyboard.press("Enter")
    await expect(code.get_by_text("echo step 20 of a long night")).to_be_visible()
    assert await overflow(page) == []
    await page.keyboard.press("Tab")
    await expect(card.get_by_role("link", name="Whole story")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(card.get_by_role("button", name="Approve once")).to_be_focused()

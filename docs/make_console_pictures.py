"""Takes the pictures of the console for the documentation.

    python docs/make_console_pictures.py [FOLDER]

A gateway on loopback, a scripted agent that asks, and Chromium in front of the pages: on a desktop and on a phone, in
light and in dark.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, Page

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.browser.house import House, chromium, enter, open_house  # noqa: E402  # the path comes first

FOLDER = Path(__file__).resolve().parent / "pictures"
SIZES = {"desktop": {"width": 1100, "height": 760}, "phone": {"width": 390, "height": 780}}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PATHS = {"pending": "", "history": "/history", "sessions": "/sessions"}


async def play(house: House, page: Page) -> str:
    """Ask for what an agent asks for in a night, and answer some of it. The short id of one that ran."""
    await house.session("weekly-mail", kind="cron", platform=None, chat_id=None)
    answers = [
        ("rm -rf ./build && make deploy", "old build blocks the deploy", "Approve once, request"),
        ("git push --force origin main", "main was rebased", "Deny, request"),
        ("npm publish --tag next", "release of 2.1", "This session:"),
    ]
    ran = ""
    for command, reason, answer in answers:
        record = await house.ask(command, reason=reason)
        article = page.locator(f"#r-{record['short_id']}")
        if answer.startswith("This"):
            await article.get_by_text("More…").click()
        await article.get_by_role("button", name=answer).click()
        await article.locator(".verdict").wait_for()
        if answer.startswith("Approve"):
            ran = record["short_id"]
            claim = {"digest": record["digest"], "claim_id": "c81"}
            await house.call("POST", f"/v1/approvals/{record['request_id']}/claim", claim)
            result = {"status": "failed", "exit_code": 2}
            await house.call("POST", f"/v1/approvals/{record['request_id']}/result", result)
    tool = {"kind": "tool", "name": "send_email", "arguments": {"to": "214 addresses", "subject": "Weekly report"}}
    await house.ask("", action=tool, reason="the report is due")
    for _ in range(3):
        await house.ask("git push --force origin release", reason="the tag was wrong")
    await house.ask("chmod -R 777 /srv/app", reason="the web server cannot read it")
    return ran


async def take(browser: Browser, house: House, ran: str, folder: Path) -> None:
    """Every page on every screen."""
    for size, viewport in SIZES.items():
        for scheme in SCHEMES:
            look: dict[str, Any] = {"viewport": viewport, "color_scheme": scheme, "timezone_id": "UTC"}
            page = await enter(browser, house, **look)
            for name, path in {**PATHS, "story": f"/r/{ran}"}.items():
                await page.goto(f"{house.api}/console{path}")
                await page.wait_for_load_state("load")
                await page.screenshot(path=str(folder / f"console-{name}-{size}-{scheme}.png"))
            await page.context.close()


async def main(folder: Path) -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as state:
        async with open_house(Path(state)) as house, chromium() as browser:
            first = await enter(browser, house)
            ran = await play(house, first)
            await first.context.close()
            await take(browser, house, ran, folder)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))

"""Other programs on the machine, which browsers cannot tell apart from the console by its cookie."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from playwright.async_api import Browser, expect

from tests.browser.house import House, enter, open_house
from tests.ports import free_port


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[int]:
    """Another program's pages on a port of this machine; the port."""
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def test_what_another_port_gets_of_a_browser_decides_nothing(browser: Browser, house: House) -> None:
    record = await house.ask("git push --force origin main")
    page = await enter(browser, house)
    stolen: list[str] = []

    async def take(request: web.Request) -> web.Response:
        stolen.append(request.cookies.get("signoff_console", ""))
        stolen.append(request.headers.get("Referer", ""))
        text = "<script>document.title = localStorage.length</script>"
        return web.Response(text=text, content_type="text/html")

    app = web.Application()
    app.router.add_get("/console", take)
    async with serving(app) as port:
        other = await page.context.new_page()
        await other.goto(f"http://127.0.0.1:{port}/console")
        assert await other.title() == "0", "the secret beside the cookie stays with the console's port"
    cookie, referer = stolen
    assert cookie, "browsers know no ports in cookies"
    assert referer == ""
    form = await page.locator("form.main-answers").evaluate("(form) => Object.fromEntries(new FormData(form))")
    async with (
        aiohttp.ClientSession(cookies={"signoff_console": cookie}) as thief,
        thief.post(
            f"{house.api}/console/decide", data={**form, "choice": "once"}, headers={"Origin": house.api}
        ) as answer,
    ):
        assert answer.status == 403
    assert (await house.record(record["request_id"]))["status"] == "pending"
    await page.locator(f"#r-{record['short_id']}").get_by_role("button", name="Approve once, request").click()
    await expect(page.locator(f"#r-{record['short_id']}")).to_contain_text("Approved once by ana")
    await page.get_by_role("button", name="Log out").click()
    await page.wait_for_url("**/console/login")


async def test_two_log_ins_of_one_browser_both_answer(browser: Browser, house: House) -> None:
    one, other = await house.ask("git push --force origin main"), await house.ask("rm -rf ./build")
    first = await enter(browser, house)
    second = await first.context.new_page()
    await second.goto(await house.link("ana"))
    await second.get_by_role("button", name="Log in").click()
    await second.wait_for_url("**/console")
    await first.reload()
    for page, record in ((first, one), (second, other)):
        await page.locator(f"#r-{record['short_id']}").get_by_role("button", name="Deny, request").click()
        await expect(page.locator(f"#r-{record['short_id']}")).to_contain_text("Denied by ana")


async def test_a_host_name_of_its_own(browser: Browser, tmp_path: Path) -> None:
    port = free_port()
    house = House(tmp_path, gateway=f'console_url = "http://signoff-5d1c.localhost:{port}"')
    house.api = f"http://127.0.0.1:{port}"
    await house.start()
    try:
        await house.session()
        record = await house.ask("git push --force origin main")
        page = await enter(browser, house)
        assert page.url == f"http://signoff-5d1c.localhost:{port}/console"
        await page.locator(f"#r-{record['short_id']}").get_by_role("button", name="Deny, request").click()
        await expect(page.locator(f"#r-{record['short_id']}")).to_contain_text("Denied by ana")
        plain = await page.context.new_page()
        await plain.goto(f"{house.api}/console")
        assert plain.url == f"{house.api}/console/login", "the cookie is for the name alone"
    finally:
        await house.close()


@pytest.mark.parametrize("way", ["link", "key"])
async def test_the_same_browser_after_a_restart(browser: Browser, tmp_path: Path, way: str) -> None:
    async with open_house(tmp_path) as house:
        context = await browser.new_context()
        page = await context.new_page()
        if way == "link":
            await page.goto(await house.link("ana"))
        else:
            await page.goto(f"{house.api}/console/login")
            await page.get_by_label("API key").fill(await house.key("approver", principal="ana"))
        await page.get_by_role("button", name="Log in").click()
        await page.wait_for_url("**/console")
        await house.stop()
        await house.start()
        record = await house.ask("git push --force origin main")
        await page.reload()
        await page.locator(f"#r-{record['short_id']}").get_by_role("button", name="Deny, request").click()
        await expect(page.locator(f"#r-{record['short_id']}")).to_contain_text("Denied by ana")


async def test_a_link_on_another_site_opens_what_it_names(browser: Browser, house: House) -> None:
    record = await house.ask("git push --force origin main")
    story = f"{house.api}/console/r/{record['short_id']}"

    async def chat(request: web.Request) -> web.Response:
        return web.Response(text=f'<a href="{story}">{record["short_id"]}</a>', content_type="text/html")

    app = web.Application()
    app.router.add_get("/", chat)
    async with serving(app) as port:
        page = await enter(browser, house)
        await page.goto(f"http://localhost:{port}/")
        await page.get_by_role("link").click()
        await page.wait_for_url(story)
        await expect(page.get_by_role("heading", name="What happened")).to_be_visible()
        # Whoever is logged out gets the log-in, which leads on to what the link named.
        stranger = await (await browser.new_context()).new_page()
        await stranger.goto(f"http://localhost:{port}/")
        await stranger.get_by_role("link").click()
        await stranger.get_by_label("API key").fill(await house.key("approver", principal="ben"))
        await stranger.get_by_role("button", name="Log in").click()
        await stranger.wait_for_url(story)

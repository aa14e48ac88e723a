"""What looks like a deed at the web console and is none."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from tests.scenarios.browsers import Browser
from tests.scenarios.console_cards import Card, form_with

REFUSED = (400, 401, 403, 404, 405, 413, 415)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
REFUSALS = re.compile(
    r"This form cannot be read\. Nothing changed\. Load the page again\."
    r"|The agent changed its question; nothing was decided\. Answer \w{5}\."
)

Tried = tuple[str, bool]
"""What was tried, and whether it was refused."""


def is_refusal(told: str) -> bool:
    """Whether somebody is told so whose form means nothing, or another action than the one that is asked about."""
    return REFUSALS.fullmatch(told) is not None


async def link_used_twice(browser: Browser) -> Tried:
    """A one-time link lets in once."""
    link = await browser.link()
    answers = [await browser.send(link, ()) for _ in range(2)]
    return "a link used twice", [each.status for each in answers] == [303, 403]


async def false_forms(card: Card, ana: Browser, bo: Browser, eve: Browser) -> list[Tried]:
    """Forms of other log-ins, of other sites, without a log-in, and of Eve, who may look. All were logged in."""
    action, fields = form_with(card, "Approve once")
    own = ana.own(fields)
    listed = [("csrf", eve.csrf), ("choice", "deny"), ("listed", f"{card.message_id} x 0 0")]
    stop = [("csrf", eve.csrf), ("id", card.session)]
    outside = Browser(ana.gateway, "eve", decides=False, script=False)
    try:
        made = {
            "another log-in's form": await ana.send(action, bo.own(fields)),
            "a form without its token": await ana.send(action, [each for each in own if each[0] != "csrf"]),
            "a token cut short": await ana.send(action, [(n, v[:-1] if n == "csrf" else v) for n, v in own]),
            "another site's form": await ana.send(action, own, Origin="https://evil.example"),
            "a form without an origin": await ana.send(action, own, Origin=""),
            "one that the browser calls foreign": await ana.send(action, own, **{"Sec-Fetch-Site": "cross-site"}),
            "a form without a log-in": await outside.send(action, own),
            "a looker's form": await eve.send(action, eve.own(fields)),
            "a looker with a stolen token": await eve.send(action, own),
            "a looker who denies all": await eve.send("/console/all", listed),
            "a looker who stops": await eve.send("/console/sessions/stop", stop),
            "a form as an address": await ana.get(f"{action}?{urlencode(own)}"),
            "a form as JSON": await ana.send(action, own, **{"Content-Type": "application/json"}),
        }
    finally:
        await outside.aclose()
    return [(what, answer.status in REFUSED) for what, answer in made.items()]


async def odd_forms(browser: Browser) -> list[Tried]:
    """What no page of the console sends, by somebody who is logged in."""
    own = ("csrf", browser.csrf)
    made = {
        "a strange id": await browser.send("/console/decide", [own, ("id", "\x00\u202e" * 200), ("choice", "once")]),
        "too many fields": await browser.send("/console/decide", [own, *[("listed", "x")] * 6000]),
        "a strange list": await browser.send("/console/all", [own, ("choice", "deny"), ("listed", "a b c d e")]),
        "no such form": await browser.send("/console/of-tomorrow", [own]),
        "a strange address": await browser.get("/console/r/%00%ff%2e%2e%2f"),
        "a long address": await browser.get("/console/card/" + "x" * 5000),
    }
    async with browser.http.post(f"{browser.url}/console/decide", data=b"\xff\xfe=1", headers=FORM) as answer:
        tried = [("no text", answer.status in REFUSED)]
    return [*tried, *((what, each.status in REFUSED) for what, each in made.items())]

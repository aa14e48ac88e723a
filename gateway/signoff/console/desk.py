"""What the pages share: the core, the drawing, and the frame that every page has."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from signoff.console.answering import Answering
from signoff.console.drawing import Drawing
from signoff.console.live import Live
from signoff.console.past import Past
from signoff.console.reading import Reading
from signoff.console.seats import Seats, Tries
from signoff.console.troubles import Troubles
from signoff.console.visit import Visit, html
from signoff.refusals import Refusals
from signoff.server.core import Core
from signoff.texts import Catalogue
from signoff.wording import safe_name, t

NAV = ("pending", "history", "sessions", "grants", "try", "health")
MOST_SAID, MOST_LINES = 500, 200
"""Log-ins for which something is to be said, and lines of one after which the next answer takes their place."""
SCRIPT_WORDS = (
    "left", "lost", "back", "minute_left", "copied", "notify_on", "notify_off", "notify_denied", "notify_cannot",
    "expired", "not_sent", "logged_out",
)  # fmt: skip
"""The words that the page's script needs."""


class Desk:
    """One console."""

    def __init__(self, core: Core, *, url: str | None, keepalive_s: float) -> None:
        """`url`: the public address of the gateway, None where it has none."""
        self.core = core
        self.url = url
        self.url_here: str | None = None
        """Where the listener answers."""
        self.drawing = Drawing(core.clock.now)
        self.reading = Reading(core, self.drawing)
        self.seats = Seats(core.store, core.clock, core.profiles)
        self.tries = Tries(core.clock)
        self.refusals = Refusals(core.store, core.clock)
        self.answering = Answering(core, self.reading)
        self.troubles = Troubles(core, every_s=keepalive_s)
        self.live = Live(core, self.reading, self.drawing.own, self.troubles, keepalive_s=keepalive_s)
        self.past = Past(core)
        self._said: OrderedDict[str, list[str]] = OrderedDict()

    @property
    def origins(self) -> frozenset[str]:
        """The origins of our own pages beside the address that was called."""
        if self.url is None:
            return frozenset()
        parts = urlsplit(self.url)
        return frozenset({f"{parts.scheme}://{parts.netloc}"})

    def link(self, path: str) -> str | None:
        """A whole address of a page; None before the listener is open."""
        base = self.url or self.url_here
        return f"{base.rstrip('/')}{path}" if base else None

    def say(self, visit: Visit, lines: list[str]) -> None:
        """What the next page of this log-in says on top, after what none said yet."""
        before = self._said.get(visit.seat.name, [])
        self._said[visit.seat.name] = [*before, *lines] if len(before) < MOST_LINES else lines
        self._said.move_to_end(visit.seat.name)
        while len(self._said) > MOST_SAID:
            self._said.popitem(last=False)

    async def page(self, visit: Visit, name: str, title: str, *, status: int = 200, **values: Any) -> web.Response:
        """A page for somebody who is logged in."""
        seat = visit.seat
        frame = {
            "title": title,
            "nav": NAV,
            "here": values.pop("here", name),
            "profile": safe_name(seat.profile),
            "profiles": len(self.core.profiles),
            "who": safe_name(seat.principal) if seat.principal else t(f"console.who.{seat.scope}"),
            "decides": seat.scope in ("approver", "admin"),
            "csrf": visit.token,
            "seq": visit.drawn_at,
            "waiting": await self.live.waiting(seat.profile),
            "said": self._said.pop(seat.name, []),
            "words": words(),
            "now": self.core.clock.now(),
            "path": visit.request.rel_url.path_qs,
        }
        return html(self.drawing.page(f"{name}.html", **{**frame, **values}), status)

    def plain(self, name: str, title: str, *, status: int = 200, **values: Any) -> web.Response:
        """A page for anybody."""
        return html(self.drawing.page(f"{name}.html", title=title, words=words(), **values), status)


def words() -> str:
    """What the script says, as JSON. It fills the places itself."""
    texts = Catalogue.load()
    return msgspec.json.encode({name: texts.forms(f"console.script.{name}")[0] for name in SCRIPT_WORDS}).decode()

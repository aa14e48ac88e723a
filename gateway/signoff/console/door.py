"""The console's door: which page a request is for, who may see it, and what is answered when something is wrong."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from aiohttp.web_request import BaseRequest

from signoff.console import absences, actions, bypassing, denials, entrance, forms, pages, rehearsing, trying
from signoff.console.desk import Desk
from signoff.console.live import KEEPALIVE_S
from signoff.console.visit import PATH, LoginNeeded, NotHere, Visit, away, html, json
from signoff.errors import NotFound, SaveUnknown, SignoffError
from signoff.loopback import from_here
from signoff.server.core import Core
from signoff.server.faults import MethodNotAllowed, RouteNotFound
from signoff.wording import t

log = logging.getLogger("signoff.console")

Handler = Callable[[Desk, Visit], Awaitable[web.StreamResponse]]

_ID = r"([^/]{1,600})"
OPEN: tuple[tuple[str, str, Handler], ...] = (
    ("GET", r"/console/login", entrance.ask),
    ("POST", r"/console/login", entrance.enter),
    ("GET", rf"/console/link/{_ID}", entrance.show_link),
    ("POST", rf"/console/link/{_ID}", entrance.use_link),
    ("POST", r"/console/links", entrance.make_link),
    ("GET", r"/console/static/([a-z.]+)", pages.static),
)
"""What needs no log-in. Their handlers check what they need."""
INSIDE: tuple[tuple[str, str, Handler], ...] = (
    ("GET", r"/console/?", pages.pending),
    ("GET", rf"/console/r/{_ID}", pages.story),
    ("GET", rf"/console/r/{_ID}/record\.json", pages.record),
    ("GET", rf"/console/card/{_ID}", pages.card),
    ("GET", r"/console/history", pages.history),
    ("GET", r"/console/history\.csv", pages.history_csv),
    ("GET", r"/console/sessions", pages.sessions),
    ("GET", r"/console/grants", pages.grants),
    ("GET", r"/console/try", trying.show),
    ("POST", r"/console/try", trying.judge),
    ("GET", r"/console/health", pages.health),
    ("GET", r"/console/events", pages.events),
    ("GET", r"/console/here", pages.still_in),
    ("POST", r"/console/decide", forms.decide),
    ("POST", r"/console/undo", forms.undo),
    ("POST", r"/console/wait", forms.wait),
    ("POST", r"/console/lift", denials.let_ask),
    ("POST", r"/console/reveal", forms.show_exact),
    ("POST", r"/console/all", forms.decide_all),
    ("POST", r"/console/sessions/stop", forms.stop),
    ("POST", r"/console/sessions/clear", forms.clear),
    ("POST", r"/console/sessions/bypass", bypassing.switch),
    ("POST", r"/console/grants/revoke", forms.revoke),
    ("GET", r"/console/staged", actions.show),
    ("POST", r"/console/staged/did-run", actions.did_run),
    ("POST", r"/console/staged/run-again", actions.run_again),
    ("GET", r"/console/catch-up", absences.show),
    ("POST", r"/console/catch-up/ask", absences.ask),
    ("POST", r"/console/catch-up/clear", absences.clear),
    ("POST", r"/console/drill", rehearsing.begin),
    ("GET", rf"/console/drills/{_ID}", rehearsing.show),
    ("POST", rf"/console/drills/{_ID}/seen", rehearsing.seen),
    ("POST", r"/console/logout", entrance.leave),
)
"""What needs a log-in; what a POST needs beyond that is checked here too, before its handler runs."""
_ROUTES = [
    (method, re.compile(pattern), handler, inside)
    for inside, table in ((False, OPEN), (True, INSIDE))
    for method, pattern, handler in table
]


class Console:
    """The pages of one gateway. Mounted on the API's listener under `/console`."""

    def __init__(self, core: Core, *, url: str | None = None, keepalive_s: float = KEEPALIVE_S) -> None:
        """`url` is the public address under which browsers reach the gateway, None where it has none."""
        self.desk = Desk(core, url=url, keepalive_s=keepalive_s)
        core.pages_open()

    def opened(self, address: str) -> None:
        """The listener answers at that address, which links name where there is no public one."""
        parts = urlsplit(address)
        host = from_here(parts.hostname or "")
        self.desk.url_here = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port}"

    def close(self) -> None:
        """End the streams of open pages."""
        self.desk.live.close()
        self.desk.past.close()

    async def handle(self, request: BaseRequest) -> web.StreamResponse:
        """Answer one request whose host name was checked."""
        visit = Visit(request)
        try:
            return await self._handled(visit)
        except SignoffError as error:
            return self._refused(visit, error)
        except Exception as error:  # the outermost edge: a defect is logged and told apart from a refusal
            error_id = secrets.token_hex(8)
            self.desk.core.telemetry.unexpected()
            # Not the whole path: that of a link is its token.
            page = "/".join(request.rel_url.raw_path[:200].split("/")[:3])
            log.error("console.defect %s: %s", error_id, page, exc_info=error)
            return self._told(visit, t("console.refused.defect", id=error_id), 500)

    async def _handled(self, visit: Visit) -> web.StreamResponse:
        path, method = visit.request.rel_url.path, visit.request.method
        if path == "/":
            return away(PATH)
        handler, inside = self._find(visit, "GET" if method == "HEAD" else method, path)
        if inside:
            await self._enter(visit)
        if method == "POST" and handler is not entrance.make_link:
            await visit.read_form(self.desk.origins)
            if inside:
                visit.check_token()
        return await handler(self.desk, visit)

    def _find(self, visit: Visit, method: str, path: str) -> tuple[Handler, bool]:
        allowed = []
        for known, pattern, handler, inside in _ROUTES:
            found = pattern.fullmatch(path)
            if found is None:
                continue
            if known == method:
                visit.params = found.groups()
                return handler, inside
            allowed.append(known)
        if allowed:
            raise MethodNotAllowed(f"This page knows {', '.join(allowed)}.", allow=", ".join(allowed))
        raise RouteNotFound

    async def _enter(self, visit: Visit) -> None:
        if visit.cookie:
            visit.seat_or_none = await self.desk.seats.find(visit.cookie)
        if visit.seat_or_none is None:
            raise LoginNeeded
        visit.drawn_at = await self.desk.core.store.last_seq(visit.seat.profile)

    # --- refusals ----------------------------------------------------------------------------

    def _refused(self, visit: Visit, error: SignoffError) -> web.Response:
        self.desk.core.telemetry.http_error(error.code)
        if isinstance(error, LoginNeeded):
            return self._to_login(visit)
        if error.status >= 500:
            log.error("console.failed: %s: %s", error.code, error)
            return self._told(visit, t("tap.save_unknown" if isinstance(error, SaveUnknown) else "tap.not_saved"), 503)
        if isinstance(error, NotFound):
            return self._told(visit, t("console.refused.not_found"), 404)
        status = error.answer if isinstance(error, NotHere) else error.status
        response = self._told(visit, error.message, status)
        if "allow" in error.facts:
            response.headers["Allow"] = error.facts["allow"]
        if isinstance(error, NotHere) and error.key == "too_many":
            response.headers["Retry-After"] = "60"
        return response

    def _to_login(self, visit: Visit) -> web.Response:
        request = visit.request
        if visit.by_script or request.rel_url.path == f"{PATH}/events" or request.method != "GET":
            return self._told(visit, t("console.refused.login"), 401)
        there = request.rel_url.path_qs
        login = request.rel_url.with_path(f"{PATH}/login")
        following = str(login.with_query({"next": there}))
        if visit.from_elsewhere:
            return self.desk.plain("onward", t("console.title.login"), following=following)
        return away(str(login.with_query(None)) if there in (PATH, f"{PATH}/") else following)

    def _told(self, visit: Visit, text: str, status: int) -> web.Response:
        if visit.by_script:
            return json({"how": "refused", "text": text}, status)
        if visit.request.headers.get(hdrs.ACCEPT, "").startswith("text/event-stream"):
            return html("", status)
        return self.desk.plain("told", t("console.title.told"), status=status, text=text)

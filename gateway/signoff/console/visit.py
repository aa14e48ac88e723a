"""One request to the console: who asks, what came with it, and the form of every answer."""

from __future__ import annotations

import hmac
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

import msgspec
from aiohttp import hdrs, web
from aiohttp.web_request import BaseRequest

from signoff.authorize import Allowed, Operation, Refused, console_may
from signoff.console.seats import Seat, bound, form_token
from signoff.errors import SignoffError
from signoff.model import Actor
from signoff.server.faults import BadRequest
from signoff.server.limits import body_of
from signoff.wording import t

COOKIE = "signoff_console"
PATH = "/console"
MOST_FIELDS = 5000
"""A form for all that is listed names each question with its digest."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer` browsers send `Origin: null` with a form of the same site, which cannot be checked.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class NotHere(SignoffError):
    """The console does not let this happen; `key` names the sentence for the person, `answer` is the HTTP status."""

    code = "console_refused"
    status = 403

    def __init__(self, key: str, status: int, **values: str | int) -> None:
        super().__init__(t(f"console.refused.{key}", **values))
        self.answer = status
        self.key = key


class LoginNeeded(SignoffError):
    """Nobody is logged in here."""

    code = "console_login_needed"
    status = 401


class Drawn(Protocol):
    """Draws a template."""

    def page(self, name: str, **values: Any) -> str:
        """The HTML."""
        ...


class Visit:
    """One request. `form` is filled for a POST; `seat` once somebody is known to be logged in."""

    def __init__(self, request: BaseRequest, params: tuple[str, ...] = ()) -> None:
        self.request = request
        self.params = params
        self.cookie = request.cookies.get(COOKIE, "")
        self.seat_or_none: Seat | None = None
        self.form: list[tuple[str, str]] = []
        self.drawn_at = 0
        """The number of the profile's last event before anything was read for the answer."""

    @property
    def seat(self) -> Seat:
        """Who is logged in. Raises `LoginNeeded`."""
        if self.seat_or_none is None:
            raise LoginNeeded
        return self.seat_or_none

    @property
    def token(self) -> str:
        """What this reader's forms carry."""
        return form_token(self.cookie)

    @property
    def by_script(self) -> bool:
        """Whether the page's own script asks, which wants an answer in JSON."""
        return "application/json" in self.request.headers.get(hdrs.ACCEPT, "")

    @property
    def from_elsewhere(self) -> bool:
        """Whether a link on another site was followed, with which browsers send no `SameSite=Strict` cookie. One that
        does not say where it comes from, as over plain http, may have followed one."""
        site = self.request.headers.get("Sec-Fetch-Site")
        if self.cookie:
            return False
        if site is None:
            return "text/html" in self.request.headers.get(hdrs.ACCEPT, "")
        return site == "cross-site" and self.request.headers.get("Sec-Fetch-Dest") == "document"

    @property
    def address(self) -> str:
        """Where the caller is, as far as the connection tells."""
        return self.request.remote or ""

    def field(self, name: str, default: str = "") -> str:
        """The last value of a form field."""
        return next((value for key, value in reversed(self.form) if key == name), default)

    def fields(self, name: str) -> list[str]:
        """All values of a form field."""
        return [value for key, value in self.form if key == name]

    def query(self, name: str, default: str = "") -> str:
        """A query parameter."""
        return self.request.rel_url.query.get(name, default)

    def may(self, operation: Operation) -> Allowed | Refused:
        """Whether whoever is logged in may do that."""
        seat = self.seat
        return console_may(seat.scope, operation, principal=seat.principal, key_id=seat.key_id)

    def require(self, operation: Operation) -> Actor:
        """Who does it. Raises `NotHere` with 403."""
        allowed = self.may(operation)
        if isinstance(allowed, Refused):
            raise NotHere("look_only", 403)
        return allowed.actor

    async def read_form(self, origins: frozenset[str]) -> None:
        """Read a POST. Raises `NotHere` unless it comes from a page of this console: by its Origin, and by the form
        token where somebody is logged in."""
        self.check_origin(origins)
        raw = await body_of(self.request)
        if self.request.content_type != "application/x-www-form-urlencoded":
            raise NotHere("form", 415)
        try:
            self.form = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
        except ValueError:
            raise BadRequest("The form is not UTF-8, or has too many parts.") from None

    def check_origin(self, origins: frozenset[str]) -> None:
        """Raise `NotHere` unless the request was made by a page of this console."""
        given = self.request.headers.getall(hdrs.ORIGIN, ())
        site = self.request.headers.get("Sec-Fetch-Site", "same-origin")
        if len(given) != 1 or site not in ("same-origin", "none"):
            raise NotHere("foreign", 403)
        origin = given[0]
        try:
            parts = urlsplit(origin)
        except ValueError:
            raise NotHere("foreign", 403) from None
        # The scheme may be a proxy's https, so the host decides: no page of another host can have it.
        here = self.request.headers.get(hdrs.HOST, "")
        if origin not in origins and not (parts.scheme in ("http", "https") and here and parts.netloc == here):
            raise NotHere("foreign", 403)

    def check_token(self) -> None:
        """Raise `NotHere` unless the form was drawn for this log-in, and comes from the browser that logged in."""
        if not bound(self.seat, self.field("bond")):
            raise NotHere("other_browser", 403)
        if not hmac.compare_digest(self.field("csrf").encode("utf-8", "surrogatepass"), self.token.encode()):
            raise NotHere("stale_form", 403)


class Page(web.Response):
    """A page, let go of once it is sent: its connection stays open for the next one, and would hold all of it."""

    async def write_eof(self, data: bytes = b"") -> None:
        await super().write_eof(data)
        self.body = None


def html(text: str, status: int = 200, **headers: str) -> web.Response:
    """A page."""
    return Page(
        status=status,
        text=text,
        headers={**HEADERS, **headers, "Content-Type": "text/html; charset=utf-8"},
    )


def json(value: Any, status: int = 200) -> web.Response:
    """An answer for the page's script."""
    return web.Response(
        status=status, body=msgspec.json.encode(value), headers={**HEADERS, "Content-Type": "application/json"}
    )


def away(where: str) -> web.Response:
    """Go there with a GET."""
    return web.Response(status=303, headers={**HEADERS, "Location": where})


def back_to(where: str) -> str:
    """The page that a form names to go back to: one of the console's own, else the first."""
    inside = where == PATH or where.startswith((f"{PATH}/", f"{PATH}?"))
    path = where.partition("?")[0].lower().replace("%2e", ".")
    leaves = "\\" in where or "//" in where or ".." in path
    return where if inside and where.isprintable() and not leaves else PATH

"""Coming and going: by an API key, or by a one-time link that the operator made."""

from __future__ import annotations

import logging

import msgspec
from aiohttp import hdrs, web

from signoff.console.desk import Desk
from signoff.console.seats import SEAT_FOR
from signoff.console.visit import COOKIE, HEADERS, PATH, NotHere, Visit, away, back_to, json
from signoff.errors import SignoffError
from signoff.server.caller import identify, require
from signoff.server.faults import ErrorAnswer, InvalidJson, facts_of, invalid
from signoff.server.limits import body_of
from signoff.server.routes import ADMIN
from signoff.wording import safe_name, t

log = logging.getLogger("signoff.console")


class LinkBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For whom a link is."""

    principal: str | None = None
    view: bool = False


async def ask(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The page that asks for a key. Whoever is logged in goes on at once where a page was asked for: a link on another
    site comes without the cookie, and over this page with it."""
    following = visit.query("next")
    if following and await desk.seats.find(visit.cookie) is not None:
        return away(back_to(following))
    return _login_page(desk, visit, "", back_to(following))


def _login_page(desk: Desk, visit: Visit, wrong: str, following: str, status: int = 200) -> web.Response:
    return desk.plain("login", t("console.title.login"), status=status, wrong=wrong, next=following)


async def enter(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Log in by a key: an approver's decides as its principal, an operator's looks, an administrator's does all."""
    following = back_to(visit.field("next", PATH))
    key = await desk.core.keys.verify(visit.field("key").strip())
    if key is None:
        _count_wrong(desk, visit)
        desk.core.telemetry.console_login("wrong_key")
        return _login_page(desk, visit, t("console.login.wrong"), following, 403)
    if key.scope == "agent":
        desk.core.telemetry.console_login("agent_key")
        return _login_page(desk, visit, t("console.login.agent"), following, 403)
    secret = await desk.seats.open(
        profile=key.profile, scope=key.scope, principal=key.principal, key_id=key.key_id, bond=visit.field("bond")
    )
    desk.core.telemetry.console_login("key")
    return _seated(visit, secret, following)


async def show_link(desk: Desk, visit: Visit) -> web.StreamResponse:
    """What a link opens. It is used up by the button alone, so that a preview of the address does no harm."""
    token = visit.params[0]
    link = await desk.seats.link(token)
    if link is None:
        return _no_link(desk, visit)
    who = safe_name(link.principal) if link.principal else ""
    return desk.plain(
        "link", t("console.title.login"), who=who, profile=safe_name(link.profile), token=token,
        decides=link.scope == "approver", profiles=len(desk.core.profiles),
    )  # fmt: skip


async def use_link(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Log in by a link."""
    token = visit.params[0]
    # Looked at first, so that a guess costs no write.
    known = await desk.seats.link(token)
    secret = await desk.seats.use_link(token, visit.field("bond")) if known is not None else None
    if secret is None:
        return _no_link(desk, visit)
    desk.core.telemetry.console_login("link")
    return _seated(visit, secret, PATH)


def _no_link(desk: Desk, visit: Visit) -> web.Response:
    _count_wrong(desk, visit)
    desk.core.telemetry.console_login("wrong_link")
    return _login_page(desk, visit, t("console.login.link_gone"), PATH, 403)


async def leave(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Log out; the open pages of this log-in end."""
    await desk.seats.close(visit.seat)
    desk.live.leave(visit.seat)
    response = away(f"{PATH}/login")
    response.del_cookie(COOKIE, path=PATH, httponly=True, samesite="Strict")
    return response


async def make_link(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Make a one-time link: for the local socket and for administrators' keys. Answers in the form of the API."""
    try:
        who = await identify(desk.core, visit.request)
        require(who, ADMIN)
        body = _decoded(await body_of(visit.request))
        token = await desk.seats.make_link(profile=who.profile, principal=body.principal, view=body.view)
    except SignoffError as error:
        return _api_error(error)
    path = f"{PATH}/link/{token}"
    return json({"path": path, "url": desk.link(path)}, 201)


def _decoded(raw: bytes) -> LinkBody:
    try:
        return msgspec.json.decode(raw or b"{}", type=LinkBody)
    except msgspec.ValidationError as error:
        raise invalid(error, LinkBody) from None
    except msgspec.DecodeError as error:
        raise InvalidJson(f"The body is not JSON: {str(error)[:200]}.") from None


def _api_error(error: SignoffError) -> web.Response:
    answer = ErrorAnswer(error=facts_of(error))
    headers = {**HEADERS, "Content-Type": "application/json"}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return web.Response(status=error.status, body=msgspec.json.encode(answer), headers=headers)


def _count_wrong(desk: Desk, visit: Visit) -> None:
    """Count one that is not right. Raises `NotHere` with 429 after too many. Right ones are never held up: people
    behind one proxy, and all on one machine, have one address, and anybody there could lock the others out."""
    if desk.tries.wait_s(visit.address) > 0:
        desk.core.telemetry.console_login("too_many")
        raise NotHere("too_many", 429)
    log.info("console: a wrong key or link from %s", visit.address)
    desk.tries.wrong(visit.address)


def _seated(visit: Visit, secret: str, following: str) -> web.Response:
    """Set the cookie. It is `Secure` where the browser itself says that the page came over https."""
    response = away(following)
    response.set_cookie(
        COOKIE,
        secret,
        max_age=int(SEAT_FOR.total_seconds()),
        path=PATH,
        httponly=True,
        samesite="Strict",
        secure=visit.request.headers.get(hdrs.ORIGIN, "").startswith("https://"),
    )
    return response

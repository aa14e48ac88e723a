"""The page that tells what would become of a command. Nobody is asked, nothing is stored, whoever looks may use it."""

from __future__ import annotations

from aiohttp import web
from msgspec import Struct

from signoff.console.desk import Desk
from signoff.console.judged import Judged, foreseen
from signoff.console.visit import Visit
from signoff.errors import InvalidInput, SessionNotFound
from signoff.model import Command
from signoff.wording import t

MOST_CHARS = 16_000
"""As much as a card in a list shows whole; longer texts are for `signoff check`, which reads a file."""
MOST_BESIDE = 1000
"""Characters of a folder or of a session's id."""


class Typed(Struct, frozen=True, kw_only=True):
    """What somebody typed; the field that is wrong, and why."""

    command: str = ""
    cwd: str = ""
    session: str = ""
    wrong: str = ""
    error: str = ""


class Result(Struct, frozen=True, kw_only=True):
    """What would become of it: `word` is allow, ask or block."""

    word: str
    head: str
    judged: Judged


async def show(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The empty form."""
    return await _page(desk, visit, Typed())


async def judge(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The same with what would become of the command."""
    typed = _read(visit)
    if typed.error:
        return await _page(desk, visit, typed, status=400)
    action = Command(command=typed.command, cwd=typed.cwd or None)
    profile = visit.seat.profile
    try:
        checked = await desk.core.broker.check(profile, action, session_id=typed.session or None)
    except SessionNotFound:
        wrong = _wrong(typed, "session", t("console.try.no_session"))
        return await _page(desk, visit, wrong, status=404)
    except InvalidInput as error:
        return await _page(desk, visit, _wrong(typed, "command", error.message), status=400)
    result = Result(
        word=checked.verdict.verdict,
        head=t(f"console.try.{checked.verdict.verdict}"),
        judged=foreseen(action, checked.explanation, desk.core.broker.profile(profile)),
    )
    return await _page(desk, visit, typed, result)


def _read(visit: Visit) -> Typed:
    # Browsers end each line of a text field with CR and LF, which a shell would read as another command.
    command = visit.field("command").replace("\r\n", "\n")
    typed = Typed(command=command, cwd=visit.field("cwd").strip(), session=visit.field("session").strip())
    if not command.strip():
        return _wrong(typed, "command", t("console.try.empty"))
    if len(command) > MOST_CHARS:
        return _wrong(typed, "command", t("console.try.too_long", count=len(command), most=MOST_CHARS))
    for name, text in (("cwd", typed.cwd), ("session", typed.session)):
        if len(text) > MOST_BESIDE:
            return _wrong(typed, name, t("console.try.too_long", count=len(text), most=MOST_BESIDE))
    return typed


def _wrong(typed: Typed, field: str, error: str) -> Typed:
    return Typed(command=typed.command, cwd=typed.cwd, session=typed.session, wrong=field, error=error)


async def _page(
    desk: Desk, visit: Visit, typed: Typed, result: Result | None = None, *, status: int = 200
) -> web.StreamResponse:
    title = t("console.title.try")
    if result is not None:
        title = f"{result.head} · {title}"
    return await desk.page(visit, "try", title, status=status, typed=typed, result=result, most=MOST_CHARS)

"""Kept actions: the page that lists them, and what people say of one of which nobody knows whether it ran."""

from __future__ import annotations

from aiohttp import web

from signoff.cards import headline_text
from signoff.changes.common import unsure
from signoff.changes.staging import state_of
from signoff.console.answering import PREFIX, Told
from signoff.console.desk import Desk
from signoff.console.forms import allowed, answer, step
from signoff.console.visit import Visit
from signoff.endings import lost_answer
from signoff.errors import ActionRefused, RequestNotFound
from signoff.kept_words import again_text, run_again_line
from signoff.model import ApprovalRequest
from signoff.rows import request_key
from signoff.server.core import Core
from signoff.wording import safe_name, t

PAGE = 500
ENDED = 30
"""So many ended ones stand below those that still need somebody, the newest first."""


async def kept(core: Core, profile: str) -> list[ApprovalRequest]:
    """The kept actions of a profile that need somebody, and the newest of the others, oldest first.

    All are read, however many there were in the years before, since what waits stands behind them.
    """
    found: list[ApprovalRequest] = []
    after: str | None = None
    while rows := await core.staged.actions(profile, limit=PAGE, after=after):
        ended = [row for row in found if row.outcome is not None and not unsure(row) and not under_way(row)]
        dropped = {row.request_id for row in ended[:-ENDED]}
        found = [*(row for row in found if row.request_id not in dropped), *rows]
        after = request_key(profile, rows[-1].request_id)
    return found


async def link(core: Core, profile: str, pending: list[ApprovalRequest]) -> str:
    """The words that lead to the page; empty where nothing was ever kept."""
    if not await core.staged.actions(profile, limit=1):
        return ""
    return t("console.staged.link", count=sum(row.stages is not None for row in pending))


async def stuck(core: Core, profile: str) -> list[str]:
    """A sentence for each executor that approved actions wait for and that no gateway has."""
    return [
        t("console.staged.stuck", count=each.waiting, executor=safe_name(each.executor))
        for each in await core.staged.absent(profile)
    ]


def open_ones(rows: list[ApprovalRequest]) -> list[ApprovalRequest]:
    """Those that need somebody: of which nobody knows whether they ran, then those that wait for an answer."""
    return [row for row in rows if unsure(row)] + [row for row in rows if row.outcome is None]


def under_way(row: ApprovalRequest) -> bool:
    """Whether it was approved and has not ended: it waits for its executor, or runs."""
    return state_of(row) in ("approved", "running")


async def show(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The page."""
    rows = await kept(desk.core, visit.seat.profile)
    wanted = open_ones(rows)
    started = [row for row in rows if under_way(row)]
    names = {row.request_id for row in (*wanted, *started)}
    ended = [row for row in reversed(rows) if row.request_id not in names][:ENDED]
    here = "/console/staged"
    cards = await desk.reading.cards([*wanted, *started, *ended], visit.seat, visit.token, here)
    return await desk.page(
        visit,
        "staged",
        t("console.title.staged"),
        here="pending",
        cards=cards[: len(wanted)],
        started=cards[len(wanted) : len(wanted) + len(started)],
        ended=cards[len(wanted) + len(started) :],
        count=len(wanted),
        stuck=await stuck(desk.core, visit.seat.profile),
    )


async def did_run(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Note that it did run."""
    row = await _row(desk, visit)
    actor = await allowed(desk, visit, "decide", row)
    try:
        row = await desk.core.staged.did_run(row.profile, row.request_id, actor)
    except ActionRefused:
        return await _late(desk, visit, row)
    return await answer(desk, visit, Told(how="done", text=t("tap.kept.did_run"), row=row))


async def run_again(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Have it run once more, after a second step."""
    row = await _row(desk, visit)
    actor = await allowed(desk, visit, "decide", row)
    if not unsure(row):
        return await _late(desk, visit, row)
    if visit.field("confirmed") != "1":
        view = await desk.reading.view(row, visit.seat, listed=False)
        return await step(
            desk, visit, "/console/staged/run-again", run_again_line(row), t("button.confirm_run_again"),
            [("id", row.request_id), ("confirmed", "1")], head=headline_text(row), code=view.code,
        )  # fmt: skip
    try:
        again = await desk.core.staged.run_again(row.profile, row.request_id, actor)
    except ActionRefused:
        return await _late(desk, visit, row)
    return await answer(desk, visit, Told(how="done", text=again_text(again), row=again))


async def _row(desk: Desk, visit: Visit) -> ApprovalRequest:
    row = await desk.reading.get(visit.seat.profile, visit.field("id"))
    if row is None:
        raise RequestNotFound
    return row


async def _late(desk: Desk, visit: Visit, row: ApprovalRequest) -> web.StreamResponse:
    """Somebody or its executor was first: what is true now."""
    fresh = await desk.core.broker.get(row.profile, row.request_id)
    if fresh.outcome is None:
        return await answer(desk, visit, Told(how="refused", text=t("console.staged.waits"), row=fresh))
    text = lost_answer(fresh, None, desk.core.clock.now(), platform_title=desk.reading.title, prefix=PREFIX)
    return await answer(desk, visit, Told(how="late", text=text, row=fresh))

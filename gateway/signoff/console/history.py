"""What has ended, newest first: who, when, why. Read backwards from the end of the event log, so that a page costs the
same however long the history is."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from signoff.actions import one_line
from signoff.console import places
from signoff.console.places import Where
from signoff.console.reading import Reading, was_asked
from signoff.display import shown
from signoff.durations import duration
from signoff.model import OUTCOMES, ApprovalRequest, Code, Elicitation, FileWrite, Rule, Tool
from signoff.ports import Store
from signoff.statuses import MARKS
from signoff.wording import answer_word, cause_words, people, safe_name, t

ROWS = 50
CSV_ROWS = 5000
WINDOW = 500
MOST_WINDOWS = 20
"""A page that finds little ends after so many windows of events, and leads on from there."""


class Filter(Struct, frozen=True, kw_only=True):
    """What is wanted; empty parts want everything."""

    q: str = ""
    outcome: str = ""
    agent: str = ""
    person: str = ""
    place: str = ""
    session: str = ""
    asked: str = ""
    """Not empty: only what people were asked, without what rules, grants and earlier denials answered."""

    def fits(self, row: ApprovalRequest) -> bool:
        """Whether the row is wanted."""
        if self.asked and not was_asked(row):
            return False
        if not Where(place=self.place, session=self.session).fits(row):
            return False
        if self.outcome and row.outcome != self.outcome:
            return False
        if self.agent and self.agent.lower() not in (row.agent or "").lower():
            return False
        if self.person and self.person.lower() not in _by(row).lower():
            return False
        if not self.q:
            return True
        action = (kind_of(row), one_line(row.action))
        hay = (row.short_id, *action, row.session_id, row.host or "", row.agent or "", row.reason or "")
        return any(self.q.lower() in each.lower() for each in hay)

    @property
    def active(self) -> bool:
        """Whether anything is left out."""
        return any((self.q, self.outcome, self.agent, self.person, self.place, self.session, self.asked))


class Line(Struct, frozen=True, kw_only=True):
    """One ended request."""

    at: datetime
    id: str
    outcome: str
    mark: str
    by: str
    kind: str
    """What is asked for and its name, such as a tool's; empty for a command, which says so itself."""
    action: str
    """Empty where its name is all there is."""
    reason: str
    where: str
    agent: str
    session: str
    ran: str


class Page(Struct, frozen=True, kw_only=True):
    """Lines, and where to go on."""

    lines: tuple[Line, ...]
    before: int | None = None


def wanted(*, q: str, outcome: str, agent: str, person: str, place: str, session: str, asked: str) -> Filter:
    """A filter of what was typed; an unknown outcome wants everything."""
    where = places.wanted(place, session)
    return Filter(
        place=where.place,
        session=where.session,
        asked="1" if asked else "",
        q=q.strip()[:200],
        outcome=outcome if outcome in OUTCOMES else "",
        agent=agent.strip()[:200],
        person=person.strip()[:200],
    )


async def page(
    store: Store, reading: Reading, profile: str, wish: Filter, *, before: int | None, now: datetime, limit: int = ROWS
) -> Page:
    """The newest endings, or those before an event's number."""
    end = await store.last_seq(profile) if before is None else before - 1
    lines: list[Line] = []
    windows = MOST_WINDOWS if limit == ROWS else MOST_WINDOWS * 10
    for _ in range(windows):
        if end <= 0:
            return Page(lines=tuple(lines))
        start = max(0, end - WINDOW)
        for event in reversed(await store.events(profile, start, limit=end - start)):
            if event.type != "approval.resolved" or event.request_id is None:
                continue
            row = await reading.get(profile, event.request_id)
            if row is None or row.outcome is None:
                continue
            try:
                line = line_of(row, now) if wish.fits(row) else None
            except Exception as error:  # a row's outer edge: the others stand on the page
                line = _undrawn(row, reading.undrawn(row, error))
            if line is None:
                continue
            if len(lines) == limit:
                return Page(lines=tuple(lines), before=event.seq + 1)
            lines.append(line)
        end = start
    return Page(lines=tuple(lines), before=end + 1 if end else None)


def kind_of(row: ApprovalRequest) -> str:
    """What is asked for, where its text alone does not tell: which tool is called, which file is written, and so on."""
    action = row.action
    if isinstance(action, Tool):
        return t("console.kind.tool", tool=safe_name(action.name))
    if isinstance(action, FileWrite):
        return t("console.kind.file_write", file=safe_name(action.path))
    if isinstance(action, Code):
        return t("console.kind.code", language=safe_name(action.language))
    if isinstance(action, Elicitation):
        return t("console.kind.elicitation", server=safe_name(action.server))
    return t("console.kind.rule", tool=safe_name(action.tool)) if isinstance(action, Rule) else ""


def text_of(row: ApprovalRequest) -> str:
    """The masked action on one line; empty where `kind_of` says all there is."""
    action = row.action
    named = isinstance(action, Tool) and not action.arguments
    return "" if named or (isinstance(action, FileWrite) and action.diff is None) else one_line(action)


def line_of(row: ApprovalRequest, now: datetime) -> Line:
    """One row in words."""
    return Line(
        at=row.decided_at or row.created_at,
        id=row.short_id,
        outcome=t(f"outcome_word.{answer_word(row)}"),
        mark=MARKS.get(row.outcome or "", ""),
        by=_by(row, now),
        kind=kind_of(row),
        action=text_of(row),
        reason=shown(row.reason, prose=True) if row.reason else "",
        where=safe_name(row.host) if row.host else "",
        agent=safe_name(row.agent) if row.agent else "",
        session=safe_name(row.session_id),
        ran=_ran(row),
    )


def _undrawn(row: ApprovalRequest, text: str) -> Line:
    blank = dict.fromkeys(("by", "kind", "reason", "where", "agent", "session", "ran"), "")
    outcome = t(f"outcome_word.{row.outcome}")
    mark = MARKS.get(row.outcome or "", "")
    return Line(at=row.created_at, id=row.short_id, outcome=outcome, mark=mark, action=text, **blank)


def _by(row: ApprovalRequest, now: datetime | None = None) -> str:
    """A person only where a person decided."""
    if row.outcome in ("timeout", "notify_failed"):
        return t("console.by.nobody")
    if row.outcome == "cancelled":
        key, values = cause_words(row, now or row.created_at)
        return f"({t(f'ending.cancelled.{key}', **values)})"
    if not row.decided_by:
        return t("console.by.nobody")
    by = row.decided_by[-1]
    if by.type == "grant":
        return t("console.by.grant", grant=by.grant_id or "")
    if by.type == "policy":
        return by.setting or by.rule or t("console.by.policy")
    return people(row.decided_by)


def _ran(row: ApprovalRequest) -> str:
    if row.outcome != "approved":
        return t("console.ran.no")
    ran = row.execution
    if ran.state in ("succeeded", "failed") and ran.exit_code is not None:
        took = duration(((ran.ended_at or row.created_at) - (ran.claimed_at or row.created_at)).total_seconds())
        return t(f"console.ran.{ran.state}", code=str(ran.exit_code), duration=took)
    return t(f"console.state.{ran.state}")


def as_csv(page: Page) -> Iterator[bytes]:
    """The lines for a spreadsheet; a last one says where older ones are left out. A cell that a spreadsheet would take
    for a formula gets a quote before it."""
    heads = ("time", "id", "outcome", "by", "action", "reason", "host", "agent", "session", "ran", "kind")
    yield _cells(heads)
    for line in page.lines:
        cells = (line.at.isoformat(), line.id, line.outcome, line.by, line.action, line.reason, line.where, line.agent)
        yield _cells(tuple(_harmless(cell) for cell in (*cells, line.session, line.ran, line.kind)))
    if page.before is not None:
        yield _cells((t("console.history.csv_cut"),))


def _cells(cells: tuple[str, ...]) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerow(cells)
    return file.getvalue().encode("utf-8", "backslashreplace")


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell

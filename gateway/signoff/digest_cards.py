"""From many requests to one message that lists them: pure, the same three voices as on cards.

Up to five are shown with their action, up to twenty in a line each, more in groups of one rule and host. Whatever is
not whole on the message is in its file; without the file nothing can be approved on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from signoff.actions import one_line, whole_text
from signoff.cards import SEVERITY_MARKS, Facts, claimed, headline_text, story_address, ticking
from signoff.changes.alike import states_of
from signoff.changes.digests import Listed, approvable, face_at
from signoff.clipping import clip, units
from signoff.display import shown
from signoff.durations import clock
from signoff.elicitation import needs_somebody
from signoff.model import ApprovalRequest, Attachment, Block, Button, Card, Copy, Elicitation, Severity, Span
from signoff.statuses import MARKS, results_line
from signoff.tokens import Signer
from signoff.wording import agent_name, cause_words, no_word, people, safe_name, session_name, t

FULL = 5
"""So many are shown with their action, and so many have a button that opens their card."""
LINES = 20
"""So many are named one by one; more are grouped."""
GROUPS = 15
KINDS = 5
"""What a confirmation names; the other kinds are counted together."""
OUTCOMES = 6
"""Status lines; more ways to end are counted together."""
ROOM_UNITS = 250
"""Left free of a message for what escapes and marks add to it."""
TICKS_UNITS = 3
"""What a run of backticks grows by at most where a platform writes it out, since it cannot escape them in code."""
TIME_UNITS = 20
"""A time that the platform shows in each reader's own zone is written so long."""
LINK_UNITS = 6
"""The marks around an address, where a platform writes it into the text."""
REASON_HEAD_UNITS, REASON_TAIL_UNITS = 40, 20
"""Of a person's reason that has no room whole."""
LINE_HEAD_UNITS, LINE_TAIL_UNITS = 45, 20
"""Of an action that stands in one line among many."""
GRAVEST: tuple[Severity, ...] = ("critical", "high", "medium", "low")
_TICKS = re.compile("`+")


class _List(Struct, frozen=True):
    """The listed questions as blocks, and how many of them found no place on the message."""

    blocks: tuple[Block, ...]
    hidden: int = 0


def digest_card(
    digest: Copy,
    listed: Sequence[Listed],
    facts: Facts,
    signer: Signer,
    *,
    max_units: int,
    attach: bool,
    file: Attachment | None,
    lists: bool = False,
) -> Card:
    """The digest as its rows stand. `attach`: the whole texts are in reach; `file` goes with this message; `lists`: its
    whole list can be opened (`digest_list`)."""
    ended = [each for each in listed if each.row.outcome is not None]
    waiting = gravest_first(each for each in listed if each.row.outcome is None)
    whole = attach or not needs_file(listed)
    top = [*_results(ended)]
    if waiting:
        top.append(Block("text", (Span(title_of(waiting), "bold"),)))
    top.append(_line(_who(listed)))
    if any(each.copy.again for each in listed):
        top.append(_line(t("fact.sent_again")))
    foot = _foot(digest, listed, waiting, facts, whole=whole)
    room = max_units - ROOM_UNITS - sum(_size(block) for block in (*top, *foot))
    statuses = _statuses(ended, waiting, facts.now, room // 2)
    body = _listed(waiting or gravest_first(ended), room - sum(_size(block) for block in statuses), facts.console)
    more = [_line(_more(digest, body.hidden, whole=whole))] if body.hidden else []
    return Card(
        blocks=(*statuses, *top, *body.blocks, *more, *foot),
        rows=_rows(digest, waiting, signer, whole=whole, lists=lists) if waiting else (),
        attachment=file,
        silent=all(each.row.severity == "low" for each in listed),
    )


def needs_file(listed: Sequence[Listed]) -> bool:
    """Whether the message alone does not show every action whole."""
    return len(listed) > FULL or any(one_line(each.row.action) != whole_text(each.row.action) for each in listed)


def runs(each: Listed) -> int:
    """How many runs a listed question stands for on the digest's newest revision."""
    return (each.copy.faces[-1].shown if each.copy.faces else 0) + 1


def gravest_first(listed: Iterable[Listed]) -> list[Listed]:
    """The order of a digest's list."""
    return sorted(listed, key=lambda each: GRAVEST.index(each.row.severity))


def _line(text: str) -> Block:
    return Block("text", (Span(text),))


def _size(block: Block) -> int:
    """Units of a block with its line end and the marks around it."""
    return sum(_span_size(span) for span in block.spans) + 10


def _span_size(span: Span) -> int:
    address = units(span.href) + LINK_UNITS if span.href else 0
    return _weight(span.text) + address + (TIME_UNITS if span.at else 0)


def _weight(text: str) -> int:
    """Units of a text on a platform that writes backticks out."""
    return units(text) + TICKS_UNITS * len(_TICKS.findall(text))


# --- the file ------------------------------------------------------------------------------------


def file_name(digest: Copy) -> str:
    """The file with the whole texts, by the time of the digest."""
    return f"requests-{digest.created_at:%H%M}.txt"


def file_part(each: Listed, now: datetime) -> str:
    """One question in the file. The action's lines are indented, so that none of them can pass for a heading."""
    row = each.row
    facts = [
        row.short_id,
        headline_text(row),
        *_host(row),
        agent_name(row),
        session_name(row.session_id),
        row.digest[:8],
    ]
    if row.expires_at is not None:
        facts.append(clock(row.expires_at, now=now))
    lines = [" · ".join(facts), *(f"    {line}" for line in whole_text(row.action).split("\n"))]
    if row.agent_reason:
        lines.append("  " + t("claim.agent", reason=claimed(row.agent_reason)))
    return "\n".join(lines) + "\n"


def file_of(digest: Copy, parts: Sequence[str]) -> Attachment:
    """The parts as one file."""
    return Attachment(file_name(digest), "\n".join(parts).encode("utf-8", "backslashreplace"))


# --- what is listed ------------------------------------------------------------------------------


def title_of(waiting: Sequence[Listed]) -> str:
    """How many wait, and how grave."""
    return t("digest.title", count=sum(runs(each) for each in waiting), counts=_counts(waiting))


def _counts(listed: Sequence[Listed]) -> str:
    """`2 critical, 8 high`."""
    total: Counter[Severity] = Counter()
    for each in listed:
        total[each.row.severity] += runs(each)
    known = [(severity, total[severity]) for severity in GRAVEST if total[severity]]
    return ", ".join(t("digest.counted", count=count, severity=t(f"severity_word.{word}")) for word, count in known)


def _who(listed: Sequence[Listed]) -> str:
    agents = list(dict.fromkeys(agent_name(each.row) for each in listed))
    sessions = list(dict.fromkeys(each.row.session_id for each in listed))
    who = ", ".join(agents[:2])
    if len(agents) > 2:
        who = t("digest.agents", agents=who, count=len(agents) - 2)
    if len(sessions) == 1:
        return f"{who} · {t('who.session', session=session_name(sessions[0]))}"
    return f"{who} · {t('digest.sessions', count=len(sessions))}"


def _listed(listed: Sequence[Listed], room: int, console: str | None) -> _List:
    """The list, with each id as a link to its story: all of them, the first, or none, so that no address keeps a
    question off the message."""
    plain = _list(listed, room, {})
    if console is None:
        return plain
    for count in (len(listed), FULL):
        stories = {each.row.request_id: story_address(console, each.row) for each in listed[:count]}
        linked = _list(listed, room, stories)
        if linked.hidden <= plain.hidden:
            return linked
    return plain


def _list(listed: Sequence[Listed], room: int, stories: Mapping[str, str]) -> _List:
    if len(listed) > LINES:
        return _grouped(listed, room, stories)
    full = list(listed[:FULL]) if len(listed) <= FULL else [e for e in listed[:FULL] if _grave(e)]
    blocks: list[Block] = []
    for number, each in enumerate(full):
        pair = (_entry(each, stories), Block("code", (Span(one_line(each.row.action)),)))
        room -= sum(_size(block) for block in pair)
        if room < 0:
            return _List(tuple(blocks), len(listed) - number)
        blocks += pair
    rest = listed[len(full) :]
    if not rest:
        return _List(tuple(blocks))
    quote, hidden = line_each(rest, room, stories)
    return _List((*blocks, *quote), hidden)


def _grave(each: Listed) -> bool:
    return each.row.severity in ("critical", "high")


def _id(row: ApprovalRequest, stories: Mapping[str, str]) -> Span:
    """The short id, which leads to its story where that has an address."""
    address = stories.get(row.request_id)
    return Span(row.short_id) if address is None else Span(row.short_id, "link", href=address)


def _entry(each: Listed, stories: Mapping[str, str]) -> Block:
    row, count = each.row, runs(each)
    line = headline_text(row, t(f"severity_word.{row.severity}"))
    if units(line) > 100:
        line = _clipped(line, 70, 30)
    values: dict[str, str | int] = {"id": "\x01", "headline": " · ".join((line, *_host(row)))}
    text = t("digest.entry_waiters", count=count, **values) if count > 1 else t("digest.entry", **values)
    before, after = (SEVERITY_MARKS[row.severity] + text).split("\x01", 1)
    return Block("text", (*([Span(before)] if before else []), _id(row, stories), Span(after)))


def _host(row: ApprovalRequest) -> tuple[str, ...]:
    return (safe_name(row.host),) if row.host else ()


def _clipped(text: str, head: int, tail: int) -> str:
    return clip(
        text, head_units=head, tail_units=tail, max_lines=1, note=lambda n: t("clip.hidden_short", count=n)
    ).text


def line_each(rest: Sequence[Listed], room: int, stories: Mapping[str, str]) -> tuple[tuple[Block, ...], int]:
    """A line each in a folded quotation, as many as there is room for, and how many found none."""
    spans = [Span(t("digest.one_line_each", counts=_counts(rest)))]
    room -= _weight(spans[0].text) + 10
    for number, each in enumerate(rest):
        name = (Span(f"\n{SEVERITY_MARKS[each.row.severity]}"), _id(each.row, stories), Span(" "))
        action = Span(_clipped(one_line(each.row.action), LINE_HEAD_UNITS, LINE_TAIL_UNITS), "code")
        tail = "".join(f" · {part}" for part in (*_host(each.row), *([f"×{runs(each)}"] if runs(each) > 1 else [])))
        line = (*name, action, *([Span(tail)] if tail else []))
        room -= sum(map(_span_size, line)) + 6
        if room < 0:
            return (Block("quote", tuple(spans), fold=True),) if number else (), len(rest) - number
        spans += line
    return (Block("quote", tuple(spans), fold=True),), 0


def _grouped(listed: Sequence[Listed], room: int, stories: Mapping[str, str]) -> _List:
    """The first critical ones singly, all others by severity, rule and host."""
    single = [each for each in listed[:FULL] if each.row.severity == "critical"]
    groups: dict[str, list[Listed]] = {}
    for each in listed[len(single) :]:
        line = headline_text(each.row, t(f"severity_word.{each.row.severity}"))
        groups.setdefault(" · ".join((_clipped(line, 70, 30), *_host(each.row))), []).append(each)
    pieces = [(_entry(each, stories), 1) for each in single]
    for line, group in list(groups.items())[:GROUPS]:
        pieces.append((_line(t("digest.group", count=sum(runs(each) for each in group), headline=line)), len(group)))
    blocks, told = [], 0
    for block, count in pieces:
        room -= _size(block)
        if room < 0:
            break
        blocks.append(block)
        told += count
    return _List(tuple(blocks), len(listed) - told)


def _more(digest: Copy, hidden: int, *, whole: bool) -> str:
    if whole:
        return t("pending.more_with_file", count=hidden, file=file_name(digest))
    return t("pending.more", count=hidden)


def _foot(
    digest: Copy, listed: Sequence[Listed], waiting: Sequence[Listed], facts: Facts, *, whole: bool
) -> tuple[Block, ...]:
    """Where the whole texts are, and when the first one expires."""
    blocks = []
    if not whole:
        blocks.append(_line(t("digest.not_attached")))
    elif needs_file(listed):
        blocks.append(_line(t("digest.in_full", count=len(listed), file=file_name(digest))))
    if waiting:
        ends = [end for each in waiting if (end := _end(each.row, facts.now)) is not None]
        never = (Span(t("until.never")),)
        spans = ticking("digest.first_expires", min(ends), facts.now, ticks=facts.ticks) if ends else never
        blocks.append(Block("text", spans))
    return tuple(blocks)


def _end(row: ApprovalRequest, now: datetime) -> datetime | None:
    if row.timeout_s is None:
        return None
    return row.expires_at or now + timedelta(seconds=row.timeout_s)


# --- what became of them -------------------------------------------------------------------------


class _How(Struct, frozen=True):
    """One way in which requests ended: a text of the catalogue with its one value, the segments after the time, and
    the reason that a person gave."""

    outcome: str
    key: str
    name: str
    value: str
    tail: tuple[str, ...] = ()
    reason: str = ""


def _how(row: ApprovalRequest, now: datetime) -> _How:
    by = row.decided_by[0] if row.decided_by else None
    if row.outcome == "approved" and by is not None and by.type == "grant":
        return _How("approved", "approved_grant", "grant", by.grant_id or "")
    question = isinstance(row.action, Elicitation)
    if row.outcome == "approved" and question and by is not None and by.type == "person":
        return _How("approved", "accepted", "person", people(row.decided_by))
    if row.outcome == "approved" and by is not None and by.type == "person":
        once = row.choice in ("once", "once_all")
        return _How("approved", "approved_once" if once else "approved", "person", people(row.decided_by))
    if row.outcome == "denied":
        reason = shown(row.reason, prose=True) if row.reason else ""
        tail: tuple[str, ...] = () if question else (t("ending.not_run"),)
        return _How("denied", no_word(row), "person", people(row.decided_by), tail, reason)
    outcome = row.outcome or "timeout"
    tail = () if question else (t("ending.not_run"),)
    if outcome == "cancelled":
        cause, values = cause_words(row, now)
        tail = (t(f"ending.cancelled.{cause}", **values), *tail)
    return _How(outcome, "ended", "outcome", t(f"outcome_word.{outcome}"), tail)


def _statuses(ended: Sequence[Listed], waiting: Sequence[Listed], now: datetime, room: int) -> list[Block]:
    """One line for each outcome and person, as many as there is room for. A reason too long for it is clipped, so that
    what people typed never keeps the outcome from being shown."""
    groups: dict[_How, list[ApprovalRequest]] = {}
    for each in ended:
        groups.setdefault(_how(each.row, now), []).append(each.row)
    blocks: list[Block] = []
    left = _left(waiting)
    for how, rows in list(groups.items())[:OUTCOMES]:
        tail = (*how.tail, left) if how.outcome == "approved" and left else how.tail
        clipped = _clipped(how.reason, REASON_HEAD_UNITS, REASON_TAIL_UNITS)
        ways = (_status(how, rows, now, tail, reason) for reason in (how.reason, clipped, ""))
        block = next((block for block in ways if _size(block) <= room), None)
        if block is None:
            break
        room -= _size(block)
        blocks.append(block)
        left = "" if how.outcome == "approved" else left
    rest = sum(len(rows) for rows in list(groups.values())[len(blocks) :])
    return [*blocks, _line(t("pending.more", count=rest))] if rest else blocks


def _status(how: _How, rows: Sequence[ApprovalRequest], now: datetime, tail: Sequence[str], reason: str) -> Block:
    at = max(row.decided_at or now for row in rows)
    values: dict[str, str | int] = {how.name: how.value, "count": sum(row.runs for row in rows)}
    spans = [Span(f"{MARKS[how.outcome]} "), Span(t(f"digest.{how.key}", **values), "bold"), Span(" · ")]
    spans.append(Span(clock(at, now=now), "clock", at=at))
    if reason:
        tail = (*tail, t("status.reason_given", reason=reason))
    return Block("text", (*spans, *(Span(f" · {part}") for part in tail)))


def _left(waiting: Sequence[Listed]) -> str:
    if not waiting:
        return ""
    count = sum(runs(each) for each in waiting)
    critical = all(each.row.severity == "critical" for each in waiting)
    return t("digest.left_critical", count=count) if critical else t("digest.left", count=count)


def _results(ended: Sequence[Listed]) -> tuple[Block, ...]:
    """`Succeeded 95, failed 2, running 1.`, once something was started or will not be."""
    approved = [each.row for each in ended if each.row.outcome == "approved"]
    counts: Counter[str] = Counter()
    for row in approved:
        counts.update(states_of(row))
    if not counts or set(counts) == {"none"}:
        return ()
    return (_line(results_line(counts)),)


# --- buttons and the panel -----------------------------------------------------------------------


def _token(copy: Copy, signer: Signer, choice: str) -> str:
    revision = copy.faces[-1].revision if copy.faces else 0
    return signer.token(copy.copy_id, revision, choice, copy.destination.platform, copy.destination.chat_id)


def opener(each: Listed, signer: Signer) -> Button:
    """A question's id, which opens its own card."""
    name = each.row.short_id
    return Button(name, _token(each.copy, signer, "open"), read_as=t("read_as.open", id=name))


def _rows(
    digest: Copy, waiting: Sequence[Listed], signer: Signer, *, whole: bool, lists: bool
) -> tuple[tuple[Button, ...], ...]:
    """The ids of the gravest, and the list of all where there are more; then all of them at once."""
    more = lists and len(waiting) > FULL
    first = tuple(opener(each, signer) for each in waiting[: FULL - more])
    if more:
        first = (*first, turner(digest, signer, t("button.open_list"), 0))
    count = sum(runs(each) for each in waiting)
    deny = Button(t("button.deny_all", count=count), _token(digest, signer, "all_deny"), "danger")
    can = sum(runs(each) for each in waiting if approvable(each.row))
    if not whole or not can:
        return first, (deny,)
    return first, (Button(t("button.approve_listed", count=can), _token(digest, signer, "all_once")), deny)


def turner(digest: Copy, signer: Signer, label: str, skip: int) -> Button:
    """A button that shows the list from one of its places on. The token keeps the place where others keep a revision:
    a list is always that of now."""
    place = digest.destination
    return Button(label, signer.token(digest.copy_id, skip, "list", place.platform, place.chat_id))


def meant(panel: Copy, listed: Sequence[Listed]) -> list[Listed]:
    """What a confirmation opened on a digest would approve: what was on that revision and still waits."""
    revision = panel.faces[-1].revision if panel.faces else 0
    return [each for each in listed if approvable(each.row) and face_at(each.copy, revision) is not None]


def meant_runs(panel: Copy, listed: Sequence[Listed]) -> int:
    """How many runs that is, as the revision counted them."""
    revision = panel.faces[-1].revision if panel.faces else 0
    faces = [face_at(each.copy, revision) for each in meant(panel, listed)]
    return sum(face.shown + 1 for face in faces if face is not None)


def confirm_card(panel: Copy, listed: Sequence[Listed], signer: Signer) -> Card:
    """The second tap before many runs: how many, where, and what they do, the gravest first."""
    which = meant(panel, listed)
    groups: Counter[str] = Counter()
    rank: dict[str, int] = {}
    for each in gravest_first(which):
        text = shown(each.row.description, prose=True)
        groups[text] += 1
        rank.setdefault(text, GRAVEST.index(each.row.severity))
    ordered = sorted(groups.items(), key=lambda group: (rank[group[0]], -group[1]))
    kinds = [t("digest.group", count=count, headline=_clipped(text, 50, 30)) for text, count in ordered[:KINDS]]
    if len(ordered) > KINDS:
        kinds.append(t("pending.more", count=sum(count for _, count in ordered[KINDS:])))
    count = meant_runs(panel, listed)
    lines = [t("digest.confirm", count=count, place=_places(which), groups=", ".join(kinds))]
    if any(each.row.outcome is None and each.row.severity == "critical" for each in listed):
        lines.append(t("digest.critical_stay"))
    single = sum(needs_somebody(each.row.action) for each in listed if each.row.outcome is None)
    if single:
        lines.append(t("digest.single_stay", count=single))
    yes = Button(t("button.confirm_listed", count=count), _token(panel, signer, "confirm"))
    close = Button(t("button.close"), _token(panel, signer, "close"))
    return Card(blocks=tuple(_line(line) for line in lines), rows=((yes,), (close,)) if which else ((close,),))


def _places(listed: Sequence[Listed]) -> str:
    hosts = {each.row.host for each in listed if each.row.host}
    if len(hosts) == 1:
        return safe_name(hosts.pop())
    if hosts:
        return t("digest.hosts", count=len(hosts))
    return ", ".join(list(dict.fromkeys(agent_name(each.row) for each in listed))[:2])

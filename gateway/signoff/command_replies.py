"""What typed commands are answered with, as lines of plain words. Pure; the request's own text is masked in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct

from signoff.actions import one_line
from signoff.cards import text_card
from signoff.changes.answering_all import Answered, Line
from signoff.changes.deciding import Decided
from signoff.changes.grants import by_kind, time_box
from signoff.changes.places import Waiting
from signoff.changes.stopping import Stopped
from signoff.clipping import units
from signoff.display import shown
from signoff.durations import clock
from signoff.elicitation import needs_somebody
from signoff.endings import done_answer
from signoff.grammar import Unknown, Verb
from signoff.kept_words import done_text, executor_name, what
from signoff.model import Actor, ApprovalRequest, Attachment, Card, Grant, Session
from signoff.wording import agent_name, answer_word, granted_label, no_word, person_name, safe_name, session_name, t

MAX_LINES = 20
"""A longer list is cut there, with the count of the rest and the whole in a file."""
MAX_IDS = 20
"""So many ids stand in one line; the rest is counted."""
ROOM_UNITS = 200
"""What a folded list leaves free of a message for the lines after it and for markup."""
REASON_UNITS = 80
"""A longer reason is repeated cut, with the count of the rest."""


class Listing(Struct, frozen=True, kw_only=True):
    """A reply whose middle may be long. Lines may be made when they are shown, since masking thousands takes time."""

    head: tuple[str, ...] = ()
    lines: tuple[str | Callable[[], str], ...] = ()
    foot: tuple[str, ...] = ()
    file: str = "list.txt"
    public: bool = False
    """It tells what changed, so the whole place reads it; lists and refusals are for who asked."""


def listing_card(listing: Listing, max_units: int) -> Card:
    """The reply as one message: at most 20 lines and `max_units`, the whole in a file where it is longer."""
    lines = [line if isinstance(line, str) else line() for line in listing.lines]
    kept = _fitting(listing, lines, max_units)
    if kept == len(lines):
        return text_card([*listing.head, *lines, *listing.foot])
    more = t("pending.more_with_file", count=len(lines) - kept, file=listing.file)
    whole = "\n".join((*listing.head, *lines, *listing.foot)) + "\n"
    file = Attachment(listing.file, whole.encode("utf-8", "replace"))
    return text_card([*listing.head, *lines[:kept], more, *listing.foot], file=file)


def _fitting(listing: Listing, lines: Sequence[str], max_units: int) -> int:
    room = max_units - ROOM_UNITS - sum(units(line) + 1 for line in (*listing.head, *listing.foot))
    kept = 0
    for line in lines[:MAX_LINES]:
        room -= units(line) + 1
        if room < 0:
            break
        kept += 1
    return kept


def ids(names: Iterable[str]) -> str:
    """Ids in a line, the first twenty."""
    known = list(names)
    text = ", ".join(known[:MAX_IDS])
    rest = len(known) - MAX_IDS
    return f"{text}, {t('pending.more', count=rest)}" if rest > 0 else text


def numbered(row: ApprovalRequest, runs: int) -> str:
    """The id, with its runs where there are several."""
    return t("stop.item_runs", id=row.short_id, count=runs) if runs > 1 else row.short_id


def counted_runs(row: ApprovalRequest) -> int:
    """How many runs a question stands for, or stood for when it ended."""
    return row.waiters + 1 if row.outcome is None else row.asked_runs


# --- one request ---------------------------------------------------------------------------------


def decided_text(decided: Decided, now: datetime, prefix: str) -> str:
    """What the person is told whose command counted."""
    row = decided.row
    if decided.how == "won" and row.stages is not None:
        return _kept_decided(row)
    if decided.how == "won" and row.asked_runs == 1:
        if row.outcome == "denied" and (not row.reason or units(row.reason) <= REASON_UNITS):
            reason = shown(row.reason, prose=True) if row.reason else ""
            key = f"reply.decided_{'decline' if no_word(row) == 'declined' else 'deny'}{'_reason' if reason else ''}"
            return t(key, id=row.short_id, **({"reason": reason} if reason else {}))
        if row.outcome == "approved" and row.choice == "once":
            return t("reply.decided_accept" if answer_word(row) == "accepted" else "reply.decided", id=row.short_id)
        if row.outcome == "approved" and decided.grant is not None:
            return _granted(row, decided.grant, now, prefix)
    return f"{row.short_id}: {done_answer(decided, now, prefix)}"


def _kept_decided(row: ApprovalRequest) -> str:
    if row.outcome == "approved":
        return t("reply.decided_kept", id=row.short_id, executor=executor_name(row))
    return t("reply.decided_kept_deny", id=row.short_id) if not row.reason else f"{row.short_id}: {done_text(row)}"


def _granted(row: ApprovalRequest, grant: Grant, now: datetime, prefix: str) -> str:
    values: dict[str, str | int] = {
        "id": row.short_id,
        "label": granted_label(row, row.choice or "once"),
        "prefix": prefix,
        "grant": grant.grant_id,
    }
    if time_box(row.choice or ""):
        values["clock"] = clock(grant.expires_at or now, now=now)
        return t("reply.decided_time_box", **values)
    return t(f"reply.decided_{row.choice}", **values)


def pending_line(row: ApprovalRequest, now: datetime) -> str:
    """One question that waits: id, severity, action, who asks, how many wait, until when."""
    values: dict[str, str | int] = {
        "id": row.short_id,
        "severity": t(f"severity_word.{row.severity}"),
        "action": one_line(row.action),
        "agent": agent_name(row),
    }
    key = "pending.line"
    if row.stages is not None:
        key, values["action"] = "pending.line_kept", what(row)
    if row.expires_at is None:
        key = f"{key}_no_end"
    else:
        values["clock"] = clock(row.expires_at, now=now)
    if row.waiters:
        key, values["count"] = f"{key}_waiters", row.waiters + 1
    return t(key, **values)


def _pending_lines(waiting: Sequence[Waiting], now: datetime) -> tuple[Callable[[], str], ...]:
    return tuple(partial(pending_line, each.row, now) for each in waiting)


def threads_foot(in_threads: int) -> tuple[str, ...]:
    """The line about what waits in threads of this chat."""
    return (t("pending.thread", count=in_threads),) if in_threads else ()


def pending_listing(waiting: Sequence[Waiting], in_threads: int, now: datetime) -> Listing:
    """Everything that waits in a place."""
    runs = sum(each.row.waiters + 1 for each in waiting)
    title = t("pending.title", count=runs, cards=t("pending.cards", count=len(waiting)))
    return Listing(head=(title,), lines=_pending_lines(waiting, now), foot=threads_foot(in_threads), file="pending.txt")


def several_listing(waiting: Sequence[Waiting], verb: Verb, now: datetime, prefix: str) -> Listing:
    """Nothing was decided, since it was not said which."""
    several = len(waiting) > 1
    foot = (t(f"reply.several_all_{verb}", prefix=prefix),) if several and verb != "why" else ()
    runs = sum(each.row.waiters + 1 for each in waiting) if several else 1
    return Listing(
        head=(t("reply.several", count=runs),), lines=_pending_lines(waiting, now), foot=foot, file="pending.txt"
    )


def unknown_id(word: str, waiting: Sequence[Waiting]) -> str:
    """An id that is none, with those that wait here."""
    name = safe_name(word)
    if not waiting:
        return t("reply.unknown_id_none", id=name)
    return t("reply.unknown_id", id=name, ids=ids(each.row.short_id for each in waiting))


def not_understood(typed: Unknown, prefix: str) -> str:
    """A verb that is none."""
    word = safe_name(typed.word)
    if typed.near is None:
        return t("reply.not_understood", word=word, prefix=prefix)
    return t("reply.not_understood_near", word=word, prefix=prefix, near=typed.near)


# --- all of them ---------------------------------------------------------------------------------


def all_listing(answered: Answered, by: Actor, choice: str, in_threads: int, now: datetime) -> Listing:
    """Each result of approve all or deny all, and what was left with the reason."""
    done = [line for line in answered.lines if line.left is None]
    return Listing(
        head=(_all_title(answered, done, by, choice, now),),
        lines=tuple(partial(_all_line, line, choice, now) for line in answered.lines),
        foot=threads_foot(in_threads),
        file="deny-all.txt" if choice == "deny" else "approve-all.txt",
    )


def _all_title(answered: Answered, done: Sequence[Line], by: Actor, choice: str, now: datetime) -> str:
    runs = sum(line.row.runs for line in done)
    total = runs + sum(counted_runs(line.row) for line in answered.lines if line.left is not None)
    values: dict[str, str | int] = {"person": person_name(by), "clock": clock(now, now=now), "count": total}
    if choice == "deny":
        return t("all.title_deny", denied=runs, **values)
    grants = [line.grant_id for line in done if line.grant_id]
    if grants:
        return t("all.title_approve_grants", approved=runs, grants=ids(grants), **values)
    return t("all.title_approve", approved=runs, **values)


def _all_line(line: Line, choice: str, now: datetime) -> str:
    row = line.row
    if line.left is None:
        word = answer_word(row)
        if row.runs > 1:
            return t(f"all.{word}_runs", id=row.short_id, count=row.runs, action=one_line(row.action))
        return t(f"all.{word}", id=row.short_id, action=one_line(row.action))
    name = numbered(row, counted_runs(row))
    if line.left == "not_offered" and needs_somebody(row.action):
        return t("all.left_own_answer", id=name)
    if line.left == "ended":
        return _left_ended(row, name, now)
    values: dict[str, str | int] = {"id": name}
    if line.left == "not_offered":
        values["choice"] = choice
    if line.left == "votes":
        values |= {"agreed": sum(v.choice != "deny" for v in row.votes), "needed": row.threshold}
    return t(f"all.left_{line.left}", **values)


def _left_ended(row: ApprovalRequest, name: str, now: datetime) -> str:
    by = row.decided_by[-1] if row.decided_by else None
    if row.outcome in ("approved", "denied") and by is not None and by.type in ("person", "grant"):
        when = clock(row.decided_at or now, now=now)
        return t(f"all.left_{answer_word(row)}", id=name, person=person_name(by), clock=when)
    return t("all.left_ended", id=name, outcome=t(f"outcome_word.{answer_word(row)}"))


# --- stop and new --------------------------------------------------------------------------------


def stopped_lines(by: Actor, session: Session, stopped: Stopped, now: datetime, prefix: str) -> list[str]:
    """What a stop ended, what is void, and what still runs."""
    title = t("stop.title", person=person_name(by), session=session_name(session.session_id), clock=clock(now, now=now))
    lines = [title]
    if stopped.cancelled:
        lines.append(t("stop.cancelled", ids=_cancelled(stopped)))
    lines += _void_and_running(stopped, now)
    if len(lines) == 1:
        lines.append(t("stop.nothing"))
    if stopped.grants:
        lines.append(t("stop.grants", count=stopped.grants, prefix=prefix))
    if session.bypass_until is not None and session.bypass_until > now:
        lines.append(t("reply.yolo_off", person=person_name(by)))
    return lines


def new_lines(by: Actor, session: Session, stopped: Stopped, now: datetime, *, named: bool) -> list[str]:
    """What a fresh start ended. `named`: there were several sessions, so each is named."""
    key = "reply.new" if stopped.cancelled else "reply.new_none"
    if session.bypass_until is not None and session.bypass_until > now:
        key += "_bypass"
    values: dict[str, str | int] = {"count": stopped.grants}
    if stopped.cancelled:
        values["ids"] = _cancelled(stopped)
    lines = [t(key, **values), *_void_and_running(stopped, now)]
    if named:
        name, at = session_name(session.session_id), clock(now, now=now)
        lines.insert(0, t("stop.title", person=person_name(by), session=name, clock=at))
    return lines


def _cancelled(stopped: Stopped) -> str:
    """The cancelled ids; those that waited on another's card are counted with it."""
    runs = {row.request_id: 1 for row in stopped.cancelled if row.leader_id is None}
    rows = [row for row in stopped.cancelled if row.leader_id is None]
    for row in stopped.cancelled:
        if row.leader_id in runs:
            runs[row.leader_id] += 1
        elif row.leader_id is not None:
            runs[row.request_id] = 1
            rows.append(row)
    return ids(numbered(row, runs[row.request_id]) for row in rows)


def _void_and_running(stopped: Stopped, now: datetime) -> list[str]:
    lines = []
    if stopped.voided:
        lines.append(t("stop.void", ids=ids(row.short_id for row in stopped.voided)))
    for row in stopped.running[:MAX_LINES]:
        since = clock(row.execution.claimed_at or now, now=now)
        host = safe_name(row.host) if row.host else agent_name(row)
        lines.append(t("stop.running", id=row.short_id, action=one_line(row.action), clock=since, host=host))
    if len(stopped.running) > MAX_LINES:
        lines.append(t("pending.more", count=len(stopped.running) - MAX_LINES))
    return lines


# --- grants and help -----------------------------------------------------------------------------


def scope_words(grant: Grant, now: datetime) -> str:
    """How far a grant reaches, for people."""
    if grant.scope == "time_box":
        return t("scope.time_box", clock=clock(grant.expires_at or now, now=now))
    return t(f"scope.{grant.scope}")


def grant_words(grant: Grant) -> str:
    """What a grant allows: all of a kind, or the one action it was given for."""
    return grant.label if by_kind(grant) or not grant.shown else grant.shown


def grants_listing(grants: Sequence[Grant], now: datetime, prefix: str) -> Listing:
    """What is allowed in advance: id, scope, the action it was given for, who gave it and when."""
    if not grants:
        return Listing(head=(t("grants.none"),))
    lines = tuple(_grant_line(grant, now) for grant in grants)
    return Listing(lines=lines, foot=(t("grants.foot", prefix=prefix),), file="grants.txt")


def _grant_line(grant: Grant, now: datetime) -> str:
    given = clock(grant.created_at, now=now)
    values: dict[str, str | int] = {
        "grant": grant.grant_id,
        "label": grant_words(grant),
        "person": person_name(grant.by),
        "clock": given,
    }
    if grant.scope == "time_box":
        values["end"] = clock(grant.expires_at or now, now=now)
    if grant.used_at is None:
        return t(f"grants.{grant.scope}", **values)
    return t(f"grants.{grant.scope}_used", count=grant.uses, last=clock(grant.used_at, now=now), **values)


def revoked_text(grant: Grant, now: datetime) -> str:
    """What is told once a grant is gone."""
    return t("reply.revoked", grant=grant.grant_id, scope=scope_words(grant, now), label=grant_words(grant))


def help_lines(prefix: str, platform: str, user_id: str, person: str | None) -> list[str]:
    """Every command in a line; `person` is the reader's name where they may decide here."""
    verbs = ("approve", "deny", "pending", "why", "undo", "stop", "new", "grants", "revoke", "yolo")
    lines = [t("help.title"), *(t(f"help.{verb}", prefix=prefix) for verb in verbs), t("help.without_id")]
    if platform == "slack":
        lines.append(t("help.slack"))
    user = safe_name(user_id)
    lines.append(t("help.you_may", person=person, user=user) if person else t("help.you_may_not", user=user))
    return lines

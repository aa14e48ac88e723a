"""One request's story: asked, judged why, shown where, refused to whom, decided by whom, started, ran."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from signoff.console.judged import Judged, judged
from signoff.display import shown
from signoff.durations import duration
from signoff.endings import user_summary
from signoff.kept_words import executor_name
from signoff.model import Actor, ApprovalRequest, Copy, Event, replace
from signoff.ports import Store
from signoff.rows import request_key
from signoff.settings import Profile
from signoff.statuses import execution_line
from signoff.wording import agent_name, answer_word, people, person_name, safe_name, session_name, t

PAGE, MOST_EVENTS = 1000, 20_000
"""So much of the log of a session is read from when a request was asked, and again from when it was answered."""

SKEW = timedelta(minutes=1)
"""By how much the clocks of gateways on one store may differ."""


class Step(Struct, frozen=True, kw_only=True):
    """One line of the story."""

    at: datetime
    word: str
    text: str
    more: tuple[str, ...] = ()
    judged: Judged | None = None
    link: str = ""
    """The short id of another request that it is about."""
    timed: bool = False
    """Whether its text names times in our own words alone, so that a page may tell them in its reader's zone."""


async def events_of(store: Store, row: ApprovalRequest) -> list[Event]:
    """What the log tells of one request, in order. The log of its session may be long before it and after it."""
    found: list[Event] = []
    after = 0
    for at in (row.created_at, row.decided_at):
        if at is None:
            break
        after = max(after, await _last_before(store, row.profile, at - SKEW))
        for _ in range(MOST_EVENTS // PAGE):
            page = await store.events(row.profile, after, limit=PAGE, session_id=row.session_id)
            found += [event for event in page if event.request_id == row.request_id]
            if len(page) < PAGE:
                return found
            after = page[-1].seq
    return found


async def _last_before(store: Store, profile: str, at: datetime) -> int:
    """The number of the last event before a time, by halving the log; 0 where there is none."""
    low, high = 0, await store.last_seq(profile)
    while high > PAGE and low < high:
        middle = (low + high) // 2
        event = next(iter(await store.events(profile, middle, limit=1)), None)
        if event is None or event.at >= at:
            high = middle
        else:
            low = event.seq
    return low


async def copies_of(store: Store, row: ApprovalRequest) -> list[Copy]:
    """The cards that ask for it; of one that was run again those that the newest took over."""
    while row.again_as and row.superseded_by is not None:
        newer = await store.get(ApprovalRequest, request_key(row.profile, row.superseded_by))
        if newer is None:
            break
        row = newer
    key = request_key(row.profile, row.leader_id or row.request_id)
    return [copy for copy in await store.find(Copy, "request", key, limit=200) if copy.kind == "card"]


async def newer_id(store: Store, row: ApprovalRequest) -> str:
    """The short id of the request whose card this one waits on; empty for one with a card of its own."""
    if row.leader_id is None:
        return ""
    leader = await store.get(ApprovalRequest, request_key(row.profile, row.leader_id))
    return leader.short_id if leader is not None else ""


def steps(
    row: ApprovalRequest,
    copies: Sequence[Copy],
    events: Sequence[Event],
    now: datetime,
    profile: Profile,
) -> list[Step]:
    """The story in order of time. Pure."""
    told = [_again(row)] if row.again_of else [_asked(row), _judged(row, profile)]
    told += [step for copy in copies for step in _shown(row, copy)]
    told += [_refused(event) for event in events if event.type == "tap.refused"]
    told += [_revealed(event) for event in events if event.type == "approval.revealed"]
    told += [_vote(row, event) for event in events if event.type == "approval.vote"]
    told += [
        Step(at=event.at, word=t("console.step.promoted"), text=t("console.story.promoted"))
        for event in events
        if event.type == "approval.promoted"
    ]
    told += [_repeated(row, event) for event in events if event.type == "approval.repeated"]
    told += [_lifted(row, event) for event in events if event.type == "approval.lifted"]
    told += [_wanted(row, event) for event in events if event.type == "approval.ask_again"]
    told += _ended(row, now)
    told += _ran(row, events, now)
    return sorted(told, key=lambda step: step.at)


def _asked(row: ApprovalRequest) -> Step:
    parts = [agent_name(row), t("who.session", session=session_name(row.session_id))]
    if row.turn_id:
        parts.append(t("console.story.turn", turn=safe_name(row.turn_id)))
    if row.requested_by:
        parts.append(t("who.requester", requester=safe_name(row.requested_by)))
    elif row.claimed_for:
        parts.append(t("claim.requester", requester=safe_name(row.claimed_for)))
    return Step(at=row.created_at, word=t("console.step.asked"), text=" · ".join(parts))


def _again(row: ApprovalRequest) -> Step:
    """Nobody asked for it and nothing was judged: a person wanted the run of an older one repeated."""
    text = t("console.story.again", person=people(row.decided_by), id=row.again_of)
    return Step(at=row.created_at, word=t("console.step.again"), text=text, link=row.again_of)


def _judged(row: ApprovalRequest, profile: Profile) -> Step:
    born = row.outcome in ("blocked", "staged") or any(by.type in ("policy", "grant") for by in row.decided_by)
    asks = t("console.story.kept" if row.stages is not None else "console.story.asks_person")
    text = user_summary(row, row.created_at) if born and row.outcome else asks
    tree = judged(row, profile)
    return Step(at=row.created_at, word=t("console.step.judged"), text=text, link=row.kept_short, judged=tree)


def _shown(row: ApprovalRequest, copy: Copy) -> list[Step]:
    place = safe_name(str(copy.destination))
    if copy.sent_at is not None and row.again_of and copy.created_at < row.created_at:
        text = t("console.story.taken_over", place=place, id=row.again_of)
        return [Step(at=row.created_at, word=t("console.step.shown"), text=text)]
    if copy.sent_at is not None:
        took = duration(max((copy.sent_at - copy.created_at).total_seconds(), 0.0))
        text = t("console.story.shown", place=place, duration=took)
        return [Step(at=copy.sent_at, word=t("console.step.shown"), text=text)]
    if copy.state == "failed" or copy.error:
        why = shown(copy.error or "", prose=True)
        text = t("console.story.not_shown", place=place, cause=why)
        return [Step(at=copy.first_attempt_at or copy.created_at, word=t("console.step.not_shown"), text=text)]
    if copy.state in ("queued", "sending"):
        text = t("console.story.queued", place=place)
        return [Step(at=copy.created_at, word=t("console.step.queued"), text=text)]
    return []


def _refused(event: Event) -> Step:
    data = event.data
    name = safe_name(str(data.get("name") or ""))
    account = safe_name(f"{data.get('platform', '')} {data.get('user_id', '')}")
    who = t("who.unbound", name=name, account=account) if name else account
    why = str(data.get("why", "unknown"))
    known = f"console.why_refused.{why}"
    text = t("console.story.refused", who=who, why=t(known) if why in WHY_REFUSED else safe_name(why))
    return Step(at=event.at, word=t("console.step.refused"), text=text)


def _revealed(event: Event) -> Step:
    data = event.data
    who = safe_name(str(data.get("principal") or data.get("key_id") or ""))
    return Step(at=event.at, word=t("console.step.revealed"), text=t("console.story.revealed", person=who))


def _repeated(row: ApprovalRequest, event: Event) -> Step:
    """The same was asked for again, and this denial was the answer."""
    text = t("console.story.repeated", person=people(row.decided_by))
    short = safe_name(str(event.data.get("repeat_short", "")))
    return Step(at=event.at, word=t("console.step.repeated"), text=text, link=short)


def _lifted(row: ApprovalRequest, event: Event) -> Step:
    who = person_name(row.lifted_by) if row.lifted_by is not None else ""
    return Step(at=event.at, word=t("console.step.lifted"), text=t("status.lifted", person=who))


def _wanted(row: ApprovalRequest, event: Event) -> Step:
    who = person_name(row.wanted_by) if row.wanted_by is not None else ""
    return Step(at=event.at, word=t("console.step.wanted"), text=t("console.catch_up.wanted", person=who))


WHY_REFUSED = frozenset(
    {"nobody", "not_listed", "guest", "scope", "forged", "unknown", "moved", "late", "replaced", "others_panel",
     "second_hand"}
)  # fmt: skip
"""The reasons that have words of their own."""


def _vote(row: ApprovalRequest, event: Event) -> Step:
    vote = next((each for each in row.votes if each.at == event.at), None)
    text = person_name(vote.by) if vote is not None else ""
    return Step(at=event.at, word=t("console.step.vote"), text=text)


def _ended(row: ApprovalRequest, now: datetime) -> list[Step]:
    if row.outcome is None or row.decided_at is None:
        return []
    more = []
    if row.decided_by and not row.again_of and all(by.type == "person" for by in row.decided_by):
        by = row.decided_by[-1]
        via = _via(by)
        took = duration(max((row.decided_at - row.created_at).total_seconds(), 0.0))
        more.append(t("console.story.answered", person=people(row.decided_by), via=via, duration=took))
    if row.grant_id:
        more.append(t("console.story.grant", grant=row.grant_id))
    word = t(f"outcome_word.{answer_word(row)}")
    text, timed = user_summary(row, now), row.reason is None
    return [Step(at=row.decided_at, word=word, text=text, more=tuple(more), timed=timed)]


def _via(by: Actor) -> str:
    """Where and how somebody answered."""
    if by.via in ("button", "command", "approve_all"):
        return t(f"console.via.{by.via}", place=(by.platform or "").capitalize())
    return t(f"console.via.{by.via}") if by.via else "–"


def _was_unknown(row: ApprovalRequest, event: Event) -> bool:
    """Whether nobody knew for a while how it had ended, and the row tells of what came after that."""
    lost = event.type == "approval.execution" and event.data.get("state") == "unknown"
    return lost and row.execution.state != "unknown"


def _unknown(row: ApprovalRequest, event: Event, now: datetime) -> Step:
    cause = str(event.data.get("cause") or "") or None
    then = replace(row.execution, state="unknown", cause=cause, ended_by=None, ended_at=event.at)
    line = execution_line(replace(row, execution=then), now)
    return Step(at=event.at, word=t("console.state.unknown"), text=line, timed=True)


def _ran(row: ApprovalRequest, events: Sequence[Event], now: datetime) -> list[Step]:
    if row.outcome != "approved":
        return []
    ran, told = row.execution, []
    if ran.claimed_at is not None:
        who = t("console.story.executor", executor=executor_name(row)) if row.stages is not None else agent_name(row)
        text = t("console.story.started", agent=who, digest=row.digest[:8])
        told.append(Step(at=ran.claimed_at, word=t("console.step.started"), text=text))
    told += [_unknown(row, event, now) for event in events if _was_unknown(row, event)]
    if ran.ended_at is not None:
        line = execution_line(row, now)
        link = row.again_as if ran.state == "unknown" else ""
        told.append(Step(at=ran.ended_at, word=t(f"console.state.{ran.state}"), text=line, link=link, timed=True))
    return told

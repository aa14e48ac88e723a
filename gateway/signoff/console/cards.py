"""What one question says on the pages: its parts as words, and the answers that may be given. Pure.

Unlike a card in a chat it shows the whole action, so that approving stands beside all that is approved. One that is
too long for a list of questions is cut there, bears no approving button, and leads to its own page.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from signoff import elicitation
from signoff.actions import plain_text, whole_text
from signoff.cards import REASONS, denied_before, headline_text
from signoff.changes.common import unsure
from signoff.changes.deciding import offered
from signoff.changes.grants import time_box
from signoff.clipping import clip
from signoff.console.about import About, about
from signoff.console.judged import judged
from signoff.console_adapter import PLATFORM
from signoff.display import shown
from signoff.durations import clock, window
from signoff.elicitation_form import Field, field_hint, fields_to_show
from signoff.elicitation_page import host_of, page_of
from signoff.kept_words import executor_missing, executor_name, kept_line
from signoff.model import Action, ApprovalRequest, Code, Command, Elicitation, Rule, Severity, Span, Tool
from signoff.settings import Profile
from signoff.statuses import MARKS, Band, after_lines, band, runs_line, status_blocks
from signoff.visible import invisible_count, lookalikes
from signoff.wording import (
    PlaceTitle,
    agent_name,
    always_words,
    because_label,
    deny_label,
    granted_label,
    once_label,
    person_name,
    safe_name,
    session_name,
    t,
)

LISTED_CHARS = 16_000
"""A longer action is whole on its own page only: a list of such would hide what stands below it."""
SHAPES: dict[Severity, str] = {"low": "○", "medium": "◐", "high": "▲", "critical": "■"}
RANKS: dict[Severity, int] = {"critical": 0, "high": 1, "medium": 2, "low": 3}
_KEYBOARDS = {"integer": "numeric", "number": "decimal", "email": "email", "uri": "url"}
"""What a phone shows for a field, by its format or kind."""
BOX = "30m"

May = Literal["decide", "look"]
Stays = Literal["critical", "kept", "own", "no_text"]


class Offer(Struct, frozen=True, kw_only=True):
    """A wider answer with the sentence that says how wide."""

    choice: str
    label: str
    sentence: str


class FieldView(Struct, frozen=True, kw_only=True):
    """One field of a form. `input` is `text`, `date`, `select`, or `checks` for a choice of several; `mode` is the
    keyboard that a phone shows for it. `options` are values with their labels, and `chosen` are those set already."""

    name: str
    input: str
    label: str
    hint: str
    required: bool
    value: str
    options: tuple[tuple[str, str], ...]
    mode: str = ""
    chosen: tuple[str, ...] = ()


class CardView(Struct, frozen=True, kw_only=True):
    """One question, in words. Lists of sentences are in the order they are read."""

    id: str
    short_id: str
    digest: str
    severity: Severity
    pending: bool
    version: int
    """Rises with each change, so that a page never goes back to an older state."""
    outcome: str
    headline: str
    host: str
    cwd: str
    code: str
    whole: bool
    """Whether `code` is the whole action."""
    facts: tuple[str, ...]
    claims: tuple[str, ...]
    who: str
    expires_at: datetime | None
    until: str
    verdict: str
    after: tuple[str, ...]
    """What became of it, line by line."""
    band: Band
    """The colour of both."""
    grant_id: str
    once: str
    """The label of the plain approval; empty where it is not on offer."""
    deny: tuple[str, str, str]
    """The labels of the plain no, of the no with a reason where it is opened, and of that one's button."""
    once_all: str
    page: str
    """The page that a server's question asks to be opened."""
    fields: tuple[FieldView, ...]
    """What a server's question asks to be filled in, beside the plain approval."""
    offers: tuple[Offer, ...]
    can_wait: bool
    can_undo: bool
    can_ask_again: bool
    can_settle: bool
    """Whether people are asked what became of a kept action of which nobody knows it."""
    kept: tuple[Span, ...]
    """Of a kept action that waits: since when, who went on without it, and what approving does."""
    repeats: str
    """The short id of the request whose denial was the answer to this one too."""
    box: Offer | None
    """A time box that stands in the open, for what people approve often."""
    decides: bool
    about: About | None
    """Who, when, why and so on; None where nobody reads it there."""
    counted: int
    upto: int
    singly: bool
    """Whether approving all that are listed leaves it."""
    places: tuple[str, ...]

    @property
    def shape(self) -> str:
        """The severity for who does not see its colour."""
        return SHAPES[self.severity]

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """The one-tap reasons of a denial, each with its label."""
        return tuple((name, t(f"button.{name}")) for name in REASONS)

    @property
    def page_host(self) -> str:
        """The host of that page."""
        return host_of(self.page) if self.page else ""

    @property
    def verdict_mark(self) -> str:
        """The mark of how it ended."""
        return MARKS.get(self.outcome, "")

    @property
    def waits(self) -> int:
        """How many runs wait for the answer."""
        return self.counted + 1 if self.pending else 0


class Beside(Struct, frozen=True, kw_only=True):
    """What a view needs beside the request's own row."""

    now: datetime
    title: PlaceTitle
    parent: str | None = None
    """The parent's agent, for a child's question."""
    next_of: ApprovalRequest | None = None
    denied_like: ApprovalRequest | None = None
    denial: ApprovalRequest | None = None
    """Of a denied one: the request that a person denied, itself or the one that it repeats."""
    holds: bool = False
    """Whether that denial would still answer the same action."""
    profile: Profile | None = None
    """The settings, with the operator's own rules."""
    executor_missing: bool = False
    """Whether it is kept and has not started, and no gateway has its executor now."""


def card_view(row: ApprovalRequest, beside: Beside, *, may: May, mine: bool, listed: bool) -> CardView:
    """The view of `row`. `mine`: this reader may take the approval back. `listed`: among others, so not too long."""
    code, whole = _action(row, listed=listed)
    pending = row.outcome is None
    decides = pending and may == "decide"
    approving = offered(row) if whole and decides else ()
    fields = _fields(row) if "once" in approving else ()
    verdict, after = _status(row, beside)
    return CardView(
        id=row.request_id,
        short_id=row.short_id,
        digest=row.digest,
        severity=row.severity,
        pending=pending,
        version=row.card_version,
        outcome=row.outcome or "",
        headline=headline_text(row),
        host=safe_name(row.host) if row.host else "",
        cwd=shown(getattr(row.action, "cwd", None) or "", prose=True),
        code=_beside_form(row.action) if fields else code,
        whole=whole,
        facts=tuple(_facts(row, beside)),
        claims=tuple(_claims(row)),
        who=_who(row, beside.parent),
        expires_at=row.expires_at if pending else None,
        until=_until(row, beside.now),
        verdict=verdict,
        after=after,
        band=band(row, after[-1] if after else ""),
        grant_id=row.grant_id or "",
        once=once_label(row, row.waiters + 1) if "once" in approving else "",
        deny=_denying(row),
        page=page_of(row),
        fields=fields,
        once_all=t("button.once_all", count=row.waiters + 1) if "once_all" in approving and row.waiters else "",
        offers=tuple(_offers(row, approving)),
        can_wait=row.expires_at is not None,
        can_undo=mine and undoable(row),
        can_ask_again=may == "decide" and beside.holds and (not listed or _asked_again_since(row)),
        can_settle=may == "decide" and unsure(row),
        kept=_kept(row, beside),
        repeats=row.repeat_short if row.outcome == "denied" else "",
        box=_box(row) if _offers_box(row, approving) else None,
        decides=decides,
        about=_about(row, beside) if decides or not listed else None,
        counted=row.waiters,
        upto=row.last_follow_no,
        singly=stays(row) is not None,
        places=tuple(safe_name(str(place)) for place in row.delivered_to if place.platform != PLATFORM),
    )


def _about(row: ApprovalRequest, beside: Beside) -> About:
    who, until = _who(row, beside.parent), _until(row, beside.now)
    return about(row, judged(row, beside.profile or Profile(), reaching=False), who=who, until=until, now=beside.now)


def undoable(row: ApprovalRequest) -> bool:
    """Whether the approval can still be taken back: a person gave it and nothing has started."""
    return (
        row.outcome == "approved"
        and row.execution.state == "none"
        and any(actor.type == "person" for actor in row.decided_by)
    )


def needs_second_step(row: ApprovalRequest, choice: str) -> bool:
    """Critical takes a second step for any approval; a standing grant for code or tools takes one too."""
    wide = choice == "always" and isinstance(row.action, Code | Tool)
    return choice != "deny" and (row.severity == "critical" or wide)


def _action(row: ApprovalRequest, *, listed: bool) -> tuple[str, bool]:
    text = whole_text(row.action)
    if not listed or len(text) <= LISTED_CHARS:
        return text, True
    return clip(text, note=lambda n: t("clip.hidden_with_link", count=n)).text, False


def _beside_form(action: Action) -> str:
    """A server's question without its fields, which stand in the form."""
    return shown(elicitation.words(action, with_fields=False), prose=True) if isinstance(action, Elicitation) else ""


def long_action(row: ApprovalRequest) -> bool:
    """Whether it is so long that it is approved beside its whole text only, which no list shows."""
    return len(plain_text(row.action)) > LISTED_CHARS


def stays(row: ApprovalRequest) -> Stays | None:
    """Why approving all that are listed leaves this one; None where it is approved with them."""
    if row.severity == "critical":
        return "critical"
    if row.stages is not None:
        return "kept"
    if elicitation.needs_somebody(row.action) or "once" not in row.choices:
        return "own"
    return "no_text" if long_action(row) else None


def _facts(row: ApprovalRequest, beside: Beside) -> list[str]:
    """A line each, only when true."""
    lines = []
    if row.outcome is None and row.waiters:
        lines.append(t("fact.waiting", count=row.waiters + 1))
    before = beside.next_of
    if before is not None and before.decided_by:
        when = clock(before.decided_at or beside.now, now=beside.now)
        person = person_name(before.decided_by[0])
        lines.append(t("fact.next_of", count=before.asked_runs, person=person, clock=when))
    if beside.denied_like is not None and beside.denied_like.decided_by:
        lines.append(denied_before(row, beside.denied_like, beside.now))
    raw = plain_text(row.action)
    unseen = invisible_count(raw)
    if unseen:
        lines.append(t("fact.invisible", count=unseen))
    alike = lookalikes(raw)
    if alike:
        lines.append(t("fact.lookalikes", letters=", ".join(alike[:5])))
    return lines


def _claims(row: ApprovalRequest) -> list[str]:
    lines = []
    if row.agent_reason:
        lines.append(t("claim.agent", reason=_said(row.agent_reason)))
    if isinstance(row.action, Rule):
        lines.append(t("claim.plugin", reason=_said(row.action.reason)))
    return lines


def _said(reason: str) -> str:
    return " ".join(shown(reason, prose=True).split("\n"))


def _who(row: ApprovalRequest, parent: str | None) -> str:
    agent = agent_name(row)
    if parent:
        agent = t("who.child", agent=agent, parent=safe_name(parent))
    parts = [agent, t("who.session", session=session_name(row.session_id))]
    if row.requested_by:
        parts.append(t("who.requester", requester=safe_name(row.requested_by)))
    elif row.claimed_for:
        parts.append(t("claim.requester", requester=safe_name(row.claimed_for)))
    return " · ".join(parts)


def _until(row: ApprovalRequest, now: datetime) -> str:
    if row.outcome is not None:
        return ""
    if row.timeout_s is None:
        return t("until.never")
    at = row.expires_at or now + timedelta(seconds=row.timeout_s)
    return t("until.expires_at", clock=clock(at, now=now))


def _status(row: ApprovalRequest, beside: Beside) -> tuple[str, tuple[str, ...]]:
    """The verdict, and the lines under it. Of a pending question: the votes so far."""
    blocks = status_blocks(row, beside.now, title=beside.title, prefix="/", here=row.decided_copy or "")
    if not blocks:
        return "", ()
    first = "".join(span.text for span in blocks[0].spans)
    if row.outcome is None:
        return first, ()
    verdict = first.removeprefix(f"{MARKS[row.outcome]} ")
    after = []
    if row.outcome == "denied":
        after += _denied(row, beside)
    if row.outcome == "approved":
        after.append(executor_missing(row, beside.now) if beside.executor_missing else runs_line(row, beside.now))
    if row.outcome in ("blocked", "notify_failed"):
        after += after_lines(row, beside.now, "/")
    return verdict, tuple(after)


def _denied(row: ApprovalRequest, beside: Beside) -> list[str]:
    """The reason, and whether it may be asked again or was."""
    lines = [t("status.reason_given", reason=shown(row.reason, prose=True))] if row.reason else []
    denial = beside.denial
    if denial is not None and denial.lifted_by is not None:
        lines.append(t("status.lifted", person=person_name(denial.lifted_by)))
    elif row.asked_after is not None:
        lines.append(t("status.asked_after", clock=clock(row.asked_after, now=beside.now)))
    return lines


def _kept(row: ApprovalRequest, beside: Beside) -> tuple[Span, ...]:
    if row.stages is None or row.outcome is not None:
        return ()
    missing = t("kept.executor_missing", executor=executor_name(row)) if beside.executor_missing else ""
    return (*kept_line(row, beside.now).spans, *((Span(f" {missing}"),) if missing else ()))


def _denying(row: ApprovalRequest) -> tuple[str, str, str]:
    typed = "decline_so" if isinstance(row.action, Elicitation) else "deny_so"
    return deny_label(row, row.waiters + 1), because_label(row), t(f"console.card.{typed}")


def _asked_again_since(row: ApprovalRequest) -> bool:
    """Whether letting it be asked again is of use to anybody: a list bears no button for what may never come."""
    return row.asked_after is not None or row.repeat_of is not None


def _fields(row: ApprovalRequest) -> tuple[FieldView, ...]:
    """The form of a server's question; its words are shown, and what is filled in goes by the fields' places."""
    if not isinstance(row.action, Elicitation):
        return ()
    return tuple(_field(place, field) for place, field in enumerate(fields_to_show(row.action.schema)))


def _field(place: int, field: Field) -> FieldView:
    options = tuple((value, shown(title, prose=True)) for value, title in field.options)
    if field.kind == "boolean":
        options = (("yes", t("console.card.yes")), ("no", t("console.card.no")))
    if field.kind == "choices":
        kind = "checks"
    else:
        kind = "select" if options else "date" if field.format == "date" else "text"
    chosen = field.default if kind == "checks" and isinstance(field.default, list) else ()
    return FieldView(
        name=f"field-{place}",
        input=kind,
        label=shown(field.title or field.name, prose=True),
        hint=shown(field_hint(field), prose=True),
        required=field.required,
        value="" if field.default is None else str(field.default) if not options else _default(field),
        options=options,
        mode=_keyboard(field),
        chosen=tuple(each for each in chosen if isinstance(each, str)),
    )


def _keyboard(field: Field) -> str:
    """None for a number that may be below zero: some have no sign on it."""
    signed = field.kind in ("integer", "number") and (field.minimum is None or field.minimum < 0)
    return "" if signed else _KEYBOARDS.get(field.format or field.kind, "")


def _default(field: Field) -> str:
    if field.kind == "boolean":
        return "yes" if field.default is True else "no"
    return str(field.default)


def _offers(row: ApprovalRequest, choices: tuple[str, ...]) -> list[Offer]:
    found = []
    if "session" in choices:
        label = t("button.session", label=row.label)
        breadth = shown(row.breadth, prose=True)
        found.append(Offer(choice="session", label=label, sentence=t("panel.session", breadth=breadth)))
    if ("session" in choices or BOX in choices) and not _offers_box(row, choices):
        found.append(_box(row))
    if "always" in choices:
        label, sentence = always_words(row)
        plain = label if needs_second_step(row, "always") else label.removesuffix("…")
        exact = granted_label(row, "always")
        if isinstance(row.action, Command) and row.label != exact:  # here a label has room for both
            plain = t("console.card.always_both", label=exact, session=row.label)
        found.append(Offer(choice="always", label=plain, sentence=sentence))
    return found


def _offers_box(row: ApprovalRequest, choices: tuple[str, ...]) -> bool:
    """Whether the time box stands beside the plain approval."""
    return row.offer_box and row.severity in ("low", "medium") and "session" in choices


def _box(row: ApprovalRequest) -> Offer:
    # The length, for a drawn card is kept and may be answered long after.
    length = window((time_box(BOX) or timedelta()).total_seconds())
    sentence = t("panel.time_box", breadth=shown(row.breadth, prose=True), duration=length)
    return Offer(choice=BOX, label=t("button.time_box", duration=length, label=row.label), sentence=sentence)

"""From a request to the card people see: pure, platform-neutral, always the same order of parts.

Three voices are kept apart: Signoff's own words, the action (a code block), the agent's words (a quotation, "not
checked"). Everything out of somebody else's hands passes `display.shown` before it gets here or in here.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from signoff.actions import plain_text, whole_text
from signoff.changes import grants
from signoff.changes.common import RUN_AGAIN, UNDO_AFTER_S, plus, unsure
from signoff.changes.deciding import offered
from signoff.changes.repeats import ASK_AGAIN
from signoff.clipping import clip, cut_reason, units
from signoff.display import shown
from signoff.durations import clock, duration, window
from signoff.elicitation import needs_fields
from signoff.elicitation_page import host_of, leads_away, page_of
from signoff.kept_words import DID_RUN, kept_line
from signoff.model import (
    ApprovalRequest,
    Attachment,
    Block,
    Button,
    Card,
    Code,
    Copy,
    Elicitation,
    Face,
    FileWrite,
    Rule,
    Severity,
    Span,
    Tool,
)
from signoff.policy.protected import PROTECTED_KEY
from signoff.settings import Profile
from signoff.statuses import status_blocks
from signoff.tokens import Signer
from signoff.visible import invisible_count, lookalikes
from signoff.wording import (
    PlaceTitle,
    agent_name,
    because_label,
    deny_label,
    once_label,
    person_name,
    safe_name,
    session_name,
    t,
)

SEVERITY_MARKS: dict[Severity, str] = {"low": "", "medium": "", "high": "⚠️ ", "critical": "🛑 "}
MAX_LABEL_UNITS = 34
"""Phones cut longer button labels; a longer one waits in the panel, where its sentence is written out."""
HEADLINE_UNITS = 120
CWD_UNITS = 90
REASON_UNITS = 160
WHO_UNITS = 120
MAX_SEEN = 2
"""As much of what was seen in a script stands on its card; all of it stands behind `Why asked`."""
BOX, BOX_S = grants.BOX, 1800
"""The time box that cards offer, and its length in seconds."""
REASONS = ("too_risky", "wrong_target", "not_now", "smaller_steps")
"""The one-tap reasons, in their order."""


class Facts(Struct, frozen=True, kw_only=True):
    """What a card shows beside the request's own row."""

    now: datetime
    title: PlaceTitle
    prefix: str = "/"
    parent: str | None = None
    """The parent's agent, for a child's card."""
    next_of: ApprovalRequest | None = None
    """The request whose one-time approval made this one a leader."""
    denied_like: ApprovalRequest | None = None
    """What a person denied that is like this one."""
    console: str | None = None
    """The console's public origin: the id then links to the request's story there."""
    profile: Profile | None = None
    """The profile's settings, for why it is asked."""
    forms: bool = False
    """Whether the fields of a server's question can be filled in where it is shown."""
    ticks: bool = True
    """Whether a time counts down by itself where it is shown."""


def request_card(row: ApprovalRequest, copy: Copy, facts: Facts, signer: Signer, *, attach: bool) -> Card:
    """The card of `row` as it stands, with the buttons of the copy's last face."""
    if row.outcome is not None:
        return _ended_card(row, copy, facts, signer)
    text, hidden = action_text(row)
    whole = attach or not hidden
    return Card(
        blocks=card_blocks(row, copy, facts, text, hidden, attach=attach),
        rows=_rows(row, copy, signer, whole=whole),
        attachment=attachment(row) if hidden and attach else None,
        silent=row.severity == "low",
    )


def card_blocks(
    row: ApprovalRequest, copy: Copy, facts: Facts, text: str, hidden: int, *, attach: bool
) -> tuple[Block, ...]:
    """What a waiting question's card says, part by part; `text` and `hidden` are its `action_text`."""
    return (
        *_votes(row, facts, copy),
        headline(row, bold=True),
        *_place(row),
        action_block(row, text),
        *page_blocks(row),
        *[Block("text", (Span(line),)) for line in _fact_lines(row, copy, facts, hidden=hidden, attach=attach)],
        *_claim(row),
        _who(row, facts),
        _until(row, facts),
        foot(row, facts.console),
    )


def _votes(row: ApprovalRequest, facts: Facts, copy: Copy) -> tuple[Block, ...]:
    return status_blocks(row, facts.now, title=facts.title, prefix=facts.prefix, here=copy.copy_id)


def _ended_card(row: ApprovalRequest, copy: Copy, facts: Facts, signer: Signer) -> Card:
    """The same card afterwards: the choices gone."""
    rows: tuple[tuple[Button, ...], ...] = ()
    if undo_shown(row, facts.now):
        rows = ((button(row, copy, signer, "undo", t("button.undo")),),)
    elif unsure(row):
        did, again = ((DID_RUN, t("button.did_run")), (RUN_AGAIN, t("button.run_again")))
        rows = ((button(row, copy, signer, *did), button(row, copy, signer, *again)),)
    elif row.asked_after is not None and row.lifted_by is None:
        rows = ((button(row, copy, signer, ASK_AGAIN, t("button.ask_again")),),)
    return Card(blocks=ended_blocks(row, copy, facts), rows=rows)


def ended_blocks(row: ApprovalRequest, copy: Copy, facts: Facts) -> tuple[Block, ...]:
    """What an ended question's card says: status lines on top, the action kept."""
    text, _ = action_text(row)
    head = (*_votes(row, facts, copy), headline(row, bold=False))
    return (*head, action_block(row, text), *page_blocks(row), foot(row, facts.console))


def undo_shown(row: ApprovalRequest, now: datetime) -> bool:
    """Whether Undo stands on the card: a person approved, two seconds ago, and nothing started it yet."""
    return (
        row.outcome == "approved"
        and row.execution.state == "none"
        and row.decided_at is not None
        and now >= plus(row.decided_at, UNDO_AFTER_S)
        and any(actor.type == "person" for actor in row.decided_by)
    )


# --- the parts -----------------------------------------------------------------------------------


def headline(row: ApprovalRequest, *, bold: bool) -> Block:
    """The first line, which is what a lock screen shows: how bad, and what it does."""
    text = SEVERITY_MARKS[row.severity] + headline_text(row)
    if units(text) > HEADLINE_UNITS:
        text = clip(
            text, head_units=90, tail_units=30, max_lines=1, note=lambda n: t("clip.hidden_short", count=n)
        ).text
    return Block("text", (Span(text, "bold" if bold else "plain"),))


def headline_text(row: ApprovalRequest, severity: str | None = None) -> str:
    """The headline without its mark; `severity` is the word it opens with, capitalised by default."""
    severity = severity or t(f"severity.{row.severity}")
    action = row.action
    if isinstance(action, Tool):
        return t("headline.tool", severity=severity, tool=safe_name(action.name))
    if isinstance(action, FileWrite):
        return _file_headline(row, action, severity)
    if isinstance(action, Elicitation):
        return t("headline.elicitation", server=safe_name(action.server))
    if isinstance(action, Rule):
        return t("headline.plugin", severity=severity, rule=safe_name(action.rule_key))
    return t("headline.rule", severity=severity, sentence=shown(row.description, prose=True))


def _file_headline(row: ApprovalRequest, action: FileWrite, severity: str) -> str:
    name = safe_name(action.path)
    kind = "file_write_protected" if PROTECTED_KEY in row.rule_keys else "file_write"
    if row.rule_keys and kind == "file_write":
        return t("headline.rule", severity=severity, sentence=shown(row.description, prose=True))
    if action.diff is None:
        return t(f"headline.{kind}", severity=severity, file=name)
    lines = action.diff.split("\n")
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return t(f"headline.{kind}_lines", severity=severity, file=name, added=added, removed=removed)


def _place(row: ApprovalRequest) -> tuple[Block, ...]:
    """Host and folder, where they are known."""
    spans = []
    if row.host:
        spans.append(Span(safe_name(row.host), "bold"))
    cwd = getattr(row.action, "cwd", None)
    if cwd:
        text = clip(
            shown(cwd, prose=True),
            head_units=30,
            tail_units=60,
            max_lines=1,
            note=lambda n: t("clip.hidden_short", count=n),
        ).text
        spans += [Span(" · ")] if spans else []
        spans.append(Span(text, "code"))
    return (Block("text", tuple(spans)),) if spans else ()


def action_block(row: ApprovalRequest, text: str) -> Block:
    """The action as a code block; what a tool server asks is a quotation of its words."""
    if isinstance(row.action, Elicitation):
        return Block("quote", (Span(text),))
    return Block("code", (Span(text),), language="diff" if isinstance(row.action, FileWrite) else None)


def page_blocks(row: ApprovalRequest) -> tuple[Block, ...]:
    """The page that a server wants opened: its host in words of our own, and a link. The link is whole even where the
    text of the address is masked, since with a part of it nobody could open the page."""
    address = page_of(row)
    if not address:
        return ()
    host = host_of(address)
    before, after = t("fact.page", host="\x01").split("\x01")
    where = Block("text", (Span(before), Span(host, "bold"), Span(after)))
    if not leads_away(address):
        return (where, Block("text", (Span(t("fact.page_here")),)))
    masked = lines_of(t("fact.page_masked")) if shown(address, prose=True) != address else ()
    return (where, *masked, Block("text", (Span(t("fact.page_open", host=host), "link", href=address),)))


def action_text(row: ApprovalRequest) -> tuple[str, int]:
    """The action as the card shows it, and how many of its characters are hidden: head and tail, never a silent cut."""
    file = f"{row.short_id}.txt"
    clipped = clip(whole_text(row.action), note=lambda n: t("clip.hidden_with_file", count=n, file=file))
    return clipped.text, clipped.hidden_chars


def attachment(row: ApprovalRequest) -> Attachment:
    """The whole action as a file, masked and escaped like the card."""
    return Attachment(f"{row.short_id}.txt", whole_text(row.action).encode("utf-8", "backslashreplace"))


def _fact_lines(row: ApprovalRequest, copy: Copy, facts: Facts, *, hidden: int, attach: bool) -> list[str]:
    """One line each, only when true."""
    face = copy.faces[-1] if copy.faces else Face(0)
    lines = []
    if face.shown:
        lines.append(t("fact.waiting", count=face.shown + 1))
    if facts.next_of is not None and facts.next_of.decided_by:
        before = facts.next_of
        lines.append(
            t(
                "fact.next_of",
                count=before.asked_runs,
                person=person_name(before.decided_by[0]),
                clock=clock(before.decided_at or facts.now, now=facts.now),
            )
        )
    if facts.denied_like is not None and facts.denied_like.decided_by:
        lines.append(denied_before(row, facts.denied_like, facts.now))
    if isinstance(row.action, Code) and row.rule_keys:
        lines += [shown(line, prose=True) for line in row.why[:MAX_SEEN]]
    if copy.note:
        lines.append(t("fact.fallback", place=place_name(copy.note, facts.title)))
    if copy.again:
        lines.append(t("fact.sent_again"))
    raw = plain_text(row.action)
    unseen = invisible_count(raw)
    if unseen:
        lines.append(t("fact.invisible", count=unseen))
    alike = lookalikes(raw)
    if alike:
        lines.append(t("fact.lookalikes", letters=", ".join(alike[:5])))
    if needs_fields(row.action) and not facts.forms:
        lines.append(t("fact.fields" if facts.console is None else "fact.fields_console"))
    if hidden and not attach:
        lines.append(t("fact.not_attached"))
    return lines


def denied_before(row: ApprovalRequest, before: ApprovalRequest, now: datetime) -> str:
    """That a person denied the same or something alike not long before this was asked. When is a clock time: the line
    stays as it is while the card stands."""
    key = "fact.asked_again" if before.digest == row.digest else "fact.denied_alike"
    when = clock(before.decided_at or before.created_at, now=now)
    return t(key, person=person_name(before.decided_by[0]), clock=when, id=before.short_id)


def _claim(row: ApprovalRequest) -> tuple[Block, ...]:
    """The agent's words: always a quotation, always marked as not checked."""
    lines = []
    if row.agent_reason:
        lines.append(t("claim.agent", reason=claimed(row.agent_reason)))
    if isinstance(row.action, Rule):
        lines.append(t("claim.plugin", reason=claimed(row.action.reason)))
    return tuple(Block("quote", (Span(line),)) for line in lines)


def claimed(reason: str) -> str:
    """An agent's or plugin's words on one line, masked."""
    text = " ".join(shown(reason, prose=True).split("\n"))
    return clip(text, head_units=110, tail_units=50, max_lines=1, note=lambda n: t("clip.hidden_short", count=n)).text


def _who(row: ApprovalRequest, facts: Facts) -> Block:
    """Agent, session and for whom; of a kept action since when it is kept, and what its approval starts."""
    if row.stages is not None:
        return kept_line(row, facts.now)
    agent = agent_name(row)
    if facts.parent:
        agent = t("who.child", agent=agent, parent=safe_name(facts.parent))
    parts = [agent, t("who.session", session=session_name(row.session_id))]
    if row.requested_by:
        parts.append(t("who.requester", requester=safe_name(row.requested_by)))
    elif row.claimed_for:
        parts.append(t("claim.requester", requester=safe_name(row.claimed_for)))
    return Block("text", (Span(" · ".join(parts)),))


def _until(row: ApprovalRequest, facts: Facts) -> Block:
    """When it expires, ticking by itself where the reader's app can, else with how long it could be answered."""
    if row.timeout_s is None:
        return Block("text", (Span(t("until.never")),))
    at = row.expires_at or facts.now + timedelta(seconds=row.timeout_s)
    if facts.ticks:
        return Block("text", ticking("until.expires_at", at, facts.now))
    length = duration((at - row.created_at).total_seconds())
    return Block("text", told_once(t("until.expires_window", clock="\x01", duration=length), at, facts.now))


def ticking(key: str, at: datetime, now: datetime, *, ticks: bool = True) -> tuple[Span, ...]:
    """A text of the catalogue with a `clock` in it, counting down where the reader's app can."""
    text = t(key, clock="\x01")
    if not ticks:
        return told_once(text, at, now)
    when = clock(at, now=now)
    # An old app that cannot tick shows the words of the ticking span, and the exact time stands behind it for all.
    relative = Span(t("until.date_fallback", clock=when), "relative_time", at=at)
    before, after = text.split("\x01")
    exact = (Span(" ("), Span(when, "clock", at=at), Span(")"))
    return (Span(before), relative, *exact, Span(after))


def told_once(text: str, at: datetime, now: datetime) -> tuple[Span, ...]:
    """A text with one clock in it, at its mark."""
    before, after = text.split("\x01")
    return (Span(before), Span(clock(at, now=now), "clock", at=at), Span(after))


def foot(row: ApprovalRequest, console: str | None = None) -> Block:
    """The short id and the first of the digest, which tells two actions apart whose masked texts look alike."""
    rest = f" · {row.digest[:8]}"
    if console is None:
        return Block("small", (Span(row.short_id + rest),))
    return Block("small", (Span(row.short_id, "link", href=story_address(console, row)), Span(rest)))


def story_address(console: str, row: ApprovalRequest) -> str:
    """Where the request's story stands in the console."""
    return f"{console}/console/r/{row.short_id}"


# --- buttons -------------------------------------------------------------------------------------


def button(row: ApprovalRequest, copy: Copy, signer: Signer, choice: str, label: str, style: str = "neutral") -> Button:
    """A button of the copy's last face."""
    revision = copy.faces[-1].revision if copy.faces else 0
    token = signer.token(copy.copy_id, revision, choice, copy.destination.platform, copy.destination.chat_id)
    read_as = t("read_as.button", label=label, id=row.short_id)
    return Button(label, token, style, read_as)  # type: ignore[arg-type]  # one of the three styles


def _rows(row: ApprovalRequest, copy: Copy, signer: Signer, *, whole: bool) -> tuple[tuple[Button, ...], ...]:
    """`Approve once`, `Deny`; then once for all, then one grant on a row of its own; then `Deny, because…`, `More…`."""
    face = copy.faces[-1] if copy.faces else Face(0)
    runs = face.shown + 1
    choices = offered(row)
    deny = button(row, copy, signer, "deny", deny_label(row, runs), "danger")
    because = button(row, copy, signer, "because", because_label(row))
    if not whole:
        return ((deny,), (because,))
    if row.stages is not None:
        return ((_once_button(row, copy, signer, runs), deny), (because,))
    rows: list[tuple[Button, ...]] = []
    yes = "once" in choices and not needs_fields(row.action)
    rows.append((_once_button(row, copy, signer, runs), deny) if yes else (deny,))
    if face.shown and "once_all" in choices:
        rows.append((button(row, copy, signer, "once_all", t("button.once_all", count=runs)),))
    choice, grant = _card_grant(row, choices)
    offers_grant = "session" in choices or BOX in choices
    if row.severity in ("low", "medium") and offers_grant and row.label and units(grant) <= MAX_LABEL_UNITS:
        rows.append((button(row, copy, signer, choice, grant),))
    rows.append((because, button(row, copy, signer, "more", t("button.more"))))
    return tuple(rows)


def _card_grant(row: ApprovalRequest, choices: tuple[str, ...]) -> tuple[str, str]:
    """The one wider answer that stands on the card itself: the session, or a time box for what is approved often or
    where that alone is on offer."""
    if row.offer_box or "session" not in choices:
        return BOX, t("button.time_box", duration=window(BOX_S), label=row.label)
    return "session", t("button.session", label=row.label)


def _once_button(row: ApprovalRequest, copy: Copy, signer: Signer, runs: int) -> Button:
    style = "success" if row.severity in ("low", "medium") else "neutral"
    return button(row, copy, signer, "once", once_label(row, runs), style)


def told_card(row: ApprovalRequest, copy: Copy, facts: Facts) -> Card:
    """What a session's own place is told when its question is asked elsewhere."""
    sentence = shown(row.description, prose=True)
    place = place_name(copy.note or "", facts.title)
    return text_card([t("fact.asked_in", place=place, id=row.short_id, sentence=sentence)], silent=True)


def place_name(place: str, title: PlaceTitle) -> str:
    """A destination for people: the platform's name and the chat's id."""
    platform, _, chat = place.partition(":")
    return f"{title(platform)} {safe_name(chat)}"


# --- Signoff's own words -------------------------------------------------------------------------


def lines_of(*lines: str) -> tuple[Block, ...]:
    """Plain lines, without those that are empty."""
    return tuple(Block("text", (Span(line),)) for line in lines if line)


def text_card(lines: list[str], *, file: Attachment | None = None, silent: bool = False) -> Card:
    """A message of plain lines."""
    return Card(blocks=lines_of(*lines), attachment=file, silent=silent)


def reason_cut(text: str) -> tuple[str, int]:
    """A person's typed reason within 280 units, and how many characters were cut."""
    clipped = cut_reason(" ".join(text.split()))
    return clipped.text, clipped.hidden_chars

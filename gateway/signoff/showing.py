"""From a request to the card as plain data: the same parts in the same order as in a chat, without buttons."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from signoff import aside
from signoff.actions import whole_text
from signoff.cards import BOX, BOX_S, Facts, action_text, card_blocks, ended_blocks
from signoff.changes.deciding import offered
from signoff.display import shown
from signoff.durations import left, window
from signoff.elicitation_form import Field, field_line, fields_to_show
from signoff.elicitation_page import page_of
from signoff.model import ApprovalRequest, Block, Code, Copy, Destination, Elicitation, Face, Session, Span, Tool
from signoff.ports import Store
from signoff.rows import request_key, session_key
from signoff.shown_card import FormField, Part, ShownCard, Way
from signoff.wording import agent_name, always_words, deny_label, once_label, safe_name, t


def shown_card(row: ApprovalRequest, facts: Facts) -> ShownCard:
    """The card of `row` as it stands."""
    pending = row.outcome is None
    text, hidden = action_text(row)
    place = Copy(
        copy_id="",
        profile=row.profile,
        destination=Destination("local", ""),
        faces=(Face(0, shown=row.waiters),),
        created_at=row.created_at,
    )
    # What is hidden stands in `whole`, which is as good as a file beside it.
    blocks = card_blocks(row, place, facts, text, hidden, attach=True) if pending else ended_blocks(row, place, facts)
    return ShownCard(
        request_id=row.request_id,
        short_id=row.short_id,
        session_id=row.session_id,
        digest=row.digest,
        severity=row.severity,
        pending=pending,
        parts=tuple(_part(block, facts.now) for block in blocks),
        hidden_chars=hidden,
        whole=whole_text(row.action) if hidden else "",
        ways=_ways(row) if pending else (),
        fields=_form(row) if pending else (),
        page=page_of(row),
        expires_at=row.expires_at,
    )


async def card_for(store: Store, row: ApprovalRequest, now: datetime) -> ShownCard:
    """The card with what the store knows around it: whose child asks, what was answered before."""

    async def other(request_id: str | None) -> ApprovalRequest | None:
        return None if request_id is None else await store.get(ApprovalRequest, request_key(row.profile, request_id))

    facts = Facts(
        now=now,
        title=str.capitalize,
        parent=await _parent(store, row) if row.kind == "child" else None,
        next_of=await other(row.next_of),
        denied_like=await other(row.denied_like) if row.outcome is None else None,
        forms=True,
    )
    return await aside.shown(row, partial(shown_card, row, facts))


async def _parent(store: Store, row: ApprovalRequest) -> str | None:
    session = await store.get(Session, session_key(row.profile, row.session_id))
    if session is None or session.parent is None:
        return None
    parent = await store.get(Session, session_key(row.profile, session.parent))
    return session.parent if parent is None else parent.agent or parent.session_id


def _part(block: Block, now: datetime) -> Part:
    text = "".join(_text(span, now) for span in block.spans)
    return Part(kind=block.kind, text=text, strong=any(span.style == "bold" for span in block.spans))


def _text(span: Span, now: datetime) -> str:
    """A span as words; a time that ticks elsewhere says how long is left."""
    if span.style == "relative_time" and span.at is not None:
        return t("until.left", duration=left(max(0.0, (span.at - now).total_seconds())))
    return span.text


def _ways(row: ApprovalRequest) -> tuple[Way, ...]:
    choices, runs = offered(row), row.waiters + 1
    found = []
    if "once" in choices:
        found.append(Way(choice="once", label=once_label(row, runs), confirm=_confirm_once(row)))
    found.append(Way(choice="deny", label=deny_label(row, runs)))
    if "once_all" in choices:
        sentence = t("panel.once_all", count=runs)
        found.append(Way(choice="once_all", label=t("button.once_all", count=runs), sentence=sentence))
    breadth = shown(row.breadth, prose=True)
    if "session" in choices:
        label = t("button.session", label=row.label)
        found.append(Way(choice="session", label=label, sentence=t("panel.session", breadth=breadth)))
    if "session" in choices or BOX in choices:
        label = t("button.time_box", duration=window(BOX_S), label=row.label)
        sentence = t("panel.time_box", breadth=breadth, duration=window(BOX_S))
        found.append(Way(choice=BOX, label=label, sentence=sentence))
    if "always" in choices:
        label, sentence = always_words(row)
        found.append(Way(choice="always", label=label, sentence=sentence, confirm=_confirm_always(row)))
    return tuple(found)


def _confirm_once(row: ApprovalRequest) -> str:
    if row.severity != "critical":
        return ""
    place = safe_name(row.host) if row.host else agent_name(row)
    return t("panel.confirm_critical", id=row.short_id, place=place, sentence=shown(row.description, prose=True))


def _confirm_always(row: ApprovalRequest) -> str:
    if not isinstance(row.action, Code | Tool):
        return ""
    breadth = shown(row.breadth, prose=True)
    return t("panel.confirm_always", id=row.short_id, breadth=breadth, profile=safe_name(row.profile))


def _form(row: ApprovalRequest) -> tuple[FormField, ...]:
    if not isinstance(row.action, Elicitation):
        return ()
    return tuple(_form_field(field) for field in fields_to_show(row.action.schema))


def _form_field(field: Field) -> FormField:
    label = safe_name(field.title or field.name)  # short, for what a terminal wraps would look like words of our own
    return FormField(field=field, label=label, hint=shown(field_line(field), prose=True))

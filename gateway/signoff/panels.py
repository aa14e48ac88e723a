"""Panels: the small second messages of a card, with its wider and rarer answers. Pure, like the cards."""

from __future__ import annotations

from signoff.cards import BOX, BOX_S, REASONS, Facts, button, lines_of
from signoff.changes.common import RUN_AGAIN
from signoff.changes.deciding import offered
from signoff.display import shown
from signoff.durations import window
from signoff.kept_words import run_again_line
from signoff.model import ApprovalRequest, Block, Button, Card, Copy, Span
from signoff.tokens import Signer
from signoff.whys import why_lines
from signoff.wording import agent_name, always_words, safe_name, t


def panel_card(row: ApprovalRequest, copy: Copy, facts: Facts, signer: Signer) -> Card:
    """A panel's content: it belongs to a card and obeys who opened it."""
    builders = {
        "more": _more_panel,
        "because": _because_panel,
        "confirm": _confirm_panel,
        "why": _why_panel,
        "type": _type_prompt,
    }
    return builders[copy.panel or "why"](row, copy, facts, signer)


def _close(row: ApprovalRequest, copy: Copy, signer: Signer) -> Button:
    return button(row, copy, signer, "close", t("button.close"))


def _more_panel(row: ApprovalRequest, copy: Copy, facts: Facts, signer: Signer) -> Card:
    """Wider and rarer answers, each with its breadth written out above the buttons."""
    choices = offered(row)
    lines = [t("panel.more", id=row.short_id)]
    if row.unread_file:
        lines.append(t("fact.only_once", file=safe_name(row.unread_file)))
    rows: list[tuple[Button, ...]] = []
    breadth = shown(row.breadth, prose=True)
    if "session" in choices:
        lines.append(t("panel.session", breadth=breadth))
        rows.append((button(row, copy, signer, "session", t("button.session", label=row.label)),))
    if "session" in choices or BOX in choices:
        # The length, for a panel may be answered long after it was drawn.
        lines.append(t("panel.time_box", breadth=breadth, duration=window(BOX_S)))
        box = t("button.time_box", duration=window(BOX_S), label=row.label)
        rows.append((button(row, copy, signer, BOX, box),))
    if "always" in choices:
        label, sentence = always_words(row)
        lines.append(sentence)
        rows.append((button(row, copy, signer, "always", label),))
    wait = button(row, copy, signer, "wait", t("button.wait", duration=window(900)))
    why = button(row, copy, signer, "why", t("button.why"))
    rows.append(
        (wait, why, _close(row, copy, signer)) if row.timeout_s is not None else (why, _close(row, copy, signer))
    )
    return Card(blocks=lines_of(*lines), rows=tuple(rows))


def _because_panel(row: ApprovalRequest, copy: Copy, facts: Facts, signer: Signer) -> Card:
    buttons = [button(row, copy, signer, name, t(f"button.{name}")) for name in REASONS]
    last = (button(row, copy, signer, "type", t("button.type_it")), _close(row, copy, signer))
    blocks = lines_of(t("panel.because", id=row.short_id))
    return Card(blocks=blocks, rows=(tuple(buttons[:2]), tuple(buttons[2:]), last))


def _confirm_panel(row: ApprovalRequest, copy: Copy, facts: Facts, signer: Signer) -> Card:
    """The second tap of what is critical or very wide, or of what may have run before."""
    if copy.choice == RUN_AGAIN:
        line, label = run_again_line(row), t("button.confirm_run_again")
    elif copy.choice == "always":
        breadth = shown(row.breadth, prose=True)
        line = t("panel.confirm_always", id=row.short_id, breadth=breadth, profile=safe_name(row.profile))
        label = t("button.confirm_always")
    else:
        place = safe_name(row.host) if row.host else agent_name(row)
        line = t("panel.confirm_critical", id=row.short_id, place=place, sentence=shown(row.description, prose=True))
        label = t("button.confirm_once")
    rows = ((button(row, copy, signer, "confirm", label),), (_close(row, copy, signer),))
    return Card(blocks=lines_of(line), rows=rows)


def _why_panel(row: ApprovalRequest, copy: Copy, facts: Facts, signer: Signer) -> Card:
    return Card(blocks=lines_of(*why_lines(row, facts.profile)), rows=((_close(row, copy, signer),),))


def _type_prompt(row: ApprovalRequest, copy: Copy, facts: Facts, signer: Signer) -> Card:
    """In a group only who is mentioned is asked to reply, so the prompt names its opener."""
    owner = Span(safe_name(copy.owner_name or copy.owner_id or ""), "mention", href=copy.owner_id)
    line = Block("text", (owner, Span(" · "), Span(t("panel.because", id=row.short_id))))
    return Card(blocks=(line,), prompt=t("panel.type_prompt"))

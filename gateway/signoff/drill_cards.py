"""What a drill's card shows: never a choice, and nothing that could be taken for one."""

from __future__ import annotations

from signoff.changes.drilling import after_s, drill_of
from signoff.durations import duration, window
from signoff.model import Actor, Block, Button, Card, Copy, Span
from signoff.tokens import Signer
from signoff.wording import safe_name, t

SEEN = "seen"
"""The one choice on it."""


def drill_card(copy: Copy, signer: Signer) -> Card:
    """The card as its copy stands."""
    drill = drill_of(copy)
    if drill.over:
        return Card(blocks=(_line(outcome_line(copy)),))
    lines = (
        Block("text", (Span(t("drill.title"), "bold"),)),
        _line(t("drill.who", person=person_of(drill.by))),
        _line(t("drill.tap")),
    )
    place = copy.destination
    token = signer.token(copy.copy_id, 0, SEEN, place.platform, place.chat_id)
    return Card(blocks=lines, rows=((Button(t("drill.button"), token),),))


def outcome_line(copy: Copy) -> str:
    """How it ended: who saw it and when, or that nobody did."""
    drill, seconds = drill_of(copy), after_s(copy)
    if drill.seen_by is None or seconds is None:
        return t("drill.nobody", duration=window(drill.wait_s))
    return t("drill.seen", person=seen_by(drill.seen_by), duration=duration(seconds))


def person_of(by: str) -> str:
    """Who rehearses, at the beginning of a sentence."""
    return f"{by[:1].upper()}{by[1:]}"


def seen_by(actor: Actor) -> str:
    """A short name: who stands before their own drill needs no account beside it."""
    return safe_name(actor.principal or actor.name or actor.user_id or "")


def _line(text: str) -> Block:
    return Block("text", (Span(text),))

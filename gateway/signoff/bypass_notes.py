"""What people read of a session whose questions are switched off."""

from __future__ import annotations

from datetime import datetime

from signoff.cards import text_card
from signoff.changes.bypassing import Bypass
from signoff.durations import clock
from signoff.model import Actor, Card
from signoff.wording import person_name, t


def on_text(done: Bypass, now: datetime) -> str:
    """Nothing is asked, until when, by whom, and what still waits."""
    session = done.session
    until = clock(session.bypass_until or now, now=now)
    person = person_name(session.bypass_by)
    if done.waiting:
        return t("reply.yolo_on_waiting", clock=until, person=person, count=done.waiting)
    return t("reply.yolo_on", clock=until, person=person)


def off_text(by: Actor) -> str:
    """Somebody switched questions on again."""
    return t("reply.yolo_off", person=person_name(by))


def on_card(done: Bypass, now: datetime) -> Card:
    """The note in the session's place, where it was switched off elsewhere."""
    return text_card([on_text(done, now)])


def off_card(by: Actor) -> Card:
    """The note in the session's place, where it was switched on elsewhere."""
    return text_card([off_text(by)])


def over_card(done: Bypass, now: datetime) -> Card:
    """The note once it ended by itself."""
    return text_card([t("reply.yolo_ended", clock=clock(done.before or now, now=now))])

"""Presses, slash commands and submissions, with the handles by which an app may answer them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Literal

from tests.platforms.telegram.changes import Changes
from tests.platforms.telegram.clock import ServerClock, moment

from .model import Answer, AnswerKind, PressState
from .refusal import Refused

ACKNOWLEDGE_WITHIN_S = 3.0
"""Slack's time to acknowledge an interaction, from the press ("Handling user interaction")."""
TRIGGER_LIFE_S = 3.0
RESPONSE_USES = 5
RESPONSE_LIFE_S = 30 * 60.0
"""A `response_url` may be used 5 times within 30 minutes."""
KEPT_PRESSES = 5_000


@dataclass(kw_only=True)
class Press:
    """Something a person did that an app must acknowledge; `ephemeral` when the button's message is."""

    id: str
    kind: Literal["press", "slash", "submission", "closing"]
    bot: str
    user: str
    channel: str | None
    pressed_at: float
    trigger_id: str
    response_key: str | None = None
    response_url: str | None = None
    ts: str | None = None
    thread_ts: str | None = None
    value: str | None = None
    action_ts: str | None = None
    view_id: str | None = None
    envelope_id: str = ""
    trigger_used: bool = False
    response_uses: int = 0
    acknowledged_at: float | None = None
    timed_out: bool = False
    answers: list[Answer] = field(default_factory=list)
    attempted: list[str] = field(default_factory=list)

    def state(self) -> PressState:
        """The press as tests see it."""
        return PressState(
            press_id=self.id,
            kind=self.kind,
            user=self.user,
            channel=self.channel,
            ts=self.ts,
            value=self.value,
            action_ts=self.action_ts,
            trigger_id=self.trigger_id,
            envelope_id=self.envelope_id,
            response_url=self.response_url,
            pressed_at=moment(self.pressed_at),
            acknowledged_at=None if self.acknowledged_at is None else moment(self.acknowledged_at),
            timed_out=self.timed_out,
            answers=list(self.answers),
            attempted=list(self.attempted),
        )


class PressBook:
    """All presses, the oldest forgotten first."""

    def __init__(self, clock: ServerClock, changes: Changes) -> None:
        self._clock = clock
        self._changes = changes
        self._presses: OrderedDict[str, Press] = OrderedDict()
        self._by_trigger: dict[str, str] = {}
        self._by_response: dict[str, str] = {}

    def add(self, press: Press) -> None:
        """Remember a press."""
        self._presses[press.id] = press
        self._by_trigger[press.trigger_id] = press.id
        if press.response_key is not None:
            self._by_response[press.response_key] = press.id
        if len(self._presses) > KEPT_PRESSES:
            _, oldest = self._presses.popitem(last=False)
            self._by_trigger.pop(oldest.trigger_id, None)
            self._by_response.pop(oldest.response_key or "", None)

    def get(self, press_id: str) -> Press:
        """The press; LookupError when it is unknown or forgotten."""
        if press_id not in self._presses:
            raise LookupError(f"no press {press_id}")
        return self._presses[press_id]

    def has(self, press_id: str) -> bool:
        """Whether it is known."""
        return press_id in self._presses

    def answered(
        self, press: Press, kind: AnswerKind, text: str, *, ts: str | None = None, view_id: str | None = None
    ) -> None:
        """Note what the person was shown."""
        at = moment(self._clock.now())
        press.answers.append(Answer(kind=kind, text=text, at=at, ts=ts, view_id=view_id))
        self._changes.bump()

    def ephemeral(self, user: str, channel: str, text: str, ts: str, bot: str) -> None:
        """Ascribe a private message to this person's oldest press there that nobody has answered."""
        for press in self._presses.values():
            if (press.user, press.channel, press.bot) == (user, channel, bot) and not press.answers:
                self.answered(press, "ephemeral", text, ts=ts)
                return

    def by_trigger(self, bot: str, trigger_id: str) -> Press:
        """Use a trigger; Refused when it is unknown, over 3 s old or used."""
        press = self._presses.get(self._by_trigger.get(trigger_id, ""))
        if press is None or press.bot != bot:
            raise Refused("invalid_trigger_id")
        if press.trigger_used:
            raise Refused("exchanged_trigger_id")
        if self._clock.now() - press.pressed_at > TRIGGER_LIFE_S:
            raise Refused("expired_trigger_id")
        press.trigger_used = True
        return press

    def by_response(self, key: str) -> Press | None:
        """The press of a `response_url`, used or not."""
        return self._presses.get(self._by_response.get(key, ""))

    def use_response(self, press: Press) -> None:
        """Spend one use of a `response_url`; Refused 404 after 5 uses or 30 minutes."""
        if self._clock.now() - press.pressed_at > RESPONSE_LIFE_S:
            raise Refused("expired_url", status=404)
        if press.response_uses >= RESPONSE_USES:
            raise Refused("used_url", status=404)
        press.response_uses += 1

"""Answers by `response_url` and by acknowledgement, and what Slack says itself when none came."""

from __future__ import annotations

from .messaging import Content, Messaging
from .model import JsonObject
from .params import Parameters
from .presses import Press, PressBook
from .refusal import Refused
from .viewing import Viewing
from .world import StoredMessage, World


class Responding:
    """Shows answers to presses and commands."""

    def __init__(self, world: World, messaging: Messaging, presses: PressBook, viewing: Viewing) -> None:
        self._world = world
        self._messaging = messaging
        self._presses = presses
        self._viewing = viewing

    def respond(self, press: Press, body: JsonObject) -> None:
        """A POST to a `response_url`; Refused for a used one and for content Slack does not take."""
        try:
            self._presses.use_response(press)
            self._show(press, body)
        except Refused as refused:
            press.attempted.append(refused.error)
            raise

    def _show(self, press: Press, body: JsonObject) -> None:
        original = self._original(press)
        if body.get("delete_original"):
            if original is not None:
                self._messaging.remove(original)
            self._presses.answered(press, "deleted", "", ts=press.ts)
            return
        content = Content.read(Parameters(body))
        if content.empty:
            raise Refused("no_text", status=400)
        if body.get("replace_original") and original is not None:
            self._messaging.change(original, content)
            self._presses.answered(press, "replaced", self._messaging.reads(original), ts=original.ts)
            return
        self._say(press, body, content)

    def _original(self, press: Press) -> StoredMessage | None:
        if press.ts is None or press.channel is None:
            return None
        return self._world.channel(press.channel).standing(press.ts)

    def _say(self, press: Press, body: JsonObject, content: Content) -> None:
        """A new message: for the person alone unless `in_channel`, in a thread only when told."""
        app, channel = self._world.app(press.bot), self._world.channel(press.channel or "")
        private = body.get("response_type") != "in_channel"
        thread_ts = body.get("thread_ts")
        message = self._messaging.written(
            app,
            channel,
            content,
            thread_ts=thread_ts if isinstance(thread_ts, str) else None,
            ephemeral_to=press.user if private else None,
        )
        self._messaging.keep(message)
        self._presses.answered(
            press, "ephemeral" if private else "message", self._messaging.reads(message), ts=message.ts
        )

    def acknowledged(self, press: Press, payload: JsonObject) -> None:
        """As `Outcomes.acknowledged`: a command's answer is shown, a submission's followed; a press has none."""
        press.acknowledged_at = self._world.clock.now()
        if press.kind == "submission":
            self._viewing.acknowledged(press, payload)
        elif press.kind == "slash" and (payload.get("text") or payload.get("blocks")):
            try:
                self._say(press, payload, Content.read(Parameters(payload)))
            except Refused as refused:
                self._presses.answered(press, "error", refused.error)
        self._world.changes.bump()

    def failed(self, press: Press, why: str) -> None:
        """As `Outcomes.failed`: the person is told by Slack itself."""
        press.timed_out = True
        if press.kind == "slash":
            why = f"the command failed with the error “{why.replace(' ', '_')}”: {why}"
        self._presses.answered(press, "error", why)

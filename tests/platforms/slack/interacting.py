"""Controls for presses, commands and modals. Names are those of `SlackPlatform`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Literal

from .deliveries import Deliveries
from .model import JsonObject
from .mrkdwn import typed
from .presses import Press, PressBook
from .viewing import Viewing
from .visible import buttons_of, element_of
from .world import TEAM, App, Channel, StoredMessage, World

CHANNEL_NAMES = {"im": "directmessage", "group": "privategroup"}


class Interacting:
    """People press, type commands and fill in modals."""

    def __init__(self, world: World, presses: PressBook, viewing: Viewing, deliveries: Deliveries) -> None:
        self.base: Callable[[], str] = str
        """The address of response URLs, known once the server listens."""
        self._world = world
        self._presses = presses
        self._viewing = viewing
        self._deliveries = deliveries

    def press(self, *, user_id: str, channel: str, ts: str, button: str) -> str:
        """Press a button; LookupError when this person sees no such message or button there."""
        self._world.person(user_id)
        place, message = self._world.channel(channel), self._world.message(channel, ts)
        if message.ephemeral_to not in (None, user_id) or (place.kind != "channel" and user_id not in place.members):
            raise LookupError(f"{user_id} does not see message {ts}")
        found = next((each for each in buttons_of(message.blocks) if button in (each.value, each.label)), None)
        if found is None or message.bot is None:
            labels = [each.label for each in buttons_of(message.blocks)]
            raise LookupError(f"no button {button!r} in message {ts}; there are {labels}")
        element = element_of(message.blocks, found.block_id, found.action_id) or {}
        return self._press(self._world.app(message.bot), user_id, place, message, element, found.block_id)

    def press_forged(
        self,
        *,
        user_id: str,
        channel: str,
        ts: str,
        value: str,
        action_id: str | None = None,
        block_id: str = "forged",
        bot: str | None = None,
    ) -> str:
        """A press with any value on any message, known or not."""
        place = self._world.channel(channel)
        message = place.messages.get(ts)
        owner = bot if bot is not None or message is None else message.bot
        had = sorted(message.had_actions) if message is not None else []
        element = {
            "type": "button",
            "action_id": action_id or next(iter(had), "forged"),
            "text": {"type": "plain_text", "text": "forged", "emoji": True},
            "value": value,
        }
        absent = StoredMessage(ts=ts, channel=channel, user=user_id, sent_at=self._world.clock.now())
        return self._press(self._world.app(owner), user_id, place, message or absent, element, block_id)

    def _press(
        self, app: App, user_id: str, place: Channel, message: StoredMessage, element: JsonObject, block_id: str
    ) -> str:
        press = self._new("press", app, user_id, place.id)
        press.ts, press.thread_ts, press.value = message.ts, message.in_thread, element.get("value")
        press.action_ts = self._world.take_ts()
        action = {name: value for name, value in element.items() if name not in ("confirm", "accessibility_label")}
        container: JsonObject = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": place.id,
            "is_ephemeral": message.ephemeral_to is not None,
        }
        if message.thread_ts is not None:
            container["thread_ts"] = message.thread_ts
        payload = self._common("block_actions", app, press) | {
            "container": container,
            "channel": {"id": place.id, "name": CHANNEL_NAMES.get(place.kind, place.name)},
            "state": {"values": {}},
            "response_url": press.response_url,
            "actions": [action | {"block_id": block_id, "action_ts": press.action_ts}],
        }
        if message.ephemeral_to is None:
            payload["message"] = self._world.message_json(message)
        about = f"block_actions {element['action_id']}"
        self._deliveries.send(app, "interactive", payload, channel=place.id, about=about, press=press)
        return press.id

    def _new(
        self, kind: Literal["press", "slash", "submission", "closing"], app: App, user_id: str, channel: str | None
    ) -> Press:
        key = secrets.token_hex(12) if channel is not None else None
        press = Press(
            id=self._world.take_id(kind[0].upper() + "X"),
            kind=kind,
            bot=app.bot,
            user=user_id,
            channel=channel,
            pressed_at=self._world.clock.now(),
            trigger_id=f"{self._world.take_id('')}.{secrets.token_hex(8)}",
            response_key=key,
            response_url=None if key is None else f"{self.base()}/actions/{key}",
        )
        self._presses.add(press)
        return press

    def _common(self, kind: str, app: App, press: Press) -> JsonObject:
        """What all interactions carry."""
        person = self._world.person(press.user)
        name = person.name.lower()
        return {
            "type": kind,
            "user": {"id": person.id, "username": name, "name": name, "team_id": person.team_id},
            "api_app_id": app.app_id,
            "token": "verification",
            "trigger_id": press.trigger_id,
            "team": {"id": TEAM, "domain": "loopback"},
            "enterprise": None,
            "is_enterprise_install": False,
        }

    def slash(self, *, user_id: str, channel: str, text: str, command: str = "/signoff", bot: str | None = None) -> str:
        """Type a command; ValueError for a channel the person is not in."""
        place, app, person = self._world.channel(channel), self._world.app(bot), self._world.person(user_id)
        if user_id not in place.members:
            raise ValueError(f"{user_id} is not in {channel}")
        press = self._new("slash", app, user_id, channel)
        payload: JsonObject = {
            "token": "verification",
            "team_id": person.team_id,
            "team_domain": "loopback",
            "channel_id": place.id,
            "channel_name": CHANNEL_NAMES.get(place.kind, place.name),
            "user_id": user_id,
            "user_name": person.name.lower(),
            "command": command,
            "text": typed(text),
            "api_app_id": app.app_id,
            "is_enterprise_install": "false",
            "response_url": press.response_url,
            "trigger_id": press.trigger_id,
        }
        self._deliveries.send(app, "slash_commands", payload, channel=place.id, about=command, press=press)
        return press.id

    def submit_view(self, *, user_id: str, view_id: str, values: dict[str, str]) -> str:
        """Send a modal off."""
        view = self._viewing.get(user_id, view_id)
        app = self._world.app(view.bot)
        content = self._viewing.submission(view, values)
        press = self._new("submission", app, user_id, None)
        press.view_id = view_id
        payload = self._common("view_submission", app, press) | {"view": content, "response_urls": []}
        self._deliveries.send(app, "interactive", payload, about="view_submission", press=press)
        return press.id

    def close_view(self, *, user_id: str, view_id: str) -> None:
        """Close a modal."""
        view = self._viewing.get(user_id, view_id)
        app, content = self._world.app(view.bot), self._viewing.close(view)
        if content is not None:
            press = self._new("closing", app, user_id, None)
            payload = self._common("view_closed", app, press) | {"view": content, "is_cleared": False}
            payload.pop("trigger_id")
            self._deliveries.send(app, "interactive", payload, about="view_closed", press=press)

"""Tells apps what happens in their channels, as far as they subscribed to it."""

from __future__ import annotations

import re

from .deliveries import Deliveries, Envelope
from .model import JsonObject
from .world import TEAM, App, Channel, StoredMessage, World

SUBSCRIPTIONS = {"channel": "message.channels", "group": "message.groups", "im": "message.im"}
CHANNEL_TYPES = {"channel": "channel", "group": "group", "im": "im"}
HIDDEN = frozenset({"message_changed", "message_deleted"})


class Events:
    """Makes Events API payloads and begins their delivery."""

    def __init__(self, world: World, deliveries: Deliveries) -> None:
        self._world = world
        self._deliveries = deliveries

    def send(self, app: App, event: JsonObject, *, channel: str | None = None) -> Envelope:
        """Deliver any event to an app, subscribed or not."""
        payload = {
            "token": "verification",
            "team_id": TEAM,
            "context_team_id": TEAM,
            "api_app_id": app.app_id,
            "event": event,
            "type": "event_callback",
            "event_id": self._world.take_id("Ev"),
            "event_time": int(self._world.clock.now()),
            "authorizations": [
                {
                    "enterprise_id": None,
                    "team_id": TEAM,
                    "user_id": app.bot,
                    "is_bot": True,
                    "is_enterprise_install": False,
                }
            ],
            "is_ext_shared_channel": False,
        }
        return self._deliveries.send(app, "events_api", payload, channel=channel, about=str(event.get("type")))

    def said(self, message: StoredMessage) -> None:
        """A new message, and a mention for the bots it names."""
        channel = self._world.channel(message.channel)
        event = self._event(message, channel)
        for app in list(self._world.apps_in(channel)):
            if _hears(app, SUBSCRIPTIONS[channel.kind]):
                self.send(app, event, channel=channel.id)
            named = app.bot in re.findall(r"<@([A-Z0-9]+)(?:\|[^>]*)?>", message.text)
            if named and channel.kind != "im" and message.bot is None and _hears(app, "app_mention"):
                mention = {name: value for name, value in event.items() if name != "channel_type"}
                self.send(app, mention | {"type": "app_mention"}, channel=channel.id)

    def _event(self, message: StoredMessage, channel: Channel) -> JsonObject:
        event = self._world.message_json(message) | {
            "channel": channel.id,
            "channel_type": CHANNEL_TYPES[channel.kind],
            "event_ts": message.ts,
        }
        if message.in_thread is not None:
            root = channel.messages.get(message.in_thread)
            event["parent_user_id"] = "" if root is None else root.user
        if message.bot is None and message.bot_id is None:
            event["client_msg_id"] = f"00000000-0000-4000-8000-{message.ts.replace('.', '')[-12:]}"
        return event

    def changed(self, message: StoredMessage, previous: JsonObject) -> None:
        """An edit."""
        content = {"message": self._world.message_json(message), "previous_message": previous}
        self._hidden(message, "message_changed", content)

    def gone(self, message: StoredMessage) -> None:
        """A deletion."""
        content = {"previous_message": self._world.message_json(message), "deleted_ts": message.ts}
        self._hidden(message, "message_deleted", content)

    def _hidden(self, message: StoredMessage, subtype: str, content: JsonObject) -> None:
        if message.ephemeral_to is not None:
            return
        channel = self._world.channel(message.channel)
        ts = self._world.take_ts()
        event = content | {
            "type": "message",
            "subtype": subtype,
            "hidden": True,
            "channel": channel.id,
            "channel_type": CHANNEL_TYPES[channel.kind],
            "ts": ts,
            "event_ts": ts,
        }
        for app in list(self._world.apps_in(channel)):
            if _hears(app, SUBSCRIPTIONS[channel.kind]):
                self.send(app, event, channel=channel.id)

    def left(self, app: App, channel: Channel) -> None:
        """A bot was removed from a channel."""
        kind = "channel_left" if channel.kind == "channel" else "group_left"
        if _hears(app, kind):
            event: JsonObject = {"type": kind, "channel": channel.id, "event_ts": self._world.take_ts()}
            self.send(app, event, channel=channel.id)


def _hears(app: App, subscription: str) -> bool:
    return app.events is None or subscription in app.events

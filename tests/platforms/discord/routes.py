"""The REST addresses served, each with the name under which faults and logs know it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .messaging import NewFile
from .model import JsonObject
from .world import BotAccount

Major = Literal["channel", "guild", "token", "none"]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One address below `/api/v10`; `major` is what its rate-limit bucket is kept by.

    `limit` requests fit into `per_s` seconds; without a limit the route has no bucket and is outside the global budget
    too, as interaction callbacks are.
    """

    call: str
    method: str
    path: str
    major: Major = "none"
    limit: int | None = 50
    per_s: float = 1.0
    authorized: bool = True
    counted_globally: bool = True


def _route(call: str, method: str, path: str, major: Major = "none", limit: int = 50, per_s: float = 1.0) -> Route:
    return Route(call=call, method=method, path=path, major=major, limit=limit, per_s=per_s)


def _token_route(call: str, method: str, path: str, limit: int | None = 5, per_s: float = 2.0) -> Route:
    return Route(
        call=call, method=method, path=path, major="token", limit=limit, per_s=per_s, authorized=False,
        counted_globally=False,
    )  # fmt: skip


MESSAGES = "/channels/{channel_id}/messages"
MESSAGE = MESSAGES + "/{message_id}"
APP = "/applications/{application_id}"
HOOK = "/webhooks/{application_id}/{token}"
ROUTES: tuple[Route, ...] = (
    _route("get_me", "GET", "/users/@me"),
    _route("get_user", "GET", "/users/{user_id}"),
    _route("get_application", "GET", "/applications/@me"),
    _route("get_oauth_application", "GET", "/oauth2/applications/@me"),
    _route("edit_application", "PATCH", "/applications/@me", limit=5, per_s=5.0),
    _route("get_commands", "GET", APP + "/commands"),
    _route("put_commands", "PUT", APP + "/commands", limit=5, per_s=20.0),
    _route("get_guild_commands", "GET", APP + "/guilds/{guild_id}/commands", "guild"),
    _route("put_guild_commands", "PUT", APP + "/guilds/{guild_id}/commands", "guild", 5, 20.0),
    _route("get_gateway", "GET", "/gateway"),
    _route("get_gateway_bot", "GET", "/gateway/bot", limit=2, per_s=5.0),
    _route("create_dm", "POST", "/users/@me/channels", limit=10, per_s=10.0),
    _route("get_guild", "GET", "/guilds/{guild_id}", "guild"),
    _route("get_member", "GET", "/guilds/{guild_id}/members/{user_id}", "guild", 5, 1.0),
    _route("get_channel", "GET", "/channels/{channel_id}", "channel"),
    _route("edit_channel", "PATCH", "/channels/{channel_id}", "channel", 5, 5.0),
    _route("delete_channel", "DELETE", "/channels/{channel_id}", "channel", 5, 5.0),
    _route("create_thread", "POST", "/channels/{channel_id}/threads", "channel", 5, 5.0),
    _route("create_message_thread", "POST", MESSAGE + "/threads", "channel", 5, 5.0),
    _route("get_messages", "GET", MESSAGES, "channel", 5, 1.0),
    _route("get_message", "GET", MESSAGE, "channel", 5, 1.0),
    _route("create_message", "POST", MESSAGES, "channel", 5, 5.0),
    _route("edit_message", "PATCH", MESSAGE, "channel", 5, 5.0),
    _route("delete_message", "DELETE", MESSAGE, "channel", 5, 1.0),
    _token_route("callback", "POST", "/interactions/{interaction_id}/{token}/callback", limit=None),
    _token_route("create_followup", "POST", HOOK),
    _token_route("get_followup", "GET", HOOK + "/messages/{which}"),
    _token_route("edit_followup", "PATCH", HOOK + "/messages/{which}"),
    _token_route("delete_followup", "DELETE", HOOK + "/messages/{which}"),
)
"""The limits of a channel's posts and edits (5 in 5 seconds) are those commonly announced; Discord publishes none."""


class Request(msgspec.Struct, kw_only=True):
    """One request, read."""

    route: Route
    call: str
    path: str
    arguments: dict[str, str]
    query: dict[str, str]
    body: Any
    files: list[NewFile]
    bot: BotAccount | None = None
    channel_id: int | None = None

    def number(self, name: str) -> int:
        """An id of the path; 0, which nothing has, when it is no number."""
        text = self.arguments[name]
        return int(text) if text.isdigit() else 0

    def fields(self) -> JsonObject:
        """The body as an object."""
        return self.body if isinstance(self.body, dict) else {}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A good answer; no body with 204."""

    status: int = 200
    body: Any = None


def named(route: Route, arguments: dict[str, str]) -> str:
    """The call's name: changes of `@original` have names of their own."""
    if arguments.get("which") == "@original":
        return route.call.replace("followup", "original")
    return route.call

"""The Web API by method name: finds the app, checks token and scope, spends the budget, runs the method."""

from __future__ import annotations

from collections.abc import Callable

from .filing import Filing
from .messaging import Messaging
from .model import JsonObject
from .params import Parameters
from .places import Places
from .refusal import Refused
from .sockets import Sockets
from .viewing import Viewing
from .world import App, World

Method = Callable[[App, Parameters], JsonObject]
CHANNEL_SCOPES = {"C": "channels", "G": "groups", "D": "im"}
SCOPES = {
    "chat.postmessage": "chat:write",
    "chat.postephemeral": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "conversations.open": "im:write",
    "files.getuploadurlexternal": "files:write",
    "files.completeuploadexternal": "files:write",
    "files.delete": "files:write",
    "files.info": "files:read",
    "usergroups.users.list": "usergroups:read",
    "users.info": "users:read",
}
CONNECT = "apps.connections.open"
ALL_SCOPES = frozenset(SCOPES.values()) | {
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write.public",
    "commands",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
}


class WebApi:
    """Answers requests; method names are compared without case."""

    def __init__(
        self,
        world: World,
        places: Places,
        messaging: Messaging,
        filing: Filing,
        viewing: Viewing,
        sockets: Sockets,
    ) -> None:
        self._world = world
        self._methods: dict[str, Method] = {
            "api.test": lambda _app, _parameters: {},
            "auth.test": places.auth_test,
            "apps.connections.open": lambda app, _parameters: {"url": sockets.ticket(app)},
            "chat.delete": messaging.delete,
            "chat.getpermalink": messaging.get_permalink,
            "chat.postephemeral": messaging.post_ephemeral,
            "chat.postmessage": messaging.post_message,
            "chat.update": messaging.update,
            "conversations.history": places.history,
            "conversations.info": places.info,
            "conversations.members": places.members,
            "conversations.open": places.open,
            "conversations.replies": places.replies,
            "files.completeuploadexternal": filing.complete,
            "files.delete": filing.delete,
            "files.getuploadurlexternal": filing.get_upload_url,
            "files.info": filing.info,
            "usergroups.users.list": places.usergroup_users,
            "users.info": places.user,
            "views.open": viewing.open,
            "views.push": viewing.push,
            "views.update": viewing.update,
        }

    def app(self, token: str, method: str) -> App:
        """The app of a token; Refused by kind of token, unknown and revoked ones."""
        if not token:
            raise Refused("not_authed")
        if token in self._world.revoked:
            raise Refused("account_inactive")
        for app in self._world.apps.values():
            if token in (app.token, app.app_token):
                if (token == app.app_token) != (method.lower() == CONNECT):
                    raise Refused("not_allowed_token_type")
                return app
        raise Refused("invalid_auth")

    def call(self, app: App, method: str, parameters: Parameters) -> JsonObject:
        """The method's result; Refused for everything Slack refuses."""
        run = self._methods.get(method.lower())
        if run is None:
            raise Refused("unknown_method", req_method=method)
        self._check_scope(app, method.lower(), parameters)
        app.budgets.spend(method, self.channel_of(app, parameters))
        return run(app, parameters)

    def channel_of(self, app: App, parameters: Parameters) -> str | None:
        """The channel a request is about, for budgets, faults and the log; a user's direct conversation when open."""
        for name in ("channel", "channel_id"):
            value = parameters.values.get(name)
            if isinstance(value, str) and value:
                return self._direct(app, value)
        return None

    def _direct(self, app: App, value: str) -> str:
        if not value.startswith(("U", "W")):
            return value
        for channel in self._world.channels.values():
            if channel.kind == "im" and (channel.person, channel.bot) == (value, app.bot):
                return channel.id
        return value

    def _check_scope(self, app: App, method: str, parameters: Parameters) -> None:
        needed = SCOPES.get(method)
        suffix = {"conversations.info": "read", "conversations.history": "history", "conversations.replies": "history"}
        if method in suffix:
            family = CHANNEL_SCOPES.get(str(parameters.values.get("channel", "C"))[:1], "channels")
            needed = f"{family}:{suffix[method]}"
        if needed is not None and needed not in app.scopes:
            raise Refused("missing_scope", needed=needed, provided=",".join(sorted(app.scopes)))

"""The methods `auth.*`, `conversations.*`, `users.*`, `usergroups.*`, and where an app may write."""

from __future__ import annotations

from .model import JsonObject
from .params import Parameters
from .refusal import Refused
from .world import TEAM, App, Channel, StoredMessage, World

PAGE_MAX = 999


class Places:
    """Finds channels and people for apps."""

    def __init__(self, world: World) -> None:
        self._world = world

    def known(self, app: App, channel: str) -> Channel:
        """A channel the app can see; Refused `channel_not_found` otherwise."""
        found = self._world.channels.get(channel)
        if found is None or (found.kind != "channel" and app.bot not in found.members):
            raise Refused("channel_not_found")
        return found

    def to_write(self, app: App, channel: str, *, open_direct: bool = True) -> Channel:
        """A channel the app may write to; a user's id stands for the direct conversation with that user."""
        if open_direct and channel.startswith(("U", "W")):
            found = self._open(app, channel, "channel_not_found")
        else:
            found = self.known(app, channel)
        if found.archived:
            raise Refused("is_archived")
        if app.bot not in found.members and (not open_direct or "chat:write.public" not in app.scopes):
            raise Refused("not_in_channel")
        if found.posting_restricted:
            raise Refused("restricted_action")
        if found.kind == "im" and self._world.person(found.person).deleted:
            raise Refused("user_disabled")
        return found

    def _open(self, app: App, user_id: str, unknown: str) -> Channel:
        person = self._world.people.get(user_id)
        if person is None or person.team_id != TEAM:
            raise Refused(unknown)
        if person.deleted:
            raise Refused("user_disabled")
        if person.is_bot:
            raise Refused("cannot_dm_bot")
        return self._world.direct(user_id, app.bot)

    def auth_test(self, app: App, _parameters: Parameters) -> JsonObject:
        """auth.test."""
        return {
            "url": "https://loopback.slack.com/",
            "team": "Loopback",
            "user": self._world.person(app.bot).name,
            "team_id": TEAM,
            "user_id": app.bot,
            "bot_id": app.bot_id,
            "is_enterprise_install": False,
        }

    def open(self, app: App, parameters: Parameters) -> JsonObject:
        """conversations.open, with one user or an existing conversation."""
        if parameters.has("channel"):
            found = self.known(app, parameters.text("channel"))
            return {"no_op": True, "already_open": True, "channel": {"id": found.id}}
        users = parameters.values.get("users", "")
        listed = users if isinstance(users, list) else [each for each in str(users).split(",") if each]
        if not listed:
            raise Refused("users_list_not_supplied")
        if len(listed) > 1:
            raise Refused("method_not_supported_for_channel_type")
        before = len(self._world.channels)
        opened = self._open(app, str(listed[0]).strip(), "user_not_found")
        self._world.changes.bump()
        if len(self._world.channels) == before:
            return {"no_op": True, "already_open": True, "channel": {"id": opened.id}}
        return {"channel": {"id": opened.id}}

    def info(self, app: App, parameters: Parameters) -> JsonObject:
        """conversations.info."""
        found = self.known(app, parameters.needed("channel", "channel_not_found"))
        shown = found.json() | {"is_member": app.bot in found.members}
        if not parameters.flag("include_num_members"):
            shown.pop("num_members", None)
        return {"channel": shown}

    def history(self, app: App, parameters: Parameters) -> JsonObject:
        """conversations.history: the main part, newest first."""
        channel = self._readable(app, parameters)
        main = [each for each in channel.messages.values() if each.in_thread is None or each.broadcast]
        return self._page(list(reversed(main)), parameters)

    def replies(self, app: App, parameters: Parameters) -> JsonObject:
        """conversations.replies: a thread with its first message, oldest first."""
        channel = self._readable(app, parameters)
        thread_ts = parameters.needed("ts", "thread_not_found")
        if thread_ts not in channel.messages:
            raise Refused("thread_not_found")
        thread = [each for each in channel.messages.values() if thread_ts in (each.ts, each.in_thread)]
        return self._page(thread, parameters)

    def _readable(self, app: App, parameters: Parameters) -> Channel:
        channel = self.known(app, parameters.needed("channel", "channel_not_found"))
        if app.bot not in channel.members:
            raise Refused("not_in_channel")
        return channel

    def _page(self, messages: list[StoredMessage], parameters: Parameters) -> JsonObject:
        oldest, latest = parameters.text("oldest", "0"), parameters.text("latest", "9999999999.999999")
        inclusive = parameters.flag("inclusive")
        standing = [
            each
            for each in messages
            if not each.deleted
            and each.ephemeral_to is None
            and (float(oldest) < float(each.ts) < float(latest) or (inclusive and each.ts in (oldest, latest)))
        ]
        limit = max(1, min(PAGE_MAX, parameters.number("limit", 100)))
        shown = [self._world.message_json(each) for each in standing[:limit]]
        if not parameters.flag("include_all_metadata"):
            for each in shown:
                each.pop("metadata", None)
        return {"messages": shown, "has_more": len(standing) > limit}

    def members(self, app: App, parameters: Parameters) -> JsonObject:
        """conversations.members, on one page."""
        channel = self.known(app, parameters.needed("channel", "channel_not_found"))
        return {"members": sorted(channel.members), "response_metadata": {"next_cursor": ""}}

    def user(self, _app: App, parameters: Parameters) -> JsonObject:
        """users.info."""
        person = self._world.people.get(parameters.needed("user", "user_not_found"))
        if person is None:
            raise Refused("user_not_found")
        return {"user": person.json()}

    def usergroup_users(self, _app: App, parameters: Parameters) -> JsonObject:
        """usergroups.users.list; without `include_disabled` a disabled group is as good as none."""
        group = self._world.usergroups.get(parameters.needed("usergroup", "no_such_subteam"))
        if group is None or (group.disabled and not parameters.flag("include_disabled")):
            raise Refused("no_such_subteam")
        return {"users": list(group.users)}

"""Controls that build and change the place. Names are those of `SlackPlatform`."""

from __future__ import annotations

from .api import ALL_SCOPES
from .budgets import Budgets
from .events import Events
from .messaging import Messaging
from .posting import Posting
from .world import TEAM, App, Channel, Person, Usergroup, World


class Building:
    """Bots, people, user groups and channels."""

    def __init__(self, world: World, events: Events, messaging: Messaging, posting: Posting) -> None:
        self._world = world
        self._events = events
        self._messaging = messaging
        self._posting = posting

    def add_bot(
        self,
        *,
        token: str,
        app_token: str = "",
        signing_secret: str = "",
        name: str = "signoff",
        user_id: str | None = None,
        scopes: list[str] | None = None,
        events: list[str] | None = None,
    ) -> str:
        """An app with a bot; ValueError for tokens that are malformed or taken."""
        if not token.startswith("xoxb-") or (app_token and not app_token.startswith("xapp-")):
            raise ValueError("a bot token starts with xoxb-, an app token with xapp-")
        if any(token == app.token or (app_token and app_token == app.app_token) for app in self._world.apps.values()):
            raise ValueError("this token is taken")
        number = len(self._world.apps) + 1
        bot = user_id or f"UBOT{number}"
        bot_id = f"B{number:08d}"
        self._world.apps[bot] = App(
            bot=bot,
            bot_id=bot_id,
            app_id=f"A{number:08d}",
            token=token,
            app_token=app_token,
            signing_secret=signing_secret,
            scopes=ALL_SCOPES if scopes is None else frozenset(scopes),
            events=None if events is None else frozenset(events),
            budgets=Budgets(self._world.clock, self._world.limits),
        )
        self._world.people[bot] = Person(id=bot, name=name, display_name=name, is_bot=True, bot_id=bot_id)
        return bot

    def add_user(
        self,
        *,
        user_id: str,
        name: str,
        display_name: str | None = None,
        team_id: str | None = None,
        is_restricted: bool = False,
        is_ultra_restricted: bool = False,
        is_stranger: bool = False,
        is_bot: bool = False,
    ) -> str:
        """A person; ValueError when the id is taken."""
        if user_id in self._world.people:
            raise ValueError(f"user {user_id} exists already")
        self._world.people[user_id] = Person(
            id=user_id,
            name=name,
            display_name=display_name or name,
            team_id=team_id or TEAM,
            is_restricted=is_restricted or is_ultra_restricted,
            is_ultra_restricted=is_ultra_restricted,
            is_stranger=is_stranger,
            is_bot=is_bot,
        )
        return user_id

    def rename_user(self, *, user_id: str, name: str, display_name: str | None = None) -> None:
        """Change somebody's names."""
        person = self._world.person(user_id)
        person.name, person.display_name = name, display_name or name

    def deactivate_user(self, *, user_id: str) -> None:
        """End somebody's account."""
        self._world.person(user_id).deleted = True

    def add_usergroup(self, *, group: str, name: str, users: list[str]) -> str:
        """A user group; ValueError when the id is taken."""
        if group in self._world.usergroups:
            raise ValueError(f"user group {group} exists already")
        members = [self._world.person(user).id for user in users]
        self._world.usergroups[group] = Usergroup(id=group, name=name, users=members)
        return group

    def change_usergroup(self, *, group: str, users: list[str] | None = None, disabled: bool | None = None) -> None:
        """Give a user group other members, disable or enable it."""
        found = self._world.usergroup(group)
        if users is not None:
            found.users = [self._world.person(user).id for user in users]
        if disabled is not None:
            found.disabled = disabled

    def revoke_token(self, *, token: str, revoked: bool = True) -> None:
        """Let a token fail, or work again."""
        if revoked:
            self._world.revoked.add(token)
        else:
            self._world.revoked.discard(token)

    def add_channel(
        self,
        *,
        channel: str,
        name: str,
        members: list[str],
        private: bool = False,
        bots: list[str] | None = None,
        posting_restricted: bool = False,
    ) -> str:
        """A channel; ValueError when the id is taken."""
        if channel in self._world.channels:
            raise ValueError(f"channel {channel} exists already")
        joined = [app.bot for app in self._world.apps.values()] if bots is None else bots
        for member in (*members, *joined):
            self._world.person(member)
        self._world.channels[channel] = Channel(
            id=channel,
            kind="group" if private else "channel",
            name=name,
            members={*members, *joined},
            posting_restricted=posting_restricted,
        )
        return channel

    def add_dm(self, *, user_id: str, bot: str | None = None) -> str:
        """The direct conversation of a person and a bot."""
        return self._world.direct(self._world.person(user_id).id, self._world.app(bot).bot).id

    def join(self, *, channel: str, user_id: str) -> None:
        """Add somebody to a channel."""
        self._world.channel(channel).members.add(self._world.person(user_id).id)

    def leave(self, *, channel: str, user_id: str) -> None:
        """Remove somebody from a channel."""
        found = self._world.channel(channel)
        if user_id not in found.members:
            raise LookupError(f"{user_id} is not in {channel}")
        found.members.discard(user_id)
        if user_id in self._world.apps:
            self._events.left(self._world.apps[user_id], found)
        self._world.changes.bump()

    def archive(self, *, channel: str, archived: bool = True) -> None:
        """Archive a channel, or bring it back."""
        self._world.channel(channel).archived = archived

    def remove_channel(self, *, channel: str) -> None:
        """Delete a channel."""
        del self._world.channels[self._world.channel(channel).id]
        self._world.changes.bump()

    def delete_message(self, *, channel: str, ts: str) -> None:
        """Delete a message by hand."""
        self._messaging.remove(self._world.message(channel, ts))

    async def set_request_url(self, *, url: str | None, bot: str | None = None, verify: bool = False) -> None:
        """Post to this address, or none."""
        app = self._world.app(bot)
        before, app.request_url = app.request_url, url
        if url is None or not verify:
            return
        try:
            await self._posting.verify(app)
        except (ValueError, OSError) as problem:
            app.request_url = before
            raise ValueError(f"the address was not verified: {problem}") from problem

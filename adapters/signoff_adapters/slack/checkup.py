"""What is wrong between us and Slack, found by calls that change nothing there."""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from signoff.errors import AdapterError, AdapterFatal, AdapterUnavailable
from signoff.model import Destination
from signoff.ports import Finding, Introduction

from ..failures import CallFailed
from ..findings import nobody, unclear
from .calls import FATAL, Refused, Web
from .config import SlackConfig
from .groups import ask, group_id, refusal_of
from .manifest import READS_GROUPS, SCOPES, manifest
from .sender import is_group
from .wire import PLATFORM

TO_PASTE = manifest()
"""What Slack makes the app of."""
TOKEN = "Put the Bot User OAuth Token, which begins with xoxb-, into platforms.slack.bot_token."  # noqa: S105  # a sentence
SCOPES_HEADER = "X-OAuth-Scopes"
"""Slack names the scopes of the token that was used in every answer."""
_ID = "Copy the id from the foot of the channel's details; it begins with C, G or D."
_INSTALL = "Add them under OAuth & Permissions of the app and install it again."
_UNKNOWN = frozenset({"channel_not_found", "user_not_found", "users_not_found", "user_not_visible"})


class _Me(Struct, frozen=True):
    user_id: str
    user: str = ""
    team: str = ""


class _Channel(Struct, frozen=True):
    name: str = ""
    is_member: bool = True
    is_archived: bool = False
    is_im: bool = False


class _Info(Struct, frozen=True):
    channel: _Channel


class SlackCheckup:
    """A `Checkup` for one app in one workspace."""

    def __init__(self, config: SlackConfig) -> None:
        """Connects nowhere yet."""
        self._config = config
        self._web = Web(config, 4)
        self._api = f"{config.api_base_url.rstrip('/')}/api/"
        self.time_url = f"{self._api}api.test"

    async def introduce(self) -> Introduction:
        """Ask who we are. Raises `AdapterFatal` for a refused token, else `AdapterUnavailable`."""
        me = await self._me()
        return Introduction(name=me.user or me.user_id, user_id=me.user_id)

    async def _me(self) -> _Me:
        try:
            return msgspec.convert(await self._web.call("auth.test", {}), _Me)
        except Refused as error:
            if error.code in FATAL:
                raise AdapterFatal(f"Slack rejects the bot's token ({error.code}).") from None
            raise AdapterUnavailable(f"Slack did not say who we are ({error}).") from None
        except CallFailed as error:
            raise AdapterUnavailable(f"Slack cannot be reached ({error}).") from None
        except msgspec.ValidationError:
            raise AdapterUnavailable("Slack's answer to auth.test could not be read.") from None

    async def account(self, *, serving: bool) -> list[Finding]:
        """The tokens, the scopes and Socket Mode. `serving` makes no difference: nothing is received here."""
        try:
            me = await self._me()
        except AdapterError as error:
            return [nobody(error, PLATFORM, TOKEN)]
        found = [
            Finding.fine("token", f"Slack knows the app as {me.user or me.user_id} in {me.team or 'a workspace'}.")
        ]
        found.append(await self._scopes())
        found.append(await self._members(me.user_id))
        if self._config.mode == "socket":
            found.append(await self._socket_mode())
        return found

    async def _scopes(self) -> Finding:
        """The scopes that Slack names beside its answers; they tell what the app may do without trying it."""
        headers = {"Authorization": f"Bearer {self._config.bot_token}"}
        timeout = aiohttp.ClientTimeout(total=self._config.answer_timeout_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(f"{self._api}auth.test", headers=headers, allow_redirects=False) as answer,
            ):
                named = answer.headers.get(SCOPES_HEADER)
        except (aiohttp.ClientError, TimeoutError, OSError):
            named = None
        if named is None:
            return Finding.warning(
                "scopes", "Slack did not name the app's scopes.", f"See that the app has: {', '.join(SCOPES)}."
            )
        lacking = sorted(set(SCOPES) - {READS_GROUPS} - {scope.strip() for scope in named.split(",")})
        if lacking:
            return Finding.problem("scopes", f"The app lacks the scopes {', '.join(lacking)}.", _INSTALL)
        return Finding.fine("scopes", "The app has every scope that it needs.")

    async def _members(self, user_id: str) -> Finding:
        """Whether people can be looked up, without which nobody could decide: guests could not be told apart."""
        try:
            await self._web.call("users.info", query={"user": user_id})
        except Refused as error:
            if error.code == "missing_scope":
                return Finding.problem(
                    "members",
                    "The app may not read who people are, so nobody could decide.",
                    f"{_INSTALL[:-1]}: users:read.",
                )
            return _unclear("members", error)
        except CallFailed as error:
            return _unclear("members", error)
        return Finding.fine("members", "The app can read who people are.")

    async def group(self, group: str) -> Finding:
        """Whether Slack says who is in this user group; if not, nobody decides as its member."""
        about = f"approver {group}"
        try:
            users = await ask(self._web, group_id(group))
        except CallFailed as error:
            refusal = refusal_of(group_id(group), error)
            return _unclear(about, error) if refusal is None else Finding.problem(about, refusal.what, refusal.mend)
        if not users:
            return Finding.warning(about, "Nobody is in this user group.", "Add people to it, or list another one.")
        return Finding.fine(about, f"{len(users)} in this user group.")

    async def _socket_mode(self) -> Finding:
        """Ask for an address for a socket, which is the only proof that the app-level token works; it stays unused."""
        try:
            await self._web.socket_url(self._config.app_token or "")
        except Refused as error:
            if error.code in FATAL:
                return Finding.problem(
                    "app token",
                    f"Slack rejects the app-level token ({error.code}).",
                    "Put the one that begins with xapp- and has connections:write into platforms.slack.app_token.",
                )
            if error.code == "missing_scope":
                return Finding.problem(
                    "app token",
                    "The app-level token may not open sockets.",
                    "Make one with the scope connections:write under Basic Information, App-Level Tokens.",
                )
            return Finding.problem(
                "socket mode",
                f"Slack gives no address for a socket ({error.code}).",
                "Switch Socket Mode on in the app's settings.",
            )
        except (CallFailed, KeyError) as error:
            return _unclear("socket mode", error)
        return Finding.fine("socket mode", "Slack gives addresses for sockets to the app-level token.")

    async def place(self, destination: Destination) -> Finding:
        """Whether a card with its file can be posted there."""
        about, chat = f"place {destination}", destination.chat_id
        try:
            if chat[:1] in ("U", "W"):
                person = await self._web.call("users.info", query={"user": chat})
                return _person(about, chat, person)
            answer = await self._web.call("conversations.info", query={"channel": chat})
            channel = msgspec.convert(answer, _Info).channel
            if destination.thread_id is not None and channel.is_member:
                await self._web.call(
                    "conversations.replies", query={"channel": chat, "ts": destination.thread_id, "limit": 1}
                )
        except Refused as error:
            return _no_place(about, error)
        except (CallFailed, msgspec.ValidationError) as error:
            return _unclear(about, error)
        named = f"#{channel.name}" if channel.name else chat
        if channel.is_archived:
            return Finding.problem(about, f"{named} is archived.", "Open it again, or name another place.")
        if is_group(destination) and not channel.is_member:
            return Finding.problem(about, f"The app is not a member of {named}.", f"Write /invite @signoff in {named}.")
        return Finding.fine(about, f"The app may post in {named if not channel.is_im else 'this direct chat'}.")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._web.aclose()


def open_checkup(config: SlackConfig) -> SlackCheckup:
    """A check-up of the app in `config`."""
    return SlackCheckup(config)


def _person(about: str, user_id: str, answer: dict[str, Any]) -> Finding:
    user = answer.get("user")
    if isinstance(user, dict) and (user.get("deleted") or user.get("is_bot")):
        what = "account is closed" if user.get("deleted") else "is a bot"
        return Finding.problem(about, f"{user_id}: this {what}.", "Name another person or a channel.")
    return Finding.fine(about, f"Cards go to a direct chat with {user_id}.")


def _no_place(about: str, error: Refused) -> Finding:
    if error.code in _UNKNOWN:
        return Finding.problem(
            about, "Slack knows no such channel or person, or the app is not in it.", f"Invite the app. {_ID}"
        )
    if error.code in ("thread_not_found", "invalid_thread_ts"):
        return Finding.problem(about, "There is no such thread.", "Leave out the part after the slash.")
    if error.code == "missing_scope":
        return Finding.warning(about, f"The app may not look at it ({error}).", _INSTALL)
    return _unclear(about, error)


def _unclear(about: str, error: Exception) -> Finding:
    return unclear(about, "Slack", error)

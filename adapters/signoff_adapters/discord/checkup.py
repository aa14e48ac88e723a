"""What is wrong between us and Discord, found by calls that change nothing there."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from signoff.errors import AdapterError, AdapterFatal, AdapterUnavailable
from signoff.model import Destination
from signoff.ports import Finding, Introduction

from ..addresses import host_of
from ..failures import CallFailed
from ..findings import nobody, unclear
from .calls import Calls, HideToken, Rejected, Unauthorized
from .codes import NO_ACCESS, UNKNOWN_CHANNEL, UNKNOWN_GUILD
from .config import DiscordConfig
from .rights import INVITED, Guild, Member, Overwrite, invite_url, missing
from .wire import DIRECT_KINDS, PLATFORM, THREAD_KINDS, User

FEW_SESSIONS = 100
"""Of the 1000 sessions that Discord lets a bot begin in 24 h; at 0 it takes the token away."""
TOKEN = "Put the token from the Bot page of the Developer Portal into platforms.discord.token."  # noqa: S105  # a sentence
TO_PASTE = ""
"""Nothing: the Developer Portal asks for a name alone."""


class _Application(Struct, frozen=True):
    id: str
    name: str = ""
    interactions_endpoint_url: str | None = None
    verify_key: str | None = None


class _Budget(Struct, frozen=True):
    remaining: int = FEW_SESSIONS
    reset_after: float = 0.0
    """Milliseconds."""


class _Gateway(Struct, frozen=True):
    session_start_limit: _Budget = _Budget()


class _Place(Struct, frozen=True):
    id: str
    type: int = 0
    name: str | None = None
    guild_id: str | None = None
    parent_id: str | None = None
    recipients: tuple[User, ...] = ()
    permission_overwrites: tuple[Overwrite, ...] = ()
    thread_metadata: dict[str, Any] = {}


class DiscordCheckup:
    """A `Checkup` for one bot."""

    def __init__(self, config: DiscordConfig) -> None:
        """Connects nowhere yet."""
        self._config = config
        self._hide = HideToken(config.token)
        self._hide.attach()
        self._calls = Calls(config)
        self.time_url = f"{config.api_base_url.rstrip('/')}/api/v10/gateway"
        self._me_id = ""

    async def introduce(self) -> Introduction:
        """Ask who we are. Raises `AdapterFatal` for a refused token, else `AdapterUnavailable`."""
        try:
            user = await self._calls.get("/users/@me", User)
            application = await self._calls.get("/applications/@me", _Application)
        except Unauthorized:
            raise AdapterFatal("Discord rejects the bot's token.") from None
        except CallFailed as error:
            raise AdapterUnavailable(f"{error}.") from None
        self._me_id = user.id
        return Introduction(
            name=application.name or user.username or user.id,
            user_id=user.id,
            chat_url=f"https://discord.com/users/{user.id}",
            invite_url=invite_url(application.id),
        )

    async def account(self, *, serving: bool) -> list[Finding]:
        """The token, the address for interactions, and the gateway's budget. `serving` makes no difference: nothing is
        received here."""
        try:
            me = await self.introduce()
        except AdapterError as error:
            return [nobody(error, PLATFORM, TOKEN)]
        found = [Finding.fine("token", f"Discord knows the bot as {me.name}.")]
        try:
            found.append(await self._interactions())
            if self._config.mode == "gateway":
                found.append(await self._sessions())
                found.append(Finding.fine("intents", "None of the intents that are used is a privileged one."))
        except CallFailed as error:
            found.append(_unclear("connection", error))
        return found

    async def _interactions(self) -> Finding:
        application = await self._calls.get("/applications/@me", _Application)
        url, about = application.interactions_endpoint_url, "interactions URL"
        if self._config.mode == "gateway":
            if not url:
                return Finding.fine(about, "None is set, so presses come over the gateway.")
            return Finding.problem(
                about,
                f"Discord posts presses to {host_of(url)}, so none comes over the gateway.",
                "Empty Interactions Endpoint URL on the General Information page of the Developer Portal, or set "
                'platforms.discord.mode = "http".',
            )
        if application.verify_key and application.verify_key.lower() != (self._config.public_key or "").lower():
            return Finding.problem(
                "public key",
                "platforms.discord.public_key is another application's.",
                f"Copy the Public Key of application {application.id} from the Developer Portal.",
            )
        expected = self._config.hooks_url
        if not url:
            return Finding.warning(about, "None is set, so no press arrives.", "Start `signoff serve`, which sets it.")
        if expected is not None and url != expected:
            return Finding.warning(
                about, f"Presses go to {host_of(url)}.", f"Start `signoff serve`, which sets {host_of(expected)}."
            )
        return Finding.fine(about, f"Presses go to {host_of(url)}.")

    async def _sessions(self) -> Finding:
        budget = (await self._calls.get("/gateway/bot", _Gateway)).session_start_limit
        if budget.remaining >= FEW_SESSIONS:
            return Finding.fine("sessions", f"{budget.remaining} more sessions may begin today.")
        hours = max(1, round(budget.reset_after / 3_600_000))
        return Finding.warning(
            "sessions",
            f"Only {budget.remaining} more sessions may begin within {hours} h; at 0 Discord takes the token away.",
            "Find out what starts the bot so often, such as a service that restarts in a loop.",
        )

    async def place(self, destination: Destination) -> Finding:
        """Whether a card with its file can be posted there."""
        about, wanted = f"place {destination}", destination.thread_id or destination.chat_id
        if not (wanted.isascii() and wanted.isdigit()):
            return Finding.problem(about, "This is no channel id: Discord's are numbers.", _ID)
        try:
            place = await self._calls.get(f"/channels/{wanted}", _Place)
        except Rejected as error:
            if error.code == UNKNOWN_CHANNEL and destination.thread_id is None:
                return await self._person(about, wanted)
            return _no_place(about, error)
        except CallFailed as error:
            return _unclear(about, error)
        if place.type in DIRECT_KINDS:
            return Finding.fine(about, "This is a direct chat.")
        parent = place.parent_id if place.type in THREAD_KINDS else None
        if parent is not None and (destination.chat_id, destination.thread_id) != (parent, place.id):
            return Finding.problem(
                about, "This thread is no place of its own.", f"Write discord:{parent}/{place.id} instead."
            )
        try:
            return await self._channel(about, place, parent)
        except CallFailed as error:
            return _unclear(about, error)

    async def _person(self, about: str, user_id: str) -> Finding:
        """A destination may name a person; the direct chat is opened by the first card."""
        try:
            user = await self._calls.get(f"/users/{user_id}", User)
        except Rejected as error:
            return _no_place(about, error)
        except CallFailed as error:
            return _unclear(about, error)
        return Finding.fine(about, f"Cards go to a direct chat with {user.username or user_id}.")

    async def _channel(self, about: str, place: _Place, parent_id: str | None) -> Finding:
        """Whether the bot's roles and the channel's own rules let it post. A thread has its channel's rules."""
        named = f"#{place.name or place.id}"
        if place.thread_metadata.get("locked"):
            return Finding.problem(about, f"{named} is locked.", "Unlock the thread, or name another place.")
        ruled = place
        if parent_id is not None:
            ruled = await self._calls.get(f"/channels/{parent_id}", _Place)
        if not self._me_id:
            self._me_id = (await self._calls.get("/users/@me", User)).id
        guild = await self._calls.get(f"/guilds/{place.guild_id}", Guild)
        member = await self._calls.get(f"/guilds/{place.guild_id}/members/{self._me_id}", Member)
        lacking = missing(guild, member, self._me_id, ruled.permission_overwrites, thread=parent_id is not None)
        if lacking:
            return Finding.problem(
                about,
                f"In {named} the bot lacks: {', '.join(lacking)}.",
                "Give its role these permissions in the channel's settings.",
            )
        return Finding.fine(about, f"The bot may post in {named}.")

    async def aclose(self) -> None:
        """Close the connections."""
        self._hide.detach()
        await self._calls.aclose()


_ID = "Copy the id: switch on Developer Mode, right-click the channel, Copy Channel ID."


def open_checkup(config: DiscordConfig) -> DiscordCheckup:
    """A check-up of the bot in `config`."""
    return DiscordCheckup(config)


def _no_place(about: str, error: Rejected) -> Finding:
    if error.code == NO_ACCESS:
        mend = f"Give its role {INVITED[0]} in the channel, and add the bot to the server."
        return Finding.problem(about, "The bot may not see the channel.", mend)
    if error.status == 404 or error.code in (UNKNOWN_CHANNEL, UNKNOWN_GUILD):
        return Finding.problem(about, "Discord knows no channel or person of that id whom the bot can reach.", _ID)
    return _unclear(about, error)


def _unclear(about: str, error: CallFailed) -> Finding:
    return unclear(about, "Discord", error)

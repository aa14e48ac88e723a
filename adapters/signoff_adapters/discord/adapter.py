"""The adapter: receives interactions, hands cards to the sender, and comes back by itself after whatever went wrong.

With mode `gateway` presses, slash commands and what people write to the bot come over a connection that we open. With
mode `http` Discord posts presses and slash commands to the hooks listener; typed messages exist only on a gateway, so
there `@bot approve` and plain words in a direct chat are not heard, and the slash commands take their place.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from datetime import timedelta

import msgspec
from msgspec import Struct

from signoff.errors import AdapterError, AdapterFatal, AdapterUnavailable, ConfigError
from signoff.model import Card, Destination, Health, Posted
from signoff.ports import AdapterInfo, Clock, HookRoute, Inbox

from ..failures import CallFailed
from ..tasks import sleep
from ..watching import Watch
from .calls import Calls, HideToken, Rejected, Throttled, Unauthorized, as_edit_error
from .commands import COMMANDS
from .config import DiscordConfig
from .hook import Hook
from .intake import Intake
from .link import Dispatch, Link, LinkLost, Resumable
from .places import Places
from .sender import Sender
from .session import KeptSession
from .wire import PLATFORM, Me

QUICK_EVERY_S = 5.0
"""A connection that ends again so soon after the last one is not renewed at once."""
REACHED_EVERY_S = 120.0
"""HTTP mode: when Discord posted nothing for so long, it is asked to try our address with a ping."""
NEW_SESSION_S = (1.0, 5.0)
"""Between a resume that Discord refuses and the new session: it asks for a random time in these bounds."""
_log = logging.getLogger(__name__)


class _User(Struct, frozen=True):
    id: str


class _Application(Struct, frozen=True):
    id: str
    interactions_endpoint_url: str | None = None
    verify_key: str | None = None


class DiscordAdapter:
    """A `ChatAdapter` for one bot."""

    info = AdapterInfo(
        platform=PLATFORM,
        title="Discord",
        max_text_units=2000,
        private_panels=True,
        dialogs=True,
        per_second=45.0,
        per_chat_s=1.2,
        burst=5,
        group_per_minute=60,
        resend_ambiguous=False,
    )
    """Discord allows 50 calls a second, and announces 5 posts and 5 edits in 5 s for a channel of any kind. Five in 6 s
    leave a second for calls that are longer on their way than those after them."""
    config_type = DiscordConfig

    def __init__(self, config: DiscordConfig, *, clock: Clock, profile: str) -> None:
        """Connects nowhere yet. Raises `ConfigError` for http mode without a key or an address."""
        if config.mode == "http" and not config.public_key:
            raise ConfigError(
                'platforms.discord.mode = "http" needs platforms.discord.public_key: copy the Public Key from the '
                "application's General Information page in the Developer Portal.",
                param="platforms.discord.public_key",
            )
        if config.mode == "http" and not config.hooks_url:
            raise ConfigError("Discord's http mode needs the public address of the hooks listener.")
        self.profile = profile
        self._hide = HideToken(config.token)
        self._hide.attach()
        self._config, self._clock = config, clock
        gateway = config.mode == "gateway"
        rhythm_s = config.silence_s if gateway else config.check_every_s + 2 * config.answer_timeout_s
        self._watch = Watch(clock, deaf_after_s=rhythm_s + config.heartbeat_every_s, platform="Discord")
        self._calls = Calls(config)
        self._places = Places(self._calls)
        self._sender = Sender(self._calls, self._places, config)
        self._link = Link(config, on_dispatch=self._dispatched, on_heard=self._frame, on_up=self._began)
        self._hook = Hook(config.public_key, lambda: self._intake, self._posted) if config.public_key else None
        self._intake: Intake | None = None
        self._kept: KeptSession | None = None
        self._commands: asyncio.Task[None] | None = None
        self._me: Me | None = None
        self._up = False
        self._trouble = ""
        """What is wrong although a connection stands."""
        self._refused_tokens = 0
        self._reached_at = clock.now()
        """When Discord's posts surely reached us. A start takes the address that stands there for a good one."""

    # --- the core's side -------------------------------------------------------------------------

    async def post(self, destination: Destination, card: Card, *, reply_to: str | None = None) -> Posted:
        """Send the card and its file as one message. An answer that is lost is asked for again under the same nonce;
        `SendAmbiguous` is raised only when that found nothing out either.

        `ChatMoved` names the direct chat where the destination is a person. `SendRefused` carries a stable word in
        `facts["reason"]`.
        """
        return await self._sender.post(destination, card, reply_to)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Rewrite the message; its file stays. Raises `MessageGone` and what `post` raises but `SendAmbiguous`."""
        await self._sender.update(destination, message_id, card)

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Remove the message; already gone is success."""
        await self._sender.delete(destination, message_id)

    def is_group(self, destination: Destination) -> bool:
        """Whether it is anything but a chat with one person. Ids do not tell, so a place not met yet counts as a group;
        the budgets of both are the same."""
        return destination.thread_id is not None or not self._places.is_direct(destination)

    def health(self) -> Health:
        """State by the age of what was last received."""
        return self._watch.health()

    async def ready(self) -> None:
        """Return once a session of the gateway has begun, or Discord has our address for interactions."""
        await self._watch.proven()

    def hooks(self) -> HookRoute | None:
        """The route for interactions; None with the gateway."""
        return HookRoute("POST", self._hook.respond) if self._config.mode == "http" and self._hook is not None else None

    async def aclose(self) -> None:
        """Close the connections."""
        self._watch.stopped()
        self._hide.detach()
        await self._link.aclose()
        await self._calls.aclose()

    # --- receiving -------------------------------------------------------------------------------

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled. Raises `AdapterFatal` for what only an operator can mend: a token refused twice, an
        interactions endpoint beside the gateway, a public key of another application."""
        self._watch.begin()
        intake = self._intake = Intake(
            inbox, self._clock, self._config, self._calls, self._places, self._who, self._settled
        )
        kept = self._kept = KeptSession(inbox, self._where) if self._config.mode == "gateway" else None
        try:
            if kept is not None:
                self._link.resume = await kept.load()
            while True:
                try:
                    await self._open()
                    await (self._stay_connected() if self._config.mode == "gateway" else self._stay_registered())
                except CallFailed as error:
                    await self._recover(error)
        except AdapterFatal as fatal:
            self._watch.failed(fatal)
            raise
        finally:
            await self._end(intake, kept)

    async def _end(self, intake: Intake, kept: KeptSession | None) -> None:
        """Settle what is in hand, and keep the session from the first thing that could not be."""
        if self._commands is not None:
            self._commands.cancel()
            await asyncio.gather(self._commands, return_exceptions=True)
            self._commands = None
        self._up = False
        await intake.drain(self._config.drain_s)
        if kept is not None:
            await kept.close()
        self._intake = self._kept = None
        self._watch.stopped()

    async def _open(self) -> None:
        """Learn who we are and whether presses come here. Raises `CallFailed`, `AdapterFatal`."""
        user = await self._calls.get("/users/@me", _User)
        application = await self._calls.get("/applications/@me", _Application)
        self._refused_tokens = 0
        self._me = Me(user.id, application.id)
        if self._config.mode == "http":
            await self._register(application)
        elif application.interactions_endpoint_url:
            raise AdapterFatal(_diverted(application.interactions_endpoint_url))
        if self._commands is None:
            self._commands = asyncio.create_task(self._offer_commands(self._me.application_id))

    async def _stay_registered(self) -> None:
        """Ask Discord now and then whether it still posts here and gets through, and set our address again if not."""
        self._heard()
        while True:
            await sleep(self._clock, self._config.check_every_s)
            with contextlib.suppress(Throttled):  # the sending side's wait; one that lasts shows as silence
                await self._register(await self._calls.get("/applications/@me", _Application))
                self._heard()

    async def _register(self, application: _Application) -> None:
        """Have Discord post interactions here; it tries the address with a ping before it takes it.

        An address that stands there already is set again when nothing came for long, since a proxy before us may have
        stopped to let Discord through, and presses are all that would show it.
        """
        given, known = (self._config.public_key or "").lower(), application.verify_key
        if known and known.lower() != given:
            raise AdapterFatal(
                f"platforms.discord.public_key is not this bot's. Put the Public Key of application {application.id} "
                "from the Developer Portal there."
            )
        stands = application.interactions_endpoint_url == self._config.hooks_url
        if stands and self._clock.now() < self._reached_at + timedelta(seconds=REACHED_EVERY_S):
            return
        try:
            await self._calls.call("PATCH", "/applications/@me", {"interactions_endpoint_url": self._config.hooks_url})
        except Throttled:
            if not stands:
                raise
        else:
            self._reached_at = self._clock.now()

    async def _stay_connected(self) -> None:
        """Hold a connection to the gateway, and look now and then whether presses still come over it."""
        link = asyncio.create_task(self._relink())
        check = asyncio.create_task(self._check_application())
        try:
            done, _ = await asyncio.wait({link, check}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (link, check):
                task.cancel()
            await asyncio.gather(link, check, return_exceptions=True)

    async def _relink(self) -> None:
        """One connection after another. The first new try after a working one is made at once."""
        quick_before = self._clock.now()
        while True:
            await asyncio.sleep(self._link.gap_s())
            try:
                await self._link.hold()
            except LinkLost as lost:
                self._up = False
                self._watch.failed(AdapterUnavailable(f"Discord: {lost}."))
                if lost.too_old:
                    await sleep(self._clock, random.SystemRandom().uniform(*NEW_SESSION_S))
                elif not lost.was_up or self._clock.now() < quick_before:
                    await sleep(self._clock, self._watch.pause_s())
                quick_before = self._clock.now() + timedelta(seconds=QUICK_EVERY_S)

    async def _check_application(self) -> None:
        """The token and the address for interactions. A failure here is no reason to leave a working connection."""
        while True:
            await sleep(self._clock, self._config.check_every_s)
            try:
                application = await self._calls.get("/applications/@me", _Application)
            except Unauthorized as error:
                await self._doubt_token(error)
                self._trouble = f"{error}."
            except Throttled as error:  # the sending side's; only a long one, such as a ban, is worth telling
                self._trouble = f"{error}." if error.retry_after_s > self._config.check_every_s else self._trouble
            except CallFailed as error:
                self._trouble = f"{error}."
            else:
                url = application.interactions_endpoint_url
                self._trouble = _diverted(url) if url else ""
            if self._up:
                self._heard()

    async def _offer_commands(self, application_id: str) -> None:
        """Register the slash commands; it is tried until it worked, and holds up nothing."""
        while True:
            try:
                await self._calls.call("PUT", f"/applications/{application_id}/commands", COMMANDS)
            except CallFailed as error:
                _log.warning("discord slash commands were not registered: %s; it is tried again", error)
            else:
                return
            await sleep(self._clock, self._config.check_every_s)

    async def _recover(self, error: CallFailed) -> None:
        """Note what went wrong and wait; `AdapterFatal` when only an operator can mend it."""
        if isinstance(error, Unauthorized):
            await self._doubt_token(error)
        self._watch.failed(_explained(error))
        least_s = error.retry_after_s if isinstance(error, Throttled) else 0.0
        await sleep(self._clock, max(least_s, self._watch.pause_s()))

    async def _doubt_token(self, error: Unauthorized) -> None:
        """A 401 may come from a proxy; the token is only given up when Discord says so twice in a row."""
        try:
            await self._calls.get("/users/@me", _User)
        except Unauthorized:
            self._refused_tokens += 1
        except CallFailed:
            return
        else:
            self._refused_tokens = 0
        if self._refused_tokens >= 2:
            raise AdapterFatal(
                "Discord rejects the bot's token. Put the right one into platforms.discord.token."
            ) from error

    # --- what the connection tells ---------------------------------------------------------------

    def _began(self) -> None:
        self._up = True
        self._heard()
        self._settled()

    def _posted(self) -> None:
        """Discord posted an interaction here."""
        self._reached_at = self._clock.now()
        self._heard()

    def _frame(self) -> None:
        """Anything that comes is a sign of life, once a session has begun."""
        if self._up:
            self._heard()

    def _heard(self) -> None:
        self._watch.heard(self._trouble)

    def _dispatched(self, dispatch: Dispatch) -> None:
        """Hand it on; one that cannot be read is told and left out, and what follows it is heard."""
        intake = self._intake
        if intake is None:
            return
        try:
            if dispatch.event == "INTERACTION_CREATE":
                intake.interaction(dispatch.data, sequence=dispatch.sequence)
            elif dispatch.event == "MESSAGE_CREATE" or _is_edit(dispatch):
                intake.message(dispatch.data, sequence=dispatch.sequence)
        except msgspec.ValidationError as error:
            self._watch.note(f"left out a {dispatch.event} that could not be read ({error})", level=logging.WARNING)

    def _settled(self) -> None:
        """A session began, or something is done with: a restart may go on behind it."""
        if self._kept is not None:
            self._kept.changed()

    def _where(self) -> Resumable | None:
        """The session, and the last dispatch behind which everything is settled."""
        session, intake = self._link.position(), self._intake
        if session is None or intake is None:
            return None
        oldest = intake.oldest_open()
        return session if oldest is None else Resumable(session.session_id, oldest - 1, session.url)

    def _who(self) -> Me:
        return self._me or Me("", "")


def _diverted(url: str) -> str:
    """Why nothing can be received, and the mend, in one line."""
    return (
        f"Discord sends this application's presses to its Interactions Endpoint URL ({url[:100]}) and not here: "
        "remove it on the General Information page of the Developer Portal, or set "
        'platforms.discord.mode = "http".'
    )


def _is_edit(dispatch: Dispatch) -> bool:
    """A message changed by its writer; other updates only add a preview of an address."""
    return (
        dispatch.event == "MESSAGE_UPDATE"
        and isinstance(dispatch.data, dict)
        and dispatch.data.get("edited_timestamp") is not None
    )


def _explained(error: CallFailed) -> AdapterError:
    """What an operator reads of a failed round."""
    if isinstance(error, Rejected) and "interactions_endpoint_url" in error.text:
        return AdapterUnavailable(
            "Discord could not verify our address for interactions: the hooks listener must be reachable from the "
            "internet under gateway.hooks_url, by https."
        )
    if isinstance(error, Rejected):
        return AdapterUnavailable(
            f"{error}. If it stays so, check platforms.discord.token and platforms.discord.api_base_url."
        )
    if isinstance(error, Unauthorized):
        return AdapterUnavailable(f"{error}. If it stays so, check platforms.discord.token.")
    return as_edit_error(error)

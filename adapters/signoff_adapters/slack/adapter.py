"""The adapter: receives by sockets or signed requests, hands cards to the sender, and comes back by itself."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from signoff.errors import AdapterError, AdapterFatal, AdapterUnavailable, ConfigError
from signoff.model import Card, Destination, Health, Posted
from signoff.ports import AdapterInfo, Clock, HookRoute, Inbox

from ..failures import CallFailed
from ..tasks import Jobs, drain, logged, sleep
from ..watching import Pause
from .answers import Answers
from .calls import FATAL, Refused, Throttled, Web
from .config import SlackConfig
from .echo import Echo
from .groups import Groups
from .hook import Hook
from .intake import Intake
from .links import Links
from .memory import Threads
from .people import People
from .render import TEXT_MAX_UNITS
from .sender import Sender, is_group
from .socket import Socket
from .watch import WEB, Watch
from .wire import PLATFORM, Frame, Kind, Me

REQUEST_URL = "request url"
MISFIT = (
    "a request came whose signature platforms.slack.signing_secret does not fit. If it was Slack's, put the Signing "
    "Secret of the app's Basic Information there"
)
_KINDS: dict[str, Kind] = {
    "events_api": "events_api",
    "interactive": "interactive",
    "slash_commands": "slash_commands",
}
_log = logging.getLogger(__name__)


class SlackAdapter:
    """A `ChatAdapter` for one app in one workspace."""

    info = AdapterInfo(
        platform=PLATFORM,
        title="Slack",
        command_prefix="/signoff ",
        thread_prefix="!",
        max_text_units=TEXT_MAX_UNITS,
        ticks=False,
        private_panels=True,
        dialogs=True,
        per_second=4.0,
        per_chat_s=1.05,
        group_per_minute=45,
    )
    """Slack takes about one message a second in a channel and several hundred a minute over the workspace, and 50 edits
    a minute of one app. It has no key that would make a repeated post harmless."""
    config_type = SlackConfig

    def __init__(self, config: SlackConfig, *, clock: Clock, profile: str) -> None:
        """Connects nowhere yet. Raises `ConfigError` for a mode without what it needs."""
        if config.mode == "socket" and not config.app_token:
            raise ConfigError(
                "platforms.slack.app_token is missing: Socket Mode needs the app-level token (xapp-...) with the scope "
                "connections:write. Or set platforms.slack.mode to http."
            )
        if config.mode == "http" and not config.signing_secret:
            raise ConfigError(
                "platforms.slack.signing_secret is missing: http mode needs the app's signing secret. Or set "
                "platforms.slack.mode to socket."
            )
        self.profile = profile
        self._config, self._clock = config, clock
        rhythm_s = config.ping_every_s if config.mode == "socket" else config.check_every_s
        self._watch = Watch(clock, deaf_after_s=rhythm_s + 2 * config.answer_timeout_s)
        self._threads = Threads()
        self._echo = Echo(clock, config.echo_s, self._deaf)
        self._sends, self._answers = Web(config, 64), Web(config, 32)
        self._sender = Sender(self._sends, clock, config, self._threads, self._echo.posted)
        self._people = People(self._answers, self._who)
        self._groups = Groups(self._answers)
        self._hook: Hook | None = None
        if config.mode == "http" and config.signing_secret:
            self._hook = Hook(
                config.signing_secret, config.slow_event_s, lambda: self._intake, self._requested, self._misfit
            )
        self._inbox: Inbox | None = None
        self._intake: Intake | None = None
        self._links: Links | None = None
        self._me: Me | None = None
        self._deliveries = Jobs(failed=logged(PLATFORM))
        self._refused_tokens = 0
        self._signed = self._misfit_told = False

    # --- the core's side -------------------------------------------------------------------------

    async def post(self, destination: Destination, card: Card, *, reply_to: str | None = None) -> Posted:
        """Send the card once; its file goes into the same place before it.

        `SendRefused` carries a stable word in `facts["reason"]`. `attachment` means that the file was refused and the
        card therefore not sent: the whole text is not in reach there. A person's id as the chat raises `ChatMoved` to
        the direct chat with them.
        """
        if self._inbox is not None:
            groups = self._inbox.groups()
            self._groups.expect(groups)
            self._people.expect((*self._inbox.approvers(), *self._groups.members(groups)))
        return await self._sender.post(destination, card, reply_to)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Rewrite the message; its file stays. Raises `MessageGone` and what `post` raises but `SendAmbiguous`."""
        await self._sender.update(destination, message_id, card)

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Remove the message; already gone is success."""
        await self._sender.delete(destination, message_id)

    def is_group(self, destination: Destination) -> bool:
        """Whether it is a channel."""
        return is_group(destination)

    def hooks(self) -> HookRoute | None:
        """The request URL's route; None in socket mode."""
        return HookRoute("POST", self._hook.handle) if self._hook is not None else None

    def health(self) -> Health:
        """State by the age of what was last received."""
        return self._watch.health()

    async def ready(self) -> None:
        """Return once Slack has told who we are and a socket said hello (http mode: the first alone)."""
        await self._watch.proven()

    async def aclose(self) -> None:
        """Close the connections."""
        self._watch.stopped()
        await self._people.aclose()
        await self._groups.aclose()
        for web in (self._sends, self._answers):
            await web.aclose()

    # --- receiving -------------------------------------------------------------------------------

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled. Raises `AdapterFatal` once Slack has refused a token twice in a row."""
        self._watch.begin()
        self._inbox = inbox
        intake = Intake(
            inbox,
            self._clock,
            self._config,
            self._people,
            self._groups,
            Answers(self._answers, self._sender),
            self._threads,
            self._who,
            self._echo.heard,
        )
        links = Links(self._answers, self._clock, self._config, self._watch, self._envelope)
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._introduced()
            # A scope that is missing is told now, and not only with the first card.
            self._groups.expect(inbox.groups())
            self._intake, self._links = intake, links
            tasks += [asyncio.create_task(self._check()), asyncio.create_task(self._echo.run(inbox))]
            if self._config.mode == "socket":
                tasks += [asyncio.create_task(links.keep(number + 1)) for number in range(self._config.sockets)]
                tasks.append(asyncio.create_task(links.take_turns(self._sender.waits)))
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self._stop(intake, links, tasks)

    async def _stop(self, intake: Intake, links: Links, tasks: list[asyncio.Task[None]]) -> None:
        """Settle what is in hand while the sockets still take acknowledgements, then hang up."""
        await intake.drain(self._config.drain_s)
        self._intake = self._links = None
        await drain(lambda: set(self._deliveries), self._config.connect_timeout_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await links.aclose()
        self._watch.stopped()

    async def _introduced(self) -> None:
        """Ask Slack who we are until it says so."""
        pause = Pause()
        while not await self._asked(pause):
            continue

    async def _check(self) -> None:
        """Ask again now and then: a token may be taken back while the sockets stay open."""
        pause = Pause()
        while True:
            await sleep(self._clock, self._config.check_every_s)
            while not await self._asked(pause):
                continue

    async def _asked(self, pause: Pause) -> bool:
        """One `auth.test`; after a failure it waits. Raises `AdapterFatal` when only an operator can mend it."""
        try:
            me = msgspec.convert(await self._answers.call("auth.test", {}), Me)
        except CallFailed as error:
            self._explain(error)
            least_s = error.retry_after_s if isinstance(error, Throttled) else 0.0
            await sleep(self._clock, max(least_s, pause.next_s()))
            return False
        except msgspec.ValidationError:
            self._watch.fails(WEB, AdapterUnavailable("the answer to auth.test could not be read"))
            await sleep(self._clock, pause.next_s())
            return False
        self._me, self._refused_tokens = me, 0
        pause.reset()
        if self._config.mode == "http" and not self._watch.troubled(REQUEST_URL):
            self._watch.works(REQUEST_URL)
        self._watch.works(WEB)
        return True

    def _explain(self, error: CallFailed) -> None:
        refused = isinstance(error, Refused) and error.code in FATAL
        self._refused_tokens = self._refused_tokens + 1 if refused else 0
        if self._refused_tokens >= 2:
            fatal = AdapterFatal(
                f"Slack rejects the bot's token ({error}). Put the right one, which begins with xoxb-, into "
                "platforms.slack.bot_token."
            )
            self._watch.fails(WEB, fatal)
            raise fatal
        hint = " If it stays so, check platforms.slack.bot_token and api_base_url." if refused else ""
        self._watch.fails(WEB, AdapterUnavailable(f"Slack did not say who we are ({error}).{hint}"))

    def _deaf(self, reason: str) -> None:
        """Connected, and yet nothing comes."""
        if self._links is not None and self._config.mode == "socket":
            self._links.renew(reason)
        elif self._config.mode == "http":
            where = f"Slack does not reach the request URL {self._config.hooks_url or ''}".rstrip()
            self._watch.fails(REQUEST_URL, AdapterUnavailable(f"{where}; {reason}"))

    def _requested(self) -> None:
        """A signed request came."""
        self._signed, self._misfit_told = True, False
        self._watch.works(REQUEST_URL)

    def _misfit(self) -> None:
        """The signing secret is wrong, or a stranger posts. Once Slack's requests were seen to fit, strangers change
        nothing but one line of the history."""
        if not self._signed and self._me is not None:
            self._watch.fails(REQUEST_URL, AdapterUnavailable(MISFIT))
        elif self._signed and not self._misfit_told:
            self._misfit_told = True
            self._watch.note(MISFIT, level=logging.WARNING)

    def _envelope(self, socket: Socket, frame: Frame) -> None:
        """Settle an envelope and acknowledge it, in a task that is kept."""
        self._deliveries.spawn(self._settle(socket, frame))

    async def _settle(self, socket: Socket, frame: Frame) -> None:
        kind, intake, payload = _KINDS.get(frame.type), self._intake, dict[str, Any]()
        try:
            if kind is not None and intake is not None:
                payload = await intake.deliver(kind, frame.payload)
            elif intake is None:
                return
        except msgspec.DecodeError:
            # Repeating it would not make it readable.
            _log.error("slack sent a %s in an unknown shape; it is left out", frame.type)
        except AdapterError as error:
            _log.info("slack: a delivery is not acknowledged: %s", error.message)
            return
        except Exception:
            # The outermost edge of an envelope: it stays unacknowledged, so a message comes again.
            _log.exception("slack delivery failed")
            return
        await socket.acknowledge(frame.envelope_id or "", payload)

    def _who(self) -> Me:
        return self._me or Me(user_id="")

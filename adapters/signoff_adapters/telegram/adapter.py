"""The adapter: receives updates, hands cards to the sender, and comes back by itself after whatever went wrong."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import msgspec
from telegram.error import Conflict, TelegramError

from signoff.errors import AdapterError, AdapterFatal, AdapterUnavailable, ConfigError
from signoff.model import Answer, Card, Destination, Health, Posted
from signoff.ports import AdapterInfo, Clock, HookRoute, Inbox

from ..bodies import read_body
from ..lengths import cut
from ..tasks import sleep
from ..watching import Watch
from .calls import AnswerLost, HideToken, PollTransport, Rejected, Throttled, Transport, as_edit_error, bot_of
from .config import TelegramConfig
from .intake import Intake
from .sender import Sender, is_group
from .wire import ALLOWED_UPDATES, PLATFORM, Batch, Me, read_envelope

if TYPE_CHECKING:
    from aiohttp import web

TOAST_MAX = 200
"""Bot API, answerCallbackQuery.text."""
CONFLICT_PAUSE_S = 15.0
"""Two programs that poll for one bot throw each other out; trying faster only makes both fail more often."""
CONFIRM_S = 0.5
QUIET_ROUND_S = 0.25
"""Least duration of a poll that brought nothing new: whatever answers in Telegram's place must not make us spin."""
COMMANDS = (
    ("approve", "Approve a request: /approve id"),
    ("deny", "Deny a request: /deny id reason"),
    ("pending", "What waits here"),
    ("stop", "Stop the session and withdraw what it asks"),
    ("new", "Begin a new session"),
    ("grants", "Standing approvals"),
    ("revoke", "End a standing approval: /revoke id"),
    ("yolo", "Stop asking for a while: /yolo minutes, /yolo off"),
    ("help", "All commands"),
)
_log = logging.getLogger(__name__)


class TelegramAdapter:
    """A `ChatAdapter` for one bot."""

    info = AdapterInfo(platform=PLATFORM, title="Telegram")
    config_type = TelegramConfig

    def __init__(self, config: TelegramConfig, *, clock: Clock, profile: str) -> None:
        """Connects nowhere yet. Raises `ConfigError` for webhook mode without an address or a secret."""
        if config.mode == "webhook" and not (config.hooks_url and config.hook_secret):
            raise ConfigError("Telegram's webhook mode needs the public address of the hooks listener and a secret.")
        self.failed_answers = 0
        """Presses whose answer Telegram did not take; what was decided stands."""
        self.profile = profile
        self._hide = HideToken(config.token)
        self._hide.attach()
        self._config, self._clock = config, clock
        rhythm_s = config.poll_timeout_s if config.mode == "polling" else config.check_every_s
        self._watch = Watch(clock, deaf_after_s=rhythm_s + 2 * config.answer_timeout_s, platform="Telegram")
        tls = httpx.create_ssl_context()
        self._polls = PollTransport(2, config, tls)
        self._answers = Transport(32, config, tls)
        self._sends = Transport(64, config, tls)
        self._receiver = bot_of(config, self._answers, self._polls)
        self._sender = Sender(bot_of(config, self._sends, self._sends))
        self._intake: Intake | None = None
        self._me: Me | None = None
        self._refused_tokens = 0

    # --- the core's side -------------------------------------------------------------------------

    async def post(self, destination: Destination, card: Card, *, reply_to: str | None = None) -> Posted:
        """Send the card once; its file goes first and is what it replies to.

        `SendRefused` carries a stable word in `facts["reason"]`. `attachment` means that the file was refused and the
        card therefore not sent: the whole text is not in reach there. All errors speak of the card, never of the file.
        """
        return await self._sender.post(destination, card, reply_to)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Rewrite the message; its file stays. Raises `MessageGone` and what `post` raises but `SendAmbiguous`."""
        await self._sender.update(destination, message_id, card)

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Remove the message; already gone is success. Telegram refuses it after 48 h (`SendRefused`)."""
        await self._sender.delete(destination, message_id)

    def is_group(self, destination: Destination) -> bool:
        """Whether Telegram's budgets for groups apply."""
        return is_group(destination)

    def health(self) -> Health:
        """State by the age of what was last received."""
        return self._watch.health()

    async def ready(self) -> None:
        """Return once Telegram has told who we are and answered a poll (or taken the webhook)."""
        await self._watch.proven()

    async def aclose(self) -> None:
        """Close the connections."""
        self._watch.stopped()
        self._hide.detach()
        for pool in (self._polls, self._answers, self._sends):
            await pool.shutdown()

    # --- receiving -------------------------------------------------------------------------------

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled. Raises `AdapterFatal` once Telegram has refused the token twice in a row."""
        self._watch.begin()
        intake = self._intake = Intake(inbox, self._clock, self._config, self._who, self._reply)
        try:
            while True:
                try:
                    await self._open()
                    await (self._poll(intake) if self._config.mode == "polling" else self._check_webhook())
                except TelegramError as error:
                    await self._recover(error)
        finally:
            self._intake = None
            await intake.drain(self._config.drain_s)
            await self._confirm(intake)
            self._watch.stopped()

    async def _open(self) -> None:
        if self._me is None:
            user = await self._receiver.get_me()
            self._me = Me(user.id, user.username or "")
        if self._config.mode == "webhook":
            await self._set_webhook()
            self._heard()
        else:
            await self._receiver.delete_webhook(drop_pending_updates=False)

    async def _poll(self, intake: Intake) -> None:
        """The first poll returns at once, so that a working connection shows without delay."""
        await self._fetch(intake, 0)
        await self._offer_commands()
        while True:
            await self._fetch(intake, self._config.poll_timeout_s)

    async def _fetch(self, intake: Intake, timeout_s: int) -> None:
        """One poll. What it brought gets a moment to be settled, so that the next poll confirms it."""
        offset, began = intake.offset, time.monotonic()
        await self._receiver.get_updates(
            offset=offset,
            timeout=timeout_s,
            allowed_updates=ALLOWED_UPDATES,
            read_timeout=self._config.answer_timeout_s,
        )
        try:
            batch = msgspec.json.decode(self._polls.batch, type=Batch)
            fresh = intake.take(batch.result)
        except msgspec.DecodeError:
            raise AnswerLost("the answer to a poll could not be read") from None
        self._heard()
        intake.confirmed(offset)
        await intake.wait(limit_s=0.25 if fresh else 1.0, all_of_them=fresh)
        spare_s = 0.0 if fresh else QUIET_ROUND_S - (time.monotonic() - began)
        await asyncio.sleep(max(0.0, spare_s))

    async def _check_webhook(self) -> None:
        """Ask Telegram now and then whether it still posts here, and what stops it."""
        await self._offer_commands()
        while True:
            info = await self._receiver.get_webhook_info()
            if info.url != self._config.hooks_url:
                await self._set_webhook()
            recent = self._clock.now() - timedelta(seconds=2 * self._config.check_every_s)
            failing = info.last_error_date is not None and info.last_error_date > recent
            stuck = failing and info.pending_update_count > 0
            self._heard(f"Telegram cannot deliver: {info.last_error_message}" if stuck else "")
            await sleep(self._clock, self._config.check_every_s)

    async def _set_webhook(self) -> None:
        await self._receiver.set_webhook(
            self._config.hooks_url or "",
            secret_token=self._config.hook_secret,
            allowed_updates=ALLOWED_UPDATES,
            drop_pending_updates=False,
        )

    async def _offer_commands(self) -> None:
        """Fill the menu. A convenience: commands work without it."""
        try:
            await self._receiver.set_my_commands(COMMANDS)
        except TelegramError as error:
            _log.info("telegram command menu was not set: %s", error.message)

    def _heard(self, trouble: str = "") -> None:
        self._refused_tokens = 0
        self._watch.heard(trouble)

    async def _recover(self, error: TelegramError) -> None:
        """Note what went wrong and wait; `AdapterFatal` when only an operator can mend it."""
        if isinstance(error, Rejected) and error.status == 401:
            self._refused_tokens = self._refused_tokens + 1 if await self._token_refused() else 0
        if self._refused_tokens >= 2:
            fatal = AdapterFatal("Telegram rejects the bot's token. Put the right one into platforms.telegram.token.")
            self._watch.failed(fatal)
            raise fatal
        self._watch.failed(_explained(error))
        least_s = error.retry_after_s if isinstance(error, Throttled) else 0.0
        pause_s = CONFLICT_PAUSE_S if isinstance(error, Conflict) else max(least_s, self._watch.pause_s())
        await sleep(self._clock, pause_s)

    async def _token_refused(self) -> bool:
        """A 401 may come from a proxy; the token is only doubted when Telegram does not know us either."""
        try:
            await self._receiver.get_me()
        except TelegramError as error:
            return isinstance(error, Rejected) and error.status == 401
        return False

    async def _confirm(self, intake: Intake) -> None:
        """Confirm what was settled before the stop; else it would be delivered again, which is harmless."""
        if self._config.mode == "webhook" or intake.offset is None:
            return
        try:
            async with asyncio.timeout(CONFIRM_S):
                await self._receiver.get_updates(offset=intake.offset, limit=1, timeout=0)
        except (TelegramError, TimeoutError):
            _log.info("telegram updates were not confirmed at the stop; they will be delivered again")

    async def _reply(self, query_id: str, answer: Answer) -> bool:
        try:
            await self._receiver.answer_callback_query(query_id, cut(answer.text, TOAST_MAX), show_alert=answer.alert)
        except TelegramError as error:
            self.failed_answers += 1
            _log.info("telegram did not take the answer to a press: %s", error.message)
            return False
        return True

    def _who(self) -> Me:
        return self._me or Me(0, "")

    # --- the webhook -----------------------------------------------------------------------------

    def hooks(self) -> HookRoute | None:
        """The webhook's route; None when polling."""
        return HookRoute("POST", self._hook) if self._config.mode == "webhook" else None

    async def _hook(self, request: web.Request) -> web.Response:
        """200 once the effect is durable, 500 otherwise: Telegram then delivers the update again."""
        from aiohttp import web

        given = request.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
        expected = self._config.hook_secret or ""
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode()):
            return web.Response(status=403, text="wrong secret")
        body = await read_body(request)
        if body is None:
            return web.Response(status=413, text="body too large")
        try:
            envelope = read_envelope(body)
        except msgspec.DecodeError:
            return web.Response(status=400, text="not an update")
        intake = self._intake
        if intake is None:
            return web.Response(status=503, text="not running")
        self._heard()
        try:
            await intake.deliver(envelope, body)
        except Exception:
            # The outermost edge of a request: whatever the handling raised, Telegram delivers the update again.
            _log.exception("telegram update failed; it will be delivered again")
            return web.Response(status=500, text="not stored")
        return web.Response(text="ok")


def _explained(error: TelegramError) -> AdapterError:
    """What an operator reads of a failed round."""
    if isinstance(error, Conflict):
        if "webhook" in error.message.lower():
            return AdapterUnavailable("A webhook is set for this bot; it is removed, because polling is configured.")
        return AdapterUnavailable("another program polls this bot's updates; stop it, or give it a bot of its own")
    if isinstance(error, Rejected):
        return AdapterUnavailable(
            f"Telegram answered {error.status}. If it stays so, check platforms.telegram.token and api_base_url."
        )
    return as_edit_error(error)

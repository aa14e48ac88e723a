"""A Discord on loopback (REST, gateway, HTTP interactions), with the real one's limits, errors and faults.

In a test's own loop::

    async with DiscordServer() as server:
        discord_ = server.platform
        app = await discord_.add_bot("TOKEN", "signoff")                # application id = the bot's user id
        await discord_.add_user(111, "ana")
        await discord_.add_guild(10, "Ops", members=[111])
        await discord_.add_channel(10, 20, "deploys")
        where = await discord_.where()    # url, api_base_url (Route.BASE), gateway_url (DEFAULT_GATEWAY), control_url

In a process of its own: `async with discord_process() as discord_:`, or
`python -m tests.platforms.discord --port 0 --control` and `await DiscordPlatform.connect(url)`. All give a
`DiscordPlatform`. Ids are ints everywhere. Methods:

* addresses: `where()`, `api_base_url()`, `gateway_url()`, `public_key(bot_id=None)` (hex)
* the place: `add_bot(token, username, *, bot_id=None, content_intent=False)`, `add_user(user_id, username, *,
  display_name=None, is_bot=False)`, `rename_user`, `close_dms(user_id, *, closed=True)` (50007), `add_guild(guild_id,
  name, *, members=(), bots=None)`, `add_member(guild_id, user_id)`, `add_role(guild_id, role_id, name, *, members=())`,
  `add_channel(guild_id, channel_id, name)`, `add_thread(channel_id, thread_id, name, *, archived=False, locked=False,
  private=False)`, `set_thread(thread_id, *, archived=None, locked=None)`, `delete_channel(channel_id)` (channels and
  threads), `set_access(channel_id, *, view=True, send=True)` (50001, 50013), `remove_bot(guild_id, *, bot_id=None)`,
  `dm(user_id, *, bot_id=None)` (channel id), `delete_message(channel_id, message_id)`
* what people do, each giving an interaction id: `press(user_id, channel_id, message_id, button)` (label or custom id;
  ephemeral messages too, by whom they are shown to), `press_ephemeral(interaction_id, button)` (a button of the private
  answer to an interaction), `press_forged(user_id, channel_id, message_id, custom_id)`, `submit_modal(interaction_id,
  {custom_id: value})`, `slash(user_id, channel_id, command, options)` (`"group sub"` names subcommands),
  `autocomplete(user_id, channel_id, command, options, focused)`, `redeliver(interaction_id)`
* `say(user_id, channel_id, text, *, reply_to=None, mention_bot=False, forward=False, edited=False, webhook=False)`
  (message id), `edit_said`
* what they see: `messages(channel_id, *, viewer=None)` (ephemeral ones only for their viewer),
  `press_state(interaction_id)`, `answer_of(interaction_id, timeout_s)` (first thing shown: `Answer` of kind message,
  update, modal or choices), `private_answer_of(interaction_id, timeout_s)` (first thing shown to that person alone),
  `answers(interaction_id)` (all), `modal_of`, `choices_of`, `commands(guild_id=None)`, `pending_count()` (interactions
  that may still be answered and are not, and dispatches that wait for a resume), `sessions()`
* waiting: `until(look, predicate)`, `wait_for(channel_id, predicate)`, `wait_for_message`, `wait_for_log`,
  `wait_for_session(count=1)`
* REST faults: `fault(kind, *, call=None, method=None, channel_id=None, times=1, code=None, retry_after_s=1.0,
  after_s=None, via=True, is_global=False)`; `call` is a name of `routes.py` such as `create_message`, `edit_message`,
  `callback`, `create_followup`, `edit_original`, or `interaction_post` (what goes to an interactions URL);
  `clear_faults`, `faults_left`
* gateway faults: `reconnect()` (op 7), `invalidate_session(*, resumable=False)` (op 9), `close_gateway(code)`,
  `drop_gateway()` (TCP reset), `hold_gateway(held=True)` (handshakes hang, so a drop lasts), `fail_handshakes(times)`,
  `refuse_resumes(times, *, code=None)` (op 9, or closed so), `garble_gateway()` (a frame that is none),
  `mute_heartbeats(muted=True)`, `freeze_gateway(frozen=True)` (sends nothing at all),
  `malform_next(kind="thread_null")` (the next interaction kills discord.py's loop), `dispatch(event, data)` (anything),
  `hold_ready(held=True)` (IDENTIFY gets no READY)
* HTTP interactions: `set_interactions_url(url, *, validate=True, bot_id=None)`, `interactions_url()`,
  `ping_interactions()` (one good and badly signed ones: list of `Ping`), `post_interaction(...)` raw with any signature
* network: `down()`, `blackhole()`, `up()`; time: `advance_clock(seconds_s)`, `freeze_clock`; `set_limits(mode=...,
  ...)`, `limit_report()`, `reset_limits()`, `log(call=None, channel_id=None)`, `clear_log()`
"""

from tests.platforms.telegram.clock import ServerClock

from .limits import RateLimits
from .model import (
    Answer,
    FaultKind,
    LimitReport,
    LogEntry,
    Ping,
    PressState,
    SeenButton,
    SeenField,
    SeenFile,
    SeenMessage,
    SeenModal,
    SeenSession,
    Violation,
    WhereAt,
)
from .platform import DiscordPlatform
from .process import discord_process
from .server import DiscordServer

__all__ = [
    "Answer",
    "DiscordPlatform",
    "DiscordServer",
    "FaultKind",
    "LimitReport",
    "LogEntry",
    "Ping",
    "PressState",
    "RateLimits",
    "SeenButton",
    "SeenField",
    "SeenFile",
    "SeenMessage",
    "SeenModal",
    "SeenSession",
    "ServerClock",
    "Violation",
    "WhereAt",
    "discord_process",
]

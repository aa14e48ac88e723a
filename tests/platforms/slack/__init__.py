"""A Slack workspace on loopback: Web API, Socket Mode and signed HTTP requests, with real limits, errors and faults.

In a test's own loop::

    async with SlackServer() as server:
        slack = server.platform
        bot = await slack.add_bot("xoxb-1", "xapp-1", signing_secret="secret")     # the bot's user id, "UBOT1"
        await slack.add_user("U111", "Ana")
        await slack.add_channel("C111", "ops", members=["U111"])                   # bots join unless bots=[] is given
        client = AsyncWebClient(token="xoxb-1", base_url=await slack.base_url(), retry_handlers=[])

In a process of its own: `slack_process()`, or `python -m tests.platforms.slack --port 0 --control` and
`SlackPlatform.connect(url)`. All give a `SlackPlatform`. Its methods by purpose (all are coroutines):

* addresses: `where()`, `base_url()` (ends in `/api/`)
* the place: `add_bot`, `add_user`, `rename_user`, `deactivate_user`, `add_usergroup`, `change_usergroup`,
  `revoke_token`, `add_channel`, `add_dm`, `join`, `leave`, `archive`, `remove_channel`, `delete_message`,
  `start_thread`
* one address for Events API, interactivity and slash commands instead of Socket Mode:
  `set_request_url(url, verify=False)`; none goes back. `post_forged(...)` for bad signatures
* what people do: `say`, `mention`, `edit_said`, `slash`, `press`, `press_forged`, `submit_view`, `close_view`,
  `redeliver` (the same press, command or event again), `raw_event`, `raw_interaction`, `raw_frame`
* what people see: `messages(channel, thread_ts=None, as_user=None)`, `views(user)`, `press_state`, `answer_of`,
  `envelopes`, `pending_count`, `wait_for`, `wait_for_message`, `wait_for_log`, `until`
* sockets: `sockets()`, `disconnect(reason)`, `abort_sockets()`, `deafen(deaf=True)`, `mute_pongs(muted=True)`
* trouble: `fault(kind, method=None, channel=None, times=1, ...)`, `clear_faults`, `faults_left`, `down`, `blackhole`,
  `up`
* limits, time, log: `set_limits`, `limit_report`, `reset_limits`, `advance_clock`, `freeze_clock`, `log`, `clear_log`

A press, a slash command and a submission are known by an id (`press_state(id)`, `answer_of(id)`, `redeliver(id)`).
Their `Answer.kind` says what the person was shown: `ephemeral`, `message`, `replaced`, `deleted`, `modal`, `errors`,
`closed`, or `error` when nobody acknowledged within 3 s.
"""

from tests.platforms.telegram.clock import ServerClock

from .budgets import RateLimits
from .model import (
    Answer,
    EnvelopeState,
    FaultKind,
    LimitReport,
    LogEntry,
    PressState,
    SeenButton,
    SeenConfirm,
    SeenFile,
    SeenMessage,
    SeenView,
    SocketState,
    Violation,
    WhereAt,
)
from .platform import SlackPlatform
from .process import slack_process
from .server import SlackServer

__all__ = [
    "Answer",
    "EnvelopeState",
    "FaultKind",
    "LimitReport",
    "LogEntry",
    "PressState",
    "RateLimits",
    "SeenButton",
    "SeenConfirm",
    "SeenFile",
    "SeenMessage",
    "SeenView",
    "ServerClock",
    "SlackPlatform",
    "SlackServer",
    "SocketState",
    "Violation",
    "WhereAt",
    "slack_process",
]

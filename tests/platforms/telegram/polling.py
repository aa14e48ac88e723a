"""getUpdates: one long poll a bot at a time."""

from __future__ import annotations

import asyncio

from .account import take_allowed
from .model import JsonObject
from .params import Parameters
from .refusal import OTHER_POLLER, WEBHOOK_ACTIVE, conflict
from .world import BotAccount

BATCH_MAX = 100
POLL_MAX_S = 50
"""Longest long poll (getUpdates takes up to 50 s in practice)."""


async def get_updates(bot: BotAccount, parameters: Parameters) -> list[JsonObject]:
    """Waiting updates, at once or when the first comes; none when the poll's time is over.

    Refused with 409 while a webhook is set, and when a later poll takes over from this one. `offset` confirms.
    """
    queue = bot.updates
    if queue.webhook is not None:
        raise conflict(WEBHOOK_ACTIVE)
    offset = parameters.integer("offset", 0) or 0
    limit = min(max(parameters.integer("limit", BATCH_MAX) or BATCH_MAX, 1), BATCH_MAX)
    timeout_s = min(max(parameters.integer("timeout", 0) or 0, 0), POLL_MAX_S)
    take_allowed(bot, parameters)
    queue.poll_number += 1
    own_number = queue.poll_number
    queue.confirm_below(offset)
    queue.changes.bump()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        if queue.webhook is not None:
            raise conflict("terminated by setWebhook request")
        if queue.poll_number != own_number:
            raise conflict(OTHER_POLLER)
        revision = queue.changes.revision
        waiting = queue.batch(limit)
        left_s = deadline - loop.time()
        if waiting or left_s <= 0:
            return waiting
        await queue.changes.after(revision, left_s)

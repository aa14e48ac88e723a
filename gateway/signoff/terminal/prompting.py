"""One question on the terminal until it is answered there, ends elsewhere, or the terminal gives no answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Literal

from signoff.errors import SignoffError
from signoff.terminal.drawing import Drawing
from signoff.terminal.talking import Side, converse
from signoff.terminal.tty import CONTROLLING, Ended, NoTerminal, Tty

log = logging.getLogger("signoff.terminal")

Failure = Literal["no_prompt", "prompt_failed", "prompt_interrupted"]
"""Why a terminal gave no answer. None of them is a denial."""


async def prompted(side: Side, request_id: str, over: Awaitable[str], path: str = CONTROLLING) -> Failure | None:
    """Ask on the terminal. None once the question has ended, here or elsewhere; else why nobody answered here.

    `over` gives, when the question has ended, how, in a sentence for people. Cancelled, it stops reading at once.
    """
    ended = asyncio.ensure_future(over)
    try:
        return await _asked(side, request_id, ended, path)
    except SignoffError as error:
        log.warning("terminal.prompt_failed: %s", error.message)
        return "prompt_failed"
    except OSError as error:
        log.warning("terminal.prompt_failed: %s", error)
        return "prompt_failed"
    except Exception:  # the prompt's outer edge: a defect in it must neither answer nor hang the question
        log.exception("terminal.prompt_failed")
        return "prompt_failed"
    finally:
        ended.cancel()
        await asyncio.wait({ended})


async def _asked(side: Side, request_id: str, ended: asyncio.Future[str], path: str) -> Failure | None:
    try:
        tty = Tty.open(path)
    except NoTerminal as error:
        log.info("terminal.no_prompt: %s", error)
        return "no_prompt"
    with tty:
        talk = asyncio.create_task(converse(tty, side, request_id))
        either: set[asyncio.Future[Any]] = {talk, ended}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not talk.done():
                talk.cancel()
                await asyncio.wait({talk})
        try:
            decided = not talk.cancelled() and talk.result()
        except Ended as error:
            log.info("terminal.prompt_interrupted: %s", error)
            return "prompt_interrupted"
        if not decided:
            Drawing(tty.out).line(f"\nNothing is asked here any more. {await ended}")
        await tty.written()
        return None

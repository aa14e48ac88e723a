"""What is cleaned up although its caller was cancelled goes on when the caller is cancelled once more."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref

import pytest

from signoff.client.turns import to_the_end


async def test_what_nobody_waits_for_any_more_is_kept_until_its_end(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[weakref.ref[asyncio.Future[None]]] = []
    begun = asyncio.Event()

    async def work() -> None:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answers.append(weakref.ref(answer))
        begun.set()
        await answer

    caller = asyncio.create_task(to_the_end(work(), 60.0))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    del caller
    gc.collect()
    answer = answers[0]()
    assert answer is not None, "the work was dropped in the middle"
    with caplog.at_level(logging.WARNING, "signoff"):
        answer.set_exception(OSError("gone"))
        del answer
        for _ in range(3):  # the work ends, and then its end is told
            await asyncio.sleep(0)
    assert caplog.messages == ["cleaning up failed: gone"]

"""Adapters at work: each is kept receiving and closed at the end, whatever becomes of another one."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping

from signoff.errors import AdapterError, AdapterFatal
from signoff.ports import ChatAdapter, Inbox

log = logging.getLogger(__name__)

FIRST_TRY_S = 3.0
"""How long the start waits for each platform's first round; all are tried at once."""
RESTART_S = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Pauses before an adapter whose receiving ended in an error is started again."""
WELL_AFTER_S = 60.0
"""One that received for so long begins with the first pause again."""

Key = tuple[str, str]
"""Profile and platform."""


def section(profile: str, platform: str) -> str:
    """The section of the settings that is meant, so that an operator of many tenants finds it."""
    return f"platforms.{platform}" if profile == "default" else f"profiles.{profile}.platforms.{platform}"


class Receiving:
    """The adapters of one gateway. What one of them raises is logged, and the others go on."""

    def __init__(self, given_up: dict[Key, str], on_defect: Callable[[], None]) -> None:
        """`given_up` is told why an adapter receives no more; `on_defect` is called for each error that no adapter may
        raise."""
        self._given_up = given_up
        self._on_defect = on_defect
        self._receivers: list[asyncio.Task[None]] = []
        self._telling: list[asyncio.Task[None]] = []

    @property
    def begun(self) -> bool:
        """Whether any adapter receives."""
        return bool(self._receivers)

    def begin(self, key: Key, adapter: ChatAdapter, inbox: Inbox) -> None:
        """Receive from now on."""
        task = asyncio.create_task(self._receive(key, adapter, inbox), name=f"receive-{key[0]}-{key[1]}")
        self._receivers.append(task)

    async def _receive(self, key: Key, adapter: ChatAdapter, inbox: Inbox) -> None:
        """Keep an adapter receiving: it heals by itself, and what ends it anyway is logged and tried again."""
        loop = asyncio.get_running_loop()
        pauses = iter(RESTART_S)
        for attempt in itertools.count(1):
            began = loop.time()
            try:
                await adapter.run(inbox)
                return
            except AdapterFatal as error:
                self._given_up[key] = error.message
                log.error("%s stopped: %s", section(*key), error.message)
                return
            except Exception:  # the adapter's outer edge: whatever ended it, the other platforms go on
                log.exception("%s: receiving ended in an error (%d); it is started again", section(*key), attempt)
                self._on_defect()
            if loop.time() - began >= WELL_AFTER_S:
                pauses = iter(RESTART_S)
            await asyncio.sleep(next(pauses, RESTART_S[-1]))

    async def first_rounds(self, adapters: Mapping[Key, ChatAdapter]) -> None:
        """Return once each platform had its first try; one that failed is told."""
        await asyncio.gather(*(self._first_round(key, adapter) for key, adapter in adapters.items()))

    async def _first_round(self, key: Key, adapter: ChatAdapter) -> None:
        try:
            async with asyncio.timeout(FIRST_TRY_S):
                await adapter.ready()
            return
        except AdapterError as error:
            reason = error.message
        except TimeoutError:
            reason = f"no answer within {FIRST_TRY_S:g} s"
        except Exception as error:  # the adapter's outer edge: whatever it raised, the others are served
            log.exception("%s: the first try ended in an error", section(*key))
            self._on_defect()
            reason = f"a defect of the adapter ({type(error).__name__})"
        self._telling.append(asyncio.create_task(self._tell_unconnected(key, adapter, reason.rstrip("."))))

    async def _tell_unconnected(self, key: Key, adapter: ChatAdapter, reason: str) -> None:
        """One line for an operator, unless the platform comes with its second try, or is given up, which is told."""
        await asyncio.sleep(FIRST_TRY_S)
        if key not in self._given_up and adapter.health().state != "ready":
            log.error("platforms.%s (profile %s) is not connected: %s; it is tried again", key[1], key[0], reason)

    async def stop(self) -> None:
        """Receive no more; what was received already is answered first."""
        await _cancelled(self._receivers)

    async def aclose(self, adapters: Mapping[Key, ChatAdapter]) -> None:
        """Close these adapters, all of them also where one raises."""
        await _cancelled(self._telling)
        for key, adapter in adapters.items():
            try:
                await adapter.aclose()
            except Exception:  # the adapter's outer edge: the others and the store must be closed all the same
                log.exception("%s: closing ended in an error", section(*key))
                self._on_defect()


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()

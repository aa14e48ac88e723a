"""From the outbox to the platforms: leases due copies, keeps the budgets, posts and edits, stores what came of it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from signoff.budget import Budget
from signoff.changes import digests, leaving, moving, sending
from signoff.changes.common import ANSWER, plus
from signoff.changes.copies import new_note
from signoff.changes.digests import Listed
from signoff.changes.sending import Work
from signoff.errors import (
    AdapterError,
    AdapterUnavailable,
    ChatMoved,
    MessageGone,
    RateLimited,
    SendAmbiguous,
    SendRefused,
    StoreError,
)
from signoff.ids import row_id
from signoff.model import ApprovalRequest, Card, Change, Copy, Destination
from signoff.outbox import Outbox, told
from signoff.pacing import Pace
from signoff.ports import ChatAdapter, Clock, Store, Tx
from signoff.timing import wait_until
from signoff.turntaking import DIGEST_MESSAGES, Place, Turns, is_new, place_of

log = logging.getLogger(__name__)

SEND_TIMEOUT_S = 10.0
"""A platform that has not answered by then may or may not have posted the message."""
UPLOAD_TIMEOUT_S = 60.0
"""The same for a card with a file. The adapters give up a file before that, and know that its card was not sent."""
LEASE_S = 20.0
"""Longer than any send without a file, so that only a crash lets a lease lapse."""
RENEW_S = 10.0
"""While a file is sent its card's lease is renewed, so that a crash is noticed no later than with any other."""
MAX_IN_FLIGHT = 256
DRAIN_S = 0.5
"""What sends in flight get at the end; one that is cut off is looked at again after its lease."""
POLL_S = 1.0
"""The longest sleep: another process on the same store may have queued something."""
LIST_WITHIN_S = 10.0
"""Cards that a place cannot get within this time go to a digest."""
PATIENCE = timedelta(seconds=20)
"""A digest that has waited so long for room for its file as well goes into the room there is for it alone."""


class CardMaker(Protocol):
    """Renders what a copy shows now."""

    async def card(self, copy: Copy, row: ApprovalRequest | None, *, attach: bool) -> Card:
        """The card of this copy. Without `attach` a clipped action has no approving button."""
        ...

    async def digest(self, copy: Copy, listed: Sequence[Listed], *, attach: bool, file: bool) -> Card:
        """The digest with what it lists. Without `attach` nothing whose text is clipped can be approved on it; `file`
        says whether the whole texts go with this message."""
        ...


class Sent(Protocol):
    """What is told of each send, for metrics."""

    def __call__(self, platform: str, op: str, result: str) -> None: ...


class Dispatcher:
    """One task of the gateway. `adapters` by profile and platform."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        adapters: Mapping[tuple[str, str], ChatAdapter],
        maker: CardMaker,
        on_sent: Sent,
        *,
        fallbacks: Mapping[str, Destination] | None = None,
        on_defect: Callable[[], None] = lambda: None,
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """`fallbacks`: by profile, where a card goes whose own places all refused it. `on_defect` is called for each
        copy that failed by a defect, `on_failure` for each round that the store failed."""
        self._store = store
        self._clock = clock
        self._adapters = adapters
        self._maker = maker
        self._on_sent = on_sent
        self._fallbacks = dict(fallbacks or {})
        self._budgets = {key: Budget(adapter.info) for key, adapter in adapters.items()}
        self._resend = frozenset(a.info.platform for a in adapters.values() if a.info.resend_ambiguous)
        self._on_failure = on_failure
        self._outbox = Outbox(store, on_defect)
        self._turns = Turns(store)
        self._pace = Pace()
        self._wake = asyncio.Event()
        self._free = asyncio.Event()
        """Not set while a stop answers its last presses."""
        self._free.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._leasing = False
        """Copies are being leased: neither due any more nor under way yet."""

    # --- the loop ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Send until cancelled; sends in flight are then given a moment to end."""
        unsubscribe = self._store.subscribe(self._on_changes)
        try:
            while True:
                await self._free.wait()
                self._wake.clear()
                try:
                    more = await self.round()
                except StoreError as error:
                    log.error("outbox not read: %s", error)
                    self._on_failure(error)
                    await self._clock.sleep_until(self._clock.now() + timedelta(seconds=POLL_S))
                    continue
                if not more:
                    await self._rest()
        finally:
            unsubscribe()
            await self._drain()

    def wake(self) -> None:
        """Something was queued."""
        self._wake.set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Begin no send meanwhile. A send that is not made waits in the store; an answer to a press cannot."""
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    async def round(self) -> bool:
        """Start everything that is due and within budget; True if there is more to do at once."""
        room = MAX_IN_FLIGHT - len(self._tasks)
        if room <= 0:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            return True
        due = await self._store.due(Copy, self._clock.now(), limit=room)
        if not due:
            return False
        ready, later = await self._admit(due)
        if later:
            await self._store.transact(partial(_put_off, later=later))
        if ready:
            self._leasing = True
            try:
                for work in await self._outbox.lease(ready, lease_s=LEASE_S, resend=self._resend):
                    self._start(work)
            finally:
                self._leasing = False
        return True

    async def _admit(self, due: Sequence[Copy]) -> tuple[list[str], list[tuple[str, datetime]]]:
        """Which copies may go now, and until when the others wait for their place's budget."""
        now = self._clock.now()
        ready: list[str] = []
        waiting: list[tuple[Copy, float, float]] = []
        due = await self._without_listed(due, now)
        for copy in await self._turns.taken(due, self._short(due, now)):
            op = self._costs(copy)
            key = (copy.profile, copy.destination.platform)
            if op is None or key not in self._budgets:
                ready.append(copy.copy_id)
                continue
            budget, group = self._budgets[key], self._adapters[key].is_group(copy.destination)
            messages = DIGEST_MESSAGES if copy.kind == "digest" and op == "post" else 1
            needed = 1 if now - copy.created_at > PATIENCE else messages
            wait_s = budget.wait(copy.destination, op, now, group=group, priority=copy.priority, messages=needed)
            if wait_s > 0:
                waiting.append((copy, wait_s, budget.pace_s(group)))
                continue
            for _ in range(messages):
                budget.take(copy.destination, op, now, group=group)
            self._turns.went(copy, now)
            ready.append(copy.copy_id)
        return ready, await self._turns.put_off(waiting, now) if waiting else []

    def _costs(self, copy: Copy) -> str | None:
        """What a due copy will cost, or None for what sends nothing."""
        doubted = copy.kind == "card" and copy.state in ("sending", "ambiguous") and not copy.reposted
        if doubted and copy.destination.platform not in self._resend:
            return "post"  # it is sent again, since the platform would recognise it
        return _op(copy)

    async def _without_listed(self, due: Sequence[Copy], now: datetime) -> Sequence[Copy]:
        """Put what is more than a place may get soon on its digest; what is still due."""
        gone: set[str] = set()
        for (profile, place), cards in self._turns.crowds(due).items():
            key = (profile, place.platform)
            if key not in self._budgets:
                continue
            group = self._adapters[key].is_group(place)
            room = self._budgets[key].room(place, now, group=group)
            takes = self._budgets[key].takes(place, now, LIST_WITHIN_S, group=group)
            wanted = await self._turns.surplus((profile, place), cards, room, takes)
            while wanted:
                change = partial(
                    digests.gather,
                    profile=profile,
                    place=place,
                    into=self._turns.open_digest((profile, place)),
                    new_id=row_id(),
                )
                gathered = await self._outbox.gather(change, wanted)
                self._turns.listed((profile, place), gathered)
                gone |= gathered.listed
                left = [name for name in wanted if name not in gathered.listed and name not in gathered.unfit]
                wanted = left if len(left) < len(wanted) else []
        return [copy for copy in due if copy.copy_id not in gone] if gone else due

    def _short(self, due: Sequence[Copy], now: datetime) -> set[Place]:
        """The places that have more new cards due than they may get now."""
        cards = Counter(place_of(copy) for copy in due if is_new(copy)) if len(due) > 1 else {}
        short: set[Place] = set()
        for (profile, place), count in cards.items():
            key = (profile, place.platform)
            if count > 1 and key in self._budgets:
                group = self._adapters[key].is_group(place)
                if self._budgets[key].room(place, now, group=group) < count:
                    short.add((profile, place))
        return short

    async def _rest(self) -> None:
        until = self._clock.now() + timedelta(seconds=POLL_S)
        due = await self._store.next_due(Copy)
        await wait_until(self._clock, min(due, until) if due else until, self._wake)

    def _on_changes(self, changes: Sequence[Change]) -> None:
        self._wake.set()

    def _start(self, work: Work) -> None:
        task = asyncio.create_task(self._do(work), name=f"send-{work.copy.copy_id}")
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()
        if not task.cancelled() and task.exception() is not None:
            log.error("a send ended in an error", exc_info=task.exception())

    async def idle(self, ahead_s: float = 0.0) -> None:
        """Return once nothing is under way or waits that may go now, or within `ahead_s` when a budget allows it."""
        while True:
            now = self._clock.now()
            near = await self._store.due(Copy, now + timedelta(seconds=ahead_s), limit=MAX_IN_FLIGHT)
            waits = any(copy.limited or copy.due_at is None or copy.due_at <= now for copy in near)
            if not waits and not self._tasks and not self._leasing:
                return
            self._wake.set()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=0.05)
            else:
                await asyncio.sleep(0.001)

    async def _drain(self) -> None:
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=DRAIN_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    # --- one piece of work -------------------------------------------------------------------

    async def _do(self, work: Work) -> None:
        copy = work.copy
        adapter = self._adapters.get((copy.profile, copy.destination.platform))
        if adapter is None:
            error = f"{copy.destination.platform} is not served here"
            await self._store.transact(partial(sending.refused, copy_id=copy.copy_id, error=error, by_platform=False))
            return
        doers: dict[str, Callable[[Work, ChatAdapter], Awaitable[None]]] = {
            "post": self._post,
            "update": self._update,
            "delete": self._delete,
        }
        try:
            await doers[work.op](work, adapter)
            outcome = "ok"
        except AdapterError as error:
            outcome = error.code
            await self._failed(work, error)
        except TimeoutError:
            outcome = "timeout"
            await self._failed(work, SendAmbiguous())
        except StoreError:
            raise
        except Exception as error:  # the task's outer edge: a defect must not count as a card that was shown
            outcome = "defect"
            self._outbox.tell(copy.copy_id, error)
            unfit = await self._outbox.release(work, self._maker.digest)
            self._turns.listed(place_of(copy), digests.Gathered(copy.copy_id, unfit=unfit))
            if not unfit:
                await self._failed(work, SendRefused(told(error), reason="defect"))
        self._on_sent(copy.destination.platform, work.op, outcome)

    async def _post(self, work: Work, adapter: ChatAdapter) -> None:
        copy, row = work.copy, work.row
        await self._pace.turn()
        shown_at = self._clock.now()
        card = await self._card(work, attach=True)
        reply_to = await self._reply_to(copy)
        if card.attachment is not None and copy.kind != "digest":
            self._count(copy, adapter)  # the file is a message of its own
        try:
            async with self._sending(copy, file=card.attachment is not None):
                result = await adapter.post(copy.destination, card, reply_to=reply_to)
        except SendRefused:
            if card.attachment is None:
                raise
            # The whole text could not be attached: the card goes without it, and without a way to approve.
            await self._store.transact(partial(sending.without_file, copy_id=copy.copy_id))
            card = await self._card(work, attach=False)
            async with asyncio.timeout(SEND_TIMEOUT_S):
                result = await adapter.post(copy.destination, card, reply_to=reply_to)
        await self._store.transact(
            partial(
                sending.posted,
                copy_id=copy.copy_id,
                result=result,
                of=row.request_id if row is not None else None,
                version=row.card_version if row is not None else 0,
                shown_at=shown_at,
                listed=digests.versions(work.listed),
            )
        )

    @asynccontextmanager
    async def _sending(self, copy: Copy, *, file: bool) -> AsyncIterator[None]:
        """As long as a send may take, with the copy leased to it."""
        renewing = asyncio.create_task(self._renew(copy.copy_id)) if file else None
        try:
            async with asyncio.timeout(UPLOAD_TIMEOUT_S if file else SEND_TIMEOUT_S):
                yield
        finally:
            if renewing is not None:
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)

    async def _renew(self, copy_id: str) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                await self._store.transact(partial(sending.prolong, copy_id=copy_id, lease_s=LEASE_S))
            except StoreError as error:
                log.error("the lease of a card was not renewed: %s", error)

    async def _card(self, work: Work, *, attach: bool) -> Card:
        if work.copy.kind == "digest":
            return await self._outbox.drawn(work, self._maker.digest, attach=attach)
        return await self._maker.card(work.copy, work.row, attach=attach)

    def _count(self, copy: Copy, adapter: ChatAdapter) -> None:
        budget = self._budgets[copy.profile, copy.destination.platform]
        budget.take(copy.destination, "post", self._clock.now(), group=adapter.is_group(copy.destination))

    async def _reply_to(self, copy: Copy) -> str | None:
        if copy.kind == "note":
            return copy.panel
        if copy.parent_copy is None:
            return None
        parent = await self._store.get(Copy, copy.parent_copy)
        return parent.message_id if parent else None

    async def _update(self, work: Work, adapter: ChatAdapter) -> None:
        copy, row = work.copy, work.row
        await self._pace.turn()
        shown_at = self._clock.now()
        card = await self._card(work, attach=copy.whole_shown)
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await adapter.update(copy.destination, copy.message_id or "", card)
        await self._store.transact(
            partial(
                sending.updated,
                copy_id=copy.copy_id,
                of=row.request_id if row is not None else None,
                version=row.card_version if row is not None else 0,
                shown_at=shown_at,
                listed=digests.versions(work.listed),
            )
        )

    async def _delete(self, work: Work, adapter: ChatAdapter) -> None:
        copy = work.copy
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await adapter.delete(copy.destination, copy.message_id or "")
        await self._store.transact(partial(sending.removed, copy_id=copy.copy_id))

    async def _failed(self, work: Work, error: AdapterError) -> None:
        copy, now = work.copy, self._clock.now()
        fallback = self._fallback(copy.profile)
        change: Callable[[Tx], None]
        if isinstance(error, RateLimited):
            until = plus(now, error.retry_after_s)
            self._budgets[copy.profile, copy.destination.platform].hold(copy.destination, until)
            change = partial(sending.put_off, copy_id=copy.copy_id, until=until, error=error.message, limited=True)
        elif isinstance(error, ChatMoved):
            change = partial(
                moving.move_chat,
                profile=copy.profile,
                platform=copy.destination.platform,
                old_chat=copy.destination.chat_id,
                new_chat=error.new_chat_id,
            )
        elif isinstance(error, SendAmbiguous) and work.op == "post":
            change = partial(sending.doubtful, copy_id=copy.copy_id)
        elif isinstance(error, AdapterUnavailable | SendAmbiguous):
            change = partial(sending.unreachable, copy_id=copy.copy_id, error=error.message)
        elif isinstance(error, MessageGone):
            change = partial(sending.gone, copy_id=copy.copy_id, error=error.message, fallback=fallback)
        elif work.op == "update":
            change = partial(sending.not_edited, copy_id=copy.copy_id, error=error.message)
        else:
            change = partial(sending.refused, copy_id=copy.copy_id, error=error.message, fallback=fallback)
        reason = error.facts.get("reason") if isinstance(error, SendRefused) else None
        gone = leaving.place_gone(copy.destination, reason)
        if gone is None:
            await self._store.transact(change)
        else:
            for_good = reason not in leaving.UNSEEN
            await self.left(copy.profile, gone, error.message, first=change, for_good=for_good)

    async def left(
        self,
        profile: str,
        place: Destination,
        error: str,
        *,
        first: Callable[[Tx], None] = lambda tx: None,
        for_good: bool = True,
    ) -> None:
        """A chat with its threads, or a thread, is gone (perhaps not `for_good`), for the reason `error`: what nobody
        can answer there any more goes to the fallback. `first` is done in the same commit."""
        fallback = self._fallback(profile)

        def change(tx: Tx) -> None:
            first(tx)
            leaving.left(tx, profile, place, error, fallback=fallback, for_good=for_good)

        await self._store.transact(change, bulk=True)
        self.wake()

    def _fallback(self, profile: str) -> Destination | None:
        place = self._fallbacks.get(profile)
        return place if place is not None and (profile, place.platform) in self._adapters else None

    # --- saying something --------------------------------------------------------------------

    async def say(
        self,
        profile: str,
        destination: Destination,
        card: Card,
        *,
        reply_to: str | None = None,
        priority: int = ANSWER,
    ) -> None:
        """Queue a message of Signoff's own words: durable, within the budget, before cards."""
        copy_id = row_id()

        def change(tx: Tx) -> None:
            tx.put(new_note(copy_id, profile, destination, card, now=tx.now, priority=priority, reply_to=reply_to))

        await self._store.transact(change)
        self.wake()


def _op(copy: Copy) -> str | None:
    """What a due copy will cost, or None for what sends nothing."""
    if copy.digest is not None:
        return None
    if copy.remove:
        return "edit" if copy.message_id else None
    return {"queued": "post", "sent": "edit"}.get(copy.state)


def _put_off(tx: Tx, later: Sequence[tuple[str, datetime]]) -> None:
    for copy_id, until in later:
        copy = tx.get(Copy, copy_id)
        if copy is None or copy.due_at is None or copy.due_at > tx.now:
            continue  # somebody took it on meanwhile
        sending.put_off(tx, copy_id, until, None, limited=True)

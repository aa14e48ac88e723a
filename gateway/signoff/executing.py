"""Approved actions are started, in whichever gateway has their executor, and how they went is kept.

The claim in the store is what makes it one run: of all who try, one is told to start it. While it runs, the claim is
renewed; a claimant that died stops renewing, and the run counts as unknown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from signoff.aside import judged
from signoff.changes import having, staging
from signoff.changes.staging import LOST_CLAIMANT, Ran, TakenBack
from signoff.errors import ActionRefused, StoreError
from signoff.executors import Executors, call_of
from signoff.gate_pass import new_pass
from signoff.ids import new_id
from signoff.judging import taken_back
from signoff.model import ApprovalRequest, Change, Command
from signoff.operands import collected_again
from signoff.ports import Clock, Store
from signoff.rows import SEPARATOR, request_key, to_run_key
from signoff.timing import wait_until

log = logging.getLogger(__name__)

AT_ONCE = 16
"""Runs of each profile in this process at one time; its others wait for a place, and those of other profiles do not."""
LOOK_EVERY = timedelta(seconds=5)
"""What no event told of, such as an approval given while no gateway had the executor, is found by then."""
RENEW_EVERY = timedelta(seconds=staging.LEASE_S / 3)
AGAIN_AFTER = timedelta(seconds=1)
LEFT_FOR = timedelta(seconds=30)
"""An action that a defect kept from being started is tried again after this long; until it lapses it may mend."""


class Executing:
    """Runs kept actions once they are approved. `run_loop` is one task of the gateway."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        executors: Executors,
        *,
        on_defect: Callable[[], None] = lambda: None,
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """`on_defect` is called for each action that a defect kept from being started, `on_failure` for each round
        that the store failed."""
        self._store = store
        self._clock = clock
        self._executors = executors
        self._on_defect = on_defect
        self._on_failure = on_failure
        self._wake = asyncio.Event()
        self._runs: dict[str, asyncio.Task[ApprovalRequest]] = {}
        """By the key of the request."""
        self._left: dict[str, datetime] = {}
        """The actions that a defect kept from being started, by the key of the request, and until when others go
        before them."""
        self._told: list[tuple[str, str]] = []
        self._tell_at = clock.now()
        self._closed = False

    def wake(self) -> None:
        """Look for approved actions now."""
        self._wake.set()

    async def run_loop(self) -> None:
        """Start what is approved, until cancelled. A store that fails is tried again."""
        unsubscribe = self._store.subscribe(self._on_changes)
        try:
            while True:
                self._wake.clear()
                try:
                    await self._round()
                except StoreError as error:
                    log.error("approved actions could not be looked for: %s", error)
                    self._on_failure(error)
                await wait_until(self._clock, self._clock.now() + LOOK_EVERY, self._wake)
        finally:
            unsubscribe()

    def _on_changes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            row = change.request
            if row is not None and row.stages is not None and staging.state_of(row) == "approved":
                self._wake.set()

    async def _tell(self, known: list[tuple[str, str]]) -> None:
        """Say from time to time which executors are here, for whoever asks why an approved action waits."""
        now = self._clock.now()
        if not known or (known == self._told and now < self._tell_at):
            return
        await self._store.transact(partial(having.tell, have=known))
        self._told, self._tell_at = known, now + having.TELL_EVERY

    async def _round(self) -> None:
        known = self._executors.known()
        await self._tell(known)
        for profile, name in known:
            if self._closed:
                return
            if self._running(profile) >= AT_ONCE:
                continue
            now = self._clock.now()
            self._left = {key: until for key, until in self._left.items() if until > now}
            # Those that start now may still stand among them.
            limit = max(AT_ONCE, self._running(profile)) + len(self._left)
            for row in await self._store.find(ApprovalRequest, "to_run", to_run_key(profile, name), limit=limit):
                key = request_key(row.profile, row.request_id)
                if key not in self._runs and key not in self._left and self._running(profile) < AT_ONCE:
                    self._begin(row)

    def _running(self, profile: str) -> int:
        prefix = request_key(profile, "")
        return sum(key.startswith(prefix) for key in self._runs)

    async def run(self, row: ApprovalRequest, wait_s: float | None = None) -> ApprovalRequest:
        """Start this approved action now, and wait for its end, or so many seconds; the record as it stands then.

        A caller that goes away does not stop what runs. Raises `ActionRefused`, `StoreError`.
        """
        refused = staging.refusal(row)
        if refused is not None:
            raise refused
        if self._closed or not self._executors.has(row.profile, row.executor or ""):
            raise ActionRefused(
                f"Executor {row.executor} is not registered here, so nothing can run it now.",
                code="no_executor",
                row=row,
            )
        if request_key(row.profile, row.request_id) in self._runs:
            raise ActionRefused("It is being started now. It is not started a second time.", code="running", row=row)
        running = self._begin(row)
        done, _ = await asyncio.wait({running}, timeout=wait_s)
        if done:
            return running.result()
        found = await self._store.get(ApprovalRequest, request_key(row.profile, row.request_id))
        return row if found is None else found

    def _begin(self, row: ApprovalRequest) -> asyncio.Task[ApprovalRequest]:
        key = request_key(row.profile, row.request_id)
        task = asyncio.create_task(self._run(row), name=f"run-{row.request_id}")
        self._runs[key] = task
        task.add_done_callback(partial(self._over, key))
        return task

    def _over(self, key: str, task: asyncio.Task[ApprovalRequest]) -> None:
        del self._runs[key]
        if task.cancelled():
            return
        error = task.exception()  # taken here, so that nobody has to wait for it
        if error is None or isinstance(error, ActionRefused):
            self._wake.set()
        else:  # what failed now may fail again at once, so it is left to the next look
            if not isinstance(error, StoreError):
                self._on_defect()
                self._left[key] = self._clock.now() + LEFT_FOR
            log.error("the approved action %s was not started: %s", key.rpartition(SEPARATOR)[2], error)

    async def _run(self, row: ApprovalRequest) -> ApprovalRequest:
        claim_id = new_id("claim")
        token, kept = new_pass(row.request_id)
        operands = None
        if isinstance(row.action, Command) and row.action.operands:
            operands = await asyncio.to_thread(collected_again, row.action)
        start = partial(
            staging.start,
            profile=row.profile,
            request_id=row.request_id,
            claim_id=claim_id,
            pass_sha256=kept.sha256,
            operands=operands,
            withdrawn=await self._taken_back(row),
        )
        started = await self._store.transact(start)
        if started.execution.claim_id != claim_id:
            raise staging.refusal(started) or ActionRefused("It cannot be started.", code="not_run", row=started)
        ran = Ran(state="unknown", cause=LOST_CLAIMANT)
        renewing = asyncio.create_task(self._renew(started, claim_id), name=f"renew-{row.request_id}")
        try:
            ran = await self._executors.run(call_of(started, token))
        finally:
            renewing.cancel()
            # Also when this gateway stops in the middle: then nobody knows, and that is what is kept.
            settled = asyncio.create_task(self._settle(started, claim_id, ran), name=f"settle-{row.request_id}")
            await asyncio.shield(settled)
        return settled.result()

    async def _taken_back(self, row: ApprovalRequest) -> TakenBack | None:
        """Why it may not run any more: hours may have passed since it was judged, with other settings."""
        profile = self._executors.profile(row.profile)
        return await judged(row.action, partial(taken_back, row, profile))

    async def _renew(self, row: ApprovalRequest, claim_id: str) -> None:
        renew = partial(staging.renew, profile=row.profile, request_id=row.request_id, claim_id=claim_id)
        while True:
            await self._clock.sleep_until(self._clock.now() + RENEW_EVERY)
            try:
                if not await self._store.transact(renew):
                    return
            except StoreError as error:
                log.error("the claim of %s could not be renewed: %s", row.request_id, error)

    async def _settle(self, row: ApprovalRequest, claim_id: str, ran: Ran) -> ApprovalRequest:
        """Keep how it went; the store is tried until it takes it, or the gateway ends."""
        settle = partial(staging.settle, profile=row.profile, request_id=row.request_id, claim_id=claim_id, ran=ran)
        while True:
            try:
                settled = await self._store.transact(settle)
                if settled.execution.state == "unknown":
                    log.warning("action.unknown: %s", staging.lost_ids(settled))
                return settled
            except StoreError as error:
                log.error("how %s went could not be saved yet: %s", row.request_id, error)
                if self._closed:
                    raise
                await self._clock.sleep_until(self._clock.now() + AGAIN_AFTER)

    async def aclose(self, within_s: float) -> None:
        """Start nothing more; what runs may end within that time, and counts as unknown after it. Idempotent."""
        self._closed = True
        if not self._runs:
            return
        runs = list(self._runs.values())
        await asyncio.wait(runs, timeout=within_s)
        for task in runs:
            task.cancel()
        await asyncio.gather(*runs, return_exceptions=True)

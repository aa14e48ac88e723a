"""One question from its submission to the claim, over lost connections and restarts of the gateway."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from signoff.client import _wire
from signoff.client._link import Link
from signoff.client.records import ApprovalRecord, Question
from signoff.client.turns import to_the_end
from signoff.errors import ClaimRefused, RequestNotFound, SignoffError
from signoff.ids import new_id
from signoff.model import Command
from signoff.operands import collected_again
from signoff.waited import Meter

log = logging.getLogger("signoff.client")

POLL_S = 30
"""One long poll: shorter than the 60 s after which proxies give a silent connection up."""
HELD_S = 3600.0
"""For so long a gateway that was down lets turns and windows wait for its return (they run in service time)."""
TAKE_BACK_S = 3.0
"""How long an interrupted question may take to be withdrawn."""
_SHORT_PAUSE_S = 0.25

Seen = Callable[[ApprovalRecord], None]


class Asking:
    """Asks `question` and claims the approval. `lease_s` is how long its turn lives without us; `meter` counts how long
    a person was waited for."""

    def __init__(
        self,
        link: Link,
        question: Question,
        *,
        lease_s: float,
        known: bool,
        seen: Seen | None,
        meter: Meter | None = None,
    ) -> None:
        self._link, self._question, self._seen = link, question, seen
        self._meter = Meter() if meter is None else meter
        self._outage_s = HELD_S + lease_s
        self._first_s = self._outage_s if known else link.unreachable_after_s
        """`known`: the gateway answered before, so that its absence is an outage and not a wrong address."""
        self._claim_id = new_id("claim")
        self._claiming = False

    async def run(self) -> ApprovalRecord:
        """The record at its end, claimed where it was approved.

        When the caller is cancelled the question is withdrawn, and what was claimed is reported as not run.
        Raises `GatewayUnreachable`, `ClaimRefused` (`digest_mismatch`: this is not the action that was approved), and
        what the gateway refuses the question with.
        """
        try:
            record = await self._answered()
            return await self._claimed(record) if record.outcome == "approved" else record
        except asyncio.CancelledError:
            await to_the_end(self._take_back(), TAKE_BACK_S)
            raise

    async def _answered(self) -> ApprovalRecord:
        question = self._question
        body = await self._link.call(_wire.submit(question), patience_s=self._first_s)
        record = await self._checked(body)
        with self._meter.waiting():
            return await self._ended(record)

    async def _ended(self, record: ApprovalRecord) -> ApprovalRecord:
        question = self._question
        loop = asyncio.get_running_loop()
        while record.pending:
            began = loop.time()
            poll = _wire.get(question.request_id, POLL_S)
            body = await self._link.call(poll, patience_s=self._outage_s, watched=True)
            record = await self._checked(body)
            if record.pending and loop.time() - began < _SHORT_PAUSE_S:
                # A gateway that is shutting down answers at once.
                await asyncio.sleep(_SHORT_PAUSE_S)
        return record

    async def _checked(self, body: bytes) -> ApprovalRecord:
        record = _wire.record(body)
        if record.digest != self._question.digest:
            await to_the_end(self._withdraw(record.digest), TAKE_BACK_S)
            raise ClaimRefused(
                "BLOCKED: digest_mismatch. This is not the action that was asked about. Do not run it.",
                code="digest_mismatch",
                approval=record,
            )
        if self._seen is not None:
            self._seen(record)
        return record

    async def _claimed(self, record: ApprovalRecord) -> ApprovalRecord:
        question = self._question
        operands = question.operands
        if operands and isinstance(question.action, Command):
            operands = await asyncio.to_thread(collected_again, question.action)
        self._claiming = True
        call = _wire.claim(
            question.request_id,
            question.digest,
            self._claim_id,
            operands,
            want_gate_token=question.want_gate_token,
        )
        try:
            body = await self._link.call(call, patience_s=self._outage_s, watched=True)
        except ClaimRefused as error:
            body = await self._link.call(_wire.get(question.request_id), patience_s=self._outage_s)
            return _wire.refused(_wire.record(body), error)
        return claimed(_wire.record(body))

    async def _take_back(self) -> None:
        """Withdraw the question; an approval that was claimed and will not be used is reported as not run."""
        try:
            record = await self._withdraw(self._question.digest)
            if record is not None and self._claiming and record.execution.state == "claimed":
                question = self._question
                # Only the holder of the claim gets it again; another process may have claimed this request.
                await self._link.call(_wire.claim(question.request_id, question.digest, self._claim_id, ()))
                await self._link.call(_wire.result(question.request_id, "not_run", None))
        except SignoffError as error:
            log.info("request %s could not be withdrawn: %s", self._question.request_id, error.message)

    async def _withdraw(self, digest: str) -> ApprovalRecord | None:
        """Cancel what we asked, of that digest; another's question under the same id stays, and is None.

        The question may still be on its way to the gateway, so an unknown one is looked for again.
        """
        question = self._question
        for _ in range(4):
            try:
                record = _wire.record(await self._link.call(_wire.get(question.request_id)))
                if (record.session_id, record.digest) != (question.session_id, digest):
                    return None
                return _wire.record(await self._link.call(_wire.cancel(question.request_id, "withdrawn")))
            except RequestNotFound:
                await asyncio.sleep(_SHORT_PAUSE_S)
        return None


def claimed(record: ApprovalRecord) -> ApprovalRecord:
    """The record as one whose claim this client's call just got."""
    return msgspec.structs.replace(record, claimed_here=True)

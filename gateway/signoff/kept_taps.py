"""Taps on a kept action of which nobody knows whether it ran: a person says that it did, or has it run once more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from signoff.changes import staging, tapping
from signoff.changes.tapping import Button, Meaning
from signoff.dispatcher import Dispatcher
from signoff.errors import ActionRefused
from signoff.model import Actor, Answer, ApprovalRequest, replace
from signoff.ports import Store, Tx
from signoff.wording import t

Settle = Callable[..., ApprovalRequest]
"""`staging.did_run` or `staging.run_again`."""


class KeptTaps:
    """What such a tap does. `Taps` hands it on, once the person may decide."""

    def __init__(self, store: Store, dispatcher: Dispatcher) -> None:
        self._store = store
        self._dispatcher = dispatcher

    async def did_run(self, profile: str, button: Button, by: Actor) -> tuple[Meaning, Answer | None]:
        """Note that it did run; no answer where the button means nothing any more."""
        meaning, row = await self._settled(profile, button, staging.did_run, by)
        return meaning, None if row is None else Answer(t("tap.kept.did_run"))

    async def run_again(self, profile: str, button: Button, by: Actor) -> tuple[Meaning, Answer | None]:
        """Have it run once more: the second tap. No answer where the button means nothing any more."""
        meaning, row = await self._settled(profile, button, staging.run_again, by)
        return meaning, None if row is None else Answer(t("tap.kept.again", id=row.short_id))

    async def _settled(
        self, profile: str, button: Button, settle: Settle, by: Actor
    ) -> tuple[Meaning, ApprovalRequest | None]:
        change = partial(_settle, profile=profile, button=button, settle=settle, by=by)
        try:
            found = await self._store.transact(change)
        except ActionRefused:
            # Somebody or the executor was first: what is true now is told.
            return await self._store.transact(partial(tapping.read, profile=profile, button=button)), None
        self._dispatcher.wake()
        return found


def _settle(
    tx: Tx, *, profile: str, button: Button, settle: Settle, by: Actor
) -> tuple[Meaning, ApprovalRequest | None]:
    """Look the button up and settle what it is about, in one commit."""
    meaning = tapping.read(tx, profile, button)
    if meaning.status != "live" or meaning.row is None:
        return meaning, None
    row = settle(tx, profile, meaning.row.request_id, by)
    if row.request_id != meaning.row.request_id and meaning.card is not None:
        row = replace(row, decided_copy=meaning.card.copy_id)
        tx.put(row)
    return meaning, row

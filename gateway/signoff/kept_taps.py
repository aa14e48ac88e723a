"""Taps on a kept action of which nobody knows whether it ran: a person says that it did, or has it run once more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from signoff.answers import not_offered
from signoff.broker import Broker
from signoff.changes import staging, tapping
from signoff.changes.tapping import Button, Meaning
from signoff.dispatcher import Dispatcher
from signoff.errors import ActionRefused, ChoiceNotOffered
from signoff.kept_words import again_text
from signoff.model import Answer, ApprovalRequest, replace
from signoff.ports import Store, Tx
from signoff.press import Press
from signoff.wording import t

Settle = Callable[[Tx, ApprovalRequest], ApprovalRequest]
"""What the tap does with the action that its card is about."""


class KeptTaps:
    """What such a tap does. `Taps` hands it on, once the person may decide."""

    def __init__(self, broker: Broker, store: Store, dispatcher: Dispatcher) -> None:
        self._broker = broker
        self._store = store
        self._dispatcher = dispatcher

    async def did_run(self, press: Press) -> tuple[Meaning, Answer | None]:
        """Note that it did run; no answer where the button means nothing any more."""

        def settle(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
            return staging.did_run(tx, press.profile, row.request_id, press.actor)

        meaning, row = await self._settled(press, settle)
        return meaning, None if row is None else Answer(t("tap.kept.did_run"))

    async def run_again(self, press: Press) -> tuple[Meaning, Answer | None]:
        """Have it run once more: the second tap. No answer where the button means nothing any more."""
        plain = self._broker.ruling(press.profile, "once", press.actor)

        def settle(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
            return staging.run_again(tx, press.profile, row.request_id, self._broker.ruled_for(row, plain))

        try:
            meaning, row = await self._settled(press, settle)
        except ChoiceNotOffered as error:
            return Meaning(status="unknown"), Answer(not_offered(error))
        return meaning, None if row is None else Answer(again_text(row))

    async def _settled(self, press: Press, settle: Settle) -> tuple[Meaning, ApprovalRequest | None]:
        change = partial(_settle, profile=press.profile, button=press.button, settle=settle)
        try:
            found = await self._store.transact(change)
        except ActionRefused:
            # Somebody or the executor was first: what is true now is told.
            return await self._store.transact(partial(tapping.read, profile=press.profile, button=press.button)), None
        self._dispatcher.wake()
        return found


def _settle(tx: Tx, *, profile: str, button: Button, settle: Settle) -> tuple[Meaning, ApprovalRequest | None]:
    """Look the button up and settle what it is about, in one commit."""
    meaning = tapping.read(tx, profile, button)
    if meaning.status != "live" or meaning.row is None:
        return meaning, None
    row = settle(tx, meaning.row)
    if row.request_id != meaning.row.request_id and row.outcome is not None and meaning.card is not None:
        row = replace(row, decided_copy=meaning.card.copy_id)
        tx.put(row)
    return meaning, row

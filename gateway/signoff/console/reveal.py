"""The exact text of an action, for one reader at a time and never without a trace.

Everywhere else secrets are masked. Here they are not; what nobody can see is still written out, because it would
deceive the reader and copies of the text are made elsewhere.
"""

from __future__ import annotations

from functools import partial

from signoff import aside
from signoff.actions import plain_text
from signoff.changes.common import emit, load_request
from signoff.masking import masks
from signoff.model import Actor, ApprovalRequest, Command
from signoff.ports import Store, Tx
from signoff.visible import visible


async def hides(row: ApprovalRequest) -> bool:
    """Whether anything of the action is masked on the pages."""
    return await aside.shown(row, partial(_hides, row))


def _hides(row: ApprovalRequest) -> bool:
    return bool(
        masks(plain_text(row.action), prose=not isinstance(row.action, Command)) or masks(_cwd(row), prose=True)
    )


async def revealed(store: Store, profile: str, request_id: str, actor: Actor) -> tuple[ApprovalRequest, str]:
    """The request and its action's exact text, once it is saved that `actor` sees it. Raises `RequestNotFound`."""

    def change(tx: Tx) -> ApprovalRequest:
        row = load_request(tx, profile, request_id)
        who = {"principal": actor.principal, "key_id": actor.key_id, "via": actor.via}
        emit(tx, "approval.revealed", row, **{name: value for name, value in who.items() if value})
        return row

    row = await store.transact(change)
    return row, await aside.shown(row, partial(exact_text, row))


def exact_text(row: ApprovalRequest) -> str:
    """The action with its secrets; before it the folder it runs in, where a secret stands in that."""
    text = plain_text(row.action)
    return visible(f"{_cwd(row)}\n{text}" if masks(_cwd(row), prose=True) else text)


def _cwd(row: ApprovalRequest) -> str:
    return getattr(row.action, "cwd", None) or ""

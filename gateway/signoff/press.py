"""A press that was found to be genuine, by somebody who may decide."""

from __future__ import annotations

from msgspec import Struct

from signoff.changes.tapping import Button
from signoff.model import Actor, Tap
from signoff.ports import AdapterInfo


class Press(Struct, frozen=True, kw_only=True):
    """What was pressed where and by whom. `button` and `choice` are what its token says."""

    profile: str
    tap: Tap
    button: Button
    choice: str
    info: AdapterInfo
    actor: Actor
    """How the person is recorded."""

    @property
    def prefix(self) -> str:
        """What stands before a typed command there."""
        return self.info.prefix_at(self.tap.destination)

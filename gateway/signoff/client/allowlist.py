"""The client's verbs for an allowlist whose lines the store has."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.client import _wire
from signoff.client._link import Link
from signoff.client.records import AllowlistChanged, AllowlistRecord


class Allowlists:
    """What `Client` can do with the profile's allowlist. It needs an `admin` key, or the local socket."""

    _link: Link

    async def allowlist(self, *, removed: bool = False) -> list[AllowlistRecord]:
        """Its lines, those of "Always" too; with `removed` also what stood there once. Raises `AllowlistInFile` where
        a file has them and not the store."""
        found, _ = _wire.page(await self._link.call(_wire.allowlist(removed=removed)), AllowlistRecord)
        return found

    async def change_allowlist(
        self,
        *,
        commands: Sequence[str] = (),
        unattended_commands: Sequence[str] = (),
        remove: Sequence[str] = (),
        source: str = "",
        again: bool = True,
    ) -> AllowlistChanged:
        """Add lines, and take out those with the ids `remove`, in one commit. What stands there already is passed over;
        without `again` so is what was removed before. Raises `AllowlistInFile`, `InvalidInput`."""
        body = {
            "commands": list(commands),
            "unattended_commands": list(unattended_commands),
            "remove": list(remove),
            "source": source,
            "again": again,
        }
        return _wire.parsed(await self._link.call(_wire.change_allowlist(body)), AllowlistChanged)

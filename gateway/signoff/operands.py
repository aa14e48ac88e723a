"""The files that an action will read or run, as they are now: what binds a script's approval to its content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from signoff.errors import InvalidInput
from signoff.model import Command, Operand

_CHUNK_BYTES = 1024 * 1024


def operands_of(paths: Iterable[str | Path], base: str | Path | None = None) -> list[Operand]:
    """Each file's path as given, SHA-256 and size in bytes; relative paths start at `base` (the working folder).

    Raises `InvalidInput` for what is not a readable file.
    """
    found = []
    for path in paths:
        operand = _operand(str(path), base)
        if operand is None:
            raise InvalidInput(f"{path} is not a readable file, so its content cannot be reviewed.", param="operands")
        found.append(operand)
    return found


def collected_again(action: Command) -> tuple[Operand, ...]:
    """The action's files as they are now; one that is gone is left out, which the gateway takes for a change."""
    now = (_operand(operand.path, action.cwd) for operand in action.operands)
    return tuple(operand for operand in now if operand is not None)


def _operand(path: str, base: str | Path | None) -> Operand | None:
    place = Path(base or ".") / path
    digest, size = hashlib.sha256(), 0
    try:
        if not place.is_file():
            return None
        with place.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except (OSError, ValueError):
        return None
    return Operand(path=path, sha256=digest.hexdigest(), bytes=size)

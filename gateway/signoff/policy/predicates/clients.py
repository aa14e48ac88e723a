"""Which commands of command-line clients only read: phrases of `reads.toml`."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files

import msgspec

from signoff.policy.predicates.whole import per_command
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_Phrases = dict[str, tuple[tuple[str, ...], ...]]


class _Client(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: tuple[str, ...]
    reads: tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    client: tuple[_Client, ...]


@cache
def _table() -> dict[str, _Phrases]:
    """The phrases of each client by their first word; those that start with a star stand under `*`."""
    raw = files(__package__).joinpath("reads.toml").read_bytes()
    found: dict[str, _Phrases] = {}
    for client in msgspec.toml.decode(raw, type=_Table).client:
        phrases: _Phrases = {}
        for text in client.reads:
            parts = tuple(text.split())
            start = "*" if parts[0].endswith("*") else parts[0]
            phrases[start] = (*phrases.get(start, ()), parts)
        found |= dict.fromkeys(client.names, phrases)
    return found


@per_command
def only_reads(seen: Seen) -> bool:
    """Whether the command is one of its client's that read, or asks for help, or is none at all."""
    texts = seen.texts
    if not texts:
        return not seen.perhaps_options or seen.has("--version", "--help", "-h")
    if seen.has("--help") and UNKNOWN not in texts[0]:
        return True
    phrases = _table().get(seen.name, {})
    return any(_matches(parts, texts) for parts in (*phrases.get(texts[0], ()), *phrases.get("*", ())))


def _matches(parts: tuple[str, ...], texts: list[str]) -> bool:
    if parts[-1] == "$":
        parts = parts[:-1]
        if len(texts) != len(parts):
            return False
    if len(parts) > len(texts) or any(UNKNOWN in text for text in texts[: len(parts)]):
        return False
    return all(map(_fits, parts, texts))


def _fits(part: str, text: str) -> bool:
    return text.startswith(part[:-1]) if part.endswith("*") else text == part


PREDICATES: dict[str, Callable[[Seen], bool]] = {"only_reads": only_reads}

"""Which commands of command-line clients only read: phrases of `reads.toml`."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files

import msgspec

from signoff.policy.predicates.whole import per_command
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN


class _Client(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: tuple[str, ...]
    reads: tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    client: tuple[_Client, ...]


class _Phrases:
    """The phrases of a client: plain ones are looked up, those with a star or an end are tried in turn, by their first
    words where that is plain."""

    __slots__ = ("_by_first", "_lengths", "_plain")

    def __init__(self, texts: tuple[str, ...]) -> None:
        phrases = [tuple(text.split()) for text in texts]
        odd = [parts for parts in phrases if parts[-1] == "$" or any(part.endswith("*") for part in parts)]
        self._plain = frozenset(phrases) - frozenset(odd)
        self._lengths = sorted({len(parts) for parts in self._plain})
        self._by_first: dict[str, list[tuple[str, ...]]] = {}
        for parts in odd:
            self._by_first.setdefault("*" if parts[0].endswith("*") else parts[0], []).append(parts)

    def fit(self, texts: list[str]) -> bool:
        """Whether the operands begin with one of them."""
        if any(tuple(texts[:length]) in self._plain for length in self._lengths):
            return True
        return any(_matches(parts, texts) for first in (texts[0], "*") for parts in self._by_first.get(first, ()))


@cache
def _table() -> dict[str, _Phrases]:
    """The phrases of each client."""
    raw = files(__package__).joinpath("reads.toml").read_bytes()
    rows = msgspec.toml.decode(raw, type=_Table).client
    return {name: phrases for row in rows for phrases in (_Phrases(row.reads),) for name in row.names}


@per_command
def only_reads(seen: Seen) -> bool:
    """Whether the command is one of its client's that read, or asks for help, or is none at all."""
    texts = seen.texts
    if not texts:
        return not seen.perhaps_options or seen.has("--version", "--help", "-h")
    if seen.has("--help") and UNKNOWN not in texts[0]:
        return True
    phrases = _table().get(seen.name)
    return phrases is not None and phrases.fit(texts)


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

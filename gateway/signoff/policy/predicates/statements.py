"""Statements that clients of databases without SQL are given: Cypher, HBase's shell, SurrealQL, EdgeQL, ZooKeeper."""

import re
from collections.abc import Callable

from signoff.policy.seen import Seen

_DESTROYING: dict[str, re.Pattern[str]] = {
    "cypher-shell": re.compile(r"\b(?:delete|drop|remove)\b", re.I),
    "hbase": re.compile(r"\b(?:drop\w*|truncate\w*|delete\w*|disable\w*|alter\w*|unassign)\b"),
    "surreal": re.compile(r"\b(?:remove|delete)\b", re.I),
    "gel": re.compile(r"\b(?:delete|drop|reset)\b", re.I),
    "edgedb": re.compile(r"\b(?:delete|drop|reset)\b", re.I),
    "zkcli.sh": re.compile(r"\b(?:delete|deleteall|rmr|delquota)\b"),
    "zkcli": re.compile(r"\b(?:delete|deleteall|rmr|delquota)\b"),
}


def _destroy(seen: Seen) -> bool:
    """Whether one of its operands, or what it is fed, deletes something."""
    known = _DESTROYING[seen.name]
    return any(known.search(text) for text in (*seen.texts, seen.command.stdin or ""))


def _unseen(seen: Seen) -> bool:
    """It is fed what the text does not show, or a file."""
    fed = seen.command.fed and seen.command.stdin is None
    return not _destroy(seen) and (fed or seen.has("-f", "--file"))


PREDICATES: dict[str, Callable[[Seen], bool]] = {"statements_destroy": _destroy, "statements_unseen": _unseen}

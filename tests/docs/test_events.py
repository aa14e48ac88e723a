"""Every event has somebody who reads it, and the table of events names them all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, plain, rows

PACKAGE = ROOT / "gateway" / "signoff"
STREAM = "server/streams.py"
"""Sends every type; that is tested where the stream is."""
STREAM_ONLY = {
    "approval.delivered": "an agent's program shows that people have the question; nothing here waits for it",
    "drill.seen": "an operator's program keeps who saw a drill; the console reads the drill's own rows",
    "key.created": "an operator's program keeps a list of keys; a new key changes nothing that runs",
}
"""Types for readers of the stream only, each with the reason; all others are read by something in the gateway, too."""
MEASURING = ("bench", "cli", "testing")
"""What only measures or tests is nobody who reads."""


def compared(tree: ast.AST) -> Iterator[str]:
    """Texts that something is compared with, and the keys of tables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                parts = side.elts if isinstance(side, ast.Tuple | ast.Set | ast.List) else [side]
                yield from (
                    part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )
        elif isinstance(node, ast.Dict):
            yield from (key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


def readers() -> dict[str, set[str]]:
    """The modules that look for a type, by the type."""
    found: dict[str, set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        module = file.relative_to(PACKAGE)
        if module.parts[0] not in MEASURING:
            for text in compared(ast.parse(file.read_text("utf-8"))):
                found.setdefault(text, set()).add(str(module))
    return found


def test_every_event_is_read() -> None:
    table = rows(Path(ROOT / "docs" / "events.md"), "type")
    told = {plain(row[0]): set(plain(row[3]).split(", ")) for row in table}
    known = readers()
    assert {kind for kind in told if not known.get(kind)} == set(STREAM_ONLY)
    assert told == {kind: {STREAM} | known.get(kind, set()) for kind in told}

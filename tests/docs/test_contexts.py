"""docs/contexts.md says what the program does."""

from __future__ import annotations

import re

from signoff.context import VARIABLES
from signoff.presence import JOBS, PRECEDENCE, Flags, presence
from tests.docs.pages import ROOT, plain, prose, rows

PAGE = ROOT / "docs" / "contexts.md"


def test_the_variables() -> None:
    assert [plain(row[0]) for row in rows(PAGE, "variable")] == list(VARIABLES.values())


def test_the_kinds_and_their_order() -> None:
    [order] = re.findall(r"in this order counts: (.*?)\.", prose(PAGE), re.DOTALL)
    assert re.findall(r"`(\w+)`", order) == list(PRECEDENCE)
    table = {kind: row for row in rows(PAGE, "kind") for kind in re.findall(r"`(\w+)`", row[0])}
    assert set(table) == set(PRECEDENCE)
    assert {kind for kind, row in table.items() if row[2].startswith("never")} == JOBS
    for kind, row in table.items():
        found = presence(Flags(kinds=frozenset({kind}), interactive=True))
        assert found.cli == row[1].startswith("with"), kind

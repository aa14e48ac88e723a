"""The page about judging names what there is."""

from __future__ import annotations

from tests.docs.pages import ROOT, plain, rows

from signoff.changes.asking import REVIEWER
from signoff.checking import DENIED_RUNG, GRANTS_RUNG
from signoff.policy.ladder import LADDER
from signoff.wording import t

PAGE = ROOT / "docs" / "judgement.md"


def test_the_ladder_on_the_page_is_the_ladder() -> None:
    told = [plain(row[0]) for row in rows(PAGE, "rung")]
    *above, person = [rung.name for rung in LADDER]
    assert told == [*above, GRANTS_RUNG, DENIED_RUNG, REVIEWER, person]


def test_every_rung_above_the_person_has_its_words() -> None:
    for rung in (*(rung.name for rung in LADDER[:-1]), "mode_off", "reviewer"):
        assert t(f"why.rung.{rung}").endswith(".")

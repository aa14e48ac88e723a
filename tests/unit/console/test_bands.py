"""An ended question tells the truth three times: by word, by mark and by the colour of its band, here and in chats."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.tables import every
from tests.unit.core.test_endings import EVERY, NOW, name_of, title
from tests.unit.staged_cards.world import MAIL

from signoff.changes.alike import states_of
from signoff.console.cards import Beside, CardView, card_view
from signoff.console.drawing import Drawing, assets
from signoff.endings import status_blocks
from signoff.model import Actor, ApprovalRequest, Execution, ExecutionState
from signoff.testing.rows import at, make_request

ANN = Actor(type="person", platform="fake", user_id="1", name="Ann", via="button")
OTHERS = {"denied": "refused", "blocked": "refused", "notify_failed": "trouble"}
WORDS = {
    "failed": ("failed",),
    "unknown": ("unknown",),
    "lapsed": ("lapsed",),
    "not_run": ("not run", "did not start", "not started"),
    "succeeded": ("succeeded",),
}


def kept(state: ExecutionState, **facts: object) -> ApprovalRequest:
    """The question about a kept action, approved."""
    execution = Execution(state=state, claim_id="c", claimed_at=at(20), ended_at=at(30), **facts)  # type: ignore[arg-type]
    return make_request(
        action=MAIL,
        outcome="approved",
        choice="once",
        decided_at=at(10),
        decided_by=(ANN,),
        stages="req-0",
        executor="mailer",
        execution=execution,
    )


KEPT = [
    kept("claimed"),
    kept("succeeded"),
    kept("succeeded", ended_by=ANN),
    kept("failed", exit_code=2),
    kept("unknown", cause="executor_stopped"),
    kept("not_run"),
    kept("not_run", cause="executor_unreachable"),
    kept("not_run", cause="forbidden_now"),
    kept("not_run", cause="undone"),
    kept("lapsed"),
]


def view(row: ApprovalRequest, *, missing: bool = False) -> CardView:
    beside = Beside(now=NOW, title=title, executor_missing=missing)
    return card_view(row, beside, may="look", mine=False, listed=True)


def chat_lines(row: ApprovalRequest) -> list[str]:
    blocks = status_blocks(row, NOW, title=title, prefix="/", here="")
    return ["".join(span.text for span in block.spans) for block in blocks]


@every("row", [*EVERY, *KEPT], ids=name_of)
def test_the_band_the_marks_and_the_words_say_the_same(row: ApprovalRequest) -> None:
    found = view(row)
    states = set(states_of(row))
    if row.outcome != "approved":
        assert found.band == OTHERS.get(row.outcome or "", "over")
        return
    lines = found.after
    assert lines[-1] == chat_lines(row)[-1] or states == {"claimed"}
    warned = lines[-1].startswith("⚠️")
    assert (found.band == "trouble") == warned
    if states & {"failed", "unknown"}:
        assert found.band == "trouble", "an approval whose run failed is no good news"
    elif states <= {"none", "claimed", "succeeded"}:
        assert found.band == "done"
    else:
        assert found.band in ("over", "trouble"), "nothing runs"
    for state in states & {*WORDS}:
        assert any(word in " ".join(lines).lower() for word in WORDS[state]), state


def test_what_cannot_start_is_in_trouble() -> None:
    row = make_request(outcome="approved", choice="once", decided_at=at(10), decided_by=(ANN,), stages="req-0")
    assert view(row).band == "done"
    assert view(row, missing=True).band == "trouble"


@pytest.mark.parametrize("row", [kept("failed"), kept("succeeded")], ids=["failed", "succeeded"])
def test_the_page_draws_the_band(row: ApprovalRequest) -> None:
    drawn = Drawing(lambda: datetime(2026, 1, 1, tzinfo=UTC)).page(
        "card.html", c=view(row), csrf="", next="", alone=False
    )
    assert f'<div class="verdict {view(row).band}">' in drawn


def test_every_band_has_a_colour_of_its_own_or_none() -> None:
    css = assets()["console.css"].content.decode()
    colours = [
        line.partition("{")[2]
        for name in ("done", "refused", "trouble")
        for line in css.splitlines()
        if line.startswith(f".verdict.{name} ")
    ]
    assert len(set(colours)) == 3
    assert ".approved .verdict" not in css

"""What the console says of a question that has ended: the lines of the cards in the chats."""

from __future__ import annotations

import pytest

from signoff.console.cards import Beside, CardView, card_view
from signoff.model import Actor, Alike, ApprovalRequest, Covered, Destination, Execution, FileWrite
from signoff.policy.protected import PROTECTED_KEY
from signoff.testing.rows import at, make_request

ANA = Actor(type="person", principal="ana", via="console")
PLACE = Destination("telegram", "-1001")


def view(row: ApprovalRequest) -> CardView:
    return card_view(row, Beside(now=at(60), title=str.capitalize), may="decide", mine=False, listed=False)


@pytest.mark.parametrize(
    ("by", "after"),
    [
        (Actor(type="policy", rule=PROTECTED_KEY), ()),
        (Actor(type="policy", rule="host.rm-root"), ("No approval can lift this.",)),
        (Actor(type="policy", setting='cron_mode = "deny"'), ("A person can be asked once this setting allows it.",)),
    ],
    ids=["protected", "rule", "setting"],
)
def test_what_was_blocked_says_whether_anything_lifts_it(by: Actor, after: tuple[str, ...]) -> None:
    """A protected file is blocked only where nobody can be asked: a person could approve it elsewhere."""
    action = FileWrite(path="AGENTS.md", diff=None)
    row = make_request(outcome="blocked", decided_at=at(0), decided_by=(by,), action=action)
    assert view(row).after == after


def test_what_reached_nobody_says_how_to_mend_it() -> None:
    row = make_request(outcome="notify_failed", decided_at=at(0), destinations=(PLACE,), refused_by=PLACE)
    assert view(row).after == ("Mend: see that the bot is in that chat and may post there, then signoff doctor.",)


def test_one_answer_for_several_runs_tells_of_all() -> None:
    row = make_request(
        outcome="approved",
        choice="once_all",
        decided_at=at(0),
        decided_by=(ANA,),
        runs=3,
        alike=Alike(states={"failed": 2}, since=1),
        execution=Execution(state="succeeded", claim_id="c", claimed_at=at(1), ended_at=at(2), exit_code=0),
    )
    assert view(row).after == ("⚠️ Succeeded 1, failed 2.",)


def test_what_a_grant_answered_names_who_gave_it() -> None:
    by = Actor(type="grant", grant_id="4TQ8R", principal="ana")
    covered = Covered("session", "rm -r, any path")
    row = make_request(outcome="approved", choice="once", decided_at=at(0), decided_by=(by,), covered=covered)
    assert view(row).verdict == "Approved by grant 4TQ8R (ana, this session: rm -r, any path) · 09:00 UTC"

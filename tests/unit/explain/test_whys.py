"""Why something was asked, as people read it: the tree, the rules, and what decided; masked and short."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from signoff.model import Action, Actor, ApprovalRequest, Code, Command, Tool, replace
from signoff.policy import JudgeContext, judge
from signoff.policy.ruleset import shipped
from signoff.settings import Profile
from signoff.whys import MAX_LINES, why_lines, why_of

T0 = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


def row(command: str | Action, **facts: Any) -> ApprovalRequest:
    """A request as it is stored once it was judged in a chat."""
    action = Command(command=command) if isinstance(command, str) else command
    made = ApprovalRequest(
        request_id="req_1",
        profile="default",
        short_id="7Q2MK",
        session_id="s1",
        kind="chat",
        action=action,
        digest="ab" * 32,
        created_at=T0,
        rung="person",
    )
    if isinstance(action, Command):
        verdict = judge("command", action.command, JudgeContext(kind="chat", attended=True))
        made = replace(
            made,
            description=verdict.description,
            severity=verdict.severity,
            rule_keys=verdict.rule_keys,
            why=verdict.why,
        )
    return replace(made, **facts)


def test_every_command_has_a_line() -> None:
    lines = why_lines(row("sudo rm -rf build && ls"))
    assert lines[0].startswith(
        "7Q2MK · High: runs with the administrator's rights, and deletes folders and everything in them "
        "(rule privilege.root, delete.recursive)"
    )
    assert "1. sudo · asks: privilege.root" in lines
    assert "1.1. rm -rf build · asks: delete.recursive" in lines
    assert "2. ls · allowed: the rule read.files allows it" in lines
    assert lines[-2] == "No deny rule, no floor, not on the allowlist, no grant covers it: a person is asked."
    assert lines[-1] == f"Digest {'ab' * 32}"


def test_a_long_script_is_told_in_part_what_asks_first() -> None:
    command = "\n".join([f"echo {n}" for n in range(50)] + ["rm -rf build"])
    lines = why_lines(row(command))
    assert any("rm -rf build · asks: delete.recursive" in line for line in lines)
    assert "and 50 more commands" in lines
    assert len(lines) < MAX_LINES + 8
    many = why_lines(row("\n".join(f"rm -rf {n}" for n in range(50))))
    assert f"and {50 - MAX_LINES} more commands" in many


def test_secrets_are_masked() -> None:
    told = why_lines(row(f"curl -H 'Authorization: Bearer {TOKEN}' https://example.com -X DELETE"))
    assert TOKEN not in "\n".join(told)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"rung": "floor"}, "It is a floor: nobody can approve it."),
        ({"rung": "bypass"}, "Approvals were bypassed in this session."),
        ({"rung": "nobody"}, "Nobody could be asked, and the settings decide what happens then."),
        ({"decided_by": (Actor(type="grant", grant_id="G7"),)}, "A standing approval covers it: G7."),
        (
            {"repeat_of": "req_0", "repeat_short": "8ZT4C", "decided_by": (Actor(type="person", name="Ana"),)},
            " denied the same before (8ZT4C), and that still holds.",
        ),
    ],
)
def test_what_decided_is_told(facts: dict[str, Any], says: str) -> None:
    assert any(line.endswith(says) for line in why_lines(row("rm -rf build", **facts)))


def test_rules_that_changed_since_are_told() -> None:
    stored = row("deploy now")
    assert why_of(stored, Profile()).rules_now is None
    own = shipped().with_own([{"key": "ours.deploy", "verdict": "ask", "programs": ["deploy"], "sentence": "deploys"}])
    changed = why_of(stored, Profile(rules=own))
    assert changed.rules_now == ("ours.deploy",)
    assert "By the rules as they are now: ours.deploy." in why_lines(stored, Profile(rules=own))


@pytest.mark.parametrize("action", [Tool(name="send"), Code(language="ruby", code="puts 1")])
def test_what_is_not_read_has_no_tree(action: Action) -> None:
    assert why_of(row(action)).tree == ()
    assert len(why_lines(row(action))) == 3


def test_a_tree_that_takes_too_long_claims_no_change_of_rules() -> None:
    stored = row("ls", action=Command(command="x=(" * 16_000), rule_keys=("delete.recursive",))
    why = why_of(stored, Profile())
    assert why.problems
    assert why.rules_now is None

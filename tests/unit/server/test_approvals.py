"""Asking, waiting, deciding, claiming and reporting over HTTP."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.unit.server.world import COMMAND, TOKEN, World, until


async def test_one_approval_from_question_to_result(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask(reason="because")
    assert row["object"] == "signoff.approval"
    assert (row["status"], row["outcome"], row["agent"]) == ("pending", None, "builder")
    assert row["created_at"].endswith("Z")
    assert row["agent_reason"] == "because"

    waiting = asyncio.create_task(agent("GET", f"/v1/approvals/{row['request_id']}?wait=30"))
    decided = await approver("POST", f"/v1/approvals/{row['short_id'].lower()}/decision", {"choice": "once"})
    assert decided.status == 200
    assert decided.body["decided_by"][0]["principal"] == "ann"
    woken = await waiting
    assert (woken.status, woken.body["outcome"], woken.body["execution"]["state"]) == (200, "approved", "none")

    claim = {"digest": row["digest"], "claim_id": "c1"}
    path = f"/v1/approvals/{row['request_id']}"
    assert (await agent("POST", f"{path}/claim", claim)).body["execution"]["state"] == "claimed"
    assert (await agent("POST", f"{path}/claim", claim)).status == 200
    done = await agent("POST", f"{path}/result", {"status": "succeeded", "exit_code": 0})
    assert (done.status, done.body["execution"]["exit_code"]) == (200, 0)
    assert done.body["message"].startswith("BLOCKED: already_claimed. This action was run and succeeded, ")
    again = await agent("POST", f"{path}/result", {"status": "failed", "exit_code": 1})
    assert (again.status, again.code) == (409, "conflict")
    assert again.body["approval"]["execution"]["state"] == "succeeded"


async def test_post_with_wait_returns_the_decision(world: World) -> None:
    agent, approver = await world.pair()
    body = {"session_id": "s1", "action": COMMAND, "request_id": "r1"}
    asking = asyncio.create_task(agent("POST", "/v1/approvals?wait=30", body))

    async def stored() -> bool:
        return (await approver("GET", "/v1/approvals/r1")).status == 200

    await until(stored)
    await approver("POST", "/v1/approvals/r1/decision", {"choice": "deny", "reason": "x" * 300})
    answer = await asking
    assert (answer.status, answer.body["outcome"], answer.body["reason"]) == (201, "denied", "x" * 280)


async def test_a_cut_reason_is_told(quick: World) -> None:
    agent, approver = await quick.pair()
    row = await agent.ask()
    told = await approver(
        "POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "deny", "reason": "x" * 300}
    )
    assert told.body["warnings"] == ["The reason was cut; 20 characters are left out."]


async def test_a_wait_ends_with_its_time(quick: World) -> None:
    agent, _ = await quick.pair()
    row = await agent.ask()
    answer = await agent("GET", f"/v1/approvals/{row['request_id']}?wait=0.05")
    assert (answer.status, answer.body["status"]) == (200, "pending")


async def test_the_same_question_again_is_200_and_another_is_refused(world: World) -> None:
    agent, _ = await world.pair()
    body = {"session_id": "s1", "action": COMMAND, "request_id": "r1"}
    first, again = await agent("POST", "/v1/approvals", body), await agent("POST", "/v1/approvals", body)
    assert (first.status, again.status) == (201, 200)
    assert first.body["short_id"] == again.body["short_id"]
    other = await agent("POST", "/v1/approvals", {**body, "action": {**COMMAND, "command": "git push -f"}})
    assert (other.status, other.code) == (409, "idempotency_conflict")
    await agent("PUT", "/v1/sessions/s2")
    elsewhere = await agent("POST", "/v1/approvals", {**body, "session_id": "s2"})
    assert (elsewhere.status, elsewhere.code) == (409, "idempotency_conflict")


async def test_fifty_claims_have_one_winner(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask()
    path = f"/v1/approvals/{row['request_id']}"
    await approver("POST", f"{path}/decision", {"choice": "once"})
    claims = [{"digest": row["digest"], "claim_id": f"c{n}"} for n in range(50)]
    answers = await asyncio.gather(*(agent("POST", f"{path}/claim", claim) for claim in claims))
    assert Counter(a.status for a in answers) == {200: 1, 409: 49}
    assert {a.code for a in answers if a.status == 409} == {"already_claimed"}
    winner = next(claim for claim, a in zip(claims, answers, strict=True) if a.status == 200)
    assert (await agent("POST", f"{path}/claim", winner)).status == 200


async def test_fifty_mixed_decisions_have_one_winner(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask()
    path = f"/v1/approvals/{row['request_id']}/decision"
    choices = ["once", "deny", "session", "30m", "always"] * 10
    answers = await asyncio.gather(*(approver("POST", path, {"choice": choice}) for choice in choices))
    assert Counter(a.status for a in answers) == {200: 1, 409: 49}
    won = next(a.body for a in answers if a.status == 200)
    for lost in (a for a in answers if a.status == 409):
        assert lost.code == "already_resolved"
        assert (lost.body["approval"]["outcome"], lost.body["approval"]["choice"]) == (won["outcome"], won["choice"])


async def test_wrong_repeated_and_late_answers(world: World) -> None:
    agent, approver = await world.pair()
    one = await agent.ask(choices=["once"])
    two = await agent.ask(action={**COMMAND, "command": "git push --force origin dev"})
    path = f"/v1/approvals/{one['request_id']}/decision"
    not_offered = await approver("POST", path, {"choice": "always"})
    assert (not_offered.status, not_offered.code, not_offered.body["error"]["param"]) == (
        400,
        "choice_not_offered",
        "choice",
    )
    said = not_offered.body["error"]["message"]
    assert said == "“always” is not on offer for this request; on offer: once, deny. Nothing was decided."
    for choice in ("sure", "once_all"):
        answer = await approver("POST", path, {"choice": choice})
        assert (answer.status, answer.code) == (400, "choice_not_offered")
    assert (await approver("POST", "/v1/approvals/nowhere/decision", {"choice": "once"})).code == "approval_not_found"
    assert (await approver("POST", path, {"choice": "once"})).status == 200
    late = await approver("POST", path, {"choice": "deny"})
    assert (late.status, late.body["approval"]["outcome"]) == (409, "approved")
    assert (await approver("GET", f"/v1/approvals/{two['request_id']}")).body["status"] == "pending"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, "not_approved"),
        ({"digest": "0" * 64}, "digest_mismatch"),
    ],
)
async def test_claims_that_are_refused(quick: World, change: dict[str, str], code: str) -> None:
    agent, _ = await quick.pair()
    row = await agent.ask()
    claim = {"digest": row["digest"], "claim_id": "c1", **change}
    answer = await agent("POST", f"/v1/approvals/{row['request_id']}/claim", claim)
    assert (answer.status, answer.code) == (409, code)
    assert answer.body["approval"]["request_id"] == row["request_id"]


async def test_an_agent_that_must_not_run_it_reads_blocked_first(world: World) -> None:
    """Whoever sends plain HTTP may look at any text of the answer: all of them say it."""
    agent, approver = await world.pair()
    row = await agent.ask()
    path = f"/v1/approvals/{row['request_id']}"

    async def refused(claim_id: str, digest: str) -> tuple[str, set[str]]:
        answer = await agent("POST", f"{path}/claim", {"digest": digest, "claim_id": claim_id})
        assert answer.status == 409
        said = {answer.body["error"]["message"], answer.body["approval"]["message"]}
        assert all(text.startswith("BLOCKED: ") and "now." not in text for text in said), said
        return answer.code, said

    none, mismatch = "BLOCKED: not_approved. ", "BLOCKED: digest_mismatch. "
    code, said = await refused("c1", row["digest"])
    assert (code, [text.startswith(none) for text in said]) == ("not_approved", [True])
    await approver("POST", f"{path}/decision", {"choice": "once"})
    assert (await agent("GET", path)).body["message"].endswith("once, now."), "nobody has claimed it yet"
    code, said = await refused("c1", "0" * 64)
    assert (code, [text.startswith(mismatch) for text in said]) == ("digest_mismatch", [True])

    claim = {"digest": row["digest"], "claim_id": "c1"}
    for _ in range(2):  # the same claim again is the same permission: its first answer may have been lost
        mine = await agent("POST", f"{path}/claim", claim)
        assert mine.body["message"] == "Approved once. Run exactly this action, once, now."
    code, said = await refused("c2", row["digest"])
    assert (code, [text.startswith("BLOCKED: already_claimed. ") for text in said]) == ("already_claimed", [True])
    for answer in (await agent("GET", path), await agent("POST", f"{path}/cancel")):
        assert answer.body["message"] in said, "only the claim's own answer says to run it"


async def test_who_claims_what_a_person_denied_reads_that(quick: World) -> None:
    agent, approver = await quick.pair()
    row = await agent.ask()
    path = f"/v1/approvals/{row['request_id']}"
    await approver("POST", f"{path}/decision", {"choice": "deny"})
    answer = await agent("POST", f"{path}/claim", {"digest": row["digest"], "claim_id": "c1"})
    assert (answer.code, answer.body["error"]["message"]) == ("not_approved", answer.body["approval"]["message"])
    assert answer.body["error"]["message"].startswith("BLOCKED: denied. A person denied this action.")


async def test_a_changed_file_and_a_cancelled_approval_are_not_claimed(world: World) -> None:
    agent, approver = await world.pair()
    operand = {"path": "/tmp/x.sh", "sha256": "a" * 64, "bytes": 3}
    row = await agent.ask(action={"kind": "command", "command": "rm -rf /tmp/x", "operands": [operand]})
    path = f"/v1/approvals/{row['request_id']}"
    await approver("POST", f"{path}/decision", {"choice": "once"})
    claim = {"digest": row["digest"], "claim_id": "c1", "operands": [{**operand, "sha256": "b" * 64}]}
    assert (await agent("POST", f"{path}/claim", claim)).code == "changed_since_review"

    other = await agent.ask()
    path = f"/v1/approvals/{other['request_id']}"
    await approver("POST", f"{path}/decision", {"choice": "once"})
    cancelled = await agent("POST", f"{path}/cancel")
    assert cancelled.body["execution"]["state"] == "not_run"
    claim = {"digest": other["digest"], "claim_id": "c1"}
    assert (await agent("POST", f"{path}/claim", claim)).code == "cancelled"


async def test_cancel_takes_only_an_agents_causes(quick: World) -> None:
    agent, approver = await quick.pair()
    row = await agent.ask()
    path = f"/v1/approvals/{row['request_id']}/cancel"
    refused = await agent("POST", path, {"cause": "stop_requested"})
    assert (refused.status, refused.body["error"]["param"]) == (422, "cause")
    assert (await approver("POST", path)).code == "insufficient_scope"
    done = await agent("POST", path)
    assert (done.body["outcome"], done.body["cause"]) == ("cancelled", "withdrawn")
    assert done.body["ended_by"]["type"] == "agent"


async def test_undo_belongs_to_who_decided(world: World) -> None:
    agent, approver = await world.pair()
    stranger = await world.client("approver", principal="bob")
    row = await agent.ask()
    path = f"/v1/approvals/{row['request_id']}"
    await approver("POST", f"{path}/decision", {"choice": "session"})
    assert len((await approver("GET", "/v1/grants")).body["data"]) == 1
    refused = await stranger("POST", f"{path}/undo")
    assert (refused.status, refused.code) == (403, "not_permitted")
    assert (await approver("POST", f"{path}/undo")).body["execution"]["cause"] == "undone"
    assert (await approver("GET", "/v1/grants")).body["data"] == []
    late = await approver("POST", f"{path}/undo")
    assert (late.status, late.code) == (409, "too_late")


async def test_grants_are_listed_and_revoked_at_once(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask()
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "always"})
    assert (await agent.ask())["outcome"] == "approved"
    (grant,) = [each for each in (await approver("GET", "/v1/grants")).body["data"] if each["scope"] == "always"]
    assert (grant["object"], grant["exact"]) == ("signoff.grant", "git push origin main")
    assert (await approver("DELETE", f"/v1/grants/{grant['grant_id'].lower()}")).body["revoked_at"]
    assert (await agent.ask())["outcome"] is None
    again = await approver("DELETE", f"/v1/grants/{grant['grant_id']}")
    assert (again.status, again.code) == (404, "grant_not_found")


async def test_a_denied_action_may_be_let_ask_again(world: World) -> None:
    agent, approver = await world.pair()
    row = await agent.ask()
    decision = f"/v1/approvals/{row['request_id']}/decision"
    refused = await approver("POST", decision, {"choice": "ask_again"})
    assert (refused.status, refused.code) == (400, "choice_not_offered")
    await approver("POST", decision, {"choice": "deny"})
    repeat = await agent.ask()
    assert (repeat["outcome"], repeat["repeat_of"]) == ("denied", row["request_id"])
    late = await approver("POST", decision, {"choice": "once"})
    assert (late.status, late.code) == (409, "already_resolved")
    assert (await agent.ask())["outcome"] == "denied", "a late answer lifts nothing"
    assert (await agent("POST", decision, {"choice": "ask_again"})).status == 403
    told = await approver("POST", decision, {"choice": "ask_again"})
    assert (told.status, told.body["outcome"]) == (200, "denied")
    assert (await agent.ask())["outcome"] is None


async def test_harmless_commands_need_nobody(world: World) -> None:
    agent, _ = await world.pair()
    row = await agent.ask(action={"kind": "command", "command": "git status --short"})
    assert (row["outcome"], row["decided_by"][0]["type"], row["rule_keys"]) == ("approved", "policy", ["git.local"])


async def test_only_its_own_agent_reads_the_exact_action(world: World) -> None:
    agent, approver = await world.pair()
    ops = await world.client("ops")
    action = {"kind": "tool", "name": "deploy", "arguments": {"db": {"password": "swordfish"}, "n": 3, "t": [TOKEN]}}
    row = await agent.ask(action=action, reason=f"use {TOKEN}")
    assert row["action"] == action
    assert row["agent_reason"] == f"use {TOKEN}"
    for other in (approver, ops):
        seen = (await other("GET", f"/v1/approvals/{row['request_id']}")).body
        assert seen["action"]["arguments"] == {
            "db": {"password": "⟨9 masked⟩"},
            "n": 3,
            "t": ["gh⟨36 masked⟩45"],
        }
        assert TOKEN not in str(seen)
        assert "swordfish" not in str(seen)


async def test_lists_go_on_from_next(world: World) -> None:
    agent, approver = await world.pair()
    made = [(await agent.ask(request_id=f"r{n}", action={**COMMAND, "cwd": f"/{n}"}))["request_id"] for n in range(7)]
    await approver("POST", "/v1/approvals/r3/decision", {"choice": "deny"})
    seen: list[str] = []
    following = None
    while True:
        page = (await agent("GET", "/v1/approvals?limit=3" + (f"&after={following}" if following else ""))).body
        assert page["object"] == "list"
        seen += [row["request_id"] for row in page["data"]]
        following = page["next"]
        if following is None:
            break
    assert seen == made
    pending = (await approver("GET", "/v1/approvals?status=pending&session_id=s1")).body["data"]
    assert [row["request_id"] for row in pending] == [r for r in made if r != "r3"]
    resolved = (await approver("GET", "/v1/approvals?status=resolved")).body["data"]
    assert [row["request_id"] for row in resolved] == ["r3"]
    lost = await approver("GET", "/v1/approvals?after=nowhere")
    assert (lost.status, lost.body["error"]["param"]) == (422, "after")


async def test_no_deadline_differs_from_the_usual_one(quick: World) -> None:
    agent, _ = await quick.pair()
    assert (await agent.ask())["timeout_s"] == 300
    capped = await agent.ask(timeout_s=None, action={**COMMAND, "cwd": "/a"})
    assert (capped["timeout_s"], len(capped["warnings"])) == (86400, 1)


async def test_a_client_that_goes_frees_its_wait_and_harms_nothing(quick: World) -> None:
    agent, _ = await quick.pair()
    row = await agent.ask()
    waiters = quick.core.broker.waiters
    waiting = asyncio.create_task(agent("GET", f"/v1/approvals/{row['request_id']}?wait=60"))
    await until(lambda: len(waiters) == 1)
    waiting.cancel()
    await until(lambda: len(waiters) == 0)
    assert (await agent("GET", f"/v1/approvals/{row['request_id']}")).body["status"] == "pending"


async def test_an_agents_wait_keeps_its_turn_and_an_approvers_does_not(quick: World) -> None:
    agent, approver = await quick.pair()
    turn = (await agent("POST", "/v1/sessions/s1/turns", {"lease_s": 2})).body
    row = await agent.ask(turn_id=turn["turn_id"])
    waiters = quick.core.broker.waiters
    key = f"default\x1f{turn['turn_id']}"
    path = f"/v1/approvals/{row['request_id']}?wait=60"
    looking = asyncio.create_task(approver("GET", path))
    await until(lambda: len(waiters) == 1)
    assert waiters.seen([key]) == {}
    waiting = asyncio.create_task(agent("GET", path))
    await until(lambda: len(waiters) == 2)
    assert set(waiters.seen([key])) == {key}
    for task in (looking, waiting):
        task.cancel()
    await asyncio.gather(looking, waiting, return_exceptions=True)

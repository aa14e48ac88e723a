"""The card of a kept action in each of its states, and what its buttons answer."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.core.harness import ANN, BEN, PLACE, World, choices_of
from tests.unit.staged_cards.world import DIFF, ended, kept, labels, lines, newest, started, typed, unknown

from signoff.changes import digests, staging
from signoff.errors import ActionRefused, SendRefused
from signoff.model import Command, Operand, replace

APPROVED = "✅ Approved by “Ann” [fake 1] · 09:00 UTC"


async def test_the_card_says_what_waits_who_went_on_and_that_approving_runs_it(world: World) -> None:
    row = await kept(world)
    card = await world.card(row)
    assert lines(card) == [
        "Medium: calls tool send_email",
        "prod-db-1",
        "to: 214 addresses",
        "subject: Weekly report",
        (
            "Staged 09:00 UTC by cron job weekly-mail, which went on without it. "
            "Approving runs it now, as shown, by executor mailer."
        ),
        "Expires at 8 Jan 09:00 UTC (8 Jan 09:00 UTC), then it is not run.",
        f"{row.short_id} · 51d0c7aa",
    ]
    assert labels(card) == [["Approve and run", "Deny"], ["Deny, because…"]]
    assert [b.style for line in card.card.rows for b in line] == ["success", "danger", "neutral"]
    bold = [span.text for block in card.card.blocks for span in block.spans if span.style == "bold"]
    assert bold == ["Medium: calls tool send_email", "prod-db-1", "Approving runs it now"]


async def test_a_kept_file_write_shows_its_diff(world: World) -> None:  # #60550 1.4.11
    row = await kept(world, DIFF, rule_keys=(), description="")
    card = await world.card(row)
    assert lines(card)[0] == "Medium: changes /etc/cron.d/report (+1 −1)"
    (code,) = [block for block in card.card.blocks if block.kind == "code"]
    assert (code.language, code.spans[0].text) == ("diff", DIFF.diff)


@pytest.mark.parametrize(
    ("kind", "asker"),
    [
        ("cron", "cron job weekly-mail"),
        ("webhook", "webhook weekly-mail"),
        ("worker", "worker weekly-mail"),
        ("single_query", "single query weekly-mail"),
        ("chat", "mailer in session weekly-mail"),
        ("api", "mailer in session weekly-mail"),
        ("child", "mailer in session weekly-mail"),
    ],
)
async def test_who_went_on_without_it(world: World, kind: str, asker: str) -> None:
    card = await world.card(await kept(world, kind=kind))
    assert f"Staged 09:00 UTC by {asker}, which went on without it." in card.text


async def test_for_whom_it_was_asked_stands_beside_the_asker(world: World) -> None:
    vouched = await world.card(await kept(world, requested_by="Bo"))
    assert "by cron job weekly-mail for Bo, which" in vouched.text
    said = await world.card(await kept(world, claimed_for="Bo"))
    assert "by cron job weekly-mail for Bo (claimed), which" in said.text


async def test_an_action_whose_text_is_not_in_reach_can_only_be_denied(world: World) -> None:
    world.chat.fail(SendRefused("no files here"), times=1)
    row = await kept(world, Command(command="echo " + "x" * 5000))
    assert labels(await world.card(row)) == [["Deny"], ["Deny, because…"]]


async def test_approved_then_run_by_the_executor_then_a_second_tap(world: World) -> None:
    row = await kept(world)
    message, token = await world.button(row, "once")
    assert (await world.press(token, message)).text == "Approved. Executor mailer runs it now."
    await world.flush()
    assert lines(await world.card(row))[:2] == [APPROVED, "Waiting for executor mailer to start it."]
    again = await world.press(token, message, BEN)
    assert (again.text, again.lost) == ("Already approved. Executor mailer has not started it yet.", True)
    await started(world, row)
    assert (await world.press(token, message, BEN)).text == "Running since 09:00 UTC."
    await world.advance(6)
    card = await world.card(row)
    assert lines(card)[:2] == [APPROVED, "Running since 09:00 UTC by executor mailer."]
    assert labels(card) == []
    await ended(world, row, "succeeded")
    card = await world.card(row)
    assert lines(card)[:2] == [APPROVED, "Succeeded after 6 s."]
    assert labels(card) == []
    for who in (ANN, BEN):
        late = await world.press(token, message, who)
        assert (late.text, late.lost) == ("Already run at 09:00 UTC.", True)


async def test_undo_takes_the_approval_back_until_the_executor_starts_it(world: World) -> None:
    row = await kept(world)
    await world.tap(row, "once")
    await world.advance(3)
    assert labels(await world.card(row)) == [["Undo"]]
    assert (await world.tap(row, "undo")).text.startswith("Undone.")
    await world.flush()
    assert "took the approval back at 09:00 UTC, before it started." in (await world.card(row)).text
    with pytest.raises(ActionRefused):
        await started(world, row)
    message, token = (
        (await world.card(row)),
        world.signer.token((await world.copy(row)).copy_id, 0, "once", "fake", PLACE.chat_id),
    )
    told = await world.press(token, message)
    assert told.text == "The approval was taken back before executor mailer started it. It must be asked again."


async def test_undo_comes_too_late_once_it_runs(world: World) -> None:
    row = await kept(world)
    await world.tap(row, "once")
    await world.advance(3)
    message, token = await world.button(row, "undo")
    await started(world, row)
    assert (await world.press(token, message)).text.startswith("Too late: ")


@pytest.mark.parametrize(
    ("state", "facts", "line"),
    [
        ("succeeded", {}, "Succeeded after 0 s."),
        ("succeeded", {"exit_code": 0}, "Succeeded: exit code 0 after 0 s."),
        ("failed", {}, "⚠️ Failed: the tool reported an error after 0 s."),
        ("failed", {"exit_code": 3}, "⚠️ Failed: exit code 3 after 0 s."),
        ("not_run", {}, "⚠️ Not run: executor mailer reports that it did not start it."),
        (
            "not_run",
            {"cause": "executor_unreachable"},
            "⚠️ Not run: executor mailer could not be reached. It must be asked again.",
        ),
        (
            "not_run",
            {"cause": "executor_changed"},
            "⚠️ Not run: executor mailer does not run this any more. It must be asked again.",
        ),
        ("not_run", {"cause": "forbidden_now"}, "⚠️ Not run: a deny rule or a floor forbids it by now."),
        ("unknown", {}, "⚠️ Unknown: the executor stopped while it ran. It may have run."),
        (
            "unknown",
            {"cause": "executor_timed_out"},
            "⚠️ Unknown: executor mailer did not end in time. It may have run.",
        ),
        (
            "unknown",
            {"cause": "answer_lost"},
            "⚠️ Unknown: executor mailer was told to run it, and its answer was lost. It may have run.",
        ),
    ],
)
async def test_each_end_of_a_run_is_told(world: World, state: str, facts: dict[str, object], line: str) -> None:
    row = await kept(world)
    await world.tap(row, "once")
    await started(world, row)
    row = await ended(world, row, state, **facts)
    assert lines(await world.card(row))[:2] == [APPROVED, line]
    text = await world.message(row)
    assert text.startswith("BLOCKED: ") and "mailer" in text, "the agent must never run it itself"


async def test_files_that_changed_since_it_was_kept(world: World) -> None:
    action = Command(command="sh run.sh", operands=(Operand(path="run.sh", sha256="aa", bytes=1),))
    row = await kept(world, action)
    await world.tap(row, "once")
    await started(world, row)
    assert "run.sh changed after “Ann” [fake 1] looked at it." in (await world.card(row)).text


async def test_denied_with_and_without_a_reason(world: World) -> None:
    row = await kept(world)
    assert (await world.tap(row, "deny")).text == "Denied. It is not run."
    await world.flush()
    assert lines(await world.card(row))[0] == "⛔ Denied by “Ann” [fake 1] · 09:00 UTC · not run"
    row = await kept(world)
    await world.tap(row, "because")
    await world.flush()
    assert (await world.tap(row, "wrong_target")).text == "Denied. It is not run. Reason kept: “wrong target”."
    await world.flush()
    assert lines(await world.card(row))[1] == "Reason given: “wrong target”"
    assert labels(await world.card(row)) == []


async def test_nobody_answers_for_three_days(world: World) -> None:
    row = await kept(world)
    await world.advance(72 * 3600 + 1)
    card = await world.card(row)
    assert lines(card)[0] == "⌛ Timeout · 09:00 UTC · nobody answered within 3 days · not run"
    assert labels(card) == []


async def test_a_critical_one_takes_a_second_tap(world: World) -> None:
    row = await kept(world, severity="critical")
    card = await world.card(row)
    assert labels(card) == [["Approve and run…", "Deny"], ["Deny, because…"]]
    assert (await world.tap(row, "once")).text == "Critical: confirm with “Yes, run it once”."
    assert (await world.row(row)).outcome is None
    await world.flush()
    assert (await world.tap(row, "confirm")).text == "Approved. Executor mailer runs it now."


# --- unknown -------------------------------------------------------------------------------------


async def test_somebody_says_that_it_did_run(world: World) -> None:
    row = await unknown(world)
    card = await world.card(row)
    assert labels(card) == [["It did run", "Run it again…"]]
    message, token = await world.button(row, "did_run")
    assert (await world.press(token, message, BEN)).text == "Noted: it did run."
    await world.flush()
    card = await world.card(row)
    assert lines(card)[:2] == [APPROVED, "Succeeded: “Ben” [fake 2] says that it did run."]
    assert labels(card) == []
    assert (await world.press(token, message)).text == "Already run at 09:00 UTC."
    assert (await world.row(row)).execution.state == "succeeded"
    with pytest.raises(ActionRefused):
        await started(world, await world.row(row))


async def test_it_is_run_again_only_after_a_second_tap_and_only_once(world: World) -> None:
    row = await unknown(world)
    told = await world.tap(row, "run_again")
    assert told.text == "It may have run: confirm with “Yes, run it once more”."
    await world.flush()
    assert await newest(world) == row, "the first tap starts nothing"
    panel, token = await world.button(row, "confirm")
    assert lines(panel) == [f"{row.short_id} may have run already. Run it once more?"]
    assert labels(panel) == [["Yes, run it once more"], ["Close"]]
    assert (await world.press(token, panel, BEN)).text.startswith("Ann opened this one")
    told = await world.press(token, panel)
    again = await newest(world)
    assert told.text == f"It runs once more now, as {again.short_id}."
    assert (again.outcome, again.execution.state, again.stages) == ("approved", "none", row.stages)
    await world.flush()
    card = await world.card(again)
    assert lines(card)[:2] == [APPROVED, "Waiting for executor mailer to start it."]
    assert "nothing was decided" in (await world.press(token, panel)).text
    assert len(await world.store.find(type(row), "staged", "default")) == 2
    old = await world.row(row)
    assert (old.execution.state, old.superseded_by) == ("unknown", again.request_id)
    await started(world, again)
    await ended(world, again, "succeeded")
    assert lines(await world.card(again))[1] == "Succeeded after 0 s."


async def test_a_run_that_was_lost_again_can_be_settled_on_the_same_card(world: World) -> None:
    row = await unknown(world)
    await world.tap(row, "run_again")
    await world.flush()
    await world.tap(row, "confirm")
    await world.flush()
    again = await newest(world)
    await started(world, again)
    await ended(world, again, "unknown")
    card = await world.card(again)
    assert labels(card) == [["It did run", "Run it again…"]]
    assert (await world.tap(again, "did_run")).text == "Noted: it did run."
    await world.flush()
    assert "says that it did run" in (await world.card(again)).text


async def test_the_panel_is_closed_without_running_anything(world: World) -> None:
    row = await unknown(world)
    await world.tap(row, "run_again")
    await world.flush()
    assert (await world.tap(row, "close")).text == "Closed. Nothing was decided here."
    await world.flush()
    assert labels(await world.card(row)) == [["It did run", "Run it again…"]]
    assert await newest(world) == row


async def test_the_open_panel_goes_when_somebody_says_that_it_did_run(world: World) -> None:
    row = await unknown(world)
    await world.tap(row, "run_again")
    await world.flush()
    panel, token = await world.button(row, "confirm")
    await world.tap(row, "did_run", BEN)
    await world.flush()
    assert (await world.press(token, panel)).text == "Already run at 09:00 UTC."
    assert await newest(world) == await world.row(row)
    assert panel.message_id not in {m.message_id for m in world.chat.shown()}


async def test_a_late_answer_of_the_executor_settles_it_for_all(world: World) -> None:
    row = await unknown(world)
    message, token = await world.button(row, "did_run")
    await ended(world, row, "failed")
    assert lines(await world.card(row))[1].startswith("⚠️ Failed")
    assert (await world.press(token, message)).text == "Already run at 09:00 UTC."


async def test_who_may_not_decide_settles_nothing(world: World) -> None:
    row = await unknown(world)
    for choice in ("did_run", "run_again"):
        assert "may not decide" in (await world.tap(row, choice, "666")).text
    assert await world.row(row) == row


async def test_its_buttons_mean_nothing_before_it_is_unknown(world: World) -> None:
    """A forged or early one."""
    row = await kept(world)
    card = await world.card(row)
    copy = await world.copy(row)
    for choice in ("did_run", "run_again"):
        token = world.signer.token(copy.copy_id, copy.faces[-1].revision, choice, "fake", PLACE.chat_id)
        await world.press(token, card)
    await world.flush()
    with pytest.raises(LookupError):
        await world.button(row, "confirm")
    assert (await world.row(row)).outcome is None
    await world.tap(row, "once")
    for choice in ("did_run", "run_again"):
        token = world.signer.token(copy.copy_id, copy.faces[-1].revision, choice, "fake", PLACE.chat_id)
        assert "Already approved" in (await world.press(token, card)).text
    assert (await world.row(row)).execution.state == "none"


# --- typed ---------------------------------------------------------------------------------------


async def test_pending_lists_it_and_its_id_approves_it(world: World) -> None:
    row = await kept(world)
    assert f"{row.short_id} medium · staged: send_email · mailer · until 8 Jan 09:00 UTC" in await typed(
        world, "/pending"
    )
    told = await typed(world, f"/approve {row.short_id}")
    assert told == f"{row.short_id} approved. Executor mailer runs it now."
    assert (await world.row(row)).outcome == "approved"
    assert f"{row.short_id}: Already approved." in await typed(world, f"/approve {row.short_id}", by=BEN)
    await started(world, row)
    await ended(world, row, "succeeded")
    assert await typed(world, f"/approve {row.short_id}") == f"{row.short_id}: Already run at 09:00 UTC."


async def test_it_is_denied_by_its_id(world: World) -> None:
    row = await kept(world)
    assert await typed(world, f"/deny {row.short_id}") == f"{row.short_id} denied. It is not run."
    row = await kept(world)
    told = await typed(world, f"/deny {row.short_id} not this week")
    assert told == f"{row.short_id}: Denied. It is not run. Reason kept: “not this week”."


async def test_approve_all_leaves_it_and_deny_all_denies_it(world: World) -> None:
    """What runs at once needs a tap or an id of its own; a refusal of all means it too."""
    row = await kept(world)
    plain = await world.ask("deploy build")
    told = await typed(world, "/approve all")
    assert f"Left {row.short_id} · staged: needs its own tap" in told
    assert f"Approved {plain.short_id}" in told
    assert (await world.row(row)).outcome is None
    assert f"Denied {row.short_id}" in await typed(world, "/deny all")
    assert (await world.row(row)).outcome == "denied"


async def test_a_digest_s_approval_of_all_leaves_it(world: World) -> None:
    row = await kept(world)
    assert not digests.approvable(row)
    assert digests.approvable(replace(row, stages=None))


async def test_a_staged_record_is_named_by_the_kept_question_s_id_everywhere(world: World) -> None:
    row = await kept(world)
    first = await world.row(row.stages or "")
    assert f"kept as {row.short_id} for a person" in await world.message(first)
    assert await typed(world, f"/approve {first.short_id}") == (
        f"{first.short_id}: Staged as {row.short_id}. It waits there for an answer. Your tap changed nothing."
    )


async def test_the_end_of_the_session_leaves_the_kept_action(world: World) -> None:
    row = await kept(world)
    await world.sessions.stop("default", "weekly-mail", None)
    await world.flush()
    assert (await world.row(row)).outcome is None
    assert "once" in choices_of(await world.card(row))


async def test_a_card_that_is_shown_again_tells_the_present_state(world: World) -> None:
    """Its window is as long as the settings say, whatever a panel or a tap does."""
    row = await kept(world)
    await world.tap(row, "because")
    assert (await world.row(row)).expires_at == row.created_at + timedelta(hours=72)
    assert staging.state_of(replace(row, outcome="timeout")) == "expired"

"""What is Slack's own: private panels, dialogs, slash commands, threads, guests, files; over loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from tests.contract.test_slack import ANA, EVE, FORUM, GROUP, SlackStage, slack_stage
from tests.platforms.slack import FaultKind, SeenMessage

from signoff.model import Answer, Attachment, Block, Button, Card, Dialog, Reply, Span
from signoff.testing.adapter_stage import POISON, RecordingInbox, card, pass_time, running, until, until_shown
from signoff_adapters.slack.answers import NO_DIALOG
from signoff_adapters.slack.intake import NOT_KNOWN
from signoff_adapters.words import COMMAND_UNHANDLED, RECEIVED, UNHANDLED

PANEL = Card(blocks=(Block("text", (Span("Wider answers"),)),), rows=((Button("This session", "t-session"),),))
LIST = Card(blocks=(Block("text", (Span("2 wait here"),)),))
DIALOG = Dialog(title="7Q2MK", label="Why not?", placeholder="The agent reads this.", token="t-typed", max_units=280)


@pytest.fixture(params=["socket", "http"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[SlackStage]:
    async with slack_stage(request.param) as stage:
        yield stage


async def private(stage: SlackStage, user: str, channel: str = GROUP) -> list[SeenMessage]:
    """What only this person sees there."""
    messages = await stage.slack.messages(channel, as_user=user)
    return [message for message in messages if message.ephemeral_to == user and not message.deleted]


def texts(inbox: RecordingInbox) -> list[str]:
    """What was said; Slack may also report again what was said before the adapter came."""
    return [message.text for message in inbox.messages]


# --- panels and dialogs --------------------------------------------------------------------------


async def test_a_panel_is_shown_to_one_person_and_the_answer_takes_its_place(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        inbox.answer = Answer("", panel=PANEL)
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        assert (await stage.slack.answer_of(press)).kind == "ephemeral"
        (panel,) = await private(stage, ANA)
        assert panel.text == "Wider answers"
        assert await private(stage, EVE) == []
        inbox.answer = Answer("Approved for this session.")
        press = await stage.slack.press(ANA, GROUP, panel.ts, "t-session")
        answer = await stage.slack.answer_of(press)
        assert (answer.kind, answer.text) == ("replaced", "Approved for this session.")
        (after,) = await private(stage, ANA)
        assert (after.ts, after.buttons) == (panel.ts, [])
        assert len(await stage.seen(stage.group)) == 1
    assert [(tap.token, tap.message_id, tap.order) for tap in inbox.taps] == [
        ("t-approve", posted.message_id, posted.order),
        ("t-session", None, 0),
    ]


async def test_an_empty_answer_takes_the_panel_away(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        inbox.answer = Answer("", panel=PANEL)
        await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve"))
        (panel,) = await private(stage, ANA)
        inbox.answer = Answer("")
        press = await stage.slack.press(ANA, GROUP, panel.ts, "t-session")
        assert (await stage.slack.answer_of(press)).kind == "deleted"
        assert await private(stage, ANA) == []
        assert len(await stage.seen(stage.group)) == 1


async def test_an_empty_answer_to_a_card_shows_nothing(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    inbox.answer = Answer("")
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        await stage.slack.until(lambda: stage.slack.press_state(press), lambda state: state.acknowledged_at is not None)
    assert (await stage.slack.press_state(press)).answers == []


async def test_a_panel_in_a_thread_stands_there_and_its_press_knows_the_thread(stage: SlackStage) -> None:
    assert stage.thread is not None
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.thread, card())
        inbox.answer = Answer("", panel=PANEL)
        await stage.slack.answer_of(await stage.slack.press(ANA, FORUM, posted.message_id, "t-approve"))
        (panel,) = await private(stage, ANA, FORUM)
        assert panel.thread_ts == stage.thread.thread_id
        inbox.answer = Answer("Done.")
        await stage.slack.answer_of(await stage.slack.press(ANA, FORUM, panel.ts, "t-session"))
    assert [tap.destination for tap in inbox.taps] == [stage.thread, stage.thread]


async def test_a_dialog_asks_and_what_is_typed_comes_back_as_a_tap(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        inbox.answer = Answer("", panel=PANEL)
        await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve"))
        (panel,) = await private(stage, ANA)
        inbox.answer = Answer("", dialog=DIALOG)
        press = await stage.slack.press(ANA, GROUP, panel.ts, "t-session")
        assert (await stage.slack.answer_of(press)).kind == "modal"
        (view,) = await stage.slack.views(ANA)
        assert (view.title, view.fields, view.submit) == ("7Q2MK", ["reason"], "Send")
        inbox.answer = Answer("Denied. The agent reads: “wrong host”.")
        sent = await stage.slack.submit_view(ANA, view.view_id, {"Why not?": "wrong host"})
        assert (await stage.slack.answer_of(sent)).kind == "closed"
        await stage.slack.wait_for_message(GROUP, lambda seen: "wrong host" in seen.text, as_user=ANA)
        (shown,) = await private(stage, ANA)
        assert (shown.ts, shown.text) == (panel.ts, "Denied. The agent reads: “wrong host”.")
    tap = inbox.taps[-1]
    assert (tap.token, tap.text, tap.destination, tap.person.user_id) == ("t-typed", "wrong host", stage.group, ANA)
    assert tap.message_id is None


async def test_a_reason_that_was_not_saved_stays_in_the_field(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    inbox.answer = Answer("", dialog=DIALOG)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-deny"))
        (view,) = await stage.slack.views(ANA)
        inbox.answer = Answer("Your answer could not be saved.", alert=True)
        await stage.slack.answer_of(await stage.slack.submit_view(ANA, view.view_id, {"Why not?": "no"}))
        (view,) = await stage.slack.views(ANA)
        assert (view.open, list(view.errors.values())) == (True, ["Your answer could not be saved."])
        inbox.answer = Answer("Denied.")
        again = await stage.slack.submit_view(ANA, view.view_id, {"Why not?": "no"})
        assert (await stage.slack.answer_of(again)).kind == "closed"
    assert len({tap.tap_id for tap in inbox.taps}) == 3


async def test_a_dialog_that_does_not_open_is_told(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    inbox.answer = Answer("", dialog=DIALOG)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.fault("error", method="views.open", error="expired_trigger_id")
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-deny")
        assert (await stage.slack.answer_of(press)).text == NO_DIALOG


# --- answers -------------------------------------------------------------------------------------


async def test_a_press_is_acknowledged_after_the_inbox_and_within_slacks_time(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    inbox.held.add(GROUP)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        await until(lambda: bool(inbox.taps), what="the tap is in")
        await stage.clock.advance(1.4)
        assert (await stage.slack.press_state(press)).acknowledged_at is None
        await stage.clock.advance(0.2)
        assert (await stage.slack.answer_of(press)).text == RECEIVED
        # The acknowledgement goes another way than the answer, so it may come after it.
        await until_shown(lambda: _acknowledged(stage, press), what="it is acknowledged")
        assert not (await stage.slack.press_state(press)).timed_out
        inbox.release()


async def _acknowledged(stage: SlackStage, press: str) -> bool:
    return (await stage.slack.press_state(press)).acknowledged_at is not None


async def test_a_used_up_response_url_leaves_a_private_message(stage: SlackStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.fault("error", method="response_url", error="used_url")
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        answer = await stage.slack.answer_of(press)
        assert (answer.kind, answer.text) == ("ephemeral", "Approved once. The agent is told.")
        assert [entry.method for entry in await stage.slack.log(method="chat.postEphemeral")] == ["chat.postEphemeral"]


async def test_an_answer_that_slack_takes_in_no_way_is_handed_back(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.fault("error", method="response_url", error="expired_url")
        await stage.slack.fault("error", method="chat.postEphemeral", error="user_not_in_channel")
        await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        await until(lambda: bool(inbox.untold), what="the inbox was told")
    assert [(tap.token, answer) for tap, answer in inbox.untold] == [("t-approve", inbox.answer)]


async def test_a_tap_that_nobody_can_handle_is_answered(stage: SlackStage) -> None:
    class Broken(RecordingInbox):
        async def tap(self, tap: Any) -> Answer:
            raise RuntimeError("defect")

    inbox = Broken()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        await pass_time(stage.clock, lambda: bool(inbox.alarms), within_s=30, what="an operator is told")
        await stage.slack.until(
            lambda: stage.slack.press_state(press), lambda state: UNHANDLED in [each.text for each in state.answers]
        )


# --- what is typed -------------------------------------------------------------------------------


@pytest.mark.parametrize(("is_private", "kind"), [(True, "ephemeral"), (False, "message")])
async def test_a_slash_command_and_its_reply(stage: SlackStage, is_private: bool, kind: str) -> None:
    inbox = RecordingInbox()
    inbox.reply = Reply(LIST, private=is_private)
    async with running(stage, inbox):
        typed = await stage.slack.slash(ANA, GROUP, "approve 7Q2MK <once> & go")
        answer = await stage.slack.answer_of(typed)
        await stage.slack.redeliver(typed)
        assert (answer.kind, answer.text) == (kind, "2 wait here")
    (message,) = inbox.messages
    assert (message.text, message.replies) == ("/signoff approve 7Q2MK <once> & go", "all")
    assert (message.destination, message.person.user_id, message.person.name) == (stage.group, ANA, "Ana")


async def test_a_clock_that_is_behind_does_not_put_a_command_before_the_cards(stage: SlackStage) -> None:
    """Cards are ordered by Slack's clock, a slash command by ours."""
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        assert posted.order > stage.clock.now().timestamp() * 1_000_000
        await stage.slack.slash(ANA, GROUP, "approve all")
        await until(lambda: len(inbox.messages) == 1, what="the command is in")
        ts = await stage.slack.say(ANA, GROUP, "ok")
        await until(lambda: len(inbox.messages) == 2, what="what was said is in")
        await stage.slack.slash(ANA, GROUP, "approve all")
        await until(lambda: len(inbox.messages) == 3, what="the command is in")
    first, said, last = inbox.messages
    assert posted.order < first.order < said.order < last.order
    assert said.message_id == ts


@pytest.mark.parametrize(("fault", "error", "kind"), [("error", "used_url", "message"), ("500", None, "ephemeral")])
async def test_a_public_reply_whose_address_fails_is_given_in_another_way(
    stage: SlackStage, fault: FaultKind, error: str | None, kind: str
) -> None:
    """For all where it surely was not shown; else to the writer alone, so that nobody reads it twice."""
    inbox = RecordingInbox()
    inbox.reply = Reply(LIST, private=False)
    await stage.slack.fault(fault, method="response_url", error=error)
    async with running(stage, inbox):
        await stage.slack.slash(ANA, GROUP, "approve all")
        shown = await stage.slack.wait_for_message(GROUP, lambda seen: seen.text == "2 wait here", as_user=ANA)
        assert shown.ephemeral_to == (ANA if kind == "ephemeral" else None)


async def test_the_file_of_a_private_list_goes_to_the_writer_alone(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    whole = Attachment("pending.txt", b"all 23 of them")
    inbox.reply = Reply(Card(blocks=LIST.blocks, attachment=whole), private=True)
    async with running(stage, inbox):
        await stage.slack.answer_of(await stage.slack.slash(ANA, GROUP, "pending"))
        assert [each.file for each in await stage.seen(stage.direct)] == [whole]
        assert await stage.seen(stage.group) == []
        inbox.reply = Reply(Card(blocks=LIST.blocks, attachment=whole), private=False)
        await stage.slack.answer_of(await stage.slack.slash(ANA, GROUP, "approve all"))
        assert [each.file for each in await stage.seen(stage.group)] == [whole, None]


async def test_a_slash_command_without_a_reply_shows_nothing(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox):
        typed = await stage.slack.slash(ANA, GROUP, "")
        await stage.slack.until(lambda: stage.slack.press_state(typed), lambda state: state.acknowledged_at is not None)
    assert (await stage.slack.press_state(typed)).answers == []
    assert [message.text for message in inbox.messages] == ["/signoff"]


async def test_a_command_that_cannot_be_handled_is_told(stage: SlackStage) -> None:
    class Broken(RecordingInbox):
        async def message(self, message: Any) -> Reply | None:
            raise RuntimeError("defect")

    inbox = Broken()
    async with running(stage, inbox):
        typed = await stage.slack.slash(ANA, GROUP, "stop")
        await pass_time(stage.clock, lambda: bool(inbox.alarms), within_s=30, what="an operator is told")
        assert (await stage.slack.answer_of(typed)).text == COMMAND_UNHANDLED


async def test_a_mention_comes_as_two_events_and_is_one_message(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox):
        ts = await stage.slack.mention(ANA, GROUP, "approve 7Q2MK")
        await until(lambda: bool(inbox.messages), what="the message is in")
        await stage.slack.until(stage.slack.pending_count, lambda pending: pending == 0)
    (message,) = inbox.messages
    assert (message.message_id, message.text, message.addressed) == (ts, "approve 7Q2MK", True)


async def test_a_private_reply_to_a_message_is_for_the_writer(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    inbox.reply = Reply(LIST, private=True)
    async with running(stage, inbox):
        await stage.slack.say(ANA, GROUP, "!pending")
        await stage.slack.wait_for(GROUP, lambda seen: any(each.text == "2 wait here" for each in seen), as_user=ANA)
        assert [each.text for each in await private(stage, EVE)] == []
    assert inbox.messages[0].replies == "private"


async def test_a_reply_in_the_thread_of_a_card_replies_to_the_card(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        said = await stage.slack.say(ANA, GROUP, "deny too risky", thread_ts=posted.message_id)
        await until(lambda: bool(inbox.messages), what="the message is in")
        answer = await adapter.post(stage.group, LIST, reply_to=said)
        (shown,) = [each for each in await stage.slack.messages(GROUP) if each.ts == answer.message_id]
        assert shown.thread_ts == posted.message_id
    (message,) = inbox.messages
    assert (message.destination, message.reply_to, message.addressed) == (stage.group, posted.message_id, True)


async def test_after_a_restart_the_thread_of_a_card_is_still_known(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.group, card())
    async with running(stage, inbox):
        await stage.slack.say(ANA, GROUP, "deny", thread_ts=posted.message_id)
        await until(lambda: bool(inbox.messages), what="the message is in")
    assert (inbox.messages[0].destination, inbox.messages[0].reply_to) == (stage.group, posted.message_id)


async def test_a_thread_that_others_began_is_a_place(stage: SlackStage) -> None:
    assert stage.thread is not None
    inbox = RecordingInbox()
    async with running(stage, inbox):
        await stage.say(ANA, stage.thread, "!pending")
        await until(lambda: bool(inbox.messages), what="the message is in")
    assert (inbox.messages[0].destination, inbox.messages[0].reply_to) == (stage.thread, None)


@pytest.mark.parametrize("how", [{"edited": True}, {"bot_message": True}, {"forward": True}])
async def test_what_is_not_first_hand_is_not_attributed(stage: SlackStage, how: dict[str, Any]) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox):
        await stage.slack.say(EVE, GROUP, "!approve 7Q2MK", **how)
        await until(lambda: bool(inbox.messages), what="the message is in")
    (message,) = inbox.messages
    assert (message.unattributable, message.text) == (True, "!approve 7Q2MK")


async def test_an_event_that_was_not_settled_comes_again(stage: SlackStage) -> None:
    first, second = RecordingInbox(), RecordingInbox()
    first.held.add(GROUP)
    async with running(stage, first):
        await stage.slack.say(ANA, GROUP, "!deny 7Q2MK")
        await until(lambda: bool(first.messages), what="it is in hand")
    async with running(stage, second):
        for limit_s in (2.0, 2.0, 60.0):  # the platform may notice only now that the first one took nothing
            await stage.slack.advance_clock(61)
            await stage.slack.advance_clock(301)
            with suppress(AssertionError):
                await until(lambda: "!deny 7Q2MK" in texts(second), what="it came again", limit_s=limit_s)
                break
    assert texts(second).count("!deny 7Q2MK") == 1


async def test_a_retried_event_is_handled_once(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox):
        await stage.slack.fault("lose_ack", method="events_api")
        await stage.slack.say(ANA, GROUP, "!deny 7Q2MK")
        await until(lambda: bool(inbox.messages), what="it is in")
        for _ in range(3):
            await stage.slack.advance_clock(61)
        await stage.slack.until(stage.slack.pending_count, lambda pending: pending == 0)
    assert texts(inbox).count("!deny 7Q2MK") == 1


async def test_our_own_cards_and_edits_are_nobodys_messages(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await adapter.update(stage.group, posted.message_id, card("approved"))
        await adapter.delete(stage.group, posted.message_id)
        await stage.slack.until(stage.slack.pending_count, lambda pending: pending == 0)
    assert inbox.messages == []


async def test_a_poisoned_message_of_one_chat_does_not_hold_up_presses(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.say(ANA, GROUP, POISON)
        await until(lambda: inbox.tries == 1, what="it failed once")
        await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve"))
        assert inbox.tries == 1


# --- people --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [{"is_restricted": True}, {"is_ultra_restricted": True}, {"team_id": "T0OTHER"}, {"is_stranger": True}],
    ids=["guest", "single-channel guest", "other workspace", "stranger"],
)
async def test_guests_and_other_workspaces_are_marked(stage: SlackStage, kind: dict[str, Any]) -> None:
    inbox = RecordingInbox()
    await stage.slack.add_user("U0GUEST", "Gus", **kind)
    await stage.slack.join(GROUP, "U0GUEST")
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        for user in ("U0GUEST", ANA):
            await stage.slack.answer_of(await stage.slack.press(user, GROUP, posted.message_id, "t-approve"))
        await stage.slack.say("U0GUEST", GROUP, "!approve")
        await stage.slack.slash("U0GUEST", GROUP, "approve")
        await until(lambda: len(inbox.messages) == 2, what="the messages are in")
    assert [(tap.person.user_id, tap.person.guest) for tap in inbox.taps] == [("U0GUEST", True), (ANA, False)]
    assert all(message.person.guest for message in inbox.messages)


async def test_a_person_whom_slack_does_not_tell_decides_nothing(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.fault("error", method="users.info", error="missing_scope", times=2)
        press = await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        assert (await stage.slack.answer_of(press)).text == NOT_KNOWN
        await stage.slack.say(ANA, GROUP, "!approve")
        await stage.slack.wait_for(GROUP, lambda seen: [each.text for each in seen].count(NOT_KNOWN) == 2, as_user=ANA)
        await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-deny"))
    assert inbox.messages == []
    assert [(tap.token, tap.person.name, tap.person.guest) for tap in inbox.taps] == [("t-deny", "Ana", False)]


async def test_approvers_are_asked_about_when_a_card_goes_out(stage: SlackStage) -> None:
    await stage.slack.add_user("U0GUEST", "Gus", is_restricted=True)
    await stage.slack.join(GROUP, "U0GUEST")
    inbox = RecordingInbox()
    inbox.named = (ANA, "U0GUEST", "U0NOBODY")
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.wait_for_log(lambda seen: len(seen) == 3, method="users.info")
        for user in (ANA, "U0GUEST"):
            await stage.slack.answer_of(await stage.slack.press(user, GROUP, posted.message_id, "t-approve"))
        asked = [entry.parameters["user"] for entry in await stage.slack.log(method="users.info")]
    assert sorted(asked) == sorted([ANA, "U0GUEST", "U0NOBODY"])
    assert [(tap.person.user_id, tap.person.guest) for tap in inbox.taps] == [(ANA, False), ("U0GUEST", True)]


async def test_a_person_is_asked_for_once(stage: SlackStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.group, card())
        for _ in range(3):
            await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve"))
        assert len(await stage.slack.log(method="users.info")) == 1

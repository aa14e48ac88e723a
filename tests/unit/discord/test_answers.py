"""Private answers, panels, dialogs, slash commands and typed messages, as a person at Discord meets them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.contract.test_discord import ANA, EVE, GROUP, GUILD, THREAD, DiscordStage, Mode, discord_stage
from tests.platforms.discord import Answer as Shown

from signoff.grammar import VERBS
from signoff.model import Answer, Attachment, Block, Button, Card, Destination, Dialog, Reply, Span, Suggestion
from signoff.testing.adapter_stage import RecordingInbox, card, running, until, until_shown

PANEL = Card(
    blocks=(Block("text", (Span("7Q2MK: the agent reads the reason."),)),),
    rows=((Button("Too risky", "t-risky"), Button("Type it…", "t-type")), (Button("Close", "t-close"),)),
)
DIALOG = Dialog(
    title="Deny 7Q2MK", label="Why not?", placeholder="The agent reads this", token="t-typed", max_units=280
)


@pytest.fixture(params=["gateway", "http"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[DiscordStage]:
    mode: Mode = request.param
    async with discord_stage(mode) as stage:
        yield stage


@pytest.fixture
async def gateway() -> AsyncIterator[DiscordStage]:
    async with discord_stage("gateway") as stage:
        yield stage


async def opened(stage: DiscordStage, inbox: RecordingInbox, message_id: str, answer: Answer) -> int:
    """Press a button that is answered so; the interaction."""
    inbox.answer = answer
    press = int(await stage.press(stage.person, stage.group, message_id, "t-because"))
    await stage.discord.answer_of(press)
    return press


def last(inbox: RecordingInbox) -> str:
    """The token of the latest tap."""
    return inbox.taps[-1].token


async def test_a_panel_is_private_and_the_answer_takes_its_place(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await opened(stage, inbox, posted.message_id, Answer("", panel=PANEL))
        shown = await stage.discord.private_answer_of(press)
        assert shown.text == "7Q2MK: the agent reads the reason."
        assert len(await stage.discord.messages(GROUP)) == 1
        (panel,) = [each for each in await stage.discord.messages(GROUP, viewer=ANA) if each.viewer == ANA]
        assert [[each.row, each.label] for each in panel.buttons] == [[0, "Too risky"], [0, "Type it…"], [1, "Close"]]
        inbox.answer = Answer("Denied. The agent reads: “too risky”.")
        on_panel = await stage.discord.press_ephemeral(press, "Too risky")
        done = await stage.discord.answer_of(on_panel)
        assert (done.kind, done.text) == ("update", inbox.answer.text)
        (panel,) = [each for each in await stage.discord.messages(GROUP, viewer=ANA) if each.viewer == ANA]
        assert (panel.text, panel.buttons) == (inbox.answer.text, [])
    tap = inbox.taps[-1]
    assert (tap.token, tap.destination, tap.person.user_id) == ("t-risky", stage.group, str(ANA))
    assert (tap.message_id, tap.order) == (None, 0), "a panel is no message of the chat"


async def test_a_panel_can_lead_to_another_panel(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await opened(stage, inbox, posted.message_id, Answer("", panel=PANEL))
        confirm = Card(blocks=(Block("text", (Span("Sure?"),)),), rows=((Button("Yes", "t-yes"),),))
        inbox.answer = Answer("Needs a second tap.", panel=confirm)
        second = await stage.discord.press_ephemeral(press, "Too risky")
        shown = await stage.discord.answer_of(second)
        assert (shown.kind, shown.text) == ("update", "Needs a second tap.\nSure?")
        inbox.answer = Answer("Done.")
        assert (await stage.discord.answer_of(await stage.discord.press_ephemeral(press, "Yes"))).text == "Done."
    assert last(inbox) == "t-yes"


async def test_a_dialog_asks_for_one_line_and_brings_it(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await opened(stage, inbox, posted.message_id, Answer("", dialog=DIALOG))
        modal = await stage.discord.modal_of(press)
        (field,) = modal.fields
        assert (modal.title, modal.custom_id, field.label) == ("Deny 7Q2MK", "t-typed", "Why not?")
        assert (field.max_length, field.min_length, field.placeholder) == (280, 1, "The agent reads this")
        inbox.answer = Answer("Denied.")
        sent = await stage.discord.submit_modal(press, {field.custom_id: "wrong *target*"})
        told = await stage.discord.private_answer_of(sent)
        assert told.text == "Denied."
    tap = inbox.taps[-1]
    assert (tap.token, tap.text, tap.message_id) == ("t-typed", "wrong *target*", posted.message_id)


async def test_a_dialog_from_a_panel_ends_the_panel(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await opened(stage, inbox, posted.message_id, Answer("", panel=PANEL))
        inbox.answer = Answer("", dialog=DIALOG)
        asked = await stage.discord.press_ephemeral(press, "Type it…")
        await stage.discord.modal_of(asked)
        inbox.answer = Answer("Denied.")
        sent = await stage.discord.submit_modal(asked, {"text": "no"})
        done = await stage.discord.answer_of(sent)
        assert (done.kind, done.text) == ("update", "Denied.")
        (panel,) = [each for each in await stage.discord.messages(GROUP, viewer=ANA) if each.viewer == ANA]
        assert (panel.text, panel.buttons) == ("Denied.", [])


async def test_a_slow_press_on_a_panel_leaves_it_until_the_verdict(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await opened(stage, inbox, posted.message_id, Answer("", panel=PANEL))
        inbox.answer = Answer("Denied.")
        inbox.held.add(stage.group.chat_id)
        slow = await stage.discord.press_ephemeral(press, "Too risky")
        await until(lambda: len(inbox.taps) == 2, what="the tap is in")
        await stage.clock.advance(1.6)
        await until_shown(lambda: _acknowledged(stage, slow), what="it is acknowledged")
        assert [each.kind for each in await stage.discord.answers(slow)] == ["deferred_update"]
        inbox.release()
        await until_shown(lambda: _panel_is(stage, "Denied."), what="the verdict stands in the panel's place")


async def _acknowledged(stage: DiscordStage, interaction: int) -> bool:
    return (await stage.discord.press_state(interaction)).acknowledged_at is not None


async def _panel_is(stage: DiscordStage, text: str) -> bool:
    shown = [each.text for each in await stage.discord.messages(GROUP, viewer=ANA) if each.viewer == ANA]
    return shown == [text]


async def test_a_press_does_not_wait_for_another_one_of_its_channel(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    inbox.held.add(stage.group.chat_id)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        slow = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        await until(lambda: bool(inbox.taps), what="the slow tap is in")
        inbox.held.clear()
        quick = await stage.press(stage.person, stage.group, posted.message_id, "t-deny")
        await stage.discord.private_answer_of(int(quick))
        assert await stage.answers(slow) == []
        inbox.release()
        await stage.discord.private_answer_of(int(slow))


async def test_markup_in_an_answer_is_dead(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        text = f"Denied. The agent reads: “**x** <@{EVE}> @everyone https://x.example”."
        press = await opened(stage, inbox, posted.message_id, Answer(text))
        assert (await stage.discord.private_answer_of(press)).text == text


async def test_roles_come_along(stage: DiscordStage) -> None:
    await stage.discord.add_role(GUILD, 77, "approvers", members=[ANA])
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await opened(stage, inbox, posted.message_id, Answer("ok"))
        direct = await adapter.post(stage.direct, card())
        await stage.press(stage.person, stage.direct, direct.message_id, "t-approve")
        await until(lambda: len(inbox.taps) == 2, what="both are in")
    assert [tap.person.groups for tap in inbox.taps] == [("role:77",), ()]


async def test_an_answer_that_cannot_be_given_reaches_the_core(gateway: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(gateway, inbox) as adapter:
        posted = await adapter.post(gateway.group, card())
        await gateway.discord.fault("404", call="callback", code=10062)
        await gateway.press(gateway.person, gateway.group, posted.message_id, "t-approve")
        await until(lambda: bool(inbox.untold), what="the core was told")
    assert [(tap.token, answer) for tap, answer in inbox.untold] == [("t-approve", inbox.answer)]


@pytest.mark.parametrize("fault", ["500", "drop_after", "drop_before"])
async def test_an_answer_is_tried_twice_and_shown_once(gateway: DiscordStage, fault: str) -> None:
    inbox = RecordingInbox()
    async with running(gateway, inbox) as adapter:
        posted = await adapter.post(gateway.group, card())
        await gateway.discord.fault(fault, call="callback")  # type: ignore[arg-type]  # one of its kinds
        press = int(await gateway.press(gateway.person, gateway.group, posted.message_id, "t-approve"))
        shown = await gateway.discord.private_answer_of(press)
        assert shown.text == inbox.answer.text
    assert inbox.untold == []


# --- slash commands ------------------------------------------------------------------------------


async def registered(stage: DiscordStage) -> None:
    """Return once the commands are there."""
    await stage.discord.until(stage.discord.commands, bool)


async def test_commands_are_registered(stage: DiscordStage) -> None:
    await stage.discord.fault("502", call="put_commands")
    async with running(stage, RecordingInbox()):
        await until_shown(lambda: _failed_once(stage), what="the first try failed")
        await until_shown(lambda: _a_second_later(stage), what="the next try")
        assert {each["name"] for each in await stage.discord.commands()} == set(VERBS)


async def _failed_once(stage: DiscordStage) -> bool:
    return bool(await stage.discord.log(call="put_commands"))


async def _a_second_later(stage: DiscordStage) -> bool:
    """Whether the commands are there. The adapter may hear of its failure, and begin its pause, after the platform has
    told it, so the clock moves on until then."""
    await stage.clock.advance(1.0)
    return bool(await stage.discord.commands())


async def ordered(stage: DiscordStage, inbox: RecordingInbox, command: str, options: dict[str, str]) -> Shown:
    """Order something by a slash command; what was shown."""
    await registered(stage)
    interaction = await stage.discord.slash(ANA, THREAD, command, options)
    return await stage.discord.answer_of(interaction)


async def test_a_command_is_a_message_and_its_reply_the_answer(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    inbox.reply = Reply(Card(blocks=(Block("text", (Span("K4XW9 approved *once*."),)),)), private=False)
    async with running(stage, inbox):
        shown = await ordered(stage, inbox, "approve", {"id": "K4XW9", "scope": "session"})
        assert (shown.text, shown.private) == ("K4XW9 approved *once*.", False)
    (message,) = inbox.messages
    assert (message.text, message.replies, message.addressed) == ("/approve K4XW9 session", "all", True)
    assert (message.destination, message.person.user_id) == (stage.thread, str(ANA))
    assert message.order == int(message.message_id)


async def test_a_private_reply_with_a_file(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    whole = Attachment("pending.txt", b"100 lines")
    inbox.reply = Reply(Card(blocks=(Block("text", (Span("100 wait here."),)),), attachment=whole), private=True)
    async with running(stage, inbox):
        shown = await ordered(stage, inbox, "pending", {})
        assert (shown.text, shown.private) == ("100 wait here.", True)
        (message,) = await stage.discord.messages(THREAD, viewer=ANA)
        assert [(each.file_name, each.content) for each in message.files] == [("pending.txt", b"100 lines")]


async def test_a_command_without_a_reply_is_answered_neutrally(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox):
        shown = await ordered(stage, inbox, "stop", {})
        assert (shown.text, shown.private) == ("Received.", True)


async def test_what_is_no_id_does_not_reach_the_core(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox):
        shown = await ordered(stage, inbox, "deny", {"id": "foo", "reason": "no"})
        assert shown.private
        assert "nothing was decided" in shown.text
    assert inbox.messages == []


@pytest.mark.parametrize("private", [True, False])
async def test_a_slow_command_is_answered_in_the_end(stage: DiscordStage, private: bool) -> None:
    inbox = RecordingInbox()
    inbox.reply = Reply(Card(blocks=(Block("text", (Span("Stopped."),)),)), private=private)
    inbox.held.add(stage.group.chat_id)
    async with running(stage, inbox):
        await slow_command(stage, inbox)
        inbox.release()
        await stage.discord.wait_for(
            GROUP, lambda seen: any(each.text == "Stopped." for each in seen), viewer=ANA if private else EVE
        )


async def slow_command(stage: DiscordStage, inbox: RecordingInbox) -> None:
    """A command that is in hand for so long that a neutral answer was given."""
    await registered(stage)
    interaction = await stage.discord.slash(ANA, GROUP, "stop", {})
    await until(lambda: bool(inbox.messages), what="the command is in")
    await stage.clock.advance(1.6)
    await stage.discord.answer_of(interaction)


@pytest.mark.parametrize("fault", ["drop_after", "error_after"])
async def test_a_public_reply_whose_answer_is_lost_stands_once(gateway: DiscordStage, fault: str) -> None:
    stage, inbox = gateway, RecordingInbox()
    inbox.reply = Reply(Card(blocks=(Block("text", (Span("Stopped."),)),)), private=False)
    inbox.held.add(stage.group.chat_id)
    async with running(stage, inbox):
        await slow_command(stage, inbox)
        await stage.discord.fault(fault, call="create_followup")  # type: ignore[arg-type]  # one of its kinds
        inbox.release()
        await until_shown(lambda: _stands(stage), what="it stands there")
    # The adapter has stopped and left nothing in hand, so no second one comes.
    assert [each.text for each in await stage.discord.messages(GROUP)] == ["Stopped."]


async def test_a_private_reply_whose_answer_is_lost_has_its_file_once(gateway: DiscordStage) -> None:
    stage, inbox = gateway, RecordingInbox()
    whole = Attachment("pending.txt", b"100 lines")
    inbox.reply = Reply(Card(blocks=(Block("text", (Span("100 wait here."),)),), attachment=whole), private=True)
    inbox.held.add(stage.group.chat_id)
    async with running(stage, inbox):
        await slow_command(stage, inbox)
        await stage.discord.fault("drop_after", call="edit_original")
        inbox.release()
        await stage.discord.until(lambda: stage.discord.log(call="edit_original"), lambda calls: len(calls) == 2)
    (message,) = await stage.discord.messages(GROUP, viewer=ANA)
    assert [(each.file_name, each.content) for each in message.files] == [("pending.txt", b"100 lines")]


async def _stands(stage: DiscordStage) -> bool:
    return bool(await stage.discord.messages(GROUP))


async def test_half_typed_ids_are_completed(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    inbox.suggestions = (Suggestion("K4XW9", "medium · git push"), Suggestion("7Q2MK", "high · rm -rf"))
    async with running(stage, inbox):
        await registered(stage)
        typing = await stage.discord.autocomplete(ANA, GROUP, "approve", {"id": "7"}, "id")
        assert await stage.discord.choices_of(typing) == [{"name": "7Q2MK · high · rm -rf", "value": "7Q2MK"}]
    assert inbox.messages == []


# --- typed messages ------------------------------------------------------------------------------


async def test_what_people_write_to_the_bot(gateway: DiscordStage) -> None:
    stage, inbox = gateway, RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.discord.say(ANA, GROUP, "lunch?")  # not to us: its text does not come
        await stage.discord.say(ANA, GROUP, "approve K4XW9", mention_bot=True)
        await stage.discord.say(ANA, THREAD, "stop", mention_bot=True)
        await stage.discord.say(ANA, int(stage.direct.chat_id), "/pending")
        await stage.discord.say(ANA, GROUP, "approve", mention_bot=True, reply_to=int(posted.message_id))
        await until(lambda: len(inbox.messages) == 4, what="they are in")
    by_text = {message.text: message for message in inbox.messages}
    assert by_text["approve K4XW9"].destination == stage.group
    assert by_text["approve K4XW9"].addressed
    assert by_text["stop"].destination == stage.thread
    assert (by_text["/pending"].destination, by_text["/pending"].direct) == (stage.direct, True)
    assert by_text["approve"].reply_to == posted.message_id
    assert not any(message.unattributable for message in inbox.messages)


async def test_forwarded_edited_and_automatic_messages_decide_nothing(gateway: DiscordStage) -> None:
    stage, inbox = gateway, RecordingInbox()
    direct = int(stage.direct.chat_id)
    async with running(stage, inbox):
        await stage.discord.say(ANA, direct, "/approve all", forward=True)
        said = await stage.discord.say(ANA, direct, "/pending")
        await stage.discord.edit_said(ANA, direct, said, "/approve all")
        await stage.discord.say(ANA, GROUP, "approve all", mention_bot=True, webhook=True)
        await until(lambda: len(inbox.messages) == 4, what="they are in")
    assert sorted((message.text, message.unattributable) for message in inbox.messages) == [
        ("/approve all", True),
        ("/approve all", True),
        ("/pending", False),
        ("approve all", True),
    ]


async def test_a_thread_met_first_by_a_message_is_looked_up_once(gateway: DiscordStage) -> None:
    stage, inbox = gateway, RecordingInbox()
    async with running(stage, inbox):
        for _ in "12":
            await stage.discord.say(ANA, THREAD, "pending", mention_bot=True)
        await until(lambda: len(inbox.messages) == 2, what="both are in")
        assert len(await stage.discord.log(call="get_channel")) == 1
    assert {message.destination for message in inbox.messages} == {Destination("discord", str(GROUP), str(THREAD))}

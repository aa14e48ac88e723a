"""The whole gateway on Slack: what a person sees and does from the card to the decision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.test_slack import ANA, APP_TOKEN, BOT_TOKEN, EVE, GROUP, SlackStage, slack_stage
from tests.platforms.slack import SeenMessage

from signoff.clock import SystemClock
from signoff.config import load_config
from signoff.gateway import Gateway
from signoff.model import Command, Destination
from signoff.record import Approval
from signoff.testing.adapter_stage import until_shown
from signoff_adapters.slack import SlackAdapter, SlackConfig


@pytest.fixture
async def stage() -> AsyncIterator[SlackStage]:
    async with slack_stage("socket") as stage:
        await stage.slack.add_user("U0GUEST", "Gus", is_restricted=True)
        await stage.slack.join(GROUP, "U0GUEST")
        await stage.slack.add_usergroup("S0OPS", "ops", users=[ANA, "U0GUEST"])
        yield stage


@pytest.fixture
async def gateway(request: pytest.FixtureRequest, stage: SlackStage, tmp_path: Path) -> AsyncIterator[Gateway]:
    """Its approvers are those that a test asks for."""
    approvers = json.dumps(getattr(request, "param", [ANA, "U0GUEST"]))
    settings = tmp_path / "signoff.toml"
    settings.write_text(
        f'[gateway]\nstate_dir = "{tmp_path / "state"}"\nstore = "memory://"\n'
        f'[platforms.slack]\nbot_token = "{BOT_TOKEN}"\napp_token = "{APP_TOKEN}"\napi_base_url = "{stage.url}"\n'
        f"approvers = {approvers}\n"
    )
    config, clock = load_config(settings, {}), SystemClock()
    adapter = SlackAdapter(SlackConfig(**config.profiles["default"].platforms["slack"]), clock=clock, profile="default")
    async with Gateway(config, clock=clock, adapters={("default", "slack"): adapter}) as made:
        yield made


async def ask(
    gateway: Gateway,
    stage: SlackStage,
    command: str = "git push origin main",
    *,
    chat: str = GROUP,
    thread: str | None = None,
) -> tuple[asyncio.Task[Approval], SeenMessage]:
    """A pending question and its card, which the gateway knows by its message: what is typed below it then means it."""
    await gateway.session("s1", kind="chat", destination=Destination("slack", chat, thread))
    task = asyncio.create_task(gateway.request(Command(command=command), session_id="s1"))
    place = stage.direct.chat_id if chat == ANA else chat
    found = await stage.slack.wait_for_message(place, lambda seen: command in seen.text and bool(seen.buttons))
    await until_shown(lambda: _delivered(gateway, command), what="Slack's answer to the card is in")
    return task, found


async def _delivered(gateway: Gateway, command: str) -> bool:
    return any(row.delivered_to and command in str(row.action) for row in await gateway.pending())


async def test_a_tap_decides_and_the_card_says_by_whom(gateway: Gateway, stage: SlackStage) -> None:  # #54522
    asked, card = await ask(gateway, stage)
    assert card.text.startswith("Medium: ")
    press = await stage.slack.press(ANA, GROUP, card.ts, "Approve once")
    assert (await stage.slack.answer_of(press)).text == "Approved once. The agent is told."
    assert (await asked).may_run
    done = await stage.slack.wait_for_message(GROUP, lambda seen: seen.ts == card.ts and not seen.buttons)
    assert done.text.startswith(f"✅ Approved once by “Ana” [slack {ANA}]")


async def test_a_typed_reason_reaches_the_agent(gateway: Gateway, stage: SlackStage) -> None:
    asked, card = await ask(gateway, stage)
    await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, card.ts, "Deny, because…"))
    panel = await stage.slack.wait_for_message(GROUP, lambda seen: seen.ephemeral_to == ANA, as_user=ANA)
    opened = await stage.slack.press(ANA, GROUP, panel.ts, "Type it…")
    assert (await stage.slack.answer_of(opened)).kind == "modal"
    (view,) = await stage.slack.views(ANA)
    await stage.slack.submit_view(ANA, view.view_id, {view.fields[0]: "wrong host"})
    record = await asked
    assert (record.outcome, record.reason) == ("denied", "wrong host")
    await stage.slack.wait_for_message(
        GROUP, lambda seen: seen.ts == panel.ts and "wrong host" in seen.text and not seen.buttons, as_user=ANA
    )


async def test_a_wider_answer_from_the_panel(gateway: Gateway, stage: SlackStage) -> None:
    asked, card = await ask(gateway, stage)
    await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, card.ts, "More…"))
    panel = await stage.slack.wait_for_message(GROUP, lambda seen: seen.ephemeral_to == ANA, as_user=ANA)
    wide = next(each for each in panel.buttons if each.label.startswith("This session"))
    answer = await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, panel.ts, wide.label))
    assert answer.kind == "replaced"
    assert answer.text.startswith("Approved for this session")
    assert "/signoff revoke " in answer.text
    assert (await asked).choice == "session"


async def test_in_a_thread_only_what_can_be_typed_there_is_named(gateway: Gateway, stage: SlackStage) -> None:
    assert stage.thread is not None
    chat, root = stage.thread.chat_id, stage.thread.thread_id
    asked, card = await ask(gateway, stage, chat=chat, thread=root)
    await stage.slack.answer_of(await stage.slack.press(ANA, chat, card.ts, "More…"))
    panel = await stage.slack.wait_for_message(chat, lambda seen: seen.ephemeral_to == ANA, as_user=ANA)
    wide = next(each for each in panel.buttons if each.label.startswith("This session"))
    answer = await stage.slack.answer_of(await stage.slack.press(ANA, chat, panel.ts, wide.label))
    assert " !revoke " in answer.text
    assert (await asked).choice == "session"
    done = await stage.slack.wait_for_message(chat, lambda seen: seen.ts == card.ts and "; !revoke " in seen.text)
    assert "/signoff" not in done.text
    await stage.slack.say(ANA, chat, "!help", thread_ts=root)
    told = await stage.slack.wait_for_message(chat, lambda seen: "!deny [id" in seen.text, as_user=ANA)
    assert "/signoff pending" not in told.text


async def test_under_a_card_of_a_channel_it_is_the_same(gateway: Gateway, stage: SlackStage) -> None:
    asked, card = await ask(gateway, stage)
    await stage.slack.say(ANA, GROUP, "!aprove", thread_ts=card.ts)
    told = await stage.slack.wait_for_message(GROUP, lambda seen: seen.ephemeral_to == ANA, as_user=ANA)
    assert "Did you mean !approve?" in told.text
    asked.cancel()


async def test_strangers_and_guests_are_refused_in_true_words(gateway: Gateway, stage: SlackStage) -> None:
    asked, card = await ask(gateway, stage)
    told = {
        who: (await stage.slack.answer_of(await stage.slack.press(who, GROUP, card.ts, "Approve once"))).text
        for who in (EVE, "U0GUEST")
    }
    assert told == {
        EVE: f"You may not decide here; nothing changed. An operator can add you: your id is {EVE}.",
        "U0GUEST": "Guests and people of other workspaces may not decide here; nothing changed.",
    }
    slash = await stage.slack.slash("U0GUEST", GROUP, "approve")
    answer = await stage.slack.answer_of(slash)
    assert (answer.kind, answer.text) == (
        "ephemeral",
        "Guests and people of other workspaces may not decide here; nothing changed.",
    )
    assert not asked.done()
    await stage.slack.press(ANA, GROUP, card.ts, "Deny")
    assert (await asked).outcome == "denied"


@pytest.mark.parametrize("how", ["slash", "mention", "thread"])
async def test_typed_commands_decide(gateway: Gateway, stage: SlackStage, how: str) -> None:
    asked, card = await ask(gateway, stage)
    if how == "slash":
        answer = await stage.slack.answer_of(await stage.slack.slash(ANA, GROUP, "approve"))
        assert (answer.kind, "approved once" in answer.text) == ("message", True)
    elif how == "mention":
        await stage.slack.mention(ANA, GROUP, "approve")
    else:
        other, _ = await ask(gateway, stage, "npm publish")  # so that only the reply says which one is meant
        await stage.slack.say(ANA, GROUP, "approve", thread_ts=card.ts)
        assert (await asked).may_run
        assert not other.done()
        await stage.slack.say(ANA, GROUP, "!deny")
        assert (await other).outcome == "denied"
    assert (await asked).may_run


@pytest.mark.parametrize("gateway", [["group:S0OPS"]], indirect=True)
@pytest.mark.parametrize("how", ["button", "slash", "mention"])
async def test_members_of_a_user_group_decide_and_others_do_not(gateway: Gateway, stage: SlackStage, how: str) -> None:
    asked, card = await ask(gateway, stage)
    refused = {
        who: (await stage.slack.answer_of(await stage.slack.press(who, GROUP, card.ts, "Approve once"))).text
        for who in (EVE, "U0GUEST")
    }
    assert refused == {
        EVE: f"You may not decide here; nothing changed. An operator can add you: your id is {EVE}.",
        "U0GUEST": "Guests and people of other workspaces may not decide here; nothing changed.",
    }
    await stage.slack.answer_of(await stage.slack.slash(EVE, GROUP, "approve"))
    assert not asked.done()
    if how == "button":
        await stage.slack.press(ANA, GROUP, card.ts, "Approve once")
    elif how == "slash":
        await stage.slack.slash(ANA, GROUP, "approve")
    else:
        await stage.slack.mention(ANA, GROUP, "approve")
    record = await asked
    assert record.may_run
    assert [actor.user_id for actor in record.decided_by] == [ANA]


@pytest.mark.parametrize("gateway", [["group:S0NONE"]], indirect=True)
async def test_nobody_is_in_a_user_group_that_slack_does_not_know(gateway: Gateway, stage: SlackStage) -> None:
    asked, card = await ask(gateway, stage)
    told = await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, card.ts, "Approve once"))
    assert told.text.startswith("You may not decide here; nothing changed.")
    assert not asked.done()
    asked.cancel()


async def test_a_question_to_a_person_goes_to_the_direct_chat(gateway: Gateway, stage: SlackStage) -> None:
    asked, card = await ask(gateway, stage, chat=ANA)
    await stage.slack.press(ANA, stage.direct.chat_id, card.ts, "Approve once")
    assert (await asked).may_run

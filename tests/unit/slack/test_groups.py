"""User groups as approvers: who is in one, when Slack is asked, and that nobody is when it does not say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from tests.contract.test_slack import ANA, BOT_TOKEN, EVE, GROUP, SlackStage, slack_stage
from tests.platforms.slack import FaultKind, SlackPlatform, SlackServer

from signoff.testing.adapter_stage import RecordingInbox, card, running, until
from signoff_adapters.slack import SlackAdapter
from signoff_adapters.slack.calls import Web
from signoff_adapters.slack.config import SlackConfig
from signoff_adapters.slack.groups import ASK_AGAIN_S, Groups
from signoff_adapters.slack.people import FRESH_S, KNOWN_FOR_S

OPS, DEV = "group:S0OPS", "group:S0DEV"
GUEST = "U0GUEST"
METHOD = "usergroups.users.list"


@pytest.fixture(params=["socket", "http"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[SlackStage]:
    async with slack_stage(request.param) as stage:
        await stage.slack.add_user(GUEST, "Gus", is_restricted=True)
        await stage.slack.join(GROUP, GUEST)
        await stage.slack.add_usergroup("S0OPS", "ops", users=[ANA, GUEST])
        await stage.slack.add_usergroup("S0DEV", "dev", users=[ANA, EVE])
        yield stage


def inbox_of(*groups: str) -> RecordingInbox:
    """An inbox whose approvers are the members of these groups."""
    inbox = RecordingInbox()
    inbox.member_of = groups
    return inbox


# --- through the adapter -------------------------------------------------------------------------


async def test_taps_tell_the_groups_that_count(stage: SlackStage) -> None:
    inbox = inbox_of(OPS, DEV)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        for user in (ANA, EVE, GUEST):
            await stage.slack.answer_of(await stage.slack.press(user, GROUP, posted.message_id, "t-approve"))
    assert [(tap.person.user_id, tap.person.groups, tap.person.guest) for tap in inbox.taps] == [
        (ANA, (OPS, DEV), False),
        (EVE, (DEV,), False),
        (GUEST, (), True),
    ]


async def test_typed_and_slash_commands_tell_them_too(stage: SlackStage) -> None:
    inbox = inbox_of(OPS)
    async with running(stage, inbox):
        await stage.slack.say(ANA, GROUP, "!approve")
        await stage.slack.mention(ANA, GROUP, "approve")
        await stage.slack.slash(ANA, GROUP, "approve")
        await stage.slack.slash(EVE, GROUP, "approve")
        await until(lambda: len(inbox.messages) == 4, what="the messages are in")
    assert sorted((each.person.user_id, each.person.groups) for each in inbox.messages) == [
        (ANA, (OPS,)),
        (ANA, (OPS,)),
        (ANA, (OPS,)),
        (EVE, ()),
    ]


async def test_groups_are_asked_about_before_the_first_press(stage: SlackStage) -> None:
    inbox = inbox_of(OPS, DEV)
    async with running(stage, inbox) as adapter:
        assert isinstance(adapter, SlackAdapter)
        await until(lambda: len(adapter._groups.members((OPS, DEV))) == 3, what="Slack said who is in them")
        asked = await stage.slack.log(method=METHOD)
        posted = await adapter.post(stage.group, card())
        people = await stage.slack.wait_for_log(lambda seen: len(seen) == 3, method="users.info")
        for user in (ANA, EVE):
            await stage.slack.answer_of(await stage.slack.press(user, GROUP, posted.message_id, "t-approve"))
        assert len(await stage.slack.log(method=METHOD)) == 2
        assert len(await stage.slack.log(method="users.info")) == 3
    assert sorted(entry.parameters["usergroup"] for entry in asked) == ["S0DEV", "S0OPS"]
    assert sorted(entry.parameters["user"] for entry in people) == [ANA, EVE, GUEST]


async def test_without_groups_among_the_approvers_slack_is_not_asked(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve"))
        assert await stage.slack.log(method=METHOD) == []
    assert inbox.taps[0].person.groups == ()


async def test_a_tap_is_handed_in_without_groups_while_slack_does_not_say(stage: SlackStage) -> None:
    inbox = inbox_of(OPS)
    await stage.slack.fault("500", method=METHOD, times=9)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve"))
        await stage.slack.clear_faults()
        await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve"))
    assert [(tap.person.user_id, tap.person.groups) for tap in inbox.taps] == [(ANA, ()), (ANA, (OPS,))]


# --- what is remembered, and for how long --------------------------------------------------------


class Bench:
    """Groups of a workspace, with a clock in the hand."""

    def __init__(self, slack: SlackPlatform, web: Web) -> None:
        self.slack = slack
        self.now_s = 1000.0
        self.groups = Groups(web, lambda: self.now_s)

    async def of(self, user: str, *listed: str) -> tuple[str, ...]:
        return await self.groups.of(user, listed or (OPS,))

    async def asked(self) -> int:
        """How often Slack was asked so far."""
        return len(await self.slack.log(method=METHOD))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with SlackServer() as server:
        slack = server.platform
        await slack.add_bot(BOT_TOKEN)
        for user in (ANA, EVE):
            await slack.add_user(user, user)
        await slack.add_usergroup("S0OPS", "ops", users=[ANA])
        await slack.add_usergroup("S0DEV", "dev", users=[EVE, ANA])
        url = (await slack.where()).url
        web = Web(SlackConfig(bot_token=BOT_TOKEN, api_base_url=url, answer_timeout_s=5.0, connect_timeout_s=5.0), 4)
        bench = Bench(slack, web)
        yield bench
        await bench.groups.aclose()
        await web.aclose()


async def test_an_answer_holds_as_long_as_that_about_a_person(bench: Bench) -> None:
    assert await bench.of(ANA) == (OPS,)
    await bench.slack.change_usergroup("S0OPS", users=[EVE])
    bench.now_s += KNOWN_FOR_S - 1
    assert (await bench.of(ANA), await bench.of(EVE), await bench.asked()) == ((OPS,), (), 1)
    bench.now_s += 1
    assert (await bench.of(ANA), await bench.of(EVE), await bench.asked()) == ((), (OPS,), 2)


async def test_a_card_renews_an_answer_that_is_not_fresh(bench: Bench) -> None:
    await bench.of(ANA)
    await bench.slack.change_usergroup("S0OPS", users=[EVE])
    bench.now_s += FRESH_S
    bench.groups.expect((OPS, "U0ANA", "role:1"))
    assert await bench.of(ANA) == (OPS,)
    bench.now_s += 1
    bench.groups.expect((OPS,))
    bench.groups.expect((OPS,))
    await until(lambda: bench.groups.members((OPS,)) == (EVE,), what="it is renewed")
    assert await bench.asked() == 2


async def test_many_presses_at_once_are_one_question(bench: Bench) -> None:
    found = await asyncio.gather(*(bench.of(ANA, OPS, DEV) for _ in range(9)))
    assert set(found) == {(OPS, DEV)}
    assert await bench.asked() == 2
    assert bench.groups.members((DEV, OPS)) == (EVE, ANA)


@pytest.mark.parametrize("kind", ["500", "drop_after", "drop_before", "bad_json"])
async def test_a_lost_answer_makes_nobody_a_member_and_is_asked_for_again(bench: Bench, kind: FaultKind) -> None:
    await bench.slack.fault(kind, method=METHOD)
    assert await bench.of(ANA) == ()
    assert await bench.of(ANA) == (OPS,)


async def test_a_lost_renewal_leaves_the_old_answer_its_time(bench: Bench) -> None:
    await bench.of(ANA)
    await bench.slack.fault("500", method=METHOD, times=3)
    bench.now_s += KNOWN_FOR_S - 1
    bench.groups.expect((OPS,))
    await bench.slack.wait_for_log(lambda seen: len(seen) == 2, method=METHOD)
    assert await bench.of(ANA) == (OPS,)
    bench.now_s += 1
    assert await bench.of(ANA) == ()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("missing_scope", "lacks the scope usergroups:read"),
        ("no_such_subteam", "knows no user group S0OPS, or it is disabled"),
        ("plan_upgrade_required", "plan of this workspace has no user groups"),
    ],
)
async def test_a_no_counts_at_once_and_is_told_once(
    bench: Bench, caplog: pytest.LogCaptureFixture, error: str, said: str
) -> None:
    await bench.of(ANA)
    await bench.slack.fault("error", method=METHOD, error=error, times=3)
    bench.now_s += FRESH_S + 1
    bench.groups.expect((OPS,))
    await until(lambda: bench.groups.members((OPS,)) == (), what="the old answer does not hold any more")
    for _ in range(5):
        assert await bench.of(ANA) == ()
    assert await bench.asked() == 2
    for _ in range(2):
        bench.now_s += ASK_AGAIN_S
        assert await bench.of(ANA) == ()
    (line,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert said in line.getMessage()
    bench.now_s += ASK_AGAIN_S
    assert await bench.of(ANA) == (OPS,)
    assert await bench.asked() == 5


async def test_a_missing_scope_is_one_line_for_all_groups(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    await bench.slack.fault("error", method=METHOD, error="missing_scope", times=2)
    assert await bench.of(ANA, OPS, DEV) == ()
    (line,) = caplog.records
    assert line.getMessage().endswith("Add usergroups:read under OAuth & Permissions of the app and install it again.")


async def test_a_disabled_group_has_no_members(bench: Bench) -> None:
    await bench.slack.change_usergroup("S0OPS", disabled=True)
    assert await bench.of(ANA, OPS, DEV) == (DEV,)


async def test_slacks_limit_is_kept_to(bench: Bench) -> None:
    await bench.slack.fault("429", method=METHOD, retry_after_s=30)
    for _ in range(3):
        assert await bench.of(ANA) == ()
        bench.now_s += 14
    assert await bench.asked() == 1
    assert await bench.of(ANA) == (OPS,)


async def test_only_ids_of_user_groups_are_asked_about(bench: Bench) -> None:
    assert await bench.of(ANA, "role:1", OPS, OPS) == (OPS,)
    assert await bench.asked() == 1

"""Pending, why, grants, revoke and help."""

from __future__ import annotations

import pytest
from tests.unit.commands.world import BEN, EVE, OTHER, PROFILE, World, opened

from signoff.model import replace
from signoff.ports import AdapterInfo
from signoff.settings import PrincipalSettings


async def test_pending_counts_runs_and_cards(world: World) -> None:
    assert await world.type("/pending") == "Nothing waits here."
    leader = await world.ask("git push origin main")
    await world.submit("git push origin main")
    other = await world.ask("deploy deploy", severity="high")
    text = await world.type("/pending")
    assert text == (
        "3 wait here (2 cards)\n"
        f"{leader.short_id} medium · git push origin main · deploy-bot · 2 wait · until 09:05 UTC\n"
        f"{other.short_id} high · deploy deploy · deploy-bot · until 09:05 UTC"
    )


async def test_pending_masks_and_escapes_what_agents_wrote(world: World) -> None:
    await world.ask("curl -H 'Authorization: Bearer ghp_0123456789abcdefghijABCDEFGHIJ012345' \u202e x")
    text = await world.type("/pending")
    assert "ghp_0123456789abcdefghij" not in text
    assert "⟨U+202E⟩" in text


async def test_pending_names_what_still_has_no_card(world: World) -> None:
    world.adapter.stall()
    row = await world.submit()
    await world.adapter.say("/pending", where=row.destinations[0], by=BEN)
    world.adapter.go_on()
    assert row.short_id in (await world.answer()).text


async def test_a_long_list_is_folded_into_a_file(world: World) -> None:
    rows = [await world.ask() for _ in range(23)]
    reply = await world.reply("/pending")
    lines = reply.text.splitlines()
    assert (len(lines), lines[-1]) == (22, "and 3 more in pending.txt")
    assert reply.card.attachment is not None
    assert all(row.short_id in reply.card.attachment.content.decode() for row in rows)


async def test_why_tells_each_command(world: World) -> None:
    row = await world.ask("sudo rm -rf build && ls")
    lines = (await world.type(f"/why {row.short_id}")).splitlines()
    assert "1. sudo · asks: privilege.root" in lines
    assert "1.1. rm -rf build · asks: delete.recursive" in lines
    assert "2. ls · allowed: the rule read.files allows it" in lines
    assert lines[-2] == "No deny rule, no floor, not on the allowlist, no grant covers it: a person is asked."


async def test_why_says_the_rule_and_the_digest(world: World) -> None:
    row = await world.ask()
    for text in (await world.type("/why"), await world.type(f"/why {row.short_id.lower()}")):
        assert text.startswith(f"{row.short_id} · Medium: {row.description}")
        assert text.endswith(f"Digest {row.digest}")
    assert (await world.type("/why 7Q2MK")).startswith("7Q2MK is not waiting here")
    assert (await world.type("/why now")).startswith("now is not waiting here")
    await world.ask()
    several = await world.type("/why")
    assert several.startswith("2 wait here; nothing was decided. Add an id:")
    assert "all." not in several


async def test_grants_and_their_end(world: World) -> None:
    assert await world.type("/grants") == "Nothing is allowed in advance here."
    await world.session("there", OTHER)
    first, second = await world.ask("deploy one"), await world.ask("deploy two")
    rows = [first, second, await world.ask("deploy six", session="there"), await world.ask("deploy now")]
    for row, scope in zip(rows, ("session", "always", "session", "30m"), strict=True):
        await world.type(f"/approve {row.short_id} {scope}")
        await world.clock.advance(0.01)
    for _ in range(3):
        await world.ask("deploy one")
        await world.clock.advance(60)
    await world.ask("deploy two", session="there")
    one, two, six, now = await world.broker.grants("default")
    assert (one.uses, two.uses, six.uses) == (3, 1, 0)
    assert await world.type("/grants") == (
        f"{one.grant_id} this session: deploy one · Ana 09:00 UTC · used 3 times, last 09:02 UTC · ends with it\n"
        f"{two.grant_id} always: deploy two · Ana 09:00 UTC · used once, 09:03 UTC\n"
        f"{now.grant_id} until 09:30 UTC: deploy now · Ana 09:00 UTC\n"
        "/revoke <grant> ends one."
    )
    assert await world.type(f"/revoke {one.grant_id.lower()}", by=BEN) == (
        f"Revoked {one.grant_id} (this session: deploy one). It acts at once; what already runs goes on."
    )
    assert await world.type(f"/revoke {one.grant_id}") == (
        f"{one.grant_id} is not a grant here; nothing changed. /grants lists them."
    )
    assert "is not a grant here" in await world.type("/revoke everything")
    assert two.grant_id in await world.type("/revoke")
    assert [grant.grant_id for grant in await world.broker.grants("default")] == [
        two.grant_id,
        six.grant_id,
        now.grant_id,
    ]


@pytest.mark.parametrize("text", ["/pending", "/why", "/grants", "/revoke 7Q2MK"])
async def test_strangers_read_and_revoke_nothing(world: World, text: str) -> None:
    row = await world.ask()
    told = await world.type(text, by=EVE)
    assert told == "You may not do this here; nothing changed. Your id is 9."
    assert row.short_id not in told


async def test_help_says_whether_one_may_decide_here(world: World) -> None:
    text = await world.type("/start")
    assert "/approve [id or all] [once, session, always, 30m]" in text
    assert text.endswith("You may decide here: yes (Ana, id 1).")
    assert (await world.type("help", by=EVE, addressed=True)).endswith(
        "You may decide here: no. Your id is 9; an operator can add it."
    )


async def test_help_speaks_with_the_platform_s_prefix() -> None:
    slack = {"Ana": PrincipalSettings(accounts=("slack:1",))}
    async with opened("memory://", replace(PROFILE, approvers={"slack": ("Ana",)}, principals=slack)) as world:
        world.adapter.info = AdapterInfo(platform="slack", title="Slack", command_prefix="/signoff ")
        text = await world.type("/signoff help")
        assert "/signoff deny [id or all] [reason]" in text
        assert "in threads: @signoff approve" in text
        assert text.endswith("You may decide here: yes (Ana, id 1).")

"""A digest of texts that grow on Discord, which cannot escape backticks in code: it is sent, and edited to its end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.bursts import NO_KEY, digest_of, listed, message_of, token
from tests.unit.core.harness import GROUP, SIGNER, World

from signoff.cards import Facts
from signoff.changes.digests import Listed
from signoff.digest_cards import confirm_card, digest_card
from signoff.digest_list import list_card
from signoff.model import Actor, ApprovalRequest, Card, Command, Copy, Destination, Face, Posted, replace
from signoff.testing.fake_adapter import FakeAdapter
from signoff_adapters.discord.render import CONTENT_MAX_UNITS, edit_body, message_body
from signoff_adapters.slack.render import render

INFO = replace(NO_KEY, max_text_units=CONTENT_MAX_UNITS)


class Strict(FakeAdapter):
    """Refuses what Discord's renderer refuses."""

    async def post(self, destination: Destination, card: Card, *, reply_to: str | None = None) -> Posted:
        message_body(card)
        return await super().post(destination, card, reply_to=reply_to)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        edit_body(card)
        await super().update(destination, message_id, card)


@pytest.fixture
async def world(make_world: Callable[..., World]) -> World:
    """A group on a platform as strict as Discord."""
    world = make_world(chat=Strict(info=INFO))
    await world.session(destination=GROUP)
    return world


async def asked(world: World, texts: list[str], **facts: Any) -> list[ApprovalRequest]:
    rows = []
    for text in texts:
        await world.clock.advance(0.001)
        rows.append(await world.submit(text, **{"host": "ci-3", **facts}))
    return rows


@pytest.mark.parametrize("hostile", [3, 5, 8, 20])
async def test_one_agent_s_backticks_end_nobody_s_question(world: World, hostile: int) -> None:
    long = "build/some/longer/folder/name/that/people/use/" + "x" * 40
    rows = await asked(world, [f"deploy {n} {long}" for n in range(3)], host="h" * 38)
    rows += await asked(world, [f"deploy {n} " + "a`" * 60 for n in range(hostile)], host="`*" * 20)
    rows += await asked(world, [f"deploy more/{n} {long}" for n in range(20 - hostile)], host="h" * 38)
    await world.advance(60)
    assert [(await world.row(row)).outcome for row in rows] == [None] * len(rows)
    assert all([(await world.row(row)).delivered_to for row in rows])


@pytest.mark.parametrize("count", [24, 40])
async def test_groups_of_backticks_are_sent(world: World, count: int) -> None:
    rows = await asked(world, [f"deploy {n} " + "`*" * 60 for n in range(count)], host="`a" * 20)
    await world.advance(60)
    assert [(await world.row(row)).outcome for row in rows] == [None] * count


@pytest.mark.parametrize("reason", ["`*" * 130, "\u202e" * 200, "why not? " * 30])
async def test_the_last_edit_fits_whatever_people_gave_as_reasons(world: World, reason: str) -> None:
    rows = await asked(world, [f"deploy {n} " + "a`" * 11 + "b" * 40 for n in range(18)])
    await world.advance(30)
    found = await listed(world, rows)
    for number, row in enumerate(found):
        await world.decide(row, "deny", reason=f"{number % 6}{reason}"[:280])
    await world.advance(60)
    digest, message = await digest_of(world, found[0]), await message_of(world, found[0])
    assert (digest.state, digest.error) == ("final", None)
    assert message.card.rows == ()
    assert "denied by" in message.text.split("\n")[0]


async def test_a_reason_with_room_for_it_is_whole(world: World) -> None:
    rows = await asked(world, [f"deploy {n}" for n in range(18)])
    await world.advance(30)
    found = await listed(world, rows)
    reason = "not on a Friday, " * 14
    for row in found:
        await world.decide(row, "deny", reason=reason.strip())
    await world.advance(60)
    assert reason.strip() in (await message_of(world, found[0])).text


async def test_the_second_step_names_the_gravest(world: World) -> None:
    kinds = ("deploy a{}", "git push origin {}", "rm a{}", "docker push x{}", "git branch -D s{}")
    rows = await asked(world, [kind.format(n) for kind in (*kinds, "git stash drop {}") for n in range(4)])
    (one,) = await asked(world, ["drop database production"])
    await world.put(replace(one, severity="high", description="drops the production database"))
    await world.advance(30)
    found = await listed(world, [*rows, one])
    assert one.request_id in {row.request_id for row in found}
    message = await message_of(world, found[0])
    await world.press(token(message, "Approve"), message)
    await world.flush()
    panel = world.chat.shown()[-1].text
    assert "drops the production database" in panel.split(": ", 1)[1].split(",")[0]
    counts = {
        kind: int(count) for count, kind in (part.split(" × ") for part in panel.split(": ", 1)[1].split(", ")[1:5])
    }
    assert list(counts.values()) == sorted(counts.values(), reverse=True)


NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
TEXT = st.text("`*_ab <@:\u202e⟨\n", min_size=1, max_size=8).flatmap(
    lambda piece: st.sampled_from([1, 5, 40]).map(lambda times: (piece * times)[:280])
)


@st.composite
def questions(draw: st.DrawFn) -> list[Listed]:
    """Questions waiting and ended, of texts that grow."""
    found = []
    for number in range(draw(st.integers(2, 30))):
        ended = draw(st.booleans())
        by = Actor(type="person", platform="fake", user_id=draw(TEXT), name=draw(TEXT), via="button")
        row = ApprovalRequest(
            request_id=f"r{number}",
            profile="default",
            short_id=f"7K3{number:02d}",
            session_id=draw(TEXT),
            action=Command(command=draw(TEXT)),
            digest="d",
            description=draw(TEXT),
            severity=draw(st.sampled_from(["critical", "high", "medium", "low"])),
            agent=draw(TEXT),
            host=draw(TEXT),
            created_at=NOW,
            outcome=draw(st.sampled_from(["denied", "approved"])) if ended else None,
            choice="once",
            decided_by=(by,) if ended else (),
            decided_at=NOW if ended else None,
            reason=draw(TEXT) if ended else None,
        )
        copy = Copy(copy_id=f"{number:016d}", profile="default", destination=GROUP, faces=(Face(1),), created_at=NOW)
        found.append(Listed(copy, row))
    return found


@given(questions(), st.booleans())
def test_whatever_is_asked_a_digest_fits(listed_: list[Listed], attach: bool) -> None:
    digest = Copy(
        copy_id="d" * 16, profile="default", kind="digest", destination=GROUP, faces=(Face(1),), created_at=NOW
    )
    facts = Facts(now=NOW, title=str)
    card = digest_card(digest, listed_, facts, SIGNER, max_units=CONTENT_MAX_UNITS, attach=attach, file=None)
    assert message_body(card)["content"]
    assert edit_body(confirm_card(digest, listed_, SIGNER))["content"]
    pages = list_card(digest, listed_, SIGNER, skip=0, max_units=CONTENT_MAX_UNITS)
    assert message_body(pages, ephemeral=True)["content"]
    assert render(pages).blocks

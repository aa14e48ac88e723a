"""With a console address, the id on every card links to the request's story there, also on one that lists many."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.core.harness import GROUP, SIGNER, World

from signoff.cards import Facts
from signoff.changes.digests import Listed
from signoff.digest_cards import digest_card
from signoff.maker import Maker
from signoff.model import ApprovalRequest, Card, Command, Copy, Face, Severity, Span
from signoff.rows import request_key
from signoff_adapters.discord.render import CONTENT_MAX_UNITS, message_body
from signoff_adapters.slack.render import render as slack
from signoff_adapters.telegram.render import render as telegram

ADDRESS = "https://signoff.example"
NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


async def link(world: World, row: ApprovalRequest, console: str | None) -> list[Span]:
    """The links on the card of a question."""
    maker = Maker(world.store, world.clock, SIGNER, {"fake": world.chat.info}, console)
    copy = (await world.store.find(Copy, "request", request_key("default", row.request_id)))[0]
    card = await maker.card(copy, row, attach=True)
    return [span for block in card.blocks for span in block.spans if span.style == "link"]


async def test_the_id_links_to_the_story(world: World) -> None:
    row = await world.ask()
    [span] = await link(world, row, "https://signoff.example")
    assert (span.text, span.href) == (row.short_id, f"https://signoff.example/console/r/{row.short_id}")


async def test_without_an_address_there_is_no_link(world: World) -> None:
    row = await world.ask()
    assert await link(world, row, None) == []


async def test_an_ended_card_keeps_it(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "deny")
    assert len(await link(world, await world.row(row), "https://signoff.example")) == 1


# --- a message that lists many -------------------------------------------------------------------


def question(number: int, command: str, severity: Severity) -> Listed:
    """One listed question."""
    row = ApprovalRequest(
        request_id=f"r{number}", profile="default", short_id=f"7K3{number:02d}", session_id="s",
        action=Command(command=command), digest="d" * 64, description="deletes a directory tree", severity=severity,
        agent="builder", host="ci-3", created_at=NOW,
    )  # fmt: skip
    copy = Copy(copy_id=f"{number:016d}", profile="default", destination=GROUP, faces=(Face(1),), created_at=NOW)
    return Listed(copy, row)


def digest(
    count: int, *, command: str = "deploy ./build", severity: Severity = "high", address: str | None = ADDRESS,
    units: int = 4096,
) -> Card:  # fmt: skip
    """The message that lists so many."""
    rows = [question(number, command, severity) for number in range(count)]
    copy = Copy(copy_id="d" * 16, profile="default", kind="digest", destination=GROUP, faces=(Face(1),), created_at=NOW)
    facts = Facts(now=NOW, title=str, console=address)
    return digest_card(copy, rows, facts, SIGNER, max_units=units, attach=True, file=None)


def links(card: Card) -> dict[str, str | None]:
    """The text and the address of each link."""
    return {span.text: span.href for block in card.blocks for span in block.spans if span.style == "link"}


def words(card: Card) -> str:
    return "\n".join("".join(span.text for span in block.spans) for block in card.blocks)


@pytest.mark.parametrize("count", [2, 5, 12, 20])
@pytest.mark.parametrize("severity", ["high", "medium"])
def test_each_listed_id_links_to_its_story(count: int, severity: Severity) -> None:
    card = digest(count, severity=severity)
    assert links(card) == {f"7K3{n:02d}": f"{ADDRESS}/console/r/7K3{n:02d}" for n in range(count)}
    without = digest(count, severity=severity, address=None)
    assert links(without) == {}
    assert words(card) == words(without)


def test_among_groups_those_that_stand_singly_do() -> None:
    assert len(links(digest(30, severity="critical"))) == 5


@pytest.mark.parametrize("count", [5, 20])
def test_addresses_never_push_a_question_off_the_message(count: int) -> None:
    facts: dict[str, Any] = {"units": CONTENT_MAX_UNITS, "command": "rm -rf " + "x" * 100}
    long = digest(count, address="https://" + "x" * 200 + ".example", **facts)
    assert words(long) == words(digest(count, address=None, **facts))
    assert message_body(long)["content"]


@pytest.mark.parametrize("count", [2, 5, 12, 20])
def test_the_platforms_show_them_as_links(count: int) -> None:
    href = f"{ADDRESS}/console/r/7K300"
    content = message_body(digest(count, units=CONTENT_MAX_UNITS))["content"]
    assert content.count("](<") == min(count, 12 if count < 20 else 5), "as many as 2,000 characters hold"
    assert f"[7K300](<{href}>)" in content
    whole = digest(count)
    assert f"'type': 'link', 'url': '{href}', 'text': '7K300'" in str(slack(whole).blocks)
    shown = telegram(whole)
    entities = [each for each in shown.entities if each.url == href]
    assert len(entities) == 1
    assert len(shown.entities) <= 100, "more than Telegram shows"


async def test_a_digest_that_is_sent_has_them(world: World) -> None:
    row = await world.ask()
    maker = Maker(world.store, world.clock, SIGNER, {"fake": world.chat.info}, ADDRESS)
    copy = (await world.store.find(Copy, "request", request_key("default", row.request_id)))[0]
    head = Copy(copy_id="d" * 16, profile="default", kind="digest", destination=GROUP, created_at=NOW)
    card = await maker.digest(head, [Listed(copy, row), Listed(copy, row)], attach=True, file=False)
    assert links(card) == {row.short_id: f"{ADDRESS}/console/r/{row.short_id}"}

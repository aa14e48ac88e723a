"""A tool server's question that asks for a page to be opened: which addresses are put to people, and what they read."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from tests.unit.console.world import place
from tests.unit.core.harness import BY_ANN, World, choices_of
from tests.unit.staged_cards.world import typed

from signoff.actions import plain_text
from signoff.digest import digest_of
from signoff.elicitation import Elicited, check_schema, elicited
from signoff.elicitation_page import MAX_ADDRESS_CHARS, host_of
from signoff.errors import InvalidInput
from signoff.model import Card, Elicitation, Span
from signoff.record import record_of
from signoff_adapters.discord import render as discord
from signoff_adapters.slack import render as slack
from signoff_adapters.telegram import render as telegram

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
ADDRESS = f"https://auth.example.com/authorize?client_id=signoff&state={SECRET}"
PLAIN = "https://auth.example.com/authorize?client_id=signoff"


def ask(url: str, **facts: Any) -> Elicitation:
    return Elicitation(server="jira", message="Please log in.", url=url, **facts)


def links(card: Card) -> list[Span]:
    return [span for block in card.blocks for span in block.spans if span.style == "link"]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://auth.example.com/a?b=c#d", "auth.example.com"),
        ("https://AUTH.example.com:8443/", "auth.example.com:8443"),
        ("https://auth.example.com:443/", "auth.example.com"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("https://[2001:db8::1]:444/x", "[2001:db8::1]:444"),
        ("https://192.0.2.7/x", "192.0.2.7"),
        ("http://127.0.0.1:8080/callback", "127.0.0.1:8080"),
        ("http://localhost/", "localhost"),
        ("http://[::1]:9/", "[::1]:9"),
    ],
)
def test_where_an_address_leads(url: str, host: str) -> None:
    check_schema(ask(url))
    assert host_of(url) == host


@pytest.mark.parametrize(
    "url",
    [
        "",
        "auth.example.com",
        "//auth.example.com/",
        "http://auth.example.com/",
        "http://localhost.example.com/",
        "http://127.0.0.1.example.com/",
        "http://10.0.0.1/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://good.example@evil.example/",
        "https://good.example:pw@evil.example/",
        "https://good.example\\@evil.example/",
        "https://good.example\\.evil.example/",
        "https://bücher.example/",
        "https://gооd.example/",
        "https://good.example/\u202emoc",
        "https://good.example/\u200b",
        "https://good.example/a b",
        "https://good.example/\n",
        "https://good%2eexample/",
        "https://:443/",
        "https:///x",
        "https://good.example:99999/",
        "https://good.example:x/",
        "https://[::1/",
        "https://good..example/",
        'https://good.example/"><b>',
        "https://good.example/" + "x" * MAX_ADDRESS_CHARS,
    ],
)
def test_what_cannot_be_put_to_a_person(url: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be put to a person") as refused:
        check_schema(ask(url))
    assert refused.value.param == "action.url"


def test_a_form_or_a_page_and_not_both() -> None:
    with pytest.raises(InvalidInput, match="not for both"):
        check_schema(ask(PLAIN, schema={"properties": {"a": {"type": "string"}}}))
    check_schema(ask(PLAIN, schema={}))


def test_the_digest_covers_it_and_others_keep_theirs() -> None:
    assert plain_text(ask(PLAIN)) == f"Please log in.\npage: {PLAIN}"
    assert digest_of(ask(PLAIN), None) != digest_of(ask(f"{PLAIN}x"), None)
    without = b'{"action":{"kind":"elicitation","message":"May I?","server":"jira"},"host":null}'
    assert digest_of(Elicitation(server="jira", message="May I?"), None) == hashlib.sha256(without).hexdigest()


async def test_the_card_names_the_host_and_links_the_page(world: World) -> None:
    row = await world.ask(ask(PLAIN))
    card = await world.card(row)
    assert "It asks you to open a page on auth.example.com. Signoff has not looked at it." in card.text
    assert f"page: {PLAIN}" in card.text
    assert "masked" not in card.text
    assert [(span.text, span.href) for span in links(card.card)] == [("Open auth.example.com", PLAIN)]
    assert choices_of(card)[:2] == ["once", "deny"]
    await world.tap(row, "once")
    await world.claim(await world.row(row))
    assert elicited(await world.row(row)) == Elicited(action="accept", content={})
    await world.flush()
    (link,) = links((await world.card(row)).card)
    assert link.href == PLAIN, "whoever accepted first can open it still"


async def test_once_it_is_declined_nothing_leads_there(world: World) -> None:
    row = await world.ask(ask(PLAIN))
    await world.tap(row, "deny")
    await world.flush()
    assert links((await world.card(row)).card) == []
    assert elicited(await world.row(row)) == Elicited(action="decline")


async def test_a_secret_in_it_is_masked_everywhere_but_in_the_link(world: World) -> None:
    row = await world.ask(ask(ADDRESS))
    card = await world.card(row)
    assert SECRET not in card.text
    assert "What looks like a secret in its address is masked above; the link is whole." in card.text
    assert [span.href for span in links(card.card)] == [ADDRESS]
    assert SECRET not in str(record_of(await world.row(row), world.clock.now()))
    assert SECRET in str(record_of(await world.row(row), world.clock.now(), exact=True))


async def test_every_platform_links_the_whole_address(world: World) -> None:
    address = f"{ADDRESS}&next=(a)*b*_c_~d~;e"
    card = (await world.card(await world.ask(ask(address)))).card
    assert f"[Open auth.example.com](<{address}>)" in str(discord.render(card))
    assert [entity.url for entity in telegram.render(card).entities if entity.url] == [address]
    slacks = {"type": "link", "url": address, "text": "Open auth.example.com"}
    assert str(slacks) in str(slack.render(card))


async def test_a_page_of_one_machine_is_no_link_in_a_chat(world: World) -> None:
    row = await world.ask(ask("http://127.0.0.1:8080/callback"))
    card = await world.card(row)
    assert links(card.card) == []
    assert "a page on 127.0.0.1:8080." in card.text
    assert "It is a page of one machine and can be opened there alone." in card.text


async def test_nothing_is_filled_in(world: World) -> None:
    row = await world.ask(ask(PLAIN))
    with pytest.raises(InvalidInput, match="no field"):
        await world.broker.decide("default", row.request_id, "accept", BY_ANN, content={"password": "x"})
    assert (await world.row(row)).outcome is None


async def test_nothing_but_a_person_accepts_it(world: World) -> None:
    row = await world.ask(ask(PLAIN))
    assert f"Left {row.short_id} · it needs an answer of its own" in await typed(world, "/approve all")
    assert (await world.row(row)).outcome is None
    assert f"Declined {row.short_id}" in await typed(world, "/deny all")
    await typed(world, "/yolo 30")
    assert (await world.ask(ask(PLAIN))).outcome is None


async def test_on_the_console() -> None:
    async with place() as here:
        agent = await here.agent()
        asks = {"kind": "elicitation", "server": "jira", "message": "Log in?", "url": f"{PLAIN}&b='<"}
        refused = await agent("POST", "/v1/approvals", {"session_id": "s", "action": asks})
        assert (refused.status, refused.body["error"]["param"]) == (422, "action.url")
        record = await agent.ask(action={**asks, "url": f"{PLAIN}&b='"})
        ann = await here.person()
        page = (await ann.get("/console")).text
        link = f'<a href="{PLAIN}&amp;b=&#39;" target="_blank" rel="noopener noreferrer">Open auth.example.com</a>'
        assert link in page
        card = await (await here.client("approver"))("GET", f"/v1/approvals/{record['request_id']}/card")
        assert card.body["page"] == f"{PLAIN}&b='"
        assert (await ann.decide(record, "once"))["how"] == "done"

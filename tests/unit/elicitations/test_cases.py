"""Accept, decline and cancel are three things: each ending of a tool server's question, with its card and its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.core.bursts import labels
from tests.unit.core.harness import ANN, BEN, BY_ANN, PLACE, World, choices_of

from signoff.cards import Facts, request_card
from signoff.changes.deciding import offered
from signoff.elicitation import Elicited, elicited
from signoff.endings import user_summary
from signoff.errors import ChoiceNotOffered, InvalidInput
from signoff.model import Actor, ApprovalRequest, Elicitation, SessionKind, replace
from signoff.record import claimed_of, record_of
from signoff.settings import ApprovalSettings, Profile

PLAIN = Elicitation(server="jira", message="May I read the board?")
FORM = Elicitation(
    server="jira",
    message="Which project?",
    schema={
        "type": "object",
        "properties": {"project": {"type": "string"}, "api_key": {"type": "string"}},
        "required": ["project"],
    },
)
SECRET = "hunter2hunter2"


def cancel(cause: str) -> Elicited:
    return Elicited(action="cancel", cause=cause)


async def view(world: World, row: ApprovalRequest) -> Elicited | None:
    return elicited(await world.row(row))


async def accept(world: World, row: ApprovalRequest, **content: object) -> ApprovalRequest:
    decided = await world.broker.decide("default", row.request_id, "accept", BY_ANN, content=content)
    assert decided.how == "won"
    return await world.claim(decided.row)


async def test_a_card_with_the_servers_words_as_a_quotation(world: World) -> None:  # 1.5.1
    row = await world.ask(PLAIN)
    card = await world.card(row)
    head, quote = card.card.blocks[0], next(block for block in card.card.blocks if block.kind == "quote")
    assert "".join(span.text for span in head.spans) == "Question from jira (MCP server)"
    assert "".join(span.text for span in quote.spans) == "May I read the board?"
    assert not [block for block in card.card.blocks if block.kind == "code"]
    assert labels(card)[:2] == ["Accept", "Decline"]
    assert choices_of(card) == ["once", "deny", "because", "more"]


async def test_a_tap_accepts_with_nothing_filled_in(world: World) -> None:  # 1.5.4
    row = await world.ask(PLAIN)
    assert await view(world, row) is None
    await world.tap(row, "once")
    assert await view(world, row) == Elicited(action="accept")  # until the claim it may be taken back
    claimed = await world.claim(await world.row(row))
    assert elicited(claimed) == Elicited(action="accept", content={})
    assert claimed_of(claimed, world.clock.now()).message.startswith("Accepted. ")
    assert (await world.message(row)).startswith("BLOCKED: already_claimed. "), "the server has its answer"


async def test_a_tap_declines_and_only_a_person_does(world: World) -> None:  # 1.5.2
    row = await world.ask(PLAIN)
    await world.tap(row, "deny")
    done = await world.row(row)
    assert elicited(done) == Elicited(action="decline")
    assert (done.outcome, done.decided_by[0].user_id) == ("denied", ANN)
    assert (await world.message(row)).startswith("BLOCKED: denied. A person denied this question an answer.")


async def test_silence_cancels(world: World) -> None:  # 1.5.3 #22992 #112308
    row = await world.ask(PLAIN, timeout_s=300)
    await world.advance(300)
    assert (await view(world, row), (await world.row(row)).outcome) == (cancel("timeout"), "timeout")
    assert (await world.message(row)).startswith("BLOCKED: timeout. Nobody answered")


@pytest.mark.parametrize(
    "how", ["turn_ended", "stop_requested", "withdrawn", "lapsed", "undone", "destination_removed"]
)
async def test_what_is_withdrawn_cancels_and_says_why(world: World, how: str) -> None:  # 1.5.3 #112308
    row = await world.ask(PLAIN, turn_id="t")
    if how == "turn_ended":
        await world.sessions.end_turn("default", "t", "turn_ended", None)
    elif how == "stop_requested":
        await world.sessions.stop("default", "s", BY_ANN)
    elif how == "withdrawn":
        await world.cancel(row)
    elif how == "lapsed":
        await world.tap(row, "once")
        await world.advance(301)
    elif how == "undone":
        await world.tap(row, "once")
        await world.broker.undo("default", row.request_id, (await world.row(row)).decided_by[0])
    else:
        await world.cancel(row, "destination_removed")
    assert await view(world, row) == cancel(how)
    done = await world.row(row)
    told = f"{await world.message(row)} {user_summary(done, world.clock.now())}"
    assert "denied" not in told.lower()


@pytest.mark.parametrize("kind", ["cron", "single_query", "webhook", "worker"])
async def test_where_nobody_is_present_it_cancels(world: World, kind: SessionKind) -> None:  # 1.5.1 1.5.2
    await world.session("job", kind=kind)
    row = await world.submit(PLAIN, "job")
    assert (row.outcome, elicited(row)) == ("blocked", cancel("blocked"))
    assert "Nobody was asked" in await world.message(row) or "nobody can be asked" in await world.message(row)


async def test_nothing_is_remembered(world: World) -> None:  # 1.5.4 #109818
    first = await world.ask(PLAIN)
    assert offered(first) == ("once", "deny")
    for choice in ("session", "always", "30m"):
        with pytest.raises(ChoiceNotOffered):
            await world.decide(first, choice)
    await accept(world, first)
    second = await world.ask(PLAIN, turn_id="t")
    assert second.outcome is None
    await world.decide(second, "decline")
    third = await world.ask(PLAIN, turn_id="t")  # a denial does not answer the next one either
    assert third.outcome is None
    assert await world.broker.grants("default") == []


async def test_one_answer_is_never_for_several(world: World) -> None:
    """The content of one answer is not that of another."""
    first = await world.ask(PLAIN)
    second = await world.ask(PLAIN)
    first = await world.row(first)
    assert (second.leader_id, offered(first)) == (first.request_id, ("once", "deny"))
    assert labels(await world.card(first))[:2] == ["Accept 1 of 2", "Decline all 2"]
    with pytest.raises(ChoiceNotOffered):
        await world.decide(first, "once_all")
    await accept(world, first)
    assert (await world.row(second)).outcome is None


async def test_fields_are_not_for_a_chat(world: World) -> None:
    row = await world.ask(FORM)
    card = await world.card(row)
    assert choices_of(card) == ["deny", "because", "more"]
    assert labels(card)[0] == "Decline"
    assert "project (text; required)" in card.text
    assert "It asks for fields to be filled in, which cannot be done here." in card.text
    with pytest.raises(ChoiceNotOffered, match="asks for fields"):
        await world.decide(row, "once")
    assert (await world.row(row)).outcome is None
    claimed = await accept(world, row, project="web")
    assert elicited(claimed) == Elicited(action="accept", content={"project": "web"})


async def test_content_that_does_not_fit_decides_nothing(world: World) -> None:
    row = await world.ask(FORM)
    for content in ({}, {"project": 3}, {"project": "web", "more": 1}):
        with pytest.raises(InvalidInput):
            await world.broker.decide("default", row.request_id, "once", BY_ANN, content=content)
    with pytest.raises(InvalidInput):
        await world.broker.decide("default", row.request_id, "decline", BY_ANN, content={"project": "web"})
    assert (await world.row(row)).outcome is None
    command = await world.ask("deploy x")
    with pytest.raises(InvalidInput):
        await world.broker.decide("default", command.request_id, "once", BY_ANN, content={})
    with pytest.raises(ChoiceNotOffered):
        await world.broker.decide("default", command.request_id, "accept", BY_ANN)


async def test_the_content_is_masked_for_all_but_the_asker(world: World) -> None:
    row = await world.ask(FORM)
    claimed = await accept(world, row, project="web", api_key=SECRET)
    now = world.clock.now()
    assert record_of(claimed, now, exact=True)["elicitation"]["content"]["api_key"] == SECRET
    others = record_of(claimed, now)
    assert SECRET not in str(others)
    assert others["elicitation"]["content"]["project"] == "web"
    await world.settle()
    assert SECRET not in str(await world.events())
    assert SECRET not in "".join(message.text for message in world.chat.messages)


async def test_every_ask_and_every_end_is_told_once(world: World) -> None:  # 1.5.5
    for choice in ("accept", "decline"):
        await world.decide(await world.ask(PLAIN), choice)
    asked, resolved = await world.events("approval.requested"), await world.events("approval.resolved")
    assert [event.request_id for event in asked] == [event.request_id for event in resolved]
    assert len(asked) == 2


async def test_two_must_agree_and_the_last_content_counts(world: World) -> None:
    row = await world.ask(FORM)
    await world.put(replace(row, threshold=2))
    decide = world.broker.decide
    first = await decide("default", row.request_id, "accept", BY_ANN, content={"project": "web"})
    assert (first.how, elicited(first.row)) == ("vote", None)
    ben = Actor(type="person", platform="fake", user_id=BEN, name="Ben", via="command")
    second = await decide("default", row.request_id, "accept", ben, content={"project": "api"})
    assert (second.how, second.row.content) == ("won", {"project": "api"})


@pytest.mark.parametrize("settings", [{"mode": "off"}, {"cron_mode": "approve"}])
async def test_no_setting_fills_in_fields(make_world: Callable[..., World], settings: dict[str, Any]) -> None:
    world = make_world(profile=Profile(approvers={"fake": (ANN,)}, approvals=ApprovalSettings(**settings)))
    await world.session(kind="chat" if "mode" in settings else "cron", destination=PLACE)
    needs, plain = await world.submit(FORM), await world.submit(PLAIN)
    assert needs.outcome == (None if "mode" in settings else "blocked")
    assert plain.outcome == "approved"
    assert elicited(needs) == (None if "mode" in settings else cancel("blocked"))


async def test_where_there_is_a_console_its_form_is_named(world: World) -> None:
    row = await world.ask(FORM)
    facts = Facts(now=world.clock.now(), title=str, console="https://signoff.example.org")
    card = request_card(row, await world.copy(row), facts, world.signer, attach=True)
    text = ["".join(span.text for span in block.spans) for block in card.blocks]
    assert (
        "It asks for fields to be filled in, which cannot be done here. "
        "Answer it in the console: the id below leads there."
    ) in text
    assert any(span.href == f"https://signoff.example.org/console/r/{row.short_id}" for span in card.blocks[-1].spans)

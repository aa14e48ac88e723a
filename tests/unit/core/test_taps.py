"""Presses: who may, what a button still means, and that everybody is told the truth."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import pytest
from tests.unit.core.harness import ANN, BEN, PLACE, SIGNER, World, choices_of, person, tokens_of

from signoff.errors import ChoiceNotOffered, SaveUnknown, StoreUnavailable
from signoff.model import ApprovalRequest, Code, Destination, Message, Person, Tap, Tool, replace
from signoff.settings import GrantSettings, PrincipalSettings, Profile
from signoff.testing.fake_adapter import FakeMessage
from signoff.tokens import Signer

UNKNOWN = "This button is not known here. Nothing was decided."
STRANGER = "666"


def buttons(message: FakeMessage) -> dict[str, str]:
    """Choice to token."""
    return dict(zip(choices_of(message), tokens_of(message), strict=True))


async def refusals(world: World) -> list[str]:
    return [event.data["why"] for event in await world.events("tap.refused")]


async def unchanged(world: World, row: ApprovalRequest) -> bool:
    return await world.row(row) == row


# --- who may ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["once", "deny", "more", "because"])
async def test_a_stranger(world: World, choice: str) -> None:
    row = await world.ask()
    told = await world.tap(row, choice, STRANGER)
    assert told.text == "You may not decide here; nothing changed. An operator can add you: your id is 666."
    assert told.alert
    assert await unchanged(world, row)
    await world.flush()
    assert len(world.chat.shown()) == 1, "no panel for a stranger"
    assert await refusals(world) == ["not_listed"]


async def test_an_empty_list_lets_nobody_decide(make_world: Callable[..., World]) -> None:
    world = make_world(profile=Profile())
    await world.session(user_id=ANN)
    row = await world.ask()
    told = await world.tap(row, "once")
    assert told.text == ("No approver is set up, so nobody can decide. Add 1 to platforms.fake.approvers.")
    assert await unchanged(world, row)
    assert await refusals(world) == ["nobody"]


async def test_an_approver_taken_off_the_list_is_refused_at_once(make_world: Callable[..., World]) -> None:
    world = make_world()
    await world.session()
    row = await world.ask()
    later = make_world(profile=Profile(approvers={"fake": (BEN,)}))
    message, token = await world.button(row, "once")
    told = await later.chat.press(token, by=ANN, message_id=message.message_id, destination=PLACE)
    assert told.text.startswith("You may not decide here")
    assert await unchanged(world, row)


async def test_refusals_are_recorded_once_a_minute(world: World) -> None:
    row = await world.ask(timeout_s=1000)
    for _ in range(20):
        await world.tap(row, "once", STRANGER)
    assert await refusals(world) == ["not_listed"]
    await world.tap(row, "once", "777")
    await world.clock.advance(60)
    await world.tap(row, "once", STRANGER)
    assert await refusals(world) == ["not_listed"] * 3
    event = (await world.events("tap.refused"))[0]
    assert (event.session_id, event.request_id, event.data["user_id"]) == ("s", row.request_id, STRANGER)


# --- tokens -------------------------------------------------------------------------------------------


async def test_forged_cut_and_unknown_tokens(world: World) -> None:
    row = await world.ask()
    message, token = await world.button(row, "once")
    copy = await world.copy(row)
    forged = Signer({0: b"a guess"}, 0).token(copy.copy_id, 0, "once", "fake", PLACE.chat_id)
    retired = Signer({9: b"a secret of the tests"}, 9).token(copy.copy_id, 0, "once", "fake", PLACE.chat_id)
    nobodys = SIGNER.token("A" * 16, 0, "once", "fake", PLACE.chat_id)
    for other in (forged, retired, nobodys, token[:-1], token[::-1], "", "x" * 64):
        assert (await world.press(other, message)).text == UNKNOWN
    flipped = token[:-1] + ("A" if token[-1] != "A" else "Q")
    assert (await world.press(flipped, message)).text == UNKNOWN
    assert await unchanged(world, row)
    assert set(await refusals(world)) == {"forged", "unknown"}


async def test_a_revision_that_was_never_shown(world: World) -> None:
    row = await world.ask()
    copy = await world.copy(row)
    token = SIGNER.token(copy.copy_id, 5, "once", "fake", PLACE.chat_id)
    assert (await world.press(token, await world.card(row))).text == UNKNOWN
    assert await unchanged(world, row)


async def test_a_moved_token(world: World) -> None:
    row = await world.ask()
    message, token = await world.button(row, "once")
    elsewhere = Destination("fake", "200")
    assert (await world.chat.press(token, message_id=message.message_id, destination=elsewhere)).text == UNKNOWN
    assert (await world.chat.press(token, message_id="4711", destination=PLACE)).text == UNKNOWN
    more = buttons(message)["more"]
    assert (await world.chat.press(more, message_id="4711", destination=PLACE)).text == UNKNOWN
    assert await unchanged(world, row)
    assert await refusals(world) == ["forged", "moved"]


async def test_another_profiles_token(world: World) -> None:
    row = await world.ask()
    message, token = await world.button(row, "once")
    await world.put(replace(await world.copy(row), profile="other"))
    assert (await world.press(token, message)).text == UNKNOWN
    assert await unchanged(world, row)


async def test_the_same_tap_twice(world: World) -> None:
    row = await world.ask()
    message, token = await world.button(row, "once")
    assert (await world.press(token, message)).text == "Approved once. The agent is told."
    assert (await world.press(token, message)).text == "You already approved this at 09:00 UTC."
    assert (await world.press(token, message, BEN)).text == (
        "Already approved by “Ann” [fake 1] at 09:00 UTC. Your tap changed nothing."
    )
    assert len(await world.events("approval.resolved")) == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StoreUnavailable, "Your answer could not be saved; nothing was decided. Please tap again."),
        (SaveUnknown, "It is not known whether your answer was saved. The card will show it if it was."),
    ],
)
async def test_a_tap_that_could_not_be_saved(world: World, error: type[StoreUnavailable], text: str) -> None:
    row = await world.ask()
    message, token = await world.button(row, "once")
    real = world.store.transact

    async def broken(change: object, *, bulk: bool = False) -> object:
        raise error

    world.store.transact = broken  # type: ignore[method-assign,assignment]  # the disk is full
    told = await world.press(token, message)
    world.store.transact = real  # type: ignore[method-assign]  # and has room again
    assert told.text == text
    assert told.alert
    assert await unchanged(world, row)
    assert (await world.press(token, message)).text.startswith("Approved once.")


async def test_the_answer_comes_after_the_commit(world: World) -> None:
    """Whoever is told that it counted finds it in the store."""
    row = await world.ask()
    message, token = await world.button(row, "deny")
    real, done = world.store.transact, []

    async def noting(change: object, *, bulk: bool = False) -> object:
        value: object = await real(change, bulk=bulk)  # type: ignore[arg-type]  # passed on
        done.append((await world.row(row)).outcome)
        return value

    world.store.transact = noting  # type: ignore[method-assign,assignment]  # to look in between
    told = await world.press(token, message)
    world.store.transact = real  # type: ignore[method-assign]  # as it was
    assert (told.text, done) == ("Denied. The agent is told.", ["denied"])


# --- panels -------------------------------------------------------------------------------------------


async def test_more_opens_a_panel_that_obeys_its_opener(world: World) -> None:
    row = await world.ask()
    assert (await world.tap(row, "more")).text == ""
    await world.flush()
    panel = world.chat.shown()[-1]
    assert panel.reply_to == (await world.card(row)).message_id
    assert choices_of(panel) == ["session", "30m", "always", "wait", "why", "close"]
    # Whenever it is pressed, what it says of the time stays true.
    assert "Exactly this command, in this session, for 30 min from the answer." in panel.text
    for choice in ("session", "always", "close", "why", "wait"):
        told = await world.press(buttons(panel)[choice], panel, BEN)
        assert "opened this one. Use the buttons of the card." in told.text
    assert await unchanged(world, row)
    told = await world.press(buttons(panel)["session"], panel)
    assert told.text.startswith("Approved for this session: this exact command. /revoke ")
    await world.flush()
    assert panel.message_id not in [m.message_id for m in world.chat.shown()]


async def test_a_second_panel_replaces_the_first_of_that_person_only(world: World) -> None:
    row = await world.ask()
    for by in (ANN, BEN):
        await world.tap(row, "more", by)
    await world.flush()
    assert len(world.chat.shown()) == 3
    await world.tap(row, "because", ANN)
    await world.flush()
    assert sorted(map(len, map(choices_of, world.chat.shown()))) == [5, 6, 6]
    told = await world.tap(row, "close", ANN)
    await world.flush()
    assert told.text == "Closed. Nothing was decided here."
    assert len(world.chat.shown()) == 2


async def test_an_end_closes_every_panel_and_a_late_press_is_told(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "more")
    await world.flush()
    panel = world.chat.shown()[-1]
    await world.cancel(row)
    told = await world.press(buttons(panel)["always"], panel)
    assert told.text == "Cancelled: the agent took the question back. Not run. Your tap changed nothing."
    await world.flush()
    assert len(world.chat.shown()) == 1
    assert not await world.events("grant.created")


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ("too_risky", "too risky"),
        ("wrong_target", "wrong target"),
        ("not_now", "not now"),
        ("smaller_steps", "take smaller steps"),
    ],
)
async def test_deny_because(world: World, choice: str, reason: str) -> None:
    row = await world.ask()
    await world.tap(row, "because")
    assert await unchanged(world, row), "it decides when a reason is chosen"
    await world.flush()
    assert (await world.tap(row, choice)).text == f"Denied. The agent reads: “{reason}”."
    after = await world.row(row)
    assert (after.outcome, after.reason) == ("denied", reason)
    assert f'Reason given: "{reason}".' in await world.message(row)
    await world.flush()
    assert f"Reason given: “{reason}”" in (await world.card(row)).text


async def typed(
    world: World, text: str, by: str = ANN, reply_to: str | None = None, *, unattributable: bool = False
) -> str | None:
    """A typed reply to a prompt."""
    message = Message(
        destination=PLACE,
        message_id="900",
        order=900,
        person=person(by),
        text=text,
        reply_to=reply_to,
        unattributable=unattributable,
    )
    return await world.taps.typed_reason("default", message, world.chat.info)


async def test_a_typed_reason(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "because")
    await world.flush()
    await world.tap(row, "type")
    await world.flush()
    prompt = world.chat.shown()[-1]
    assert prompt.card.prompt == "Why not? The agent reads this."
    assert await typed(world, "no", BEN, prompt.message_id) is not None
    assert await typed(world, "no", ANN, prompt.message_id, unattributable=True) is None
    assert await typed(world, "no", ANN, "123") is None
    assert await typed(world, "no", ANN) is None
    assert await unchanged(world, row)
    told = await typed(world, "not  on\nFriday " + "x" * 300, ANN, prompt.message_id)
    assert told is not None
    assert told.startswith("Denied. The agent reads: “not on Friday xxx")
    assert "The reason was too long; its last 34 characters were cut." in told
    after = await world.row(row)
    assert after.outcome == "denied"
    assert len(after.reason or "") <= 280
    await world.flush()
    assert len(world.chat.shown()) == 1, "the prompt went"
    assert (await typed(world, "again", ANN, prompt.message_id) or "").startswith("You already denied this")


async def test_a_reason_of_somebody_taken_off_the_list(world: World, make_world: Callable[..., World]) -> None:
    row = await world.ask()
    for button in ("because", "type"):
        await world.tap(row, button)
        await world.flush()
    later = make_world(profile=Profile(approvers={"fake": (BEN,)}))
    told = await typed(later, "no", ANN, world.chat.shown()[-1].message_id)
    assert (told or "").startswith("You may not do this here")
    assert (await unchanged(later, row), await refusals(later)) == (True, ["not_listed"])


@pytest.mark.parametrize(("choice", "scope"), [("session", "session"), ("30m", "time_box"), ("always", "always")])
async def test_grants_from_the_panel(world: World, choice: str, scope: str) -> None:
    row = await world.ask()
    await world.tap(row, "more")
    await world.flush()
    told = await world.tap(row, choice)
    (grant,) = await world.broker.grants("default")
    assert grant.scope == scope
    assert f"/revoke {grant.grant_id} ends it." in told.text
    await world.flush()
    assert f"Grant {grant.grant_id}; /revoke {grant.grant_id} ends it." in (await world.card(row)).text


async def test_why(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "more")
    await world.flush()
    await world.tap(row, "why")
    await world.flush()
    panel = world.chat.shown()[-1]
    assert row.digest in panel.text
    assert choices_of(panel) == ["close"]
    assert await unchanged(world, row)


# --- confirmation -------------------------------------------------------------------------------------


async def test_critical_takes_a_second_tap(world: World) -> None:
    row = await world.critical()
    card = await world.card(row)
    assert choices_of(card) == ["once", "deny", "because", "more"]
    assert card.text.startswith("🛑 Critical: ")
    told = await world.tap(row, "once")
    assert told.text == "Critical: confirm with “Yes, run it once”."
    assert await unchanged(world, row)
    await world.flush()
    panel = world.chat.shown()[-1]
    assert choices_of(panel) == ["confirm", "close"]
    assert "opened this one" in (await world.press(buttons(panel)["confirm"], panel, BEN)).text
    assert (await world.tap(row, "confirm")).text == "Approved once. The agent is told."
    assert (await world.row(row)).choice == "once"


async def test_critical_is_denied_by_one_tap(world: World) -> None:
    row = await world.critical()
    await world.tap(row, "deny")
    assert (await world.row(row)).outcome == "denied"


@pytest.mark.parametrize(
    ("action", "label"),
    [
        (Code(language="python", code="x"), "any Python code"),
        (Tool(name="send_email", arguments={"to": "a"}), "tool send_email"),
    ],
)
async def test_always_for_code_and_tools_takes_a_second_tap(world: World, action: Code | Tool, label: str) -> None:
    row = await world.ask(action)
    await world.tap(row, "more")
    await world.flush()
    assert (await world.tap(row, "always")).text == "Always: confirm with “Yes, always”."
    assert await unchanged(world, row)
    await world.flush()
    assert (await world.tap(row, "confirm")).text.startswith(f"Approved always: {label}. ")
    after = await world.row(row)
    assert (after.outcome, after.choice) == ("approved", "always")


async def test_a_choice_that_is_not_on_offer(make_world: Callable[..., World]) -> None:
    world = make_world()
    await world.session()
    row = await world.ask(choices=("once",))
    assert (await world.row(row)).choices == ("once", "deny")
    copy = await world.copy(row)
    for choice in ("session", "always", "30m"):
        token = SIGNER.token(copy.copy_id, 0, choice, "fake", PLACE.chat_id)
        told = await world.press(token, await world.card(row))
        assert told.text == f"“{choice}” is not on offer for this request. Nothing was decided."
    assert await unchanged(world, row)


async def test_a_choice_the_profile_has_withdrawn(make_world: Callable[..., World]) -> None:
    world = make_world()
    await world.session()
    row = await world.ask()
    narrow = make_world(profile=Profile(approvers={"fake": (ANN,)}, grants=GrantSettings(command=("once", "deny"))))
    message, token = await world.button(row, "session")
    told = await narrow.chat.press(token, by=ANN, message_id=message.message_id, destination=PLACE)
    assert told.text == "“session” is not on offer for this request. Nothing was decided."
    assert await unchanged(world, row)


# --- undo ---------------------------------------------------------------------------------------------


async def test_undo(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "session")
    await world.advance(2)
    assert (await world.tap(row, "undo", BEN)).text == "Only “Ann” [fake 1] can undo this."
    assert (await world.tap(row, "undo")).text == "Undone. It will not run; the agent must ask again."
    assert await world.broker.grants("default") == []
    message = await world.card(row)
    token = SIGNER.token((await world.copy(row)).copy_id, 0, "undo", "fake", PLACE.chat_id)
    assert (await world.press(token, message)).text == "Nothing is left to undo: it has already ended."
    await world.flush()
    assert "took the approval back" in (await world.card(row)).text
    assert (await world.ask()).outcome is None


async def test_undo_too_late(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "once")
    await world.advance(2)
    message, token = await world.button(row, "undo")
    await world.claim(row)
    assert (await world.press(token, message)).text == (
        "Too late: the agent started it at 09:00 UTC. /stop ends the session."
    )
    assert (await world.row(row)).execution.state == "claimed"


# --- many people --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_fifty_simultaneous_mixed_taps(make_world: Callable[..., World], seed: int) -> None:
    people = [str(number) for number in range(1, 51)]
    world = make_world(profile=Profile(approvers={"fake": tuple(people)}))
    await world.session()
    row = await world.ask()
    card = await world.card(row)
    draw = random.Random(seed)
    wanted = [draw.choice(["once", "deny", "session"]) for _ in people]
    taps = [
        Tap(
            destination=PLACE,
            message_id=card.message_id,
            person=Person(platform="fake", user_id=who, name=f"P{who}"),
            token=buttons(card)[choice],
            tap_id=who,
        )
        for who, choice in zip(people, wanted, strict=True)
    ]
    answers = await asyncio.gather(*(world.taps.tap("default", tap, world.chat.info) for tap in taps))
    after = await world.row(row)
    won = [i for i, answer in enumerate(answers) if answer.text.startswith(("Approved", "Denied"))]
    assert len(won) == 1
    winner = people[won[0]]
    assert after.decided_by[0].user_id == winner
    assert after.choice == wanted[won[0]]
    lost = Counter(answer.text for i, answer in enumerate(answers) if i != won[0])
    word = after.outcome
    assert lost == {f"Already {word} by “P{winner}” [fake {winner}] at 09:00 UTC. Your tap changed nothing.": 49}
    assert len(await world.events("approval.resolved")) == 1
    assert len(await world.broker.grants("default")) == (wanted[won[0]] == "session")


async def test_a_press_decides_the_pressed_one(world: World) -> None:
    await world.session("s2")
    rows = [await world.ask(f"deploy {i}", session) for session in ("s", "s2") for i in range(2)]
    await world.tap(rows[1], "once")
    assert [(await world.row(row)).outcome for row in rows] == [None, "approved", None, None]
    await world.tap(rows[2], "deny", BEN)
    assert [(await world.row(row)).outcome for row in rows] == [None, "approved", "denied", None]


async def test_one_person_behind_two_accounts(make_world: Callable[..., World]) -> None:
    principal = {"ann": PrincipalSettings(accounts=("fake:1", "fake:9"))}
    world = make_world(profile=Profile(approvers={"fake": ("ann",)}, principals=principal))
    await world.session()
    row = await world.submit()
    await world.put(replace(row, threshold=2))
    await world.flush()
    assert (await world.tap(row, "once", "1")).text == "Counted: 1 of 2. One more person must agree."
    await world.tap(row, "once", "9")
    after = await world.row(row)
    assert (after.outcome, len(after.votes)) == (None, 1)


async def test_late_and_replaced_presses_are_recorded(world: World) -> None:
    row = await world.ask()
    message, token = await world.button(row, "once")
    await world.press(token, message)
    await world.press(token, message, BEN)
    assert await refusals(world) == ["late"]


async def test_once_for_all_needs_somebody_who_waits(world: World) -> None:
    row = await world.ask()
    with pytest.raises(ChoiceNotOffered):
        await world.decide(row, "once_all")
    assert await unchanged(world, row)

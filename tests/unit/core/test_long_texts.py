"""No long text is masked on the event loop: not for a card, its panels, its edits, a command's answer or a digest."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from tests.unit.core.bursts import waiting, world_of
from tests.unit.core.harness import GROUP, World
from tests.unit.core.long_texts import LINE, LONG, MEGABYTE, QUESTIONS, Watch, watch

from signoff import display, masking
from signoff.actions import one_line
from signoff.aside import LONG_CHARS, is_long
from signoff.display import WINDOW_CHARS, shown, shown_beginning
from signoff.model import Action, Command, Elicitation, replace
from signoff.reviewer import Review
from signoff.reviewing import Reviews
from signoff.wording import safe_name

__all__ = ["watch"]
RANDOM = "x9Kd83mQpZ7vTgYw2LbN5cRf8sHj4aUe"


@pytest.mark.parametrize("action", [*QUESTIONS.values(), Elicitation(server="mail", message=MEGABYTE)])
async def test_a_card_its_panels_and_its_edits(world: World, watch: Watch, action: Action) -> None:
    row = await world.ask(action)
    assert row.outcome is None, "it is asked"
    await world.tap(row, "more")
    await world.flush()
    await world.tap(row, "why")
    await world.flush()
    await world.tap(row, "deny")
    await world.flush()
    assert (await world.row(row)).outcome == "denied"
    watch.holds()
    assert watch.longest_beside > 0, "the card was made on a thread"


async def test_a_digest_with_long_ones(make_world: Callable[..., World], watch: Watch) -> None:
    world = world_of(make_world)
    await world.session(destination=GROUP)
    found = await waiting(world, 30)
    for row in found[-3:]:
        await world.put(replace(row, action=Command(command="rm -rf build\n" + LONG[:30_000])))
    await world.advance(20)
    assert any("30 wait" in message.text or "wait:" in message.text for message in world.chat.messages)
    watch.holds()
    assert watch.longest_beside > LONG_CHARS


async def test_what_the_reviewer_is_shown(world: World, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(await world.submit("rm -rf build"), action=QUESTIONS["command"])

    class Agrees:
        async def review(self, case: object) -> Review:
            return Review(word="approve")

    reviews = Reviews({"default": world.profile})
    monkeypatch.setattr("signoff.reviewing.Reviewer", lambda _settings: Agrees())
    assert (await reviews.review(row)).word == "approve"
    watch.holds()
    assert watch.longest_beside > LONG_CHARS


def test_of_a_name_or_a_line_only_the_beginning_is_looked_at(watch: Watch) -> None:
    assert safe_name(MEGABYTE) == "remove the old build …⟨999,979 hidden⟩"
    assert one_line(Command(command=MEGABYTE)).endswith("⟨999,880 hidden⟩")
    assert watch.longest_here <= LONG_CHARS


@pytest.mark.parametrize("chars", [2048, 2049, 2050, 5000])
def test_a_long_name_says_how_much_is_hidden(chars: int) -> None:
    assert safe_name("n" * chars) == "n" * 25 + f"…⟨{chars - 25:,} hidden⟩"


def test_a_name_that_is_one_secret_is_masked() -> None:
    name = safe_name("ghp_" + "aB3" * 1000)
    assert "aB3" not in name
    assert "hidden" in name


@pytest.mark.parametrize("begins", range(440, 481, 4))
@pytest.mark.parametrize("secret", ["AKIAIOSFODNN7EXAMPLE", "https://ana:aVeryLongOne@host", RANDOM])
def test_a_secret_across_the_cut_is_masked(secret: str, begins: int) -> None:
    """480 characters of an action are looked at for its line; masks make them few enough to be shown whole."""
    lead = "echo ghp_" + "a1B2" * 100
    text = f"{lead}{' ' * 3}{'-' * (begins - len(lead) - 4)} {secret} and more of it {LINE}"
    line = one_line(Command(command=text))
    for part in (secret[-12:], secret[8:20]):
        assert part not in line, line


def test_a_long_text_is_masked_once_for_its_card_its_file_and_its_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = SimpleNamespace(masked=0)
    masks = masking.masks

    def counting(text: str, *, prose: bool = False) -> object:
        counted.masked += 1
        return masks(text, prose=prose)

    monkeypatch.setattr(display, "masks", counting)
    text = "rm -rf build-once\n" + LONG
    assert shown(text) == shown(text) == shown("".join(text))
    assert counted.masked == 1
    assert shown(text, prose=True)
    assert counted.masked == 2, "prose is masked otherwise"


def test_what_is_remembered_of_long_texts_is_bounded() -> None:
    for number in range(100):
        assert shown(f"{number} " + "word " * 1000, prose=True).startswith(f"{number} ")
        assert shown(f"{number} " + "word " * 9000, prose=True).startswith(f"{number} ")
    assert display._longer.cache_info().currsize == 64
    assert display._longest.cache_info().currsize == 4


@pytest.mark.parametrize("name", QUESTIONS)
async def test_each_is_long_wherever_its_text_stands(world: World, name: str) -> None:
    row = replace(await world.submit("rm -rf build"), action=QUESTIONS[name])
    assert is_long(row)


async def test_what_a_person_filled_in_counts(world: World) -> None:
    row = replace(await world.submit("rm -rf build"), action=Elicitation(server="mail", message="Which?"))
    assert not is_long(row)
    assert is_long(replace(row, content={"note": LINE}))
    assert is_long(replace(row, action=Elicitation(server="mail", message="Which?", schema={"enum": [1] * 5000})))


@pytest.mark.parametrize("chars", [1, 40, WINDOW_CHARS, 10_000])
def test_the_beginning_of_a_short_text_is_all_of_it(chars: int) -> None:
    text = "rm -rf build \u202e x"
    assert shown_beginning(text, max(chars, len(text))) == shown(text)
    assert shown_beginning(LINE, chars) == LINE[:chars]

"""How places are named, and ids that a platform cannot have."""

from __future__ import annotations

import pytest

from signoff.destinations import at_place, parse_destination
from signoff.errors import InvalidInput
from signoff.model import Destination

NAMED = {
    "telegram:5": Destination("telegram", "5"),
    "telegram:user:5": Destination("telegram", "5"),
    "telegram:-1001234567/7": Destination("telegram", "-1001234567", "7"),
    "telegram:-1001234567/1": Destination("telegram", "-1001234567"),
    "slack:C0OPS/1700.5": Destination("slack", "C0OPS", "1700.5"),
    "discord:user:7": Destination("discord", "7"),
}


def test_what_a_place_is_called() -> None:
    assert {text: parse_destination(text) for text in NAMED} == NAMED
    assert at_place("telegram", "user:5", None) == Destination("telegram", "5")


@pytest.mark.parametrize(
    ("chat", "thread"),
    [("@ops", None), ("ana", None), ("-100_1", None), ("\u0663", None), ("-5", "x"), ("user:", None)],
)
def test_telegram_has_numbers_alone(chat: str, thread: str | None) -> None:
    """A public name would be sent to, and every press there would be taken for one from another chat."""
    with pytest.raises(InvalidInput) as refused:
        at_place("telegram", chat, thread)
    assert refused.value.param == "chat_id"
    with pytest.raises(InvalidInput):
        parse_destination(f"telegram:{chat}" + (f"/{thread}" if thread else ""))

"""Guests decide nothing, whoever is listed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import pytest

from signoff.authorize import Allowed, Operation, Refused, person_may
from signoff.model import Destination, Person, Session
from signoff.settings import PrincipalSettings, Profile

PROFILE = Profile(
    principals={"gus": PrincipalSettings(accounts=("slack:U0GUS",))},
    approvers={"slack": ("U0ANA", "U0GUEST", "gus", "group:S0OPS")},
)
VIAS: tuple[Literal["button", "command"], ...] = ("button", "command")
DEEDS: tuple[Operation, ...] = ("decide", "revoke", "read")


@pytest.mark.parametrize("operation", DEEDS)
@pytest.mark.parametrize("person", ["U0GUEST", "U0GUS", "U0EVE"])
def test_a_guest_may_nothing(person: str, operation: Operation) -> None:
    guest = Person(platform="slack", user_id=person, groups=("group:S0OPS",), guest=True)
    for via in VIAS:
        assert person_may(PROFILE, guest, operation, None, via) == Refused("guest")


def test_the_same_person_as_a_member_may() -> None:
    for person in ("U0GUEST", "U0GUS"):
        assert isinstance(
            person_may(PROFILE, Person(platform="slack", user_id=person), "decide", None, "button"), Allowed
        )


def test_a_guest_may_stop_the_session_it_began_and_no_other() -> None:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    own = Session(
        profile="ops",
        session_id="s",
        kind="chat",
        destination=Destination("slack", "C1"),
        user_id="U0G",
        created_at=now,
    )
    guest = Person(platform="slack", user_id="U0G", guest=True)
    assert isinstance(person_may(PROFILE, guest, "stop", own, "command"), Allowed)
    assert person_may(PROFILE, guest, "decide", own, "command") == Refused("guest")
    other = Person(platform="slack", user_id="U0H", guest=True)
    assert person_may(PROFILE, other, "stop", own, "command") == Refused("guest")

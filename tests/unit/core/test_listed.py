"""Whose press is to be expected on a platform."""

from __future__ import annotations

from signoff.authorize import listed_on
from signoff.settings import PrincipalSettings as Principal
from signoff.settings import Profile


def test_accounts_are_named_one_by_one() -> None:
    ana = Principal(accounts=("slack:U1", "telegram:7"))
    listed = ("U2", "ana", "role:9", "group:S1", "U1")
    profile = Profile(approvers={"slack": listed, "telegram": ("ana",)}, principals={"ana": ana})
    assert listed_on(profile, "slack") == ("U2", "U1")
    assert listed_on(profile, "telegram") == ("7",)
    assert listed_on(profile, "discord") == ()

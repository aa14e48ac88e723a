"""Whose press is to be expected on a platform."""

from __future__ import annotations

from signoff.authorize import groups_on, listed_on
from signoff.settings import PrincipalSettings as Principal
from signoff.settings import Profile


def test_accounts_are_named_one_by_one() -> None:
    ana = Principal(accounts=("slack:U1", "telegram:7"))
    listed = ("U2", "ana", "role:9", "group:S1", "U1")
    profile = Profile(approvers={"slack": listed, "telegram": ("ana",)}, principals={"ana": ana})
    assert listed_on(profile, "slack") == ("U2", "U1")
    assert listed_on(profile, "telegram") == ("7",)
    assert listed_on(profile, "discord") == ()


def test_roles_and_groups_are_named_as_they_stand() -> None:
    profile = Profile(approvers={"slack": ("U2", "group:S2", "ana", "group:S1", "group:S2"), "discord": ("role:9",)})
    assert groups_on(profile, "slack") == ("group:S2", "group:S1")
    assert groups_on(profile, "discord") == ("role:9",)
    assert groups_on(profile, "telegram") == ()

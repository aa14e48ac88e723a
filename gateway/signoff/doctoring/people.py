"""Whether anybody may decide, platform by platform, and whether the names of people are known ones."""

from __future__ import annotations

from collections.abc import Iterator

from signoff.console_adapter import PLATFORM as CONSOLE
from signoff.ports import Finding
from signoff.settings import Profile


def approver_finding(profile: Profile, platform: str) -> Finding:
    """Whether this platform's list names somebody who has an account there."""
    setting = f"platforms.{platform}.approvers"
    listed = profile.approvers.get(platform, ())
    if not listed:
        anywhere = any(profile.approvers.values())
        level = Finding.warning if anywhere else Finding.problem
        return level(
            "approvers", f"{setting} is empty: nobody can decide there.", "List user ids; `signoff init` finds yours."
        )
    absent = [name for name in listed if name in profile.principals and not _has_account(profile, name, platform)]
    if absent:
        return Finding.warning(
            "approvers",
            f"{', '.join(absent)} stands in {setting}, but has no account there.",
            f'Add "{platform}:ID" to principals.{absent[0]}.accounts.',
        )
    return Finding.fine("approvers", f"{len(listed)} listed.")


def principal_findings(profile: Profile) -> Iterator[Finding]:
    """A warning for each name of a person that means nobody, and for each account that nothing serves."""
    known = ", ".join(sorted(profile.principals)) or "none"
    for name, agent in profile.agents.items():
        if agent.acts_for is not None and agent.acts_for not in profile.principals:
            yield Finding.warning(
                f"agents.{name}.acts_for",
                f"It names {agent.acts_for!r}, which is no principal of the settings (there are: {known}).",
                f"Name one of them, or add [principals.{agent.acts_for}].",
            )
    for name, principal in profile.principals.items():
        for account in principal.accounts:
            platform = account.partition(":")[0]
            if platform not in {*profile.platforms, CONSOLE}:
                yield Finding.warning(
                    f"principals.{name}.accounts",
                    f"{account} is on a platform that is not set up, so {name} cannot answer by it.",
                    f"Set platforms.{platform} up, or remove the account.",
                )


def _has_account(profile: Profile, name: str, platform: str) -> bool:
    return any(account.startswith(f"{platform}:") for account in profile.principals[name].accounts)

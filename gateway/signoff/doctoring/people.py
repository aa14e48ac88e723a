"""Whether anybody may decide, platform by platform."""

from __future__ import annotations

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


def _has_account(profile: Profile, name: str, platform: str) -> bool:
    return any(account.startswith(f"{platform}:") for account in profile.principals[name].accounts)

"""Whether any place of a profile could put a question to anybody now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from signoff.console_adapter import PLATFORM as CONSOLE
from signoff.drills import named_places
from signoff.settings import Profile

log = logging.getLogger(__name__)


def why_nobody(profile: Profile, states: Mapping[str, str], *, console: bool) -> str:
    """Why nobody of the profile can be asked now, empty where somebody can or need not.

    `states` are those of the chat platforms that are served. `console`: its pages are; nobody is asked there who is
    not sent there, so it counts where a place in it is named.
    """
    if profile.approvals.mode == "off":
        return ""
    named = any(place.platform == CONSOLE for place in named_places(profile))
    if console and named:
        return ""
    reasons = []
    for platform, state in states.items():
        if not profile.approvers.get(platform):
            reasons.append(f"platforms.{platform}.approvers is empty")
        elif state == "ready":
            return ""
        else:
            reasons.append(f"{platform} is {state}")
    if named:
        reasons.append(
            "this gateway serves no console; in a program `signoff.serve` does, and `attach` lets it ask itself"
        )
    return "; ".join(reasons) or "no platform is set up, and the settings name no place in the console"


def unasked(
    profiles: Mapping[str, Profile], states: Mapping[tuple[str, str], str], served: Callable[[str], frozenset[str]]
) -> dict[str, str]:
    """The profiles in which no place could ask anybody now, and why. `states` by profile and platform; `served` names
    the platforms of a profile, the console where its pages are open."""
    found = {}
    for name, profile in profiles.items():
        chats = {platform: state for (each, platform), state in states.items() if each == name and platform != CONSOLE}
        if why := why_nobody(profile, chats, console=CONSOLE in served(name)):
            found[name] = why
    return found


def tell(found: Mapping[str, str], profiles: Mapping[str, Profile]) -> None:
    """Log them. Where no place is named that may be meant: people answer in terminals and apps too."""
    for name, why in found.items():
        named = profiles[name].platforms or any(True for _ in named_places(profiles[name]))
        level = logging.WARNING if named else logging.INFO
        log.log(level, "profile %s: no place can ask anybody now (%s); `signoff doctor` tells more", name, why)

"""Where a request's card goes, and whether anybody could answer it at all."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Literal

from msgspec import Struct

from signoff.model import Destination, Session
from signoff.presence import JOBS, Flags, presence
from signoff.settings import Profile

MAX_PARENTS = 8
"""A session has at most so many above it: agents hand work down a few levels, and each level costs every question a
read on its way to a person."""

UNATTENDED: frozenset[str] = frozenset(JOBS)
"""Kinds that never wait for a person, whatever else is attached to them."""


class Route(Struct, frozen=True):
    """Where the card goes and who could answer."""

    destinations: tuple[Destination, ...]
    attended: bool


def route(profile: Profile, session: Session, root: Session, *, platforms: AbstractSet[str], notified: bool) -> Route:
    """The route of a request of `session`; `root` is its outermost parent (itself without one).

    `platforms` are those this gateway serves; `notified` says that an answer client or callback is attached.
    """
    # A root that is a child itself stands for a line of parents without an end: there is no place to ask in.
    if root.kind in UNATTENDED or session.kind in UNATTENDED or root.kind == "child":
        return Route((), attended=False)
    own = root.destination if root.destination and root.destination.platform in platforms else None
    fallback = profile.approvals.fallback_destination
    if fallback is not None and fallback.platform not in platforms:
        fallback = None
    first = own or fallback
    also = tuple(d for d in profile.approvals.also_to if d.platform in platforms)
    places = tuple(dict.fromkeys((*((first,) if first else ()), *also)))
    return Route(
        places,
        attended=presence(Flags(kinds=frozenset({root.kind}), place=bool(places), notifier=notified)).gateway,
    )


def mode_setting(kind: str | None) -> Literal["cron_mode", "single_query_mode", "unattended_mode"]:
    """The `approvals` setting that speaks when nobody can be asked in a session of that kind."""
    if kind == "cron":
        return "cron_mode"
    return "single_query_mode" if kind == "single_query" else "unattended_mode"


def setting_value(profile: Profile, setting: str | None) -> str | None:
    """A setting with its value as an operator would write it: `approvals.cron_mode = "deny"`. One that comes with
    words of its own stays as it is, and so does one that is a list."""
    if setting is None or " " in setting or setting.count(".") > 1:
        return setting
    return f'{setting} = "{getattr(profile.approvals, setting.rpartition(".")[2])}"'

"""Who is in the user groups among the approvers: Slack says with a press only who pressed.

Whoever cannot be seen to be a member is none. So a missing scope or a lost answer takes rights away and gives none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from ..failures import AnswerLost, CallFailed
from ..tasks import Jobs, drain, logged
from .calls import Refused, Throttled, Web
from .manifest import READS_GROUPS
from .people import FRESH_S, KNOWN_FOR_S
from .wire import PLATFORM

PREFIX = "group:"
"""What begins a user group's id among the approvers."""
ASK_AGAIN_S = 10.0
"""Seconds before a group is asked about again that Slack refused to tell: it takes 20 such questions a minute of the
whole app, and whoever presses in a channel makes us ask."""
_log = logging.getLogger(__name__)


class Refusal(Struct, frozen=True):
    """Why nobody counts as a member of a group until an operator does something, and what."""

    what: str
    mend: str


class _Answer(Struct, frozen=True):
    users: tuple[str, ...]


def group_id(approver: str) -> str:
    """Slack's id in an approver such as `group:S0123ABCD`."""
    return approver.removeprefix(PREFIX)


async def ask(web: Web, group: str) -> tuple[str, ...]:
    """The user ids of a group's members in Slack's order, those of a disabled group not. Raises `CallFailed`."""
    answer = await web.call("usergroups.users.list", query={"usergroup": group, "include_disabled": "false"})
    try:
        return msgspec.convert(answer, _Answer).users
    except msgspec.ValidationError:
        raise AnswerLost("unreadable answer") from None


def refusal_of(group: str, error: CallFailed) -> Refusal | None:
    """What Slack's no means that stands until somebody mends it; None for a failure that may pass by itself."""
    code = error.code if isinstance(error, Refused) else ""
    if code == "missing_scope":
        return Refusal(
            f"The app lacks the scope {READS_GROUPS}, so nobody counts as a member of a user group.",
            f"Add {READS_GROUPS} under OAuth & Permissions of the app and install it again.",
        )
    if code == "no_such_subteam":
        return Refusal(
            f"Slack knows no user group {group}, or it is disabled, so nobody counts as its member.",
            f"Enable it, or put the right id in the place of {PREFIX}{group} in platforms.slack.approvers.",
        )
    if code == "plan_upgrade_required":
        return Refusal(
            "The plan of this workspace has no user groups, so nobody counts as a member of one.",
            "List people one by one in platforms.slack.approvers.",
        )
    return None


class Groups:
    """Asks Slack who is in a user group and remembers it as long as who a person is."""

    def __init__(self, web: Web, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` is a clock that never goes back."""
        self._web = web
        self._seconds = seconds
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._not_before: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        """One question a group at a time, however many press."""
        self._told: dict[str, str] = {}
        """What the operator was told of a group and still holds."""
        self._jobs = Jobs(failed=logged(PLATFORM))

    def expect(self, approvers: Iterable[str]) -> None:
        """A card goes out that members of these groups may press: ask now, so that the press need not wait for it."""
        for group in _ids(approvers):
            known = self._known.get(group)
            if known is None or self._seconds() - known[0] > FRESH_S:
                self._begin(group)

    def members(self, approvers: Iterable[str]) -> tuple[str, ...]:
        """Who is known now to be in any of these groups, without asking."""
        return tuple(dict.fromkeys(user for group in _ids(approvers) for user in self._now(group) or ()))

    async def of(self, user_id: str, approvers: Iterable[str]) -> tuple[str, ...]:
        """Those of the groups, as they stand among the approvers, in which the person surely is."""
        groups = _ids(approvers)
        told = await asyncio.gather(*(self._told_members(group) for group in groups))
        return tuple(f"{PREFIX}{group}" for group, users in zip(groups, told, strict=True) if user_id in users)

    async def aclose(self) -> None:
        """Ask nothing more."""
        await drain(lambda: set(self._jobs), 0.0)

    def _now(self, group: str) -> tuple[str, ...] | None:
        known = self._known.get(group)
        return known[1] if known is not None and self._seconds() - known[0] < KNOWN_FOR_S else None

    async def _told_members(self, group: str) -> tuple[str, ...]:
        users = self._now(group)
        if users is None and (task := self._begin(group)) is not None:
            await asyncio.wait({task})
            users = self._now(group)
        return users or ()

    def _begin(self, group: str) -> asyncio.Task[None] | None:
        """The question under way, a new one otherwise; None when it is too early to ask again."""
        if group in self._asking:
            return self._asking[group]
        if self._seconds() < self._not_before.get(group, 0.0):
            return None
        task = self._asking[group] = self._jobs.spawn(self._learn(group))
        task.add_done_callback(lambda _: self._asking.pop(group, None))
        return task

    async def _learn(self, group: str) -> None:
        asked = self._seconds()
        try:
            users = await ask(self._web, group)
        except CallFailed as error:
            self._failed(group, error)
            return
        self._known[group] = (asked, users)
        if self._told.pop(group, None) is not None:
            _log.info("slack says who is in the user group %s", group)

    def _failed(self, group: str, error: CallFailed) -> None:
        """What was known holds for its time when an answer is lost, and no longer when Slack says that it is wrong."""
        refusal = refusal_of(group, error)
        if refusal is not None:
            self._known.pop(group, None)
        if isinstance(error, (Refused, Throttled)):
            wait_s = error.retry_after_s if isinstance(error, Throttled) else 0.0
            self._not_before[group] = self._seconds() + max(ASK_AGAIN_S, wait_s)
        told = refusal.what if refusal is not None else group
        if told not in self._told.values():
            if refusal is not None:
                _log.error("slack: %s %s", refusal.what, refusal.mend)
            else:
                _log.warning("slack does not say who is in the user group %s: %s", group, error)
        self._told[group] = told


def _ids(approvers: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group_id(each) for each in approvers if each.startswith(PREFIX)))

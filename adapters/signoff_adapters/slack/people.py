"""Who somebody is: Slack says with a press only an id, but not whether that is a guest or belongs elsewhere."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from itertools import islice

import msgspec
from msgspec import Struct

from ..failures import CallFailed
from ..recent import Recent
from ..tasks import Jobs, drain, logged
from .calls import Refused, Web
from .wire import PLATFORM, Me

KNOWN_FOR_S = 300.0
"""How long an answer about a person holds: so long somebody may still decide who has just been made a guest."""
FRESH_S = 150.0
"""An answer older than this is renewed when a press is to be expected."""
EXPECTED = 20
"""Of so many people at most a press is expected: Slack takes about a hundred such questions a minute."""
_UNKNOWN = frozenset({"user_not_found", "user_not_visible", "users_not_found"})
_log = logging.getLogger(__name__)


class _Profile(Struct, frozen=True):
    display_name: str | None = None
    real_name: str | None = None


class _User(Struct, frozen=True):
    id: str
    team_id: str | None = None
    name: str | None = None
    real_name: str | None = None
    profile: _Profile = _Profile()
    deleted: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    is_bot: bool = False


class _Answer(Struct, frozen=True):
    user: _User


class Standing(Struct, frozen=True):
    """A person's name of today, and whether it is a guest, of another workspace, or no person at all."""

    name: str | None
    guest: bool


class People:
    """Asks Slack about people and remembers it for a while."""

    def __init__(self, web: Web, me: Callable[[], Me], seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` is a clock that never goes back."""
        self._web = web
        self._me = me
        self._seconds = seconds
        self._known: Recent[str, tuple[float, Standing]] = Recent()
        self._jobs = Jobs(failed=logged(PLATFORM))
        self._asked: set[str] = set()
        """Those who are being asked about beforehand."""

    def expect(self, user_ids: Iterable[str]) -> None:
        """A card goes out that these people may press: ask about them now, so that the press need not wait for it."""
        for user_id in islice(user_ids, EXPECTED):
            known = self._known.get(user_id)
            if user_id not in self._asked and (known is None or self._seconds() - known[0] > FRESH_S):
                self._asked.add(user_id)
                self._jobs.spawn(self._beforehand(user_id))

    async def aclose(self) -> None:
        """Ask nothing more."""
        await drain(lambda: set(self._jobs), 0.0)

    async def _beforehand(self, user_id: str) -> None:
        try:
            await self._ask(user_id)
        finally:
            self._asked.discard(user_id)

    async def about(self, user_id: str, team: str | None) -> Standing | None:
        """The person's standing; None when Slack does not say, and then nothing may be decided.

        `team` is the workspace as the press or message tells it.
        """
        if not self._me().home(team):
            return Standing(None, guest=True)
        known = self._known.get(user_id)
        if known is not None and self._seconds() - known[0] < KNOWN_FOR_S:
            return known[1]
        return await self._ask(user_id)

    async def _ask(self, user_id: str) -> Standing | None:
        try:
            answer = await self._web.call("users.info", query={"user": user_id})
            user = msgspec.convert(answer, _Answer).user
        except Refused as error:
            if error.code in _UNKNOWN:
                return Standing(None, guest=True)
            _log.warning("slack does not say who %s is: %s", user_id, error)
            return None
        except (CallFailed, msgspec.ValidationError) as error:
            _log.warning("slack does not say who %s is: %s", user_id, error)
            return None
        standing = self._judge(user)
        self._known.put(user_id, (self._seconds(), standing))
        return standing

    def _judge(self, user: _User) -> Standing:
        name = user.profile.display_name or user.real_name or user.profile.real_name or user.name
        outside = user.is_restricted or user.is_ultra_restricted or user.is_stranger
        return Standing(name, outside or user.deleted or user.is_bot or not self._me().home(user.team_id))

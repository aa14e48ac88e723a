"""One bot's updates: kept in order until the bot confirms them, handed out again until then."""

from __future__ import annotations

import re
from collections import OrderedDict

from .changes import Changes
from .clock import ServerClock
from .model import JsonObject
from .refusal import bad_request

KEPT_PENDING = 10_000
KEPT_RECENT = 1_000
KEPT_S = 24 * 3600.0
"""Telegram keeps an update for a day (getUpdates)."""
NOT_BY_DEFAULT = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
"""Kinds that are only sent when asked for (`allowed_updates` of getUpdates)."""
CONNECTIONS_MAX = 100
CONNECTIONS_DEFAULT = 40
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


class WebhookState:
    """Where updates are posted, and what went wrong last."""

    def __init__(self, url: str, secret_token: str | None, max_connections: int | None) -> None:
        if secret_token is not None and not _SECRET.fullmatch(secret_token):
            raise bad_request("secret token contains unallowed characters")
        if max_connections is not None and not 1 <= max_connections <= CONNECTIONS_MAX:
            raise bad_request("max_connections must be between 1 and 100")
        if not url.startswith(("http://", "https://")):
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        self.url = url
        self.secret_token = secret_token
        self.max_connections = max_connections or CONNECTIONS_DEFAULT
        self.last_error: str | None = None
        self.last_error_at: float | None = None


class UpdateQueue:
    """Updates of one bot; polling and webhook share it and exclude each other."""

    def __init__(self, clock: ServerClock, whole: Changes) -> None:
        self.changes = Changes(whole)
        self.webhook: WebhookState | None = None
        self.poll_number = 0
        """Number of the newest poll; an older one that still waits has been replaced."""
        self.allowed: list[str] | None = None
        self._clock = clock
        self._pending: OrderedDict[int, tuple[float, JsonObject]] = OrderedDict()
        self._recent: OrderedDict[int, JsonObject] = OrderedDict()
        self._again: list[JsonObject] = []
        self._next_id = 730_000_001

    def add(self, kind: str, content: JsonObject) -> int | None:
        """Queue an update of this kind; its id, or none when the bot did not ask for the kind."""
        if kind in NOT_BY_DEFAULT if self.allowed is None else kind not in self.allowed:
            return None
        update_id = self._next_id
        self.put({"update_id": update_id, kind: content})
        return update_id

    def put(self, update: JsonObject) -> int:
        """Queue a whole update as it is; one without an id gets the next."""
        given = update.get("update_id")
        update_id = given if isinstance(given, int) else self._next_id
        self._next_id = max(self._next_id, update_id + 1)
        whole = {"update_id": update_id} | update
        self._pending[update_id] = (self._clock.now(), whole)
        self._recent[update_id] = whole
        while len(self._pending) > KEPT_PENDING:
            self._pending.popitem(last=False)
        while len(self._recent) > KEPT_RECENT:
            self._recent.popitem(last=False)
        self.changes.bump()
        return update_id

    def recent(self) -> list[JsonObject]:
        """The latest updates, confirmed or not, oldest first."""
        return list(self._recent.values())

    def again(self, update_id: int) -> None:
        """Hand an update out once more under its old id, confirmed or not; LookupError when it is unknown."""
        update = self._recent.get(update_id)
        if update is None:
            raise LookupError(f"no update {update_id}")
        if update_id not in self._pending:
            if self.webhook is not None:
                self._pending[update_id] = (self._clock.now(), update)
            else:
                self._again.append(update)
        self.changes.bump()

    def pending(self) -> list[JsonObject]:
        """Unconfirmed updates in order, without those older than a day."""
        oldest = self._clock.now() - KEPT_S
        while self._pending and next(iter(self._pending.values()))[0] < oldest:
            self._pending.popitem(last=False)
        return [update for _, update in self._pending.values()]

    def confirm(self, update_id: int) -> None:
        """Forget one update: it has been delivered."""
        self._pending.pop(update_id, None)
        self.changes.bump()

    def confirm_below(self, offset: int) -> None:
        """What `offset` of getUpdates means: forget lower ids; a negative one keeps only the last so many."""
        ids = sorted(self._pending)
        doomed = [each for each in ids if each < offset] if offset >= 0 else ids[:offset]
        for update_id in doomed:
            del self._pending[update_id]
        if doomed:
            self.changes.bump()

    def batch(self, limit: int) -> list[JsonObject]:
        """What a poll gets now: repeated updates first, each repeated once, then the unconfirmed ones."""
        repeated, self._again = self._again[:limit], self._again[limit:]
        return repeated + self.pending()[: limit - len(repeated)]

    def drop_pending(self) -> None:
        """Forget everything that waits."""
        self._pending.clear()
        self._again.clear()
        self.changes.bump()

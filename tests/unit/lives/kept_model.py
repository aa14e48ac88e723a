"""What becomes of actions that are kept for a later yes, in few words. No end of a session or turn reaches them.

Times are whole milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

KEPT_FOR = 900_000
"""How long one waits for its answer; from the answer on it waits as long for its executor."""
LEASE = 60_000
STOPPED, NOT_STARTED = "executor_stopped", "not_started_in_time"
TOLD_HOLDS = 180_000

Ending = tuple[str | None, str, str | None]
"""An action's outcome, and its execution's state and cause."""

REFUSED = {
    "waits": "not_approved",
    "running": "running",
    "succeeded": "already_run",
    "failed": "already_run",
    "not_run": "not_run",
    "unknown": "unknown",
    "denied": "denied",
    "expired": "expired",
    "gone": "cancelled",
    "lapsed": "lapsed",
}


class Refused(Exception):
    """It does not allow that now; a code says why where kept actions have one."""


@dataclass
class Kept:
    """One action. `ran` is its execution's state, and `due` when a question, an approval or a claim is over."""

    name: str
    due: int | None
    outcome: str | None = None
    ran: str = "none"
    cause: str | None = None
    claimed: bool = False
    again: str | None = None
    """The newer one, as which a person had it run once more."""

    @property
    def state(self) -> str:
        """In one word, as people are told it, but for one that was not started in time."""
        if self.outcome != "approved":
            return {None: "waits", "denied": "denied", "timeout": "expired"}[self.outcome]
        if self.ran in ("none", "claimed"):
            return "approved" if self.ran == "none" else "running"
        return "gone" if self.ran == "not_run" and not self.claimed else self.ran

    @property
    def ending(self) -> Ending:
        return self.outcome, self.ran, self.cause


class Keeping:
    """All that was kept."""

    def __init__(self) -> None:
        self.actions: dict[str, Kept] = {}
        self.runs: list[str] = []
        """What its executor was handed, in order; nothing of what a claimant began that died."""
        self.told: int | None = None
        """When a gateway last told that it has the executor."""

    def keep(self, name: str, now: int) -> None:
        self.actions[name] = Kept(name, now + KEPT_FOR)

    def answer(self, name: str, *, approve: bool, now: int) -> None:
        kept = self.actions[name]
        if kept.outcome is not None:
            raise Refused(REFUSED.get(self._state(kept), "already_approved"))
        kept.outcome, kept.due = ("approved", now + KEPT_FOR) if approve else ("denied", None)

    def take_back(self, name: str) -> None:
        kept = self.actions[name]
        if kept.state != "approved":
            raise Refused
        kept.ran, kept.cause, kept.due = "not_run", "undone", None

    def run(self, name: str, *, here: bool, fails: bool) -> None:
        """By a gateway that has its executor, or by one that has not."""
        kept = self._startable(name)
        if not here:
            raise Refused("no_executor")
        self.runs.append(name)
        kept.claimed, kept.ran, kept.due = True, "failed" if fails else "succeeded", None

    def start(self, name: str, now: int) -> None:
        """A claimant begins it and dies."""
        kept = self._startable(name)
        kept.claimed, kept.ran, kept.due = True, "claimed", now + LEASE

    def _startable(self, name: str) -> Kept:
        kept = self.actions[name]
        if kept.state != "approved":
            raise Refused(REFUSED[self._state(kept)])
        return kept

    def _state(self, kept: Kept) -> str:
        return "succeeded" if kept.again is not None and kept.state == "unknown" else kept.state

    def late(self, name: str, word: str) -> None:
        """The claimant that was taken for dead reports after all."""
        kept = self.actions[name]
        if kept.ran in ("claimed", "unknown"):
            kept.ran, kept.cause, kept.due = word, None, None

    def did_run(self, name: str) -> None:
        kept = self._unknown(name)
        kept.ran, kept.cause = "succeeded", None

    def run_again(self, name: str, now: int) -> None:
        kept = self._unknown(name)
        kept.again = f"{name}+"
        self.actions[kept.again] = Kept(kept.again, now + KEPT_FOR, outcome="approved")

    def _unknown(self, name: str) -> Kept:
        kept = self.actions[name]
        if kept.state != "unknown" or kept.again is not None:
            raise Refused(REFUSED.get(self._state(kept), "not_run_yet"))
        return kept

    def missing(self, name: str, now: int) -> bool:
        """Whether it is said to wait for an executor that no gateway has: only of one that some gateway had."""
        return self.actions[name].state == "approved" and self.told is not None and now - self.told >= TOLD_HOLDS

    def next_due(self) -> int | None:
        return min((kept.due for kept in self.actions.values() if kept.due is not None), default=None)

    def happen(self, now: int) -> None:
        """All whose time is over."""
        for kept in self.actions.values():
            if kept.due is None or kept.due > now:
                continue
            kept.due = None
            if kept.outcome is None:
                kept.outcome = "timeout"
            elif kept.ran == "claimed":
                kept.ran, kept.cause = "unknown", STOPPED
            else:
                kept.ran, kept.cause = "lapsed", NOT_STARTED

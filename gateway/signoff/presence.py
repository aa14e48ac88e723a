"""Who could answer, told from what surrounds a question: a pure function of a few facts, in one order of precedence.

A fact that names a job (`single_query`, `cron`, `webhook`, `worker`) beats every flag that says somebody is there:
flags are inherited by processes, and what starts a job often has a person in front of it.
"""

from __future__ import annotations

from msgspec import Struct

from signoff.model import SessionKind

PRECEDENCE: tuple[SessionKind, ...] = ("single_query", "cron", "webhook", "worker", "chat", "api", "cli", "child")
"""Where several kinds are named the first of these counts. A child is what its parent is, so it comes last."""
JOBS: frozenset[SessionKind] = frozenset({"single_query", "cron", "webhook", "worker"})
"""Kinds in which nobody is there, whatever flags are inherited and whoever listens."""


class Flags(Struct, frozen=True, kw_only=True):
    """What surrounds a question. `place`: a chat is bound. `interactive`: a person sits at this terminal. `ask`: the
    process is to put its questions to somebody. `notifier`: an answer client or callback listens to the session."""

    kinds: frozenset[SessionKind] = frozenset()
    place: bool = False
    interactive: bool = False
    ask: bool = False
    notifier: bool = False


class Presence(Struct, frozen=True):
    """Ways to a person: a prompt on this terminal, a card or notifier of the gateway, an `ask` process's notifier."""

    cli: bool
    gateway: bool
    ask: bool

    @property
    def anybody(self) -> bool:
        """Whether there is any way to a person."""
        return self.cli or self.gateway or self.ask


NOBODY = Presence(cli=False, gateway=False, ask=False)


def kind_of(flags: Flags) -> SessionKind | None:
    """The kind of session by precedence; None where nothing says that there is one.

    A named kind counts before one that is guessed: a place makes a `chat`, an ask process an `api` session, a person at
    the terminal a `cli` session.
    """
    for kind in PRECEDENCE:
        if kind in flags.kinds:
            return kind
    if flags.place:
        return "chat"
    if flags.ask:
        return "api"
    return "cli" if flags.interactive else None


def misplaced(job: SessionKind, session_id: str, kind: str, root: str | None) -> str | None:
    """Why a job may not ask in a session of this kind, whose outermost parent (itself without one) is of the kind
    `root`, None if that cannot be told; None where it may. Elsewhere it would be asked about and wait, which it never
    does. A line of children without an end is asked about nowhere."""
    if root in (*JOBS, "child"):
        return None
    which = f"declared as {kind}"
    if kind == "child":
        which = "a child of " + (f"one that is declared as {root}" if root is not None else "one of somebody else")
    return (
        f"Session {session_id} is {which}, and a {job} session is bound here: bind it under an id of its own, or "
        "without one."
    )


def presence(flags: Flags) -> Presence:
    """Who could answer. A terminal counts only where the session is one of a terminal: a chat's question that was put
    on the terminal of whoever started the process would be answered by the wrong person."""
    kind = kind_of(flags)
    if kind is None or kind in JOBS:
        return NOBODY
    terminal = kind in ("cli", "child") and not flags.place
    return Presence(
        cli=flags.interactive and terminal,
        gateway=flags.place or flags.notifier,
        ask=flags.ask and flags.notifier,
    )

"""What becomes of sessions, turns and questions, in few words: the rules as people are told them, without a store.

It knows no rows, cards or commits. Times are whole milliseconds. Every session that is attended has a place that takes
each card at once, or an answer client, so a question's window begins when it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.unit.lives.kept_model import Keeping

TIMEOUT = "timeout"
CLAIM_WITHIN = 300_000
RESULT_WITHIN = 86_400_000
NOTIFIER_GRACE = 30_000
DENIAL_HOLDS = 600_000
UNATTENDED = frozenset({"cron", "single_query", "webhook", "worker"})
REFUSING = frozenset({"single_query"})
"""Where nobody can answer, what is asked in these is refused; what is asked elsewhere is kept."""
WITH_A_PLACE = frozenset({"chat", "cli"})

Ending = tuple[str | None, str | None, str, str | None]
"""A question's outcome and cause, and its execution's state and cause."""


class Unknown(Exception):
    """There is no such session, or no such turn in it."""


class Refused(Exception):
    """The turn has ended, or the action may not be started or reported on."""


@dataclass
class Question:
    """One question. `waits` says that its asker waits for the end and then claims."""

    name: str
    session: str
    turn: str | None
    action: str
    expires: int
    waits: bool
    outcome: str | None = None
    cause: str | None = None
    ran: str = "none"
    ran_cause: str | None = None
    claim_by: int | None = None
    answer: str | None = None
    """The question whose answer by a person approved this one, on its own card."""
    led_by: str | None = None
    """The question whose card approved this one alike."""

    @property
    def pending(self) -> bool:
        return self.outcome is None

    @property
    def live(self) -> bool:
        """Something is still to come of it while its session goes on."""
        return self.pending or (self.outcome == "approved" and self.ran in ("none", "claimed"))

    @property
    def ending(self) -> Ending:
        return self.outcome, self.cause, self.ran, self.ran_cause


@dataclass(frozen=True)
class Grant:
    """What an answer lets run from then on: an action, in a session or (None) in all."""

    answer: str
    session: str | None
    action: str


@dataclass
class Turn:
    name: str
    session: str
    lease: int
    until: int
    ended: str | None = None
    waits: int = 0


@dataclass
class Session:
    name: str
    kind: str
    parent: str | None
    born_in: str | None = None
    """The turn of its parent that it was made in."""
    closed: bool = False
    cause: str | None = None
    over_with_its_turn: bool = False
    """It was closed by the end of the turn that it was made in, and is made again in another one only."""
    clients: dict[str, int | None] = field(default_factory=dict)
    """Attached answer clients, and until when one counts whose connection dropped."""
    used: int | None = None
    """When it or a child was last used, since it last started anew."""
    free: int = 0
    """When the last of what waited or ran in it and below it was over."""


class Model:
    """All of it. Every method takes effect at `now`."""

    def __init__(self, idle: int | None = None, daily: tuple[int, int] | None = None) -> None:
        """`daily`: the first daily hour, and how long a day is."""
        self.now = 0
        self.idle = idle
        self.daily = daily
        self.reset: list[tuple[int, str]] = []
        """Which sessions the daily hour started anew, and when."""
        self.sessions: dict[str, Session] = {}
        self.turns: dict[str, Turn] = {}
        self.questions: dict[str, Question] = {}
        self.grants: list[Grant] = []
        self.kept = Keeping()
        self.denials: list[tuple[str, str, str | None, int]] = []
        """Session, action, turn and when."""
        self._of: dict[str, list[Question]] = {}
        self._turns_of: dict[str, list[Turn]] = {}
        self._children: dict[str, list[str]] = {}
        self._busy: set[str] = set()
        """Outermost sessions in which something waited or ran when that was last looked at."""

    # --- families ------------------------------------------------------------------------------

    def line(self, name: str) -> list[Session]:
        """The session and those above it."""
        found = [self.sessions[name]]
        while found[-1].parent is not None:
            found.append(self.sessions[found[-1].parent])
        return found

    def below(self, name: str) -> Iterator[Session]:
        """The session and all open ones below it."""
        yield self.sessions[name]
        for child in self._children.get(name, ()):
            if not self.sessions[child].closed:
                yield from self.below(child)

    def attended(self, name: str) -> bool:
        line = self.line(name)
        if any(each.kind in UNATTENDED for each in line):
            return False
        return self.placed(name) or self._client(name)

    def placed(self, name: str) -> bool:
        return self.line(name)[-1].kind in WITH_A_PLACE

    def _client(self, name: str) -> bool:
        ends = [until for each in self.line(name) for until in each.clients.values()]
        return any(until is None or until > self.now for until in ends)

    def _open_session(self, name: str) -> Session:
        session = self.sessions.get(name)
        if session is None or session.closed:
            raise Unknown
        return session

    def _use(self, name: str) -> None:
        root = self.line(name)[-1]
        if not root.closed:
            root.used = self.now

    # --- what agents do ------------------------------------------------------------------------

    def declare(self, name: str, kind: str, parent: str | None) -> None:
        known = self.sessions.get(name)
        if parent is not None and any(each.closed for each in self.line(parent)):
            raise Unknown
        open_turns = [turn for turn in self._turns_of.get(parent or "", ()) if turn.ended is None]
        if known is not None and known.closed and known.over_with_its_turn and not open_turns:
            self._use(name)
            return
        fresh = known is None or known.closed
        if known is None:
            known = self.sessions[name] = Session(name, kind, parent)
            if parent is not None:
                self._children.setdefault(parent, []).append(name)
        if fresh:
            known.born_in = open_turns[-1].name if open_turns else None
            known.closed, known.cause, known.over_with_its_turn = False, None, False
        self._use(name)

    def open_turn(self, name: str, session: str, lease: int) -> None:
        if self.sessions[session].closed and self.sessions[session].kind == "child":
            raise Refused  # with its cause
        self._open_session(session)
        turn = self.turns[name] = Turn(name, session, lease, self.now + lease)
        self._turns_of.setdefault(session, []).append(turn)
        self._use(session)
        self._look(session)

    def heartbeat(self, name: str) -> None:
        turn = self.turns[name]
        if turn.ended is not None:
            raise Refused
        turn.until = self.now + turn.lease

    def ask(self, name: str, session: str, turn: str | None, action: str, window: int, *, waits: bool) -> None:
        asker = self.sessions.get(session)
        if asker is None or (asker.closed and asker.kind != "child"):
            raise Unknown
        if turn is not None and self.turns[turn].session != session and not asker.closed:
            raise Unknown
        question = Question(name, session, turn, action, self.now + window, waits)
        ended = self.turns[turn].ended if turn is not None else None
        if asker.closed or ended is not None:
            question.outcome, question.cause = "cancelled", asker.cause if asker.closed else ended
        elif not self.attended(session):
            question.outcome = "blocked" if self.line(session)[-1].kind in REFUSING else "staged"
        elif any(grant.action == action and grant.session in (session, None) for grant in self.grants):
            self._approve(question)
        elif self._denied(question):
            question.outcome = "denied"
        if question.outcome == "staged":
            self.kept.keep(name, self.now)
        self.questions[name] = question
        self._of.setdefault(session, []).append(question)
        if question.pending and waits and turn is not None:
            self.turns[turn].waits += 1
        self._use(session)
        self._look(session)

    def _denied(self, asked: Question) -> bool:
        """A person's no holds in its turn; for a question without a turn, ten minutes."""
        for session, action, turn, when in self.denials:
            if (session, action) == (asked.session, asked.action):
                if asked.turn is not None and turn == asked.turn:
                    return True
                if asked.turn is None and self.now - when <= DENIAL_HOLDS:
                    return True
        return False

    def claim(self, name: str) -> None:
        question = self.questions[name]
        turn = self.turns[question.turn] if question.turn is not None else None
        if question.outcome != "approved" or question.ran != "none" or (turn is not None and turn.ended is not None):
            raise Refused
        question.ran = "claimed"
        question.claim_by = self.now + RESULT_WITHIN if turn is None else None

    def result(self, name: str, status: str) -> None:
        question = self.questions[name]
        if question.ran not in ("claimed", "unknown"):
            raise Refused
        question.ran, question.claim_by = status, None
        self._look(question.session)

    def cancel(self, name: str, cause: str) -> None:
        question = self.questions[name]
        if question.pending:
            self._end(question, "cancelled", cause)
        elif question.outcome == "approved" and question.ran == "none":
            self._void(question, cause)
        self._look(question.session)

    # --- what people do ------------------------------------------------------------------------

    def group(self, name: str) -> list[Question]:
        """The questions that wait on one card with this one, who has the card first."""
        one = self.questions[name]
        return [each for each in self._of[one.session] if each.pending and each.action == one.action]

    def decide(self, name: str, choice: str) -> bool:
        """Whether the answer counted."""
        question = self.questions[name]
        if not question.pending:
            return False
        group = self.group(name)
        alike = group if group[0] is question else [question]
        if choice == "deny":
            for each in alike:
                self._end(each, "denied")
                self.denials.append((each.session, each.action, each.turn, self.now))
                self._look(each.session)
        elif choice in ("once", "once_all"):
            self._approve_alike(alike if choice == "once_all" else [question], answer=name)
        else:
            self._approve_widely(question, alike, everywhere=choice == "always")
        return True

    def _approve_widely(self, question: Question, alike: list[Question], *, everywhere: bool) -> None:
        """What waits on the answered card is approved with it, what the new grant covers elsewhere by the grant."""
        self.grants.append(Grant(question.name, None if everywhere else question.session, question.action))
        self._approve_alike(alike, answer=question.name)
        scope = list(self.questions.values()) if everywhere else self._of[question.session]
        for each in scope:
            if each.pending and each.action == question.action:
                self._approve_alike(self.group(each.name), answer=None)

    def _approve_alike(self, group: list[Question], *, answer: str | None) -> None:
        for each in group:
            each.answer, each.led_by = answer, group[0].name if each is not group[0] else None
            self._approve(each)

    def undo(self, name: str) -> None:
        """An answer is taken back before its start: with it its grant, and what it approved alike and has not begun."""
        question = self.questions[name]
        if question.outcome != "approved" or question.ran != "none":
            raise Refused
        if question.answer is not None:
            self.grants = [grant for grant in self.grants if grant.answer != question.answer]
        for each in self._of[question.session]:
            if each.led_by == name and each.outcome == "approved" and each.ran == "none":
                self._void(each, "undone")
        self._void(question, "undone")
        self._look(question.session)

    def _approve(self, question: Question) -> None:
        """One whose asker waits is started at once."""
        self._end(question, "approved")
        question.claim_by = self.now + CLAIM_WITHIN
        if question.waits:
            self.claim_now(question)

    def claim_now(self, question: Question) -> None:
        question.ran = "claimed"
        question.claim_by = self.now + RESULT_WITHIN if question.turn is None else None

    def _end(self, question: Question, outcome: str, cause: str | None = None) -> None:
        if question.pending and question.name in self.questions and question.waits and question.turn is not None:
            turn = self.turns[question.turn]
            turn.waits -= 1
            turn.until = max(turn.until, self.now + turn.lease)
        question.outcome, question.cause = outcome, cause

    def _void(self, question: Question, cause: str) -> None:
        question.ran, question.ran_cause, question.claim_by = "not_run", cause, None

    # --- what ends -----------------------------------------------------------------------------

    def end_turn(self, name: str, cause: str) -> None:
        turn = self.turns[name]
        if turn.ended is not None:
            return
        turn.ended = cause
        for question in self._of.get(turn.session, ()):
            if question.turn == name:
                self._withdraw(question, cause, lost=True)
        inner = cause if cause in ("stop_requested", "session_ended") else "parent_ended"
        for child in self._children.get(turn.session, ()):
            if self.sessions[child].born_in == name:
                self._close(self.sessions[child], inner)
        self._look(turn.session)

    def _withdraw(self, question: Question, cause: str, *, lost: bool) -> None:
        if question.pending:
            self._end(question, "cancelled", cause)
        elif question.outcome == "approved" and question.ran == "none":
            self._void(question, cause)
        elif question.ran == "claimed" and lost:
            question.ran, question.claim_by = "unknown", None

    def stop(self, name: str) -> None:
        self._open_session(name)
        self._end_work(name, "stop_requested")

    def clear(self, name: str, *, close: bool) -> None:
        """A session's own end, or that it starts anew."""
        session = self._open_session(name)
        self._end_work(name, "session_ended")
        self._forget(session, close=close)
        session.used = None

    def _end_work(self, name: str, cause: str) -> None:
        for question in self._of.get(name, ()):
            self._withdraw(question, cause, lost=False)
        for turn in self._turns_of.get(name, ()):
            self.end_turn(turn.name, cause)
        for child in self._children.get(name, ()):
            self._close(self.sessions[child], cause)
        self._look(name)

    def _close(self, session: Session, cause: str) -> None:
        if not session.closed:
            session.closed, session.cause = True, cause
            born_in = self.turns.get(session.born_in or "")
            session.over_with_its_turn = born_in is not None and born_in.ended is not None
            self._end_work(session.name, cause)
            self._forget(session, close=True)

    def _forget(self, session: Session, *, close: bool) -> None:
        self.grants = [grant for grant in self.grants if grant.session != session.name]
        if close:
            session.closed = True
            session.cause = session.cause or "session_ended"
            session.clients = {name: until for name, until in session.clients.items() if until is not None}

    # --- answer clients ------------------------------------------------------------------------

    def attach(self, session: str, client: str) -> None:
        self._open_session(session).clients[client] = None

    def drop(self, session: str, client: str) -> None:
        found = self.sessions.get(session)
        if found is not None and client in found.clients:
            found.clients[client] = self.now + NOTIFIER_GRACE

    def detach(self, session: str, client: str) -> None:
        found = self.sessions.get(session)
        if found is None or client not in found.clients:
            return
        del found.clients[client]
        for each in self.below(session):
            if not self.placed(each.name) and not self._client(each.name):
                for question in self._of.get(each.name, ()):
                    if question.pending:
                        self._end(question, "cancelled", "notifier_gone")
                self._look(each.name)

    # --- time ----------------------------------------------------------------------------------

    def next_due(self) -> int | None:
        """When something happens by itself next, as far as that is certain."""
        times = [question.expires for question in self.questions.values() if question.pending]
        times += [
            question.claim_by for question in self.questions.values() if question.live and question.claim_by is not None
        ]
        times += [turn.until for turn in self.turns.values() if turn.ended is None and not turn.waits]
        times += [until for each in self.sessions.values() for until in each.clients.values() if until is not None]
        kept = self.kept.next_due()
        times += [] if kept is None else [kept]
        if self.daily is not None:
            times.append(self.daily[0])
        return min(times, default=None)

    def happen(self) -> None:
        """All that happens by itself at `now`."""
        self.kept.happen(self.now)
        for question in self.questions.values():
            if question.pending and question.expires <= self.now:
                self._end(question, TIMEOUT)
            elif question.live and question.claim_by is not None and question.claim_by <= self.now:
                question.ran = "lapsed" if question.ran == "none" else "unknown"
                question.claim_by = None
            else:
                continue
            self._look(question.session)
        for turn in list(self.turns.values()):
            if turn.ended is None and not turn.waits and turn.until <= self.now:
                self.end_turn(turn.name, "requester_gone")
        for session in self.sessions.values():
            for client, until in list(session.clients.items()):
                if until is not None and until <= self.now:
                    self.detach(session.name, client)
        if self.daily is not None and self.daily[0] <= self.now:
            self.daily = (self.daily[0] + self.daily[1], self.daily[1])
            for session in list(self.sessions.values()):
                if session.used is not None and not session.closed:
                    self.clear(session.name, close=False)
                    self.reset.append((self.now, session.name))

    # --- idleness ------------------------------------------------------------------------------

    def busy(self, root: str) -> bool:
        """Whether something waits, may be started or runs, or a turn is open."""
        return any(
            any(question.live for question in self._of.get(each.name, ()))
            or any(turn.ended is None for turn in self._turns_of.get(each.name, ()))
            for each in self.below(root)
        )

    def _look(self, name: str) -> None:
        """Note whether its outermost session is busy now, and since when it is not."""
        root = self.line(name)[-1]
        if self.busy(root.name):
            self._busy.add(root.name)
        elif root.name in self._busy:
            self._busy.discard(root.name)
            root.free = self.now

    def idle_since(self, name: str) -> int | None:
        """Since when nothing of it was in use; None where it is, or has started anew since."""
        session = self.sessions[name]
        if session.used is None or session.closed or session.kind == "child" or name in self._busy:
            return None
        return max(session.used, session.free)

"""A program of random deeds, done to the gateway's core and to the model, which must agree on what came of each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from tests.unit.core.harness import ANN, BEN, BY_ANN, PLACE
from tests.unit.gate.kept import KEPT_PLACE, KeptWorld
from tests.unit.lives import kept_model
from tests.unit.lives import model as told
from tests.unit.lives.keeping import EXECUTOR, KEPT_WEIGHTS, KeptDeeds, picked
from tests.unit.lives.model import Model

from signoff.broker import Ask
from signoff.errors import ActionRefused, ClaimRefused, Conflict, InvalidInput, SessionNotFound, TurnEnded, TurnNotFound
from signoff.model import ApprovalRequest, Cause, Command, Copy, Grant, Notifier, Session, Turn
from signoff.ports import Store
from signoff.rows import TABLES, request_key, session_key, turn_key
from signoff.settings import ApprovalSettings, ExecutorSettings, Profile, SessionSettings, ToolGateSettings
from signoff.testing.clock import START, FakeClock, settle

T = TypeVar("T")
Step = tuple[str, int, int, int]
"""What is done, and three numbers that say to what and how. Numbers, since what there is depends on the life so far."""

IDLE_S = 1800
PROFILE = Profile(
    approvers={"fake": (ANN, BEN)},
    sessions=SessionSettings(idle_expires_s=IDLE_S, daily_reset_at="09:40"),
    approvals=ApprovalSettings(
        cron_mode="defer",
        unattended_mode="defer",
        staged_destination=KEPT_PLACE,
        tool_gate=ToolGateSettings(pending_ttl_hours=kept_model.KEPT_FOR / 3_600_000),
    ),
    executors={EXECUTOR: ExecutorSettings(kinds=("command",))},
)
LATE = 61_000
"""An idle session may start anew a minute late."""
DAY = 86_400_000
KINDS = ("chat", "api", "cli", "chat", "cron", "webhook", "api", "worker", "single_query")
ACTIONS = ("deploy a", "deploy a", "deploy b", "deploy a", "deploy c")
WINDOWS_S = (20, 90, 400)
LEASES_S = (10, 45, 120)
WAITS_S = (1, 7, 1, 7, 31, 1, 7, 31, 62, 302, 302, 7, 1900)
CAUSES: tuple[Cause, ...] = ("turn_ended", "turn_interrupted", "withdrawn", "parent_ended")
CHOICES = ("once", "deny", "session", "once_all", "once", "deny", "always")
DEEPEST = 4
WEIGHTS = {
    "declare": 3,
    "child": 3,
    "open_turn": 4,
    "submit": 6,
    "ask": 6,
    "decide": 4,
    "tap": 3,
    "undo": 1,
    "revoke": 5,
    "claim": 2,
    "result": 3,
    "cancel": 1,
    "interrupt": 4,
    "heartbeat": 1,
    "end_turn": 2,
    "stop": 2,
    "clear": 1,
    "reset": 1,
    "attach": 5,
    "drop": 1,
    "detach": 4,
    "advance": 3,
    **KEPT_WEIGHTS,
}
DEEDS = tuple(name for name, weight in WEIGHTS.items() for _ in range(weight))


class Life(KeptDeeds):
    """Both sides, and what there is to act on."""

    def __init__(self, store: Store, clock: FakeClock, *, sessions: int, look_every: int) -> None:
        """At most so many outermost sessions. Both sides are compared whole after every `look_every` steps."""
        self.store, self.clock = store, clock
        self.world = KeptWorld(store, clock, profile=PROFILE)
        self.model = Model(idle=IDLE_S * 1000, daily=(2_400_000, DAY))
        self._roots = sessions
        self._look_every = look_every
        self._steps = 0
        self._seq = 0
        self._tasks: dict[str, asyncio.Task[ApprovalRequest]] = {}
        self._waiting: set[str] = set()
        """Those of the tasks that were not done when last looked at."""
        self._before = asyncio.all_tasks()
        self.happened: Counter[str] = Counter()
        self.begin_keeping()

    # --- one step ------------------------------------------------------------------------------

    async def live(self, program: Sequence[Step]) -> None:
        """Do it all, end every session, and look for what is left."""
        await self.world.sweeper.resume()
        for step in program:
            await self.step(step)
        await self.look()
        await self.finish()

    async def step(self, step: Step) -> None:
        """A millisecond passes, then the deed is done; so no two things happen at once but by their own times."""
        name, *picks = step
        await self.pass_time(1)
        deed: Callable[[int, int, int], Awaitable[None]] = getattr(self, name)
        await deed(*picks)
        await settle()
        await self._told()
        await self.world.flush()
        await settle()
        self._steps += 1
        if self._steps % self._look_every == 0:
            await self.look()

    async def _told(self) -> None:
        """Until everybody whose question is over has heard so, and has claimed what may run: a thread writes that."""
        over = [name for name in self._waiting if not self.model.questions[name].pending]
        async with asyncio.timeout(30):
            await asyncio.gather(*(asyncio.wait([self._tasks[name]]) for name in over))
        self._waiting.difference_update(over)

    async def both(
        self,
        name: str,
        ours: Coroutine[Any, Any, T],
        theirs: Callable[[], object],
        said: Callable[[T], object] = lambda answer: None,
    ) -> None:
        """Do it on both sides: both do it (and say the same), or both refuse for the same reason."""
        found: object
        expected: object
        try:
            found = said(await ours)
        except (SessionNotFound, TurnNotFound, InvalidInput):
            found = told.Unknown
        except ActionRefused as error:
            found = (kept_model.Refused, error.code)
        except (TurnEnded, ClaimRefused, Conflict):
            found = told.Refused
        try:
            expected = theirs()
        except (told.Unknown, told.Refused) as error:
            expected = type(error)
        except kept_model.Refused as error:
            expected = (type(error), *error.args) if error.args else told.Refused
        assert found == expected, (name, found, expected)
        refused = found in (told.Unknown, told.Refused) or isinstance(found, tuple)
        self.happened[f"{name} refused" if refused else name] += 1

    # --- whom it concerns ----------------------------------------------------------------------

    def _session(self, pick: int) -> str | None:
        names = list(self.model.sessions)
        return picked(names, pick) if names else None

    def _turn(self, pick: int) -> str | None:
        """Most often one that is open."""
        turns = list(self.model.turns.values())
        live = [turn for turn in turns if turn.ended is None]
        found = [*live, *live, *live, *turns[-3:]]
        return picked(found, pick).name if found else None

    def _question(self, pick: int, *states: str) -> str | None:
        """Most often one that is in one of these states: `pending`, or of the execution of an approved one."""
        rows = list(self.model.questions.values())
        wanted = [
            row
            for row in rows
            if ("pending" in states if row.pending else row.outcome == "approved" and row.ran in states)
        ]
        found = [*wanted, *wanted, *wanted, *rows[-3:]]
        return picked(found, pick).name if found else None

    # --- agents --------------------------------------------------------------------------------

    async def declare(self, pick: int, kind: int, _: int) -> None:
        roots = [each for each in self.model.sessions.values() if each.parent is None]
        if len(roots) < self._roots:
            await self._declare(f"s{len(roots)}", picked(KINDS, kind), None)
        else:
            known = picked(roots, pick)
            await self._declare(known.name, known.kind, None)

    async def child(self, pick: int, again: int, _: int) -> None:
        children = [each for each in self.model.sessions.values() if each.parent is not None]
        if children and again % 4 == 0:
            known = picked(children, pick)
            await self._declare(known.name, "child", known.parent)
            return
        parent = self._session(pick)
        if parent is not None and len(self.model.line(parent)) < DEEPEST:
            await self._declare(f"c{len(children)}", "child", parent)

    async def _declare(self, name: str, kind: str, parent: str | None) -> None:
        place = PLACE if kind in told.WITH_A_PLACE else None
        await self.both(
            "declare",
            self.world.session(name, kind=kind, destination=place, parent=parent),
            lambda: self.model.declare(name, kind, parent),
        )

    async def open_turn(self, pick: int, lease: int, _: int) -> None:
        session, name, lease_s = self._session(pick), f"t{len(self.model.turns)}", picked(LEASES_S, lease)
        if session is not None:
            await self.both(
                "open_turn",
                self.world.turn(name, session, lease_s),
                lambda: self.model.open_turn(name, session, lease_s * 1000),
            )

    async def submit(self, pick: int, action: int, window: int) -> None:
        await self._put(pick, action, window, waits=False)

    async def ask(self, pick: int, action: int, window: int) -> None:
        await self._put(pick, action, window, waits=True)

    async def _put(self, pick: int, action: int, window: int, *, waits: bool) -> None:
        """In a turn, or in none."""
        turn = self._turn(pick) if pick % 3 else None
        session = self.model.turns[turn].session if turn is not None else self._session(pick)
        if session is None:
            return
        if turn is not None and pick % 31 == 1:
            session = self._session(pick) or session  # perhaps not the turn's
        name, timeout_s, words = f"q{len(self.model.questions)}", picked(WINDOWS_S, window), picked(ACTIONS, action)
        question = Ask(
            action=Command(command=words), session_id=session, turn_id=turn, request_id=name, timeout_s=timeout_s
        )
        await self.both(
            "ask" if waits else "submit",
            self._asked(question) if waits else self.world.broker.submit("default", question),
            lambda: self.model.ask(name, session, turn, words, timeout_s * 1000, waits=waits),
        )
        if name in self.model.kept.actions:
            await self.was_kept(name)

    async def _asked(self, question: Ask) -> None:
        task = asyncio.create_task(self.world.broker.ask("default", question))
        key = request_key("default", question.request_id or "")
        async with asyncio.timeout(30):
            while not task.done() and await self.store.get(ApprovalRequest, key) is None:  # a thread writes
                await settle()
        if task.done():
            task.result()
        self._tasks[question.request_id or ""] = task
        self._waiting.add(question.request_id or "")

    async def claim(self, pick: int, _a: int, _b: int) -> None:
        name = self._question(pick, "none")
        if name is not None and not self.model.questions[name].waits:
            row = await self.world.row(name)
            await self.both("claim", self.world.claim(row, f"claim-{self._steps}"), lambda: self.model.claim(name))

    async def result(self, pick: int, status: int, _: int) -> None:
        name = self._question(pick, "claimed", "unknown")
        word: Any = picked(("succeeded", "failed", "not_run"), status)
        if name is not None and self.model.questions[name].ran != word:
            await self.both(
                "result",
                self.world.broker.result("default", name, word, None),
                lambda: self.model.result(name, word),
            )

    async def cancel(self, pick: int, _a: int, _b: int) -> None:
        name = self._question(pick, "pending", "none")
        if name is not None:
            row = await self.world.row(name)
            await self.both("cancel", self.world.cancel(row), lambda: self.model.cancel(name, "withdrawn"))

    async def interrupt(self, pick: int, _a: int, _b: int) -> None:
        """Whoever waits for the answer is cancelled."""
        waiting = [name for name, task in self._tasks.items() if not task.done()]
        if waiting:
            name = picked(waiting, pick)
            task = self._tasks.pop(name)
            self._waiting.discard(name)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            self.model.cancel(name, "turn_interrupted")
            self.happened["interrupt"] += 1

    async def heartbeat(self, pick: int, _a: int, _b: int) -> None:
        turn = self._turn(pick)
        if turn is not None:
            beat = self.world.sessions.heartbeat("default", turn)
            await self.both("heartbeat", beat, lambda: self.model.heartbeat(turn))

    async def end_turn(self, pick: int, cause: int, _: int) -> None:
        turn, why = self._turn(pick), picked(CAUSES, cause)
        if turn is not None:
            ended = self.world.sessions.end_turn("default", turn, why, None)
            await self.both("end_turn", ended, lambda: self.model.end_turn(turn, why))

    # --- people --------------------------------------------------------------------------------

    async def decide(self, pick: int, choice: int, _: int) -> None:
        name = self._question(pick, "pending")
        if name is not None:
            word = self._choice(name, choice)
            row = await self.world.row(name)
            how = self.world.decide(row, word)
            await self.both("decide", how, lambda: self.model.decide(name, word), lambda said: said == "won")

    def _choice(self, name: str, pick: int) -> str:
        """One that is on offer: all of a card only where others wait on it."""
        word = picked(CHOICES, pick)
        group = self.model.group(name) if self.model.questions[name].pending else []
        return word if word != "once_all" or (len(group) > 1 and group[0].name == name) else "once"

    async def tap(self, pick: int, choice: int, _: int) -> None:
        """Press a button of the card that stands."""
        name = self._question(pick, "pending")
        if name is None or not self.model.questions[name].pending:
            return
        first = self.model.group(name)[0]
        if self.model.placed(first.session):
            word = picked(("once", "deny"), choice)
            answer = await self.world.tap(await self.world.row(first.name), word)
            assert not answer.lost, answer
            assert self.model.decide(first.name, word)
            self.happened["tap"] += 1

    async def undo(self, pick: int, _a: int, _b: int) -> None:
        name = self._question(pick, "none")
        if name is not None:
            undone = self.world.broker.undo("default", name, BY_ANN, any_person=True)
            await self.both("undo", undone, lambda: self.model.undo(name))

    async def revoke(self, pick: int, _a: int, _b: int) -> None:
        if self.model.grants:
            grant = picked(self.model.grants, pick)
            key = request_key("default", grant.answer)
            found = [each for each in await self.store.find(Grant, "request", key) if each.session_id == grant.session]
            (live,) = [each for each in found if each.revoked_at is None]
            await self.world.broker.revoke("default", live.grant_id, BY_ANN)
            self.model.grants.remove(grant)
            self.happened["revoke"] += 1

    async def stop(self, pick: int, _a: int, _b: int) -> None:
        name = self._session(pick)
        if name is not None:
            stopping = self.world.sessions.stop("default", name, BY_ANN)
            await self.both("stop", stopping, lambda: self.model.stop(name))

    async def clear(self, pick: int, _a: int, _b: int) -> None:
        await self._clear(pick, close=True)

    async def reset(self, pick: int, _a: int, _b: int) -> None:
        await self._clear(pick, close=False)

    async def _clear(self, pick: int, *, close: bool) -> None:
        name = self._session(pick)
        if name is not None:
            clearing = self.world.sessions.clear("default", name, BY_ANN, close=close)
            await self.both("clear" if close else "reset", clearing, lambda: self.model.clear(name, close=close))

    async def attach(self, pick: int, client: int, _: int) -> None:
        """Most often to one that nobody could answer for otherwise."""
        alone = [each.name for each in self.model.sessions.values() if each.kind == "api" and not each.closed]
        name, app = picked(alone, pick // 4) if alone and pick % 4 else self._session(pick), f"app{client % 2}"
        if name is not None:
            attached = self.world.sessions.attach("default", name, app, "ann")
            await self.both("attach", attached, lambda: self.model.attach(name, app))

    async def drop(self, pick: int, _a: int, _b: int) -> None:
        name, app = self._client(pick)
        if name is not None:
            dropped = self.world.sessions.dropped("default", name, app)
            await self.both("drop", dropped, lambda: self.model.drop(name, app))

    async def detach(self, pick: int, _a: int, _b: int) -> None:
        name, app = self._client(pick)
        if name is not None:
            detached = self.world.sessions.detach("default", name, app)
            await self.both("detach", detached, lambda: self.model.detach(name, app))

    def _client(self, pick: int) -> tuple[str | None, str]:
        clients = [(each.name, app) for each in self.model.sessions.values() for app in each.clients]
        return picked(clients, pick) if clients else (None, "")

    # --- time ----------------------------------------------------------------------------------

    async def advance(self, pick: int, _a: int, _b: int) -> None:
        await self.pass_time(picked(WAITS_S, pick) * 1000)

    async def pass_time(self, milliseconds: int) -> None:
        """The gateway lives it, then the model, with what the gateway found idle on the way."""
        end = self.model.now + milliseconds
        await self.world.advance(milliseconds / 1000)
        assert self._at() == end
        idle, daily = await self._expired()
        for at, name in [*idle, (end, "")]:
            while (due := self.model.next_due()) is not None and due <= at:
                self.model.now = max(self.model.now, due)
                self.model.happen()
            self.model.now = at
            if name:
                since = self.model.idle_since(name)
                assert since is not None, f"{name} was in use"
                assert since + IDLE_S * 1000 <= at <= since + IDLE_S * 1000 + LATE, (name, since, at)
                self.model.clear(name, close=False)
                self.happened["idle"] += 1
        assert sorted(self.model.reset) == sorted(daily)
        self.happened["daily"] += len(daily)
        self.model.reset.clear()
        if milliseconds > 1:
            for name in self.model.sessions:
                since = self.model.idle_since(name)
                assert since is None or end <= since + IDLE_S * 1000 + LATE, f"{name} should have expired"

    def _at(self) -> int:
        return (self.clock.now() - START) // timedelta(milliseconds=1)

    async def _expired(self) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        """Which sessions started anew by themselves since this was asked last, and when: idle ones, and daily."""
        found: dict[str, list[tuple[int, str]]] = {"idle": [], "daily": []}
        events = await self.store.events("default", self._seq, limit=1_000_000)
        for event in events:
            self._seq = event.seq
            if event.type == "session.cleared" and "why" in event.data:
                at = (event.at - START) // timedelta(milliseconds=1)
                found[event.data["why"]].append((at, str(event.session_id)))
        return found["idle"], found["daily"]

    # --- agreement -----------------------------------------------------------------------------

    async def look(self) -> None:
        """Both sides tell the same of every question, turn and session, and so does everybody who waited."""
        for name, question in self.model.questions.items():
            row = await self.world.row(name)
            ran = row.execution
            assert (row.outcome, row.cause, ran.state, ran.cause) == question.ending, question
            task = self._tasks.get(name)
            if task is not None:
                assert task.done() is not question.pending, question
                if task.done():
                    ended = task.result()
                    assert (ended.outcome, ended.cause) == (question.outcome, question.cause)
                    assert ended.may_run is (question.outcome == "approved"), question
        await self.look_at_kept()
        for name, turn in self.model.turns.items():
            found = await self.store.get(Turn, turn_key("default", name))
            assert found is not None
            assert found.cause == turn.ended, turn
        for name, session in self.model.sessions.items():
            known = await self.store.get(Session, session_key("default", name))
            assert known is not None
            assert (known.closed_at is not None) is session.closed, session
            assert not (session.closed and session.parent) or known.cause == session.cause, session

    # --- nothing is left -----------------------------------------------------------------------

    async def finish(self) -> None:
        """End every session, let every time pass, and look for what is left."""
        for name, session in self.model.sessions.items():
            if session.parent is None and not session.closed:
                await self.world.sessions.clear("default", name, None, close=True)
                self.model.clear(name, close=True)
        await settle()
        await self.pass_time(2 * DAY)
        await self.look()
        for table in TABLES:
            assert await self.store.next_due(table.row) is None, table.name
        assert await self.store.find(ApprovalRequest, "pending_profile", "default") == []
        for name in self.model.sessions:
            key = session_key("default", name)
            for row, column in ((ApprovalRequest, "live_session"), (Turn, "open_session"), (Notifier, "session")):
                found: list[Any] = await self.store.find(row, column, key)
                assert found == [], (name, row)
        await self._no_live_copies()
        await self.nothing_kept_is_left()
        kept = {(grant.request_id, grant.session_id) for grant in await self.world.broker.grants("default")}
        assert kept == {(grant.answer, None) for grant in self.model.grants}
        waiters = self.world.broker.waiters
        assert (len(waiters), waiters._open, waiters._ended, waiters._over, waiters._meters) == (0, {}, {}, set(), {})
        await self.world.aclose()
        await asyncio.gather(*self._tasks.values())
        assert {task for task in asyncio.all_tasks() if not task.done()} <= self._before

    async def _no_live_copies(self) -> None:
        """Only what was started and never reported may still be told of, on the card of its leader."""
        lost = {question.led_by or name for name, question in self.model.questions.items() if question.ran == "unknown"}
        for name in self.model.questions:
            copies = await self.store.find(Copy, "request", request_key("default", name))
            live = [copy for copy in copies if copy.state not in ("final", "failed")]
            assert not live or name in lost, (name, live)

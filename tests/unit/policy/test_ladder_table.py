"""The ladder as a table: an action of each rung in every context, beside all that lies about and counts no more.

What is expected stands here as data, as the design has it, and is worked out by nothing. Each cell is a question that
is really asked. Its session was a chat before, in which people answered, and is then declared as what it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Literal, get_args

import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.ports import free_port
from tests.unit.core.harness import BY_ANN, PLACE

from signoff.broker import Ask, Broker
from signoff.model import (
    Action,
    ApprovalRequest,
    Code,
    Command,
    Elicitation,
    FileWrite,
    Notifier,
    Rule,
    SessionKind,
    Tool,
)
from signoff.policy import LADDER, Allowlist
from signoff.ports import Store
from signoff.reviewer import FAILURES
from signoff.reviewing import Review, Reviews
from signoff.rows import EVERY_SESSION, NO_CONTEXT
from signoff.sessions import Declaration, Sessions
from signoff.settings import AgentSettings, ApprovalSettings, ExecutorSettings, Profile, SmartSettings, ToolGateSettings
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

Mode = Literal["deny", "approve", "defer"]
MODES: tuple[Mode, ...] = ("deny", "approve", "defer")


class Context(Struct, frozen=True, kw_only=True):
    """Who asks. `speaks`: the setting for when nobody can be asked; None where somebody can. `listened`: an answer
    client is attached. `bypassable`: a bypass of the session counts in it."""

    kind: SessionKind
    speaks: str | None = None
    placed: bool = False
    listened: bool = False
    parent: str | None = None
    bypassable: bool = True


CONTEXTS = {
    "console": Context(kind="api"),
    "chat": Context(kind="chat", placed=True),
    "cli": Context(kind="cli", listened=True),
    "api": Context(kind="api", listened=True),
    "child": Context(kind="child", parent="chat-parent"),
    "cli, nobody": Context(kind="cli", speaks="unattended_mode"),
    "api, nobody": Context(kind="api", speaks="unattended_mode"),
    "cron": Context(kind="cron", speaks="cron_mode", bypassable=False),
    "webhook": Context(kind="webhook", speaks="unattended_mode", bypassable=False),
    "worker": Context(kind="worker", speaks="unattended_mode", bypassable=False),
    "single query": Context(kind="single_query", speaks="single_query_mode", bypassable=False),
    "child of cron": Context(kind="child", parent="cron-parent", speaks="cron_mode", bypassable=False),
    "child of nobody": Context(kind="child", parent="api-parent", speaks="unattended_mode"),
    NO_CONTEXT: Context(kind="api", speaks="no_context", bypassable=False),
}
PARENTS: dict[str, SessionKind] = {"chat-parent": "chat", "cron-parent": "cron", "api-parent": "api"}

PUSH = Command(command="git push --force origin main")
SHRED, ROOT = Command(command="shred notes"), Command(command="rm -rf /")
GRANTED, ALWAYS = Command(command="terraform apply -target=a"), Command(command="git clean -fd build")
AGAIN, LIKE_AGAIN = Command(command="git push --force origin dev"), Command(command="git push -f origin dev")
DENIED, REVIEWED = Command(command="rm -rf build"), Command(command="git reset --hard HEAD~1")
MAIL, AGENTS = Tool(name="send_email", arguments={}), FileWrite(path="AGENTS.md")
NOTE = Tool(name="post_note", arguments={})
FORM: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

Said = tuple[str, str]
"""The outcome and the rung; `asked` is a question that waits for a person."""
ASKED = ("asked", "person")
KEPT = ("staged", "tool_gate")
BY_MODE = (("blocked", "nobody"), ("approved", "nobody"), ("staged", "nobody"))
UNKEPT = (("blocked", "nobody"), ("approved", "nobody"), ("blocked", "nobody"))
"""As `BY_MODE`, of what no executor could run later."""


def all_modes(said: Said) -> tuple[Said, Said, Said]:
    """The same whatever the setting for nobody says."""
    return (said, said, said)


TABLE: tuple[tuple[str, Action, Said, tuple[Said, Said, Said]], ...] = (
    # what it is about, the action, where somebody can be asked, where nobody can: deny, approve, defer
    ("deny", SHRED, ("blocked", "deny"), all_modes(("blocked", "deny"))),
    ("isolated", PUSH, ("approved", "isolated"), all_modes(("approved", "isolated"))),
    ("isolated: deny", SHRED, ("blocked", "deny"), all_modes(("blocked", "deny"))),
    ("isolated: floor", ROOT, ("approved", "isolated"), all_modes(("approved", "isolated"))),
    ("isolated: protected", AGENTS, ("asked", "protected"), all_modes(("blocked", "protected"))),
    ("isolated: tool_gate", MAIL, ASKED, all_modes(KEPT)),
    ("floor", ROOT, ("blocked", "floor"), all_modes(("blocked", "floor"))),
    ("floor: file", FileWrite(path="/srv/own/x"), ("blocked", "floor"), all_modes(("blocked", "floor"))),
    ("protected", AGENTS, ("asked", "protected"), all_modes(("blocked", "protected"))),
    ("off", PUSH, ("approved", "mode_off"), all_modes(("approved", "mode_off"))),
    ("off: tool_gate", MAIL, ("approved", "mode_off"), all_modes(("approved", "mode_off"))),
    ("off: deny", SHRED, ("blocked", "deny"), all_modes(("blocked", "deny"))),
    ("off: floor", ROOT, ("blocked", "floor"), all_modes(("blocked", "floor"))),
    ("off: protected", AGENTS, ("asked", "protected"), all_modes(("blocked", "protected"))),
    ("allowlist", Command(command="deploy build"), ("approved", "allowlist"), BY_MODE),
    (
        "allowlist, unattended",
        Command(command="deploy nightly"),
        ("approved", "allowlist"),
        all_modes(("approved", "allowlist")),
    ),
    ("rules", Command(command="ls"), ("approved", "rules"), all_modes(("approved", "rules"))),
    ("tool_gate", MAIL, ASKED, all_modes(KEPT)),
    ("tool_gate: kept", Tool(name="wire_money", arguments={}), KEPT, all_modes(KEPT)),
    ("tool_gate: no executor", Tool(name="page", arguments={}), ASKED, all_modes(("blocked", "tool_gate"))),
    ("tool_gate: granted", NOTE, ("approved", "grants"), (KEPT, ("approved", "grants"), KEPT)),
    ("denied", DENIED, ("denied", "denied"), BY_MODE),
    ("grants", GRANTED, ("approved", "grants"), BY_MODE),
    ("grants: always", ALWAYS, ("approved", "grants"), BY_MODE),
    ("grants: denied before", AGAIN, ("approved", "grants"), BY_MODE),
    ("reviewer", REVIEWED, ("approved", "reviewer"), BY_MODE),
    ("command", PUSH, ASKED, BY_MODE),
    ("unread", Command(command="echo 'x"), ASKED, (BY_MODE[0], ("blocked", "nobody"), BY_MODE[2])),
    ("code", Code(language="python", code="print(open(name).read())"), ASKED, BY_MODE),
    ("tool", Tool(name="fetch", arguments={}), ASKED, UNKEPT),
    ("file", FileWrite(path="src/main.py"), ASKED, BY_MODE),
    ("rule", Rule(tool="fetch", rule_key="net.egress", reason="another host"), ASKED, UNKEPT),
    ("server", Elicitation(server="jira", message="Which?"), ASKED, UNKEPT),
    ("form", Elicitation(server="jira", message="Which?", schema=FORM), ASKED, all_modes(("blocked", "nobody"))),
)
UNDER_BYPASS: dict[str, Said] = {
    "deny": ("blocked", "deny"),
    "floor": ("blocked", "floor"),
    "allowlist": ("approved", "bypass"),
    "tool_gate": ("approved", "bypass"),
    "tool_gate: kept": ("approved", "bypass"),
    "denied": ("approved", "bypass"),
    "grants": ("approved", "bypass"),
    "reviewer": ("approved", "bypass"),
    "command": ("approved", "bypass"),
    "code": ("approved", "bypass"),
    "file": ("approved", "bypass"),
    "rule": ("approved", "bypass"),
    "server": ("approved", "bypass"),
}
"""Where a bypass of the session counts."""

SMART = SmartSettings(base_url="http://127.0.0.1:1/v1", model="m")
PROFILE = Profile(
    approvers={"fake": ("1",)},
    approvals=ApprovalSettings(
        mode="smart",
        smart=SMART,
        deny=("shred *",),
        tool_gate=ToolGateSettings(
            require_approval=("send_email", "wire_money", "page", "post_note"), force_deferred=("wire_money",)
        ),
    ),
    allowlist=Allowlist(["deploy build"], ["deploy nightly"]),
    agents={"pi": AgentSettings(kinds=("chat", "cli", "api", "cron", "webhook", "worker", "single_query"))},
    executors={
        "later": ExecutorSettings(
            tools=("send_email", "wire_money", "post_note"), kinds=("command", "code", "file_write")
        )
    },
    own_paths=("/srv/own",),
)


class Nods(Reviews):
    """A reviewer that approves of some commands, and of those that a grant or a denial answers before it."""

    async def review(self, row: ApprovalRequest) -> Review:
        approves = row.action in (REVIEWED, DENIED, GRANTED, ALWAYS)
        return Review(word="approve" if approves else "escalate")


class Room:
    """Sessions of every context in one store, with the profile as it is set at the moment."""

    def __init__(self, store: Store, clock: FakeClock, reviews: type[Reviews], smart: SmartSettings) -> None:
        self.store, self.clock = store, clock
        approvals = replace(PROFILE.approvals, smart=smart)
        self.base = replace(PROFILE, approvals=approvals)
        self.profiles = {"default": self.base}
        self.reviews = reviews(self.profiles)
        self.broker = Broker(store, clock, self.profiles, lambda _: frozenset({"fake"}), self.reviews)
        self.sessions = Sessions(store, self.profiles, lambda _: frozenset({"fake"}))
        self.breaker_open = False
        self.inherited = False

    async def declare(self, name: str, kind: SessionKind, *, placed: bool = False, parent: str | None = None) -> None:
        place = PLACE if placed else None
        told = Declaration(session_id=name, kind=kind, destination=place, parent=parent)
        await self.sessions.declare("default", told, None if name == NO_CONTEXT else "pi")

    async def with_people(self) -> None:
        """Every session as it was while somebody was there."""
        for name in (*PARENTS, "other"):
            await self.declare(name, "chat", placed=True)
        for name, context in CONTEXTS.items():
            child = context.parent is not None
            await self.declare(name, "child" if child else "chat", placed=not child, parent=context.parent)

    async def as_they_are(self) -> None:
        for name, kind in PARENTS.items():
            await self.declare(name, kind, placed=kind == "chat")
        for name, context in CONTEXTS.items():
            job = self.inherited and not context.bypassable and context.parent is None
            await self.declare(name, context.kind, placed=context.placed or job, parent=context.parent)
            if context.listened or (self.inherited and not context.bypassable):
                await self.sessions.attach("default", name, "phone", "ann")

    async def console(self, *, open_: bool) -> None:
        """Somebody opens the console, or closes it."""
        now = self.clock.now()
        gone_at = None if open_ else now - timedelta(seconds=1)
        row = Notifier(profile="default", session_id=EVERY_SESSION, name="console", attached_at=now, gone_at=gone_at)
        await self.store.transact(lambda tx: tx.put(row))

    async def submit(self, action: Action, name: str, **facts: Any) -> ApprovalRequest:
        return (await self.broker.submit("default", Ask(action=action, session_id=name, **facts))).row

    async def answer(self, action: Action, name: str, choice: str) -> ApprovalRequest:
        row = await self.submit(action, name)
        assert row.outcome is None, (name, row.outcome, row.rung)
        return (await self.broker.decide("default", row.request_id, choice, BY_ANN)).row

    async def ask(self, about: str, action: Action, name: str, mode: Mode) -> ApprovalRequest:
        """Ask with the settings of that row: of those for nobody, all but the context's own say something else."""
        speaks = CONTEXTS[name].speaks
        others: Mode = "deny" if mode == "approve" else "approve"
        modes: dict[str, Any] = {
            each: mode if each == speaks else others for each in ("cron_mode", "unattended_mode", "single_query_mode")
        }
        if about.startswith("off"):
            modes["mode"] = "off"
        profile = replace(self.base, approvals=replace(self.base.approvals, **modes))
        if about.startswith("isolated"):
            agents = {"pi": replace(profile.agents["pi"], isolation="container")}
            profile = replace(profile, agents=agents)
        self.profiles["default"] = profile
        facts = {"no_context": mode} if speaks == "no_context" else {}
        row = await self.submit(action, name, **facts)
        self.profiles["default"] = self.base
        return row


# --- what lies about and counts no more --------------------------------------------------------------------


async def nothing(room: Room) -> None: ...


async def bypass_over(room: Room) -> None:
    """By the clock, and noticed by nobody yet: its words stand in the session."""
    for name in (*CONTEXTS, *PARENTS):
        await room.sessions.bypass("default", name, BY_ANN, minutes=1)
    await room.clock.advance(61)


async def bypass_ended(room: Room) -> None:
    for name in (*CONTEXTS, *PARENTS):
        await room.sessions.bypass("default", name, BY_ANN, minutes=30)
        await room.sessions.end_bypass("default", name, BY_ANN)


async def grant_revoked(room: Room) -> None:
    for name in CONTEXTS:
        for action in (PUSH, MAIL):
            await room.answer(action, name, "session")
    for grant in await room.broker.grants("default"):
        await room.broker.revoke("default", grant.grant_id, BY_ANN)


async def time_box_over(room: Room) -> None:
    for name in CONTEXTS:
        for action in (PUSH, MAIL):
            await room.answer(action, name, "1m")
    await room.clock.advance(61)


async def denial_over(room: Room) -> None:
    for name in CONTEXTS:
        for action in (PUSH, MAIL):
            await room.answer(action, name, "deny")
    await room.clock.advance(601)


async def notifier_gone(room: Room) -> None:
    for name in (*CONTEXTS, *PARENTS):
        await room.sessions.attach("default", name, "app", "ann")
        await room.sessions.dropped("default", name, "app")
    await room.clock.advance(31)


async def isolation_withdrawn(room: Room) -> None:
    for name in CONTEXTS:
        said = (await room.ask("isolated", PUSH, name, "deny")).rung
        assert said == ("nobody" if name == NO_CONTEXT else "isolated")


async def of_another_session(room: Room) -> None:
    """Grants, a denial, a notifier and a bypass: also those of the session above a child."""
    for action in (PUSH, MAIL):
        await room.answer(action, "other", "session")
    await room.answer(REVIEWED, "other", "deny")
    for name in ("other", "chat-parent"):
        await room.sessions.bypass("default", name, BY_ANN, minutes=600)
    await room.sessions.attach("default", "other", "phone", "ann")


async def inherited_presence(room: Room) -> None:
    """A job with a place and an answer client, as whatever started it had."""
    room.inherited = True


async def breaker_open(room: Room) -> None:
    """The reviewer failed so often that it is left alone."""
    for number in range(FAILURES):
        row = await room.submit(Command(command=f"rm -rf part-{number}"), "chat")
        assert row.review == "escalate"
    room.breaker_open = True


Stale = Callable[[Room], Awaitable[None]]
STALE: tuple[Stale, ...] = (
    nothing,
    grant_revoked,
    time_box_over,
    denial_over,
    notifier_gone,
    isolation_withdrawn,
    bypass_over,
    bypass_ended,
    of_another_session,
    inherited_presence,
    breaker_open,
)


@asynccontextmanager
async def room_with(flags: tuple[Stale, ...]) -> AsyncIterator[Room]:
    """A room in which all that happened; grants and denials that do count come last."""
    clock = FakeClock()
    store = open_store("memory://", clock)
    smart = replace(SMART, base_url=f"http://127.0.0.1:{free_port()}/v1")
    room = Room(store, clock, Reviews if breaker_open in flags else Nods, smart)
    try:
        await room.with_people()
        # What a reviewer approves of can be answered by nobody else, so while people answer there is none.
        room.profiles["default"] = manual = replace(room.base, approvals=replace(room.base.approvals, mode="manual"))
        for flag in flags:
            room.profiles["default"] = room.base if flag is breaker_open else manual
            await flag(room)
        room.profiles["default"] = manual
        await room.declare("giver", "chat", placed=True)
        for action in (ALWAYS, NOTE):
            await room.answer(action, "giver", "always")
        for name in CONTEXTS:
            for action, choice in ((DENIED, "deny"), (AGAIN, "deny"), (LIKE_AGAIN, "session"), (GRANTED, "session")):
                await room.answer(action, name, choice)
        room.profiles["default"] = room.base
        yield room
    finally:
        room.broker.waiters.close()
        await room.reviews.aclose()
        await store.aclose()


def said_of(row: ApprovalRequest) -> Said:
    """How a question began, and by what."""
    if row.outcome is None:
        return "asked", row.rung
    if row.repeat_of is not None:
        return row.outcome, "denied"
    by_grant = any(actor.type == "grant" for actor in row.decided_by)
    return row.outcome, "grants" if by_grant else row.rung


def modes_of(context: Context) -> tuple[Mode, ...]:
    """The settings for nobody that make a difference. Outside of any session there is none for keeping."""
    if context.speaks is None:
        return MODES[:1]
    return MODES[:2] if context.speaks == "no_context" else MODES


async def walk(room: Room, name: str, wrong: list[str], *, bypassed: bool = False) -> int:
    """Ask every row in one context; how many cells that are."""
    context, cells = CONTEXTS[name], 0
    for about, action, somebody, nobody in TABLE:
        if name == NO_CONTEXT and about.startswith("isolated"):
            continue  # no agent is registered for it
        for number, mode in enumerate(modes_of(context)):
            expected = somebody if context.speaks is None else nobody[number]
            if about == "reviewer" and context.speaks is None and room.breaker_open:
                expected = ASKED
            if bypassed and context.bypassable:
                if about not in UNDER_BYPASS:
                    continue
                expected = UNDER_BYPASS[about]
            row = await room.ask(about, action, name, mode)
            cells += 1
            if said_of(row) != expected:
                wrong.append(f"{about} in {name}, {mode}: {said_of(row)}, not {expected}")
            elif expected[1] == "nobody" and str(context.speaks) not in (row.decided_by[0].setting or ""):
                wrong.append(f"{about} in {name}, {mode}: by {row.decided_by[0].setting}, not {context.speaks}")
    return cells


def test_no_rung_and_no_kind_is_left_out() -> None:
    named = {said[1] for _, _, somebody, nobody in TABLE for said in (somebody, *nobody)}
    named |= {rung for _, rung in UNDER_BYPASS.values()}
    assert named == {rung.name for rung in LADDER} | {"mode_off", "grants", "denied", "reviewer"}
    assert {context.kind for context in CONTEXTS.values()} == set(get_args(SessionKind))
    assert {about for about, *_ in TABLE} >= set(UNDER_BYPASS)


ALL = tuple(flag for flag in STALE if flag is not nothing)


@pytest.mark.parametrize(
    "flags", [*((flag,) for flag in STALE), ALL], ids=lambda flags: flags[0].__name__ if len(flags) == 1 else "all"
)
async def test_each_rung_in_each_context(flags: tuple[Stale, ...]) -> None:
    """Whatever lies about, each cell says what it says without it. At the end a bypass is on that began while people
    were there: in a job, which the session has become, it counts for nothing."""
    wrong: list[str] = []
    cells = 0
    async with room_with(flags) as room:
        await room.as_they_are()
        await room.console(open_=True)
        cells += await walk(room, "console", wrong)
        await room.console(open_=False)
        for name in CONTEXTS:
            if name != "console":
                cells += await walk(room, name, wrong)
        if flags in ((nothing,), ALL):
            await room.with_people()
            for name in CONTEXTS:
                await room.sessions.bypass("default", name, BY_ANN, minutes=600)
            await room.as_they_are()
            for name in CONTEXTS:
                cells += await walk(room, name, wrong, bypassed=True)
    assert cells > 1000
    assert not wrong, "\n".join([f"{len(wrong)} of {cells} cells:", *wrong[:30]])

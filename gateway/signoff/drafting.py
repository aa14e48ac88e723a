"""From a question to the row that would be inserted: checked, judged, with the places its card goes to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import partial
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from signoff import aside, coverage, elicitation, gating, routing
from signoff.actions import check_says
from signoff.changes import grants
from signoff.changes.bypassing import BYPASS
from signoff.errors import InvalidInput, SessionNotFound
from signoff.exact_json import check_exact
from signoff.ids import REQUEST_ID, new_id
from signoff.judging import judge_action
from signoff.model import Action, Actor, ApprovalRequest, Code, Command, Notifier, Session, replace
from signoff.policy import Verdict
from signoff.ports import Store
from signoff.routing import MAX_PARENTS, Route
from signoff.rows import EVERY_SESSION, session_key
from signoff.settings import YEAR_S, AgentSettings, Profile

MAX_WORD_CHARS = 4096
"""The longest reason, host or id text that is kept; the action itself may be as long as a body."""


class Ask(Struct, frozen=True, kw_only=True):
    """What an agent submits. `timeout_s` unset: the profile's window; None: no deadline, where that is allowed."""

    action: Action
    session_id: str
    request_id: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    host: str | None = None
    reason: str | None = None
    choices: tuple[str, ...] | None = None
    timeout_s: float | UnsetType | None = UNSET
    claimed_for: str | None = None
    agent: str | None = None
    """The calling agent's name, as its key says; None: the operator's own process."""
    gate_token: str | None = None
    """What an earlier gate gave for this very call, in place of a second question."""
    may_keep: bool = True
    """False where nothing more may be kept for a later yes: so much of this agent waits already."""
    no_context: Literal["deny", "approve"] | None = None
    """Set by the operator's own process for what is asked outside of any session: what becomes of it."""


class Around(Struct, frozen=True):
    """What is known around a question: its session with the outermost parent, the agent, who could answer and where."""

    session: Session
    root: Session
    agent: AgentSettings
    way: Route


class Drafts:
    """Makes rows of questions. `served` names a profile's connected platforms."""

    def __init__(
        self,
        store: Store,
        profiles: Mapping[str, Profile],
        served: Callable[[str], AbstractSet[str]],
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._profiles = profiles
        self._served = served
        self.now = now

    def profile(self, name: str) -> Profile:
        """The settings of a profile; raises `InvalidInput` for an unknown one."""
        try:
            return self._profiles[name]
        except KeyError:
            raise InvalidInput(f"There is no profile {name!r}.", param="profile") from None

    async def draft(self, profile: Profile, ask: Ask, digest: str) -> tuple[ApprovalRequest, Session]:
        """The row as it would be inserted, and the session row it was judged for. Raises `SessionNotFound`,
        `InvalidInput`."""
        around = await self.around(profile, ask.session_id, ask.agent)
        drafting = partial(_drafted, profile, ask, digest, around, self.now(), self._served(profile.name))
        return await aside.judged(ask.action, drafting), around.session

    async def around(self, profile: Profile, session_id: str, agent: str | None) -> Around:
        """What is known around a question in this session. `agent` bounds whose it may be. Raises `SessionNotFound`."""
        return await self.around_session(profile, await self._session(profile.name, session_id, agent))

    async def around_session(self, profile: Profile, session: Session) -> Around:
        """As `around`, for a session row in hand, which need not be stored."""
        line = await self._line(session)
        root = line[-1]
        platforms = self._served(profile.name)
        way = routing.route(profile, session, root, platforms=platforms, notified=False)
        if not way.attended and await self._notified(line):
            way = routing.route(profile, session, root, platforms=platforms, notified=True)
        return Around(session, root, profile.agents.get(session.agent or "", AgentSettings()), way)

    async def _session(self, profile: str, session_id: str, agent: str | None) -> Session:
        session = await self._store.get(Session, session_key(profile, session_id))
        if session is None or (session.closed_at is not None and session.kind != "child"):
            raise SessionNotFound
        if agent is not None and session.agent != agent:
            raise SessionNotFound
        return session

    async def _line(self, session: Session) -> list[Session]:
        """The session and those above it, its outermost parent last. A child is last where that cannot be found: it
        has no place and nobody to ask (`routing.route`), and no setting approves for it (`judge_action`)."""
        line = [session]
        for _ in range(MAX_PARENTS):
            last = line[-1]
            if last.kind != "child" or last.parent is None:
                break
            parent = await self._store.get(Session, session_key(session.profile, last.parent))
            if parent is None:
                break
            line.append(parent)
        return line

    async def _notified(self, line: Sequence[Session]) -> bool:
        """Whether an answer client is attached to one of these sessions, or to the whole profile."""
        now = self.now()
        for name in (*(session.session_id for session in line), EVERY_SESSION):
            found = await self._store.find(Notifier, "session", session_key(line[0].profile, name))
            if any(n.gone_at is None or n.gone_at > now for n in found):
                return True
        return False


def _drafted(
    profile: Profile, ask: Ask, digest: str, around: Around, now: datetime, served: AbstractSet[str]
) -> ApprovalRequest:
    verdict = judge_action(
        ask.action,
        profile,
        around.agent,
        around.session,
        around.root,
        attended=around.way.attended,
        now=now,
        no_context=ask.no_context,
    )
    return row_of(profile, ask, digest, around, verdict, served)


def row_of(
    profile: Profile,
    ask: Ask,
    digest: str,
    around: Around,
    verdict: Verdict,
    served: AbstractSet[str] = frozenset(),
) -> ApprovalRequest:
    """The row of a question with this verdict; `served` are the platforms whose places can be asked in. Raises
    `InvalidInput`."""
    session = around.session
    timeout_s, warnings = _window(profile, ask.timeout_s)
    draft = ApprovalRequest(
        request_id=ask.request_id or new_id("req"),
        profile=profile.name,
        short_id="",
        session_id=session.session_id,
        generation=session.generation,
        turn_id=ask.turn_id,
        tool_call_id=ask.tool_call_id,
        agent=session.agent,
        kind=session.kind,
        requested_by=around.agent.acts_for or (session.user_id if session.agent is None else None),
        claimed_for=ask.claimed_for or (session.user_id if session.agent is not None else None),
        host=ask.host,
        action=ask.action,
        digest=digest,
        agent_reason=ask.reason,
        description=verdict.description,
        severity=verdict.severity,
        rule_keys=verdict.rule_keys,
        why=verdict.why,
        rung=verdict.rung,
        label=verdict.label or grants.exact_label(ask.action),
        breadth=verdict.breadth or f"Exactly this {grants.action_word(ask.action)}",
        coverage=coverage.needed(ask.action, verdict.coverage, digest),
        standing=coverage.standing(ask.action, digest) if verdict.verdict in ("ask", "stage") else "",
        once_only=verdict.once_only,
        likeness=coverage.likeness(ask.action, verdict),
        unread_file=verdict.unread_file,
        review="wanted" if verdict.reviewable and profile.approvals.mode == "smart" else "",
        choices=_choices(profile, ask),
        destinations=around.way.destinations,
        timeout_s=timeout_s,
        created_at=session.created_at,
        warnings=warnings,
    )
    return _judged(draft, verdict, profile, served)


CHOICES = ("once", "once_all", "session", "always", "deny")


def is_choice(choice: str) -> bool:
    """Whether the word is a choice or a time box."""
    return choice in CHOICES or grants.time_box(choice) is not None


def offered_kinds(profile: Profile, action: Action) -> tuple[str, ...]:
    """The choices a profile offers for this kind of action."""
    if isinstance(action, Command):
        return profile.grants.command
    return profile.grants.code if isinstance(action, Code) else profile.grants.tool


def _kept(profile: Profile, action: Action, served: AbstractSet[str]) -> dict[str, Any]:
    """Who would run a kept action, where people are asked about it, and for how long: no say of its session's."""
    settings = profile.approvals
    first = settings.staged_destination or settings.fallback_destination
    places = dict.fromkeys(place for place in (first, *settings.also_to) if place is not None)
    return {
        "executor": gating.executor_for(profile, action),
        "destinations": tuple(place for place in places if place.platform in served),
        "timeout_s": settings.tool_gate.pending_ttl_hours * 3600.0,
        "warnings": (),
    }


def _judged(draft: ApprovalRequest, verdict: Verdict, profile: Profile, served: AbstractSet[str]) -> ApprovalRequest:
    """The draft, born ended where the verdict leaves nothing to ask."""
    if verdict.verdict == "ask":
        return draft
    rule = verdict.rule_keys[0] if verdict.rule_keys else verdict.rung
    setting = None if verdict.rung == "deny" else routing.setting_value(profile, verdict.setting)
    actor = Actor(type="policy", rule=rule if verdict.rung == BYPASS or not setting else None, setting=setting)
    if verdict.verdict == "block":
        return replace(draft, outcome="blocked", decided_by=(actor,))
    if verdict.verdict == "stage":
        return replace(draft, outcome="staged", decided_by=(actor,), **_kept(profile, draft.action, served))
    return replace(draft, outcome="approved", choice="once", decided_by=(actor,))


def check_words(ask: Ask) -> None:
    """Raise `InvalidInput` for an action without words, ids that are none, texts that are too long, and forms that
    nobody could fill in."""
    check_says(ask.action)
    elicitation.check_schema(ask.action)
    check_exact(ask.action)
    for name in ("request_id", "turn_id"):
        value = getattr(ask, name)
        if value is not None and not REQUEST_ID.fullmatch(value):
            raise InvalidInput(f"{name} must be 1 to 64 of A-Z, a-z, 0-9, _ and -.", param=name)
    for name in ("reason", "host", "claimed_for", "tool_call_id"):
        value = getattr(ask, name)
        if value is not None and len(value) > MAX_WORD_CHARS:
            raise InvalidInput(f"{name} is over {MAX_WORD_CHARS} characters; shorten it.", param=name)


def _choices(profile: Profile, ask: Ask) -> tuple[str, ...]:
    """The profile's choices, narrowed by the asker; `deny` and one way to approve always stay."""
    base = offered_kinds(profile, ask.action)
    if ask.choices is None:
        return base
    unknown = [c for c in ask.choices if not is_choice(c)]
    if unknown:
        ways = f"{', '.join(CHOICES)} or a time box such as {grants.BOX}"
        raise InvalidInput(f"choices: {unknown[0]!r} is none; it is one of {ways}.", param="choices")
    boxes = tuple(c for c in dict.fromkeys(ask.choices) if grants.time_box(c) and c not in base)
    known = tuple(each for c in base for each in ((c, *boxes) if c == "session" else (c,)))
    narrowed = tuple(c for c in known if c in ask.choices or c == "deny")
    if not any(c == grants.BOX or c in ("once", "session", "always") for c in narrowed):
        # Another time box has no button; whoever types a command can give it, but a card alone could only be denied.
        raise InvalidInput(f"choices leaves no way to approve on a card; add once or {grants.BOX}.", param="choices")
    return narrowed


def _window(profile: Profile, asked: float | UnsetType | None) -> tuple[float | None, tuple[str, ...]]:
    """The window in seconds and the warnings about what was clamped. Raises `InvalidInput` for 0, NaN, negatives."""
    settings = profile.approvals
    cap = min(settings.max_timeout_s, YEAR_S)
    if isinstance(asked, UnsetType):
        return min(settings.timeout_s, cap), ()
    if asked is None:
        if settings.allow_no_deadline:
            return None, ()
        return cap, (f"No deadline is not allowed here (approvals.allow_no_deadline); the window is {cap:g} s.",)
    if math.isnan(asked) or asked <= 0:
        raise InvalidInput("timeout_s must be a number of seconds above 0.", param="timeout_s")
    if asked > cap:
        return cap, (f"timeout_s was {asked:g}; the window is {cap:g} s (approvals.max_timeout_s).",)
    return float(asked), ()

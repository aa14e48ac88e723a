"""Who asks, carried with the call: the session, its turn and its kind, in context variables and never process-wide.

Each fact has three states: never set (the environment variable of its name counts), set empty (absent, whatever the
environment says) and set. Binding sets all of them at once and leaving the block gives back what was there before.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, Token, copy_context
from datetime import UTC, datetime
from typing import Any, Generic, ParamSpec, TypeVar, get_args

from msgspec import UNSET, Struct, UnsetType

from signoff.destinations import parse_destination
from signoff.errors import InvalidInput
from signoff.ids import new_id
from signoff.model import Destination, SessionKind, replace
from signoff.presence import JOBS, PRECEDENCE, Flags, kind_of

__all__ = [
    "VARIABLES",
    "Binding",
    "Context",
    "ContextThreadPool",
    "absent",
    "bind",
    "carried",
    "child",
    "child_environment",
    "current",
    "fresh",
    "portable",
    "saved_environment",
    "within",
]

P = ParamSpec("P")
T = TypeVar("T")

VARIABLES: dict[str, str] = {
    "profile": "SIGNOFF_PROFILE",
    "session_id": "SIGNOFF_SESSION_ID",
    "turn_id": "SIGNOFF_TURN_ID",
    "tool_call_id": "SIGNOFF_TOOL_CALL_ID",
    "kinds": "SIGNOFF_SESSION_KIND",
    "destination": "SIGNOFF_DESTINATION",
    "user_id": "SIGNOFF_USER_ID",
    "parent": "SIGNOFF_PARENT_SESSION",
    "interactive": "SIGNOFF_INTERACTIVE",
    "ask": "SIGNOFF_ASK",
}
"""The environment variable of each fact. Settings have `__` in their names; none of these has."""
_STORED = frozenset(map(os.environ.encodekey, VARIABLES.values()))
"""Their names as `os.environ` keeps them."""
NO = frozenset({"", "0", "false", "no", "off"})
"""Words of a flag's variable that mean no."""
KINDS = frozenset(get_args(SessionKind))


class Context(Struct, frozen=True, kw_only=True):
    """What surrounds a call, as it was bound or as the environment says. None: absent."""

    profile: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    kinds: frozenset[SessionKind] = frozenset()
    destination: Destination | None = None
    user_id: str | None = None
    parent: str | None = None
    interactive: bool = False
    ask: bool = False
    above: Context | None = None
    """The parent's own, where `child` made this one in the same process."""
    made_at: datetime | None = None
    """When a child was made in this process, by the system's clock."""

    @property
    def kind(self) -> SessionKind | None:
        """The kind of session by precedence; None where nothing says that there is one."""
        return kind_of(self.flags())

    @property
    def empty(self) -> bool:
        """Whether nothing says who asks: no session and no kind of one."""
        return self.session_id is None and self.kind is None

    def flags(self, *, notifier: bool = False) -> Flags:
        """What `signoff.presence` judges by. `notifier`: somebody listens to the session."""
        return Flags(
            kinds=self.kinds,
            place=self.destination is not None,
            interactive=self.interactive,
            ask=self.ask,
            notifier=notifier,
        )


class Made:
    """A session that `bind` or `child` gave an id of its own: it is over once nothing can ask in it any more.

    The context of every task and thread that was started in the block holds this, so the last of them ends it. So does
    that of a timer, which asyncio keeps until its time has come, even if it is cancelled.
    """

    __slots__ = ("__weakref__", "_above", "_ends", "_kept", "session_id")

    def __init__(self, session_id: str, above: Made | None) -> None:
        self.session_id = session_id
        self._above = above
        """Its parent's, which is not over before it."""
        self._ends: list[weakref.finalize[..., Made]] = []
        self._kept = False

    def when_over(self, end: Callable[[], None]) -> None:
        """Call `end`, from whichever thread, once it is over."""
        if not self._kept:
            ending = weakref.finalize(self, end)
            ending.atexit = False
            self._ends.append(ending)

    def keep(self) -> None:
        """Another process knows it, so nobody here can say when it is over."""
        self._kept = True
        for ending in self._ends:
            ending.detach()
        if self._above is not None:
            self._above.keep()

    def of(self, session_id: str) -> Made | None:
        """What belongs to that session: this, one of its parents', or none."""
        if self.session_id == session_id:
            return self
        return None if self._above is None else self._above.of(session_id)


class _Facts(Struct, frozen=True, kw_only=True):
    """Each fact in one of its three states, as the text that the variable would hold."""

    profile: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    turn_id: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    kinds: str | UnsetType = UNSET
    destination: str | UnsetType = UNSET
    user_id: str | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    interactive: str | UnsetType = UNSET
    ask: str | UnsetType = UNSET
    above: Context | None = None
    made_at: datetime | None = None
    made: Made | None = None


_NEVER_SET = _Facts()
_ABSENT = replace(_NEVER_SET, **dict.fromkeys(VARIABLES, ""))
_NOTHING = Context()
_FACTS: ContextVar[_Facts] = ContextVar("signoff.context", default=_NEVER_SET)


class Binding:
    """Facts that are bound inside a `with` block; when it is left, what was there before is back.

    `begin` and `restore` do the same where one block cannot hold both, in one task or thread: `restore` raises
    `ValueError` in another.
    """

    def __init__(self, facts: _Facts) -> None:
        self._facts = facts
        self._token: Token[_Facts] | None = None

    def __enter__(self) -> Context:
        return self.begin()

    def __exit__(self, *exc: object) -> None:
        self.restore()

    def begin(self) -> Context:
        """Bind, and how it reads. Raises `RuntimeError` where it is bound already."""
        if self._token is not None:
            raise RuntimeError("This is bound already; make another binding for another block.")
        context = _read(self._facts, os.environ)
        self._token = _FACTS.set(self._facts)
        return context

    def restore(self) -> None:
        """Give back what was bound before. Idempotent."""
        if self._token is not None:
            _FACTS.reset(self._token)
            self._token = None


# --- binding ---------------------------------------------------------------------------------------


def bind(
    session_id: str | None = None,
    *,
    kind: SessionKind | None = None,
    destination: Destination | str | None = None,
    user_id: str | None = None,
    parent: str | None = None,
    profile: str | None = None,
    turn_id: str | None = None,
    tool_call_id: str | None = None,
    interactive: bool = False,
    ask: bool = False,
) -> Binding:
    """Who asks inside the `with` block, in this task or thread. What is not named is absent, whatever the environment
    says.

    Without `session_id` a session that has a kind gets an id of its own, so that two jobs of one name never meet. Once
    the block is left, and all that was started in it is over, that session is ended. Raises `InvalidInput` for an
    unknown kind, a kind that has no parent, a text that is no destination, and control characters.
    """
    if parent and kind not in (None, "child"):
        raise InvalidInput(f"A {kind} session has no parent: only a child is one of its parent's.", param="parent")
    made = replace(
        _ABSENT,
        session_id=session_id or "",
        kinds=kind or ("child" if parent else ""),
        destination=str(destination or ""),
        user_id=user_id or "",
        parent=parent or "",
        profile=profile or "",
        turn_id=turn_id or "",
        tool_call_id=tool_call_id or "",
        interactive="1" if interactive else "",
        ask="1" if ask else "",
        made_at=datetime.now(UTC) if parent else None,
    )
    found = _checked(made).kind
    if found is not None and not session_id:
        name = new_id(found)
        made = replace(made, session_id=name, made=Made(name, None))
    return Binding(made)


def within(*, turn_id: str | None = None, tool_call_id: str | None = None) -> Binding:
    """The same session inside the block, in this turn or tool call; what is not named stays as it is."""
    facts = _FACTS.get()
    if turn_id is not None:
        facts = replace(facts, turn_id=turn_id)
    if tool_call_id is not None:
        facts = replace(facts, tool_call_id=tool_call_id)
    _checked(facts)
    return Binding(facts)


def child(session_id: str | None = None) -> Binding:
    """A session below the bound one: its questions go to the parent's place, and it ends with the bound turn.

    A job's child is part of the job. Raises `InvalidInput` where no session is bound.
    """
    outer = current()
    if outer.session_id is None:
        raise InvalidInput("There is no session that this could be a child of; bind one first.", param="session_id")
    name, above = session_id or new_id("child"), _FACTS.get().made
    kinds = [each for each in PRECEDENCE if each in outer.kinds | ({outer.kind} - {None}) and each != "child"]
    facts = replace(
        _ABSENT,
        session_id=name,
        kinds=" ".join((*kinds, "child")),
        destination=str(outer.destination or ""),
        user_id=outer.user_id or "",
        parent=outer.session_id,
        profile=outer.profile or "",
        interactive="1" if outer.interactive else "",
        ask="1" if outer.ask else "",
        above=outer,
        made_at=datetime.now(UTC),
        made=above if session_id else Made(name, above),
    )
    _checked(facts)
    return Binding(facts)


def made(session_id: str) -> Made | None:
    """What says when this session is over, where it is bound here or above and got its id from `bind` or `child`."""
    found = _FACTS.get().made
    return None if found is None else found.of(session_id)


def absent() -> Binding:
    """Nobody asks inside the block: nothing in the environment is taken for a session."""
    return Binding(_ABSENT)


def fresh() -> Binding:
    """Nothing is bound inside the block, as in a new process: the environment counts again."""
    return Binding(_NEVER_SET)


def current(environ: Mapping[str, str] | None = None) -> Context:
    """What is bound here; `environ` (by default the process's) counts for what was never set.

    Raises `InvalidInput` for a variable that holds no kind, no destination or control characters.
    """
    return _read(_FACTS.get(), os.environ if environ is None else environ)


# --- carrying --------------------------------------------------------------------------------------


def carried(work: Callable[P, T]) -> Callable[P, T]:
    """`work` as it runs in the caller's context, on whichever thread and however often it is called."""
    context = copy_context()

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        # One context cannot be entered twice at a time.
        return context.copy().run(work, *args, **kwargs)

    return run


class ContextThreadPool(ThreadPoolExecutor):
    """A `ThreadPoolExecutor` whose work runs in the context of who handed it in. A plain one asks in the name of
    whatever its thread knew last, or of nobody."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As `ThreadPoolExecutor.submit`, in the caller's context; `map` and `run_in_executor` come through here."""
        return super().submit(carried(fn), *args, **kwargs)


def child_environment(base: Mapping[str, str] | None = None, *, kind: SessionKind | None = None) -> dict[str, str]:
    """`base` (by default the process's environment) for a subprocess that belongs to the bound session.

    It keeps session, turn, kind, place, user, parent and profile, so a job's children are that job. The presence flags
    do not travel, since somebody is at this process and not at that one; nor does the tool call, of which its questions
    are no part. `kind` names what is started where it is a job of its own, such as a `worker`; the stronger of both
    counts there. A job that no job starts has a session of its own: in that of a chat it would ask there, and wait.
    A session that `bind` gave its id is not ended by itself once another process knows it.
    """
    context = current()
    mine = _FACTS.get().made
    if mine is not None:
        mine.keep()
    found = context.kinds or ({context.kind} - {None})
    kinds = found | ({kind} if kind else set())
    told = {
        "profile": context.profile,
        "session_id": context.session_id,
        "turn_id": context.turn_id,
        "kinds": " ".join(each for each in PRECEDENCE if each in kinds),
        "destination": str(context.destination or ""),
        "user_id": context.user_id,
        "parent": context.parent,
    }
    if kind in JOBS and not found & JOBS:
        told |= {"session_id": None, "turn_id": None, "parent": None}
    made = saved_environment(os.environ if base is None else base)
    made.update({VARIABLES[name]: value for name, value in told.items() if value})
    return made


def portable(work: Callable[P, T]) -> Callable[P, T]:
    """`work` as it runs for the caller's session in another process, with what `child_environment` tells one: for pools
    of processes, whose workers otherwise take themselves for whatever was bound when they were forked. It is pickled
    wherever `work` can be."""
    return _Portable(work, child_environment({}))


class _Portable(Generic[P, T]):
    def __init__(self, work: Callable[P, T], told: Mapping[str, str]) -> None:
        self._work = work
        self._told = told

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        facts = {name: self._told.get(variable, "") for name, variable in VARIABLES.items()}
        with Binding(replace(_ABSENT, **facts)):
            return self._work(*args, **kwargs)


def saved_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without anything that says who asks: what a snapshot of a shared shell may hold."""
    ours = frozenset(VARIABLES.values())
    return {name: value for name, value in environ.items() if name not in ours}


# --- reading ---------------------------------------------------------------------------------------


def _read(facts: _Facts, environ: Mapping[str, str]) -> Context:
    if facts is _NEVER_SET and not _tells(environ):
        return _NOTHING
    told = dict(_texts(facts, environ))
    for name, (value, where) in told.items():
        if any(ord(char) < 32 or ord(char) == 127 for char in value):
            raise InvalidInput(f"{where} holds control characters.", param=name)
    text = {name: value for name, (value, _) in told.items()}
    kinds = _kinds(text["kinds"].split(), told["kinds"][1])
    # Kinds come from whoever started this process, and one that is a job's child is told both.
    stale = bool(kinds & JOBS) and "child" not in kinds
    return Context(
        profile=text["profile"] or None,
        session_id=text["session_id"] or None,
        turn_id=text["turn_id"] or None,
        tool_call_id=text["tool_call_id"] or None,
        kinds=kinds,
        destination=parse_destination(text["destination"], told["destination"][1]) if text["destination"] else None,
        user_id=text["user_id"] or None,
        parent=None if stale else text["parent"] or None,
        interactive=text["interactive"].strip().lower() not in NO,
        ask=text["ask"].strip().lower() not in NO,
        above=facts.above,
        made_at=facts.made_at,
    )


def _tells(environ: Mapping[str, str]) -> bool:
    """Whether any of the variables is there."""
    # Asked for by name, each that is not there is an exception raised twice: 12 µs for every question.
    stored = getattr(environ, "_data", None) if environ is os.environ else None
    if stored is not None:
        return not _STORED.isdisjoint(stored)
    return any(variable in environ for variable in VARIABLES.values())


def _checked(facts: _Facts) -> Context:
    return _read(facts, {})


def _texts(facts: _Facts, environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each fact's text, and how whoever has to mend it knows it."""
    for name, variable in VARIABLES.items():
        value: Any = getattr(facts, name)
        if isinstance(value, UnsetType):
            yield name, (environ.get(variable, ""), variable)
        else:
            yield name, (value, "kind" if name == "kinds" else name)


def _kinds(words: Iterable[str], where: str) -> frozenset[SessionKind]:
    found = frozenset(words)
    unknown = sorted(found - KINDS)
    if unknown:
        raise InvalidInput(
            f"{where}: {unknown[0]!r} is no kind of session. Kinds: {', '.join(PRECEDENCE)}.", param="kind"
        )
    return found  # type: ignore[return-value]  # checked against the kinds above

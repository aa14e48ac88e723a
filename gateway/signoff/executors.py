"""Who runs kept actions: functions of this program, programs that read the action on standard input, and addresses that
it is posted to. No shell, no model, and no second try of what may have run.

Whatever an executor does, a run ends in one of four words: it succeeded, it failed, it did not start, or nobody knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Set
from typing import IO, Any

import aiohttp
import msgspec
from msgspec import Struct

from signoff.changes.staging import LOST_CLAIMANT, Ran
from signoff.errors import InvalidInput
from signoff.gating import named
from signoff.held_pass import HeldPass, holding
from signoff.hooks.lane import Lane
from signoff.hooks.signing import signed
from signoff.loopback import leads_away
from signoff.model import Action, Actor, ApprovalRequest, Tool
from signoff.ports import Clock
from signoff.settings import STAGED_KINDS, ExecutorSettings, Profile
from signoff.unreached import why_unreached

log = logging.getLogger(__name__)

TIMED_OUT, LOST, UNREACHABLE = "executor_timed_out", "answer_lost", "executor_unreachable"
"""Causes of an execution that did not start, or whose end nobody knows."""
CONNECT_PAUSES_S = (0.5, 1.0, 2.0, 4.0)
"""Waits between tries to reach an address: until a connection stands, nothing was sent, so a try costs nothing."""
MAX_ANSWER_BYTES = 1024**2
"""The longest answer that is read; of a longer one nobody knows what it says."""
EXIT_CODES = range(-(2**31), 2**32)
"""What a receiver may report: as for results of agents, any code of any system."""
_UNSURE = frozenset({502, 504})
"""What a proxy answers when it lost the receiver's answer: the receiver may have acted."""


class Call(Struct, frozen=True, kw_only=True):
    """One call to run: what an executor is handed. `id` is the same however often it is told of this run."""

    id: str
    profile: str
    executor: str
    action: Action
    digest: str
    host: str | None = None
    session_id: str
    agent: str | None = None
    approved_by: tuple[Actor, ...] = ()
    gate_token: str | None = None
    """With it the call goes through a second tool gate, once, while it runs."""

    @property
    def tool(self) -> str:
        """The tool's name; empty for an action of another kind."""
        return self.action.name if isinstance(self.action, Tool) else ""

    @property
    def arguments(self) -> dict[str, Any]:
        """The tool's arguments, exactly as they were kept; empty for an action of another kind."""
        return self.action.arguments if isinstance(self.action, Tool) else {}


def call_of(row: ApprovalRequest, token: str) -> Call:
    """The call that an approved row stands for, with its token of the tool gate."""
    return Call(
        id=row.request_id,
        profile=row.profile,
        executor=row.executor or "",
        action=row.action,
        digest=row.digest,
        host=row.host,
        session_id=row.session_id,
        agent=row.agent,
        approved_by=row.decided_by,
        gate_token=token,
    )


RunsCall = Callable[[Call], Any]
"""A function that runs a call, asynchronous or not; what it raises is a failure."""


async def called(run: Callable[[Any], Any], given: Any) -> Any:
    """What a function of the program gives; one that is not asynchronous runs in a thread of its own, in this context.

    Of its own, for the threads that the loop shares out are few, and one that never returns would keep its place.
    """
    if inspect.iscoroutinefunction(run):
        return await run(given)
    context = contextvars.copy_context()
    lane = Lane("signoff-tool", lambda each: context.run(run, each))
    try:
        returned = await lane.call(given)
    finally:
        lane.close()
    if returned.error is not None:
        raise returned.error
    return await returned.value if inspect.isawaitable(returned.value) else returned.value


def checked_executor(profile: Profile, name: str, settings: ExecutorSettings) -> ExecutorSettings:
    """The settings of a new executor of a program. Raises `InvalidInput` for a name or work that another one has."""
    if not settings.tools and not settings.kinds:
        raise InvalidInput(f"Executor {name!r} runs nothing: name tools or kinds.", param="tools")
    if not set(settings.kinds) <= set(STAGED_KINDS):
        raise InvalidInput(f"An executor runs kinds of {', '.join(STAGED_KINDS)}.", param="kinds")
    if name in profile.executors:
        raise InvalidInput(f"There is an executor {name!r} already.", param="name")
    for owner, other in profile.executors.items():
        both = {*settings.tools, *settings.kinds} & {*other.tools, *other.kinds}
        if both:
            raise InvalidInput(f"{min(both)!r} is run by executor {owner!r} already.", param="tools")
    return settings


class Executors:
    """The executors of all profiles: those of the settings, and functions that the program registered."""

    def __init__(self, profiles: Mapping[str, Profile], clock: Clock, *, withheld: Set[str] = frozenset()) -> None:
        """`withheld`: the variables that no program inherits, since they hold the gateway's secrets."""
        self._profiles = profiles
        self._clock = clock
        self._withheld = withheld
        self._functions: dict[tuple[str, str], RunsCall] = {}

    def register(self, profile: str, name: str, run: RunsCall) -> None:
        """Have `run` run what executor `name` is registered for in the profile's settings."""
        self._functions[profile, name] = run

    def profile(self, name: str) -> Profile:
        """The settings of a profile as they are now."""
        return self._profiles[name]

    def known(self) -> list[tuple[str, str]]:
        """Profile and name of each that this process can run."""
        pairs = [(profile, name) for profile, each in self._profiles.items() for name in each.executors]
        return [pair for pair in pairs if self.has(*pair)]

    def has(self, profile: str, name: str) -> bool:
        """Whether this process can run it."""
        settings = self._settings(profile, name)
        return settings is not None and (
            (profile, name) in self._functions or bool(settings.command) or bool(settings.url)
        )

    def function_for(self, profile: str, tool: str) -> RunsCall | None:
        """The function that runs a tool, where one is registered."""
        for (owner, name), run in self._functions.items():
            settings = self._settings(profile, name)
            if owner == profile and settings is not None and named(settings.tools, tool):
                return run
        return None

    def _settings(self, profile: str, name: str) -> ExecutorSettings | None:
        found = self._profiles.get(profile)
        return found.executors.get(name) if found is not None else None

    async def run(self, call: Call) -> Ran:
        """Run it, once, for as long as its settings allow. Raises nothing but a cancellation."""
        settings = self._settings(call.profile, call.executor) or ExecutorSettings()
        function = self._functions.get((call.profile, call.executor))
        if function is not None:
            return await _run_function(function, call, settings.timeout_s)
        document = msgspec.json.encode({"object": "signoff.call", **_fields(call)})
        if settings.command:
            environ = program_environment(os.environ, self._withheld)
            # Its lines reach our standard error as they are: by a pipe of ours, a program would die with this gateway.
            log.info("executor %s runs call %s; what it writes stands here as it is", call.executor, call.id)
            ran = await _run_command(settings.command, document, settings.timeout_s, environ)
            code = "" if ran.exit_code is None else f", exit code {ran.exit_code}"
            log.info("executor %s: call %s ended: %s%s", call.executor, call.id, ran.state, code)
            return ran
        return await _post(settings, call, document, self._clock)


def _fields(call: Call) -> dict[str, Any]:
    return {name: getattr(call, name) for name in call.__struct_fields__}


async def _run_function(run: RunsCall, call: Call, timeout_s: float) -> Ran:
    held = HeldPass(call.profile, call.action, call.host, call.gate_token or "")
    try:
        with holding(held):
            async with asyncio.timeout(timeout_s) as limit:
                await called(run, call)
    except TimeoutError:
        if limit.expired():
            return Ran(state="unknown", cause=TIMED_OUT)
        return _failed(call)
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        return _failed(call)  # nobody cancelled this run: it is the function's own
    except (Exception, SystemExit):  # somebody else's code: whatever it raises, this run failed
        return _failed(call)
    return Ran(state="succeeded")


def _failed(call: Call) -> Ran:
    log.exception("executor %s: the call %s failed", call.executor, call.id)
    return Ran(state="failed")


# --- a program -------------------------------------------------------------------------------------


def program_environment(environ: Mapping[str, str], withheld: Set[str] = frozenset()) -> dict[str, str]:
    """What a program inherits: the environment without the gateway's own settings and secrets, of whichever profile."""
    return {name: value for name, value in environ.items() if not name.startswith("SIGNOFF_") and name not in withheld}


async def _run_command(argv: tuple[str, ...], document: bytes, timeout_s: float, environ: Mapping[str, str]) -> Ran:
    """Start the program with the document on its standard input. What it writes on standard error goes to ours."""
    try:
        with _input_of(document) as given:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=given,
                stdout=asyncio.subprocess.DEVNULL,
                env=environ,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        log.error("the executor's program %s cannot be started: %s", argv[0], error)
        return Ran(state="not_run", cause=UNREACHABLE)
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
    except TimeoutError:
        return Ran(state="unknown", cause=TIMED_OUT)
    finally:
        await _ended(process)
    code = process.returncode or 0
    if code < 0:  # a signal ended it, in the middle of whatever it did
        return Ran(state="unknown", exit_code=128 - code, cause=LOST_CLAIMANT)
    return Ran(state="succeeded" if code == 0 else "failed", exit_code=code)


@contextlib.contextmanager
def _input_of(document: bytes) -> Iterator[IO[bytes]]:
    """A file without a name, and no pipe: the program has all of the call from its start, whatever becomes of this
    gateway, and a child of it that leaves a pipe unread would keep us waiting after its end. Raises OSError."""
    with tempfile.TemporaryFile() as file:
        file.write(document)
        file.seek(0)
        yield file


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Leave nothing of it running that is still in its group."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


# --- an address ------------------------------------------------------------------------------------


class _Answer(Struct):
    """What a receiver may say of the run; without a body, a status of 200 to 299 says that it succeeded.

    The fields take any value: one that is spelt wrongly must not pass for an answer that says nothing.
    """

    status: Any = "succeeded"
    exit_code: Any = None


async def _post(settings: ExecutorSettings, call: Call, document: bytes, clock: Clock) -> Ran:
    """Post the call, signed, under its id. It is sent once: only a connection that could not be made is tried again.

    Until a connection stands nothing was sent, so what ends before that did not run.
    """
    stands = asyncio.Event()
    why = ""
    try:
        async with asyncio.timeout(settings.timeout_s):
            for pause_s in (*CONNECT_PAUSES_S, None):
                try:
                    return await _post_once(settings, call.id, document, clock, stands)
                except aiohttp.ClientConnectorError as error:
                    why = why_unreached(error)
                    if pause_s is None or stands.is_set():
                        break
                    await asyncio.sleep(pause_s)
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        why = why_unreached(error) if stands.is_set() or not why else why
    # The name and no address: that may hold a secret.
    if stands.is_set():
        log.error("executor %s: the answer to %s was lost: %s", call.executor, call.id, why)
        return Ran(state="unknown", cause=LOST)
    log.error("executor %s cannot be reached for %s: %s", call.executor, call.id, why)
    return Ran(state="not_run", cause=UNREACHABLE)


def _telling(stands: asyncio.Event) -> aiohttp.TraceConfig:
    """Has `stands` set once the connection does, before the first byte of the call goes."""

    async def on_connected(*_: object) -> None:
        stands.set()

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(on_connected)
    return trace


async def _post_once(
    settings: ExecutorSettings, call_id: str, document: bytes, clock: Clock, stands: asyncio.Event
) -> Ran:
    headers = signed(settings.secret, call_id, int(clock.wall().timestamp()), document)
    headers |= {"Content-Type": "application/json", "User-Agent": "signoff", "Idempotency-Key": call_id}
    # A connection of its own: on one that is kept, a call may be lost with the connection's end.
    away = leads_away(settings.url)
    no_limit = aiohttp.ClientTimeout(total=None)  # the caller's is the one
    async with (
        aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(), trust_env=away, timeout=no_limit, trace_configs=[_telling(stands)]
        ) as http,
        http.post(settings.url, data=document, headers=headers, allow_redirects=False) as response,
    ):
        body = bytearray()
        async for piece in response.content.iter_any():  # to its end: the first piece may be half a word
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise ValueError("the answer is too long")
        return _told(response.status, bytes(body))


def _told(status: int, body: bytes) -> Ran:
    if status in _UNSURE:
        return Ran(state="unknown", cause=LOST)
    if not 200 <= status < 300:
        return Ran(state="failed")
    try:
        answer = msgspec.json.decode(body, type=_Answer) if body.strip() else _Answer()
    except msgspec.MsgspecError:
        answer = _Answer()  # it answered in words of its own, with a status that says it is done
    code = answer.exit_code
    if answer.status not in ("succeeded", "failed", "not_run"):
        return Ran(state="unknown", cause=LOST)
    exit_code = code if type(code) is int and code in EXIT_CODES else None
    return Ran(state=answer.status, exit_code=exit_code)

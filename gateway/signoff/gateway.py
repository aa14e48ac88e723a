"""The composition root: opens the store, loads the adapters, wires the use cases and runs their loops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Literal

from signoff import decision_log
from signoff.allowlist_file import allowlist_path
from signoff.allowlist_rows import follower
from signoff.askable import tell, unasked
from signoff.broker import Broker
from signoff.catching_up import CatchUps, Listening
from signoff.clock import SystemClock
from signoff.commands import Commands
from signoff.config import Config
from signoff.console_adapter import PLATFORM as CONSOLE
from signoff.console_adapter import ConsoleAdapter
from signoff.dispatcher import Dispatcher
from signoff.errors import ConfigError, InvalidInput, StoreError
from signoff.executing import Executing
from signoff.executors import Executors, RunsCall, checked_executor
from signoff.folder import private_folder
from signoff.gate import Gate
from signoff.hooks import Deliveries, Hooks
from signoff.inbox import ProfileInbox
from signoff.key_marks import KeyMarks
from signoff.keyring import load_signer, marks
from signoff.keys import Keys
from signoff.maker import Maker
from signoff.model import Destination, Health, Note, replace
from signoff.outages import OVER
from signoff.placing import NoContext, checked_no_context
from signoff.policy.warming import warm
from signoff.ports import ChatAdapter, Clock, Store, Tx
from signoff.pulse import Pulse
from signoff.receiving import Receiving, section
from signoff.reviewing import Reviews
from signoff.sessions import Sessions
from signoff.settings import ExecutorSettings, Profile, StagedKind
from signoff.staged import Staged
from signoff.stores.open import open_store, serving
from signoff.sweeper import Sweeper
from signoff.taps import Taps
from signoff.telemetry import Telemetry, TimedStore
from signoff.verbs import Verbs

log = logging.getLogger(__name__)

STORE_CHECK_EVERY = timedelta(seconds=1)
STOP_WITHIN_S = 4.0
"""From the first word of a stop, what comes in and what goes out may take this long together, so that a service manager
who waits 5 s sees a clean exit."""
RUNS_WITHIN_S = 2.0
"""Of that time, what executors are running may take this long to end; what is told of it then still goes out."""
LIMITED_S = 2.5
"""A stop also waits for an edit that its place's budget allows within that time; others are left to the next start."""


class Gateway(Verbs):
    """One gateway in this process. `async with Gateway(config) as gateway:` opens and connects it.

    `adapters` replaces what the configuration would load (embedding, tests); `clock` and `store` likewise. `no_context`
    says what becomes of a `request` outside of any session that no rule decides: `deny`, or `approve` with a warning in
    the log. No agent can choose it. Raises `InvalidInput` for another word.
    """

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        store: Store | None = None,
        adapters: Mapping[tuple[str, str], ChatAdapter] | None = None,
        no_context: NoContext = "deny",
    ) -> None:
        self.no_context = checked_no_context(no_context)
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self.profiles: dict[str, Profile] = {
            name: replace(profile, own_paths=_own_paths(config, profile), own_pid=os.getpid())
            for name, profile in config.profiles.items()
        }
        self.adapters: dict[tuple[str, str], ChatAdapter] = dict(adapters or {})
        self.telemetry = Telemetry()
        self.hooks = Hooks(counted=self.telemetry.hook_called)
        """`hooks.on("post_approval_response", fn)`: observers in this process."""
        self.listening: list[Listening] = []
        """Each tells whether an agent of a profile reads its event stream now."""
        self.executors = Executors(self.profiles, self.clock, withheld=config.secret_variables)
        self.started_at: datetime = self.clock.now()
        self._given = adapters is not None
        self._given_up: dict[tuple[str, str], str] = {}
        """Why a configured platform is not served before an operator mends it."""
        if config.gateway.console and adapters is None:
            # A place to ask that is always there; its pages draw the rows themselves.
            self.adapters.update({(name, CONSOLE): ConsoleAdapter(self.clock) for name in self.profiles})
        self._pages = False
        self._life: Literal["new", "opening", "open"] = "new"
        """What `_open` makes is there to be used and closed once it is `open`."""
        self._connected = False
        self._stop_by: float | None = None
        """When a stop that has begun lets go of what still goes out, by the loop's clock."""
        self._pulse = Pulse(self.clock)
        self._store_failure: str | None = None
        self._store = store
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._commands: Commands | None = None
        self._receiving = Receiving(self._given_up, self.telemetry.unexpected)
        self._hold = ExitStack()

    # --- life ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Gateway:
        """Open and connect; every platform had its first try when this returns."""
        await self.open()
        try:
            await self.connect(self.config.gateway.hooks_url)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop receiving, let what is going out end, close everything."""
        await self.aclose()

    @property
    def opened(self) -> bool:
        """Whether it was ever opened; each is opened once."""
        return self._life != "new"

    async def open(self) -> None:
        """Open the store and the use cases; nothing is sent or received yet. Raises `StoreError`, `ConfigError`: also
        when another gateway serves this store, or another user owns its folder."""
        with ExitStack() as hold:
            private_folder(self.config.gateway.state_dir)
            for path in (allowlist_path(self.config.gateway.state_dir, name) for name in self.profiles):
                if path.parent != self.config.gateway.state_dir:
                    private_folder(path.parent.parent)
                    private_folder(path.parent)
            if self._store is None:
                hold.enter_context(serving(self.config.gateway.store))
            store = self._store or open_store(self.config.gateway.store, self.clock)
            self._life = "opening"
            await self._open(store)
            self._life = "open"
            self.reports = self.gate.reports
            self._hold = hold.pop_all()

    async def _open(self, store: Store) -> None:
        self.store: Store = (timed := TimedStore(store, self.telemetry))
        try:
            key_file = self.config.gateway.token_key_file
            self.signer = load_signer(key_file, self.clock.now())
            self._key_marks = KeyMarks(self.store, self.clock, marks(key_file, self.clock.now()))
            alone = self._store is None and not store.shared
            reviews = await self._listen(alone=alone)
            self.broker = Broker(self.store, self.clock, self.profiles, self.served, reviews)
            self.sessions = Sessions(self.store, self.profiles, self.served)
            self._executing = Executing(
                self.store,
                self.clock,
                self.executors,
                on_defect=self.telemetry.unexpected,
                on_failure=partial(self._pulse.failed, Executing.run_loop.__qualname__),
            )
            self.staged = Staged(self.store, self.broker, self._executing, self.clock)
            self.gate = Gate(self.store, self.broker, self.sessions, self.executors, self.no_context)
            self.keys = Keys(self.store, self.profiles)
            self.allowlisting = follower(self.store, self.clock, self.profiles, self.config.gateway.state_dir)
            self.sweeper = Sweeper(
                self.store,
                self.clock,
                self.broker.waiters,
                profiles=self.profiles,
                alone=alone,
                on_defect=self.telemetry.unexpected,
                on_failure=partial(self._pulse.failed, Sweeper.run.__qualname__),
            )
            self._stack.callback(await self.telemetry.follow(self.store, self.profiles))
            await self.sweeper.resume()
            timed.first = self.sweeper.awake  # so that nothing is judged by a clock that leapt
            self.catch_ups = CatchUps(
                self.store,
                self.clock,
                self.profiles,
                self.adapters,
                down=self.sweeper.down,
                listening=self.listening,
                on_defect=self.telemetry.unexpected,
            )
            await self.allowlisting.begin()
        except BaseException:
            await self.store.aclose()
            raise

    async def _listen(self, *, alone: bool) -> Reviews:
        """Begin what hears of every commit: the log, hooks and the reviews that a decision makes needless."""
        reviews = Reviews(self.profiles)
        self._stack.push_async_callback(reviews.aclose)
        self._stack.callback(self.store.subscribe(reviews.heard))
        self._stack.callback(self.store.subscribe(decision_log.heard))
        self.hooks.follow(self.store)
        self._stack.push_async_callback(self.hooks.aclose)
        self._deliveries = Deliveries(self.store, self.clock, self.profiles, counted=self.telemetry.hook_delivery)
        await self._deliveries.begin(alone=alone)
        return reviews

    async def connect(self, hooks_base: str | None) -> None:
        """Load the adapters, start every loop, and wait for each platform's first round (at most 3 s)."""
        if not self._given:
            await self._load_adapters(hooks_base)
        infos = {platform: adapter.info for (_, platform), adapter in self.adapters.items()}
        console = self.config.gateway.console_url if self.config.gateway.console else None
        maker = Maker(self.store, self.clock, self.signer, infos, console, self.profiles)
        self.dispatcher = Dispatcher(
            self.store,
            self.clock,
            self.adapters,
            maker,
            self._on_sent,
            fallbacks=self._fallbacks(),
            on_defect=self.telemetry.unexpected,
            on_failure=partial(self._pulse.failed, Dispatcher.run.__qualname__),
        )
        taps = Taps(self.broker, self.dispatcher, self.store, self.clock, self.signer, maker, self.catch_ups)
        commands = self._commands = Commands(
            self.broker, self.sessions, self.dispatcher, self.store, self.clock, maker.title
        )
        for loop in (
            self.sweeper.run,
            self.dispatcher.run,
            self.allowlisting.run,
            self.telemetry.watch_loop,
            self.catch_ups.run,
            self._deliveries.run,
            self._executing.run_loop,
            self._watch_store,
            self._key_marks.run,
        ):
            self._tasks.append(asyncio.create_task(self._watched(loop), name=loop.__qualname__))
        for (profile, platform), adapter in self.adapters.items():
            inbox = ProfileInbox(
                profile,
                adapter.info,
                store=self.store,
                taps=taps,
                commands=commands,
                dispatcher=self.dispatcher,
                catch_ups=self.catch_ups,
            )
            self._receiving.begin((profile, platform), adapter, inbox)
        # The first question would wait for the rules to be read; now the platforms are being waited for anyway.
        rules = asyncio.to_thread(warm)
        await asyncio.gather(rules, self._receiving.first_rounds(self.adapters))
        self._connected = True
        given_up = {name for name, _ in self._given_up}  # a line of its own says why, and how to mend it
        tell({name: why for name, why in self._unasked().items() if name not in given_up}, self.profiles)

    def _fallbacks(self) -> dict[str, Destination]:
        places = {name: profile.approvals.fallback_destination for name, profile in self.profiles.items()}
        return {name: place for name, place in places.items() if place is not None}

    async def aclose(self) -> None:
        """Stop in the order that loses nothing: taps first, then sends, then the store. Idempotent."""
        try:
            await self._end()
        finally:
            self._hold.close()

    async def _end(self) -> None:
        await self.stop_receiving()
        if self._life == "open":
            await self._executing.aclose(min(RUNS_WITHIN_S, max(0.0, (self._stop_by or 0.0) - _now_s())))
        if self._tasks:
            with contextlib.suppress(TimeoutError, StoreError):
                async with asyncio.timeout_at(self._stop_by or 0.0):
                    await self.dispatcher.idle(LIMITED_S)
        await _cancelled(self._tasks)
        await self._receiving.aclose(self.adapters)
        if self._commands is not None:
            self._commands.close()
        if self._life == "open":
            self.broker.waiters.close()
            await self.gate.aclose()
            await self.sessions.aclose()
            await self._stack.aclose()
            await self.store.aclose()

    async def stop_receiving(self) -> None:
        """Take no more taps; those received already are answered first."""
        if self._stop_by is None:
            self._stop_by = _now_s() + STOP_WITHIN_S
        self._connected = False
        if self._receiving.begun:
            with self.dispatcher.held():
                await self._receiving.stop()

    def executor(
        self,
        name: str,
        *,
        run: RunsCall,
        tools: tuple[str, ...] = (),
        kinds: tuple[StagedKind, ...] = (),
        timeout_s: float = 300.0,
        profile: str = "default",
    ) -> None:
        """Register a function of this program that runs approved actions: `run(call)`, asynchronous or not.

        It is handed a `signoff.executors.Call`; what it raises is a failure. Register before agents ask: what is
        approved is looked for at once. Raises `InvalidInput` for a name that is taken or that runs nothing.
        """
        settings = self.profiles.get(profile)
        if settings is None:
            raise InvalidInput(f"There is no profile {profile!r}.", param="profile")
        checked = checked_executor(settings, name, ExecutorSettings(tools=tools, kinds=kinds, timeout_s=timeout_s))
        self.profiles[profile] = replace(settings, executors={**settings.executors, name: checked})
        self.executors.register(profile, name, run)
        if self._life == "open":
            self._executing.wake()

    def pages_open(self) -> None:
        """The web console of this gateway is served from now on, so questions may go there."""
        self._pages = True

    # --- adapters --------------------------------------------------------------------------------

    def served(self, profile: str) -> frozenset[str]:
        """The platforms this gateway serves for a profile."""
        named = {platform for name, platform in self.adapters if name == profile}
        if self._given:
            return frozenset(named)
        if not self._pages:
            named.discard(CONSOLE)  # a card there would be seen by nobody
        configured = self.profiles[profile].platforms if profile in self.profiles else {}
        return frozenset(named | set(configured))

    async def _load_adapters(self, hooks_base: str | None) -> None:
        for name, profile in self.profiles.items():
            for platform, settings in profile.platforms.items():
                adapter = await self._load_adapter(name, platform, dict(settings), hooks_base)
                if adapter is not None:
                    self.adapters[name, platform] = adapter

    async def _load_adapter(
        self, profile: str, platform: str, settings: dict[str, Any], hooks_base: str | None
    ) -> ChatAdapter | None:
        """One platform's adapter; a missing extra is one clear line, and the others serve."""
        point = next(iter(entry_points(group="signoff.adapters", name=platform)), None)
        if point is None:
            raise ConfigError(f"platforms.{platform}: no installed adapter serves it.")
        try:
            factory = point.load()
        except ImportError as error:
            why = f"its library is missing ({error.name}). Mend: pip install 'signoff[{platform}]'"
            log.error("%s: %s", section(profile, platform), why)
            self._given_up[profile, platform] = why
            return None
        if settings.get("mode") in ("webhook", "http"):
            if hooks_base is None:
                raise ConfigError(
                    f"platforms.{platform}.mode = {settings['mode']!r} needs the hooks listener: run `signoff serve`."
                )
            settings["hooks_url"] = f"{hooks_base.rstrip('/')}/hooks/{profile}/{platform}"
            settings["hook_secret"] = await self._hook_secret(profile, platform)
        adapter: ChatAdapter = factory(factory.config_type(**settings), clock=self.clock, profile=profile)
        return adapter

    async def _hook_secret(self, profile: str, platform: str) -> str:
        """The secret a platform proves itself with: made once, kept in the store."""
        name = f"hook-secret:{profile}:{platform}"
        drawn = secrets.token_urlsafe(32)

        def change(tx: Tx) -> str:
            known = tx.get(Note, name)
            if known is not None:
                return known.value
            tx.put(Note(name=name, value=drawn))
            return drawn

        return await self.store.transact(change)

    async def _watched(self, loop: Callable[[], Any]) -> None:
        """Run one of the gateway's own loops; a defect in it is logged and it is started again."""
        while True:
            try:
                await loop()
                return
            except Exception as error:  # the loop's outer edge: a defect in one round must not end it for good
                self._pulse.failed(loop.__qualname__, error)
                log.exception("%s ended in an error; it is started again", loop.__qualname__)
                self.telemetry.unexpected()
                await self.clock.sleep_until(self.clock.now() + timedelta(seconds=1))

    async def _watch_store(self) -> None:
        """Know within about a second that the store does not serve, and that it does again."""
        while True:
            try:
                await self.store.check()
                if self._store_failure is not None:
                    log.warning("the store serves again", extra=OVER)
                    self._pulse.store_is_back()
                self._store_failure = None
            except StoreError as error:
                if self._store_failure is None:
                    log.error("the store does not serve: %s", error)
                self._store_failure = error.message
            await self.clock.sleep_until(self.clock.now() + STORE_CHECK_EVERY)

    def _on_sent(self, platform: str, op: str, result: str) -> None:
        self.telemetry.sent(platform, result)

    # --- facts -----------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether every platform had its first round, the store serves, and none of the gateway's loops keeps failing.
        `health` tells which does not."""
        return self._connected and self._store_failure is None and not self._pulse.troubles()

    async def health(self) -> dict[str, Any]:
        """Facts per adapter, of the store, and of loops that keep failing. Never raises for a part that is down."""
        try:
            store: dict[str, Any] = {"status": "ok", **await self.store.check()}
        except StoreError as error:
            store = {"status": "failed", "error": error.message}
        platforms = {}
        for profile, platform in {**self.adapters, **self._given_up}:
            adapter = self.adapters.get((profile, platform))
            health = adapter.health() if adapter is not None else Health(state="stopped")
            platforms[f"{profile}/{platform}"] = {
                "state": health.state,
                "last_heard_at": health.last_heard_at,
                "detail": health.detail or self._given_up.get((profile, platform), ""),
                "history": list(health.history),
            }
        return {
            "store": store,
            "platforms": platforms,
            "hooks": await self._deliveries.health(),
            "executors": await self._absent_executors(),
            "waiting": len(self.broker.waiters),
            "failing": self._pulse.troubles(),
            "unasked": self._unasked(),
        }

    def _unasked(self) -> dict[str, str]:
        """The profiles in which no place could ask anybody now, and why."""
        states = {key: adapter.health().state for key, adapter in self.adapters.items()}
        return unasked(self.profiles, {**dict.fromkeys(self._given_up, "stopped"), **states}, self.served)

    async def _absent_executors(self) -> dict[str, dict[str, Any]]:
        """The executors that approved actions wait for and no gateway of this store has, by `profile/name`."""
        try:
            absent = [(profile, each) for profile in self.profiles for each in await self.staged.absent(profile)]
        except StoreError:
            return {}
        return {f"{profile}/{each.executor}": {"waiting": each.waiting} for profile, each in absent}


def _own_paths(config: Config, profile: Profile) -> tuple[str, ...]:
    """The gateway's own files, which no action may touch."""
    paths = [
        *profile.own_paths,
        config.gateway.state_dir,
        config.gateway.token_key_file,
        *([config.file] if config.file else []),
        # A link leads out of the state folder; what it leads to decides as much, in whichever profile.
        *(allowlist_path(config.gateway.state_dir, name).resolve() for name in config.profiles),
    ]
    return tuple(dict.fromkeys(str(path) for path in paths))


def _now_s() -> float:
    return asyncio.get_running_loop().time()


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()

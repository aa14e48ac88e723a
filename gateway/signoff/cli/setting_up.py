"""The dialogue of `init`: asks, tries each answer at the platform, and binds the first approver."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from signoff.checkups import open_adapter, to_paste
from signoff.clock import SystemClock
from signoff.config import cross
from signoff.console_adapter import PLATFORM as CONSOLE
from signoff.destinations import parse_destination
from signoff.errors import AdapterError, AdapterFatal, ConfigError, Conflict, InvalidInput
from signoff.model import replace
from signoff.ports import ChatAdapter, Introduction
from signoff.settings import Profile
from signoff.setup.binding import Candidate, await_code, tell
from signoff.setup.code import VALID_FOR, Code, new_code
from signoff.setup.secrets import Given, check_shape, from_secret_file, from_variable, typed
from signoff.setup.trying import examine, introduce, look_at, settings_of
from signoff.setup.writing import Approver, Choices, PlatformChoice, check_free, secret_name
from signoff.texts import Catalogue
from signoff.visible import visible
from signoff.wording import t

PROFILE = "default"
SECRETS: dict[str, tuple[tuple[str, str], ...]] = {
    "telegram": (("token", "Bot token"),),
    "discord": (("token", "Bot token"),),
    "slack": (("bot_token", "Bot User OAuth Token (xoxb-)"), ("app_token", "App-level token (xapp-)")),
}
"""What each platform's default mode needs, and how it is asked for."""
STEPS = 3
T = TypeVar("T")


class Options(Struct, frozen=True, kw_only=True):
    """What the command line said."""

    interactive: bool
    known: tuple[str, ...]
    platforms: tuple[str, ...]
    console: bool
    """Whether people answer in the web console."""
    token_env: dict[str, str]
    token_file: dict[str, str]
    app_token_env: str | None
    app_token_file: str | None
    approvers: dict[str, list[str]]
    fallback: str | None
    bind: bool
    inline_secrets: bool
    api_base_url: dict[str, str]
    gateway_url: str | None
    to_stderr: bool
    folder: Path
    """Where the settings go, and the files of pasted secrets."""
    force: bool
    """Whether files that are there are replaced."""


def prepared(platform: str) -> str:
    """How to make a bot on a platform, with what is to be pasted there."""
    lines = []
    for number in range(1, STEPS + 1):
        if f"init.prepare.{platform}_{number}" in _KEYS:
            lines.append(t(f"init.prepare.{platform}_{number}"))
        if number == 1 and to_paste(platform):
            lines += ["", to_paste(platform)]
    return "\n".join(lines)


class SetUp:
    """One run of the dialogue. Calls to platforms go through `runner`, so that prompts hold up nothing."""

    def __init__(self, options: Options, runner: asyncio.Runner) -> None:
        self._options = options
        self._runner = runner
        self._clock = SystemClock()
        self._bots: dict[str, Introduction] = {}
        self._bound: dict[str, Candidate] = {}
        self._made: dict[str, PlatformChoice] = {}
        self._console = options.console

    def say(self, text: str) -> None:
        """A line for people."""
        click.echo(visible(text) if "\n" not in text else text, err=self._options.to_stderr)

    def run(self) -> Choices:
        """Ask everything; the answers. Raises `SignoffError` where nobody can be asked to mend what is wrong."""
        for platform, user_ids in self._options.approvers.items():
            _check_ids(platform, user_ids)
            if self._options.platforms and platform not in self._options.platforms:
                raise ConfigError(f"--approver names {platform!r}, which is not among the platforms; add --platform.")
        for platform in self._options.platforms or self._which():
            if platform == CONSOLE:
                continue
            self._made[platform] = self._platform(platform)
        return Choices(
            platforms=tuple(self._made.values()),
            fallback=self._fallback(),
            inline_secrets=self._options.inline_secrets,
        )

    def report(self) -> dict[str, Any]:
        """What programs read: the bots, their links and the approvers."""
        return {
            platform: {
                "bot": self._bots[platform].name,
                "bot_id": self._bots[platform].user_id,
                "invite_url": self._bots[platform].invite_url,
                "approvers": [approver.user_id for approver in choice.approvers],
            }
            for platform, choice in self._made.items()
        }

    @property
    def afterwards(self) -> str:
        """What to type once the gateway runs."""
        return "`signoff drill`" if self._made else "`signoff console --principal NAME`: the link by which NAME answers"

    # --- asking ----------------------------------------------------------------------------------

    def _which(self) -> tuple[str, ...]:
        if self._console:
            return ()
        known = (*self._options.known, CONSOLE)
        while True:
            words = self._prompt(
                f"Which platforms ({', '.join(known)}: the web console alone)", default=self._options.known[-1]
            )
            chosen = tuple(dict.fromkeys(words.replace(",", " ").lower().split()))
            if chosen and set(chosen) <= set(known):
                self._console = CONSOLE in chosen
                return chosen
            self.say(f"Choose among {', '.join(known)}; several with commas.")

    def _prompt(self, text: str, *, default: str | None = None, hidden: bool = False) -> str:
        return str(click.prompt(text, default=default, hide_input=hidden, err=self._options.to_stderr))

    def _confirm(self, text: str, *, default: bool = False) -> bool:
        while True:
            answer = click.prompt(
                f"{text} [{'Y/n' if default else 'y/N'}]",
                default="y" if default else "n",
                show_default=False,
                err=self._options.to_stderr,
            )
            word = str(answer).strip().lower()
            if word in ("y", "yes", "n", "no"):
                return word.startswith("y")
            self.say("Answer y or n.")

    def _mended(self, attempt: Callable[[], T], *, answered: bool) -> T:
        """Do it until it works. `answered`: it asks in the terminal, so that another answer may be given at once."""
        while True:
            try:
                return attempt()
            except (ConfigError, AdapterFatal) as error:
                if not (self._options.interactive and answered):
                    raise
                self.say(error.message)
            except AdapterError as error:
                if not self._options.interactive:
                    raise
                self.say(error.message)
                if not self._confirm("Try again?", default=True):
                    raise

    # --- one platform ----------------------------------------------------------------------------

    def _platform(self, platform: str) -> PlatformChoice:
        options = self._options
        if options.interactive:
            self.say(f"\n{platform.capitalize()}\n{prepared(platform)}")
        choice = self._mended(lambda: self._introduced(platform), answered=not self._secrets_given(platform))
        bot = self._bots[platform]
        self.say(f"{platform.capitalize()} knows the bot as {bot.name}.")
        self._examined(choice)
        self._joined(platform, bot)
        listed = [Approver(user_id=each) for each in options.approvers.get(platform, ())]
        if listed or not options.bind:
            return replace(choice, approvers=tuple(listed))
        if options.interactive and not self._confirm("Bind yourself as the first approver now?", default=True):
            return choice
        candidate = self._mended(lambda: self._bind(choice, bot), answered=False)
        if candidate is None:
            return choice
        self._bound[platform] = candidate
        person = candidate.person
        return replace(choice, approvers=(Approver(user_id=person.user_id, name=person.name or ""),))

    def _introduced(self, platform: str) -> PlatformChoice:
        """The secrets, tried at once."""
        given = {}
        for name, asked in SECRETS[platform]:
            given[name] = self._secret(platform, name, asked)
            check_shape(platform, name, given[name])
        settings = {}
        if platform in self._options.api_base_url:
            settings["api_base_url"] = self._options.api_base_url[platform]
        if platform == "discord" and self._options.gateway_url:
            settings["gateway_url"] = self._options.gateway_url
        choice = PlatformChoice(platform=platform, secrets=given, settings=settings)
        self._bots[platform] = self._runner.run(introduce(choice))
        return choice

    def _secrets_given(self, platform: str) -> bool:
        """Whether an option names a secret, so that asking again would try the same."""
        options = self._options
        app = platform == "slack" and (options.app_token_env or options.app_token_file)
        return platform in options.token_env or platform in options.token_file or bool(app)

    def _secret(self, platform: str, name: str, asked: str) -> Given:
        options, app = self._options, name == "app_token"
        variable = options.app_token_env if app else options.token_env.get(platform)
        file = options.app_token_file if app else options.token_file.get(platform)
        if variable:
            return from_variable(variable, os.environ)
        if file:
            return from_secret_file(file)
        if not options.interactive:
            raise ConfigError(
                f"{platform}: {asked} is missing; give --{name.replace('_', '-').removeprefix('bot-')}-env or -file."
            )
        given = typed(self._prompt(f"{asked} (paste it, or $NAME of a variable, or @PATH of a file)", hidden=True))
        if given.kind == "pasted" and not options.inline_secrets:
            # Now, not at the end, when somebody was bound and told so.
            self._free(options.folder / secret_name(platform, name))
        return given

    def _free(self, path: Path) -> None:
        try:
            check_free(path, replace=self._options.force)
        except ConfigError as error:
            raise ConfigError(f"{error.message} Answer @{path} to take what stands in it.") from None

    def _examined(self, choice: PlatformChoice) -> None:
        """What else is wrong there. In a terminal it can be mended and looked at again."""
        while True:
            found = self._runner.run(examine(choice))
            for each in found:
                if each.level != "ok":
                    self.say(f"{each.level}, {each.about}: {each.text} {each.mend}")
            problems = [each for each in found if each.level == "problem"]
            if not problems:
                return
            if not self._options.interactive:
                raise Conflict(f"{problems[0].text} {problems[0].mend}")
            if not self._confirm("Mend it and look again? (n goes on as it is)", default=True):
                return

    def _joined(self, platform: str, bot: Introduction) -> None:
        if f"init.join.{platform}" in _KEYS:
            self.say(_filled(f"init.join.{platform}", {"invite": bot.invite_url or "", "name": bot.name}))

    # --- the first approver ----------------------------------------------------------------------

    def _bind(self, choice: PlatformChoice, bot: Introduction) -> Candidate | None:
        """Whoever sends the code and is confirmed here; None where nobody was."""
        adapter = open_adapter(choice.platform, settings_of(choice), clock=self._clock, profile=PROFILE)
        try:
            while True:
                try:
                    return self._try_code(choice.platform, bot, adapter)
                except Conflict as error:
                    if not self._options.interactive:
                        raise
                    self.say(error.message)
                    if not self._confirm("Get a new code?", default=True):
                        return None
        finally:
            self._runner.run(adapter.aclose())

    def _try_code(self, platform: str, bot: Introduction, adapter: ChatAdapter) -> Candidate | None:
        code = new_code(self._clock.now())

        def ready() -> None:
            self.say(_how_to_send(platform, bot, code))

        candidate = self._runner.run(await_code(adapter, code, self._clock, PROFILE, on_ready=ready))
        person, title = candidate.person, adapter.info.title
        question = t("init.code.confirm", title=title, person=visible(person.name or "?"), user=person.user_id)
        if self._options.interactive and not self._confirm(question):
            self._runner.run(tell(adapter, candidate, t("init.code.not_bound")))
            raise Conflict(t("init.code.not_bound"))
        if not self._options.interactive:
            self.say(question)
        bound = t("init.code.bound", prefix=adapter.info.command_prefix)
        trouble = self._runner.run(tell(adapter, candidate, bound))
        if trouble:
            self.say(trouble)
        return candidate

    # --- where to ask ----------------------------------------------------------------------------

    def _fallback(self) -> str | None:
        """The place for questions without one, tried at the platform."""
        proposed = self._options.fallback
        if proposed is None and self._bound:
            proposed = str(next(iter(self._bound.values())).destination)
        if proposed is None and self._console:
            proposed = f"{CONSOLE}:main"
            if not self._made:
                return proposed
        if not self._options.interactive or self._options.fallback is not None:
            return self._tried(proposed) if proposed else None
        return self._mended(lambda: self._asked_place(proposed), answered=True)

    def _asked_place(self, proposed: str | None) -> str | None:
        text = "Where do questions go whose session has no place of its own (- for nowhere)"
        answer = self._prompt(text, default=proposed or "-").strip()
        return None if answer == "-" else self._tried(answer)

    def _tried(self, text: str) -> str:
        try:
            place = parse_destination(text)
        except InvalidInput:
            raise ConfigError(f"{text!r} is no place; write platform:chat, such as telegram:-1001234567.") from None
        if place.platform == CONSOLE:
            return str(place)
        choice = self._made.get(place.platform)
        if choice is None:
            served = ", ".join((*self._made, CONSOLE))
            raise ConfigError(f"{place.platform} is not among the platforms; choose one of {served}.")
        found = self._runner.run(look_at(choice, place))
        if found.level == "problem":
            raise ConfigError(f"{place}: {found.text} {found.mend}")
        self.say(found.text)
        return str(place)


_TEXTS = Catalogue.load()
_KEYS = _TEXTS.keys()


def _how_to_send(platform: str, bot: Introduction, code: Code) -> str:
    """The line that tells which code to send where."""
    values = {"name": bot.name, "link": bot.chat_url or "", "code": code.text}
    key = f"init.code.{platform}"
    line = _filled(key if key in _KEYS else "init.code.other", values)
    return f"{line}    {t('init.code.valid', minutes=int(VALID_FOR.total_seconds() // 60))}"


def _filled(key: str, values: Mapping[str, str]) -> str:
    """A text with those of the values that it has a place for."""
    return t(key, **{name: value for name, value in values.items() if name in _TEXTS.placeholders(key)})


def _check_ids(platform: str, user_ids: list[str]) -> None:
    """Raise `ConfigError` for what cannot be an account there, before anything is asked."""
    cross.check_profile(Profile(approvers={platform: tuple(user_ids)}), {})

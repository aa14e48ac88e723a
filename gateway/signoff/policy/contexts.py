"""What is known around an action, and one action as the steps of the ladder see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec.structs import replace

from signoff.policy import windows, windows_options
from signoff.policy.allow import NOTHING, Allowlist
from signoff.policy.code import Around, read_code
from signoff.policy.findings import Findings, find
from signoff.policy.inner import BUDGET_S as CODE_BUDGET_S
from signoff.policy.inner import Inner, read_inner
from signoff.policy.languages import WINDOWS_SHELLS, shell_of
from signoff.policy.paths import PathFacts
from signoff.policy.rule import Rule
from signoff.policy.ruleset import RuleSet, shipped
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import Script, read_shell, zsh
from signoff.policy.shell.deadline import BUDGET_S, Deadline, GivenUpError
from signoff.policy.shell.machine import TOO_DEEP
from signoff.policy.unknown import UnknownCommands
from signoff.policy.warming import warm
from signoff.presence import JOBS

Mode = Literal["deny", "approve", "defer"]
ActionKind = Literal["command", "code", "tool", "file_write", "rule", "elicitation"]

VERDICT_BUDGET_S = 0.075
"""The time for all of a long text: what reading leaves of it is for the rules. It lies below 100 ms by what may pass
until the time is looked at again."""

LEAST_JUDGING_S = 0.015
"""So much the rules get however long reading took."""

LONG_CHARS = 4096
"""A shorter text is far from needing its time, and is judged on the event loop."""

SHORT_BUDGET_S = 0.02
"""The time for reading a short text. With that for its code in other languages, and for the rules, it stays below the
60 ms for which the loop may stand still."""

SHORT_CODE_S = 0.005

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ODD_NAME = "its environment has a name that no variable of a shell can have"
"""Such a name may define a function (`BASH_FUNC_ls%%`), so that words are no longer what they seem to be."""
USES_ENVIRONMENT = "it uses what its environment sets"

POSIX_SHELLS = frozenset({"bash", "sh", "dash", "ash", "ksh", "mksh", "zsh"})
"""Shells whose text is read as it is meant; in that of any other, words may do what they seem not to do."""

SYSTEM_FOLDERS = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"})
"""Where a shell of a known name is that shell."""

_WINDOWS_MARKS = ("%", "!", "$env:", "${env:", "env:")

NEVER_ATTENDED: frozenset[str] = frozenset(JOBS)
"""Kinds of sessions in which nobody is there, whoever listens."""


class JudgeContext(msgspec.Struct, frozen=True, kw_only=True):
    """What is known around an action.

    `kind` is the session's, None when there is no session at all. `attended` says whether somebody could answer.
    `bypass` is the session's own and `bypass_words` say until when and by whom, `isolated` an attested environment.
    `own_paths` and `own_pid` are the gateway's (absolute paths). `home` and `cwd` are those of the user the command
    would run as, None where they are not known. `language` names the language of a code action. `env` is what is set
    around a command. `files` are all that a file write touches; `reviewed` are those whose content was read before
    asking. `tool_gate` is what the operator wants of calls of this tool; `can_stage` says that an executor is there
    which could run the action later. `protect_instructions` says whether writes to files that tell agents how to behave
    are always asked for, and `protected_files` which others. `rules` are the profile's, None for those that come with
    the package. `fields` says that a server's question asks for fields or to open a page, which no setting can do.
    """

    shell: str | None = None
    kind: str | None = None
    attended: bool = False
    fields: bool = False
    mode: Literal["manual", "off"] = "manual"
    bypass: bool = False
    bypass_words: str = ""
    isolated: bool = False
    cron_mode: Mode = "deny"
    unattended_mode: Mode = "deny"
    single_query_mode: Mode = "deny"
    deny: tuple[str, ...] = ()
    allowlist: Allowlist = NOTHING
    rules: RuleSet | None = None
    unknown_commands: UnknownCommands = "verbs"
    protect_instructions: bool = True
    protected_files: tuple[str, ...] = ()
    own_paths: tuple[str, ...] = ()
    own_pid: int | None = None
    home: str | None = None
    cwd: str | None = None
    language: str = ""
    env: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    reviewed: tuple[str, ...] = ()
    tool_gate: Literal["", "inline", "deferred"] = ""
    can_stage: bool = False

    @property
    def somebody(self) -> bool:
        """Whether a person can be asked."""
        return self.kind is not None and self.attended and self.kind not in NEVER_ATTENDED

    @property
    def own_blocks(self) -> tuple[Rule, ...]:
        """The operator's own rules that forbid something."""
        if self.rules is None or not self.rules.own:
            return ()
        return tuple(rule for rule in self.rules.own if rule.verdict == "block")

    @property
    def windows(self) -> bool:
        """Whether a command is for a shell of Windows."""
        return self.shell is not None and self.read_as != "bash"

    @property
    def read_as(self) -> str:
        """The shell as which a command's text is read."""
        return windows_options.shell_of(self.shell or "") or "bash"

    @property
    def facts(self) -> OwnFacts:
        """What the gateway knows of itself and of the user."""
        return _facts(self.home, self.own_paths, self.cwd, self.own_pid)


@lru_cache(maxsize=64)
def _facts(home: str | None, own: tuple[str, ...], start: str | None, pid: int | None) -> OwnFacts:
    return OwnFacts(paths=PathFacts(home=home, own=own, start=start), pid=pid)


class Subject:
    """One action on its way down the ladder: its kind, text and context, and what was read in the text.

    `found` is what rules say of it, worked out when it is first asked for; None where no rules apply or where the time
    for that ran out, which `script.problems` then tells.
    """

    __slots__ = ("_codes", "_found", "_looked", "action_kind", "context", "deadline", "facts", "script", "text")

    def __init__(
        self, action_kind: ActionKind, text: str, context: JudgeContext, inner: Inner, deadline: Deadline
    ) -> None:
        """Keep what is known."""
        self.action_kind = action_kind
        self.text = text
        self.context = context
        self.facts = context.facts
        self.script = inner.script
        self._codes = inner.codes
        self.deadline = deadline
        self._found: Findings | None = None
        self._looked = False

    def doubt(self, problem: str) -> None:
        """A step gave up: what it would have found may be there, so nothing below may allow the action unseen."""
        problems = tuple(dict.fromkeys((*self.script.problems, problem)))
        self.script = replace(self.script, problems=problems)

    @property
    def unread(self) -> bool:
        """Whether a text for a shell could not be read, so that it may hide what nobody may allow. Other code
        may always: what is found in it is what can be seen there."""
        return bool(self.script.problems) and self.shell != ""

    @property
    def shell(self) -> str:
        """The shell as which the text is read, a command's or that of a script for a shell; empty for all else."""
        if self.action_kind == "command":
            return self.context.read_as
        return shell_of(self.context.language) if self.action_kind == "code" else ""

    @property
    def windows(self) -> bool:
        """Whether that is a shell of Windows."""
        return self.shell in WINDOWS_SHELLS

    @property
    def finds_posix(self) -> bool:
        """Whether it is PowerShell where `rm` is the program of that name: paths there begin at the root."""
        known = (self.context.home, self.context.cwd)
        return self.shell == "powershell" and any(path is not None and path.startswith("/") for path in known)

    @property
    def read_as_meant(self) -> bool:
        """Whether the shell that runs the text is one whose words mean what was read. What zsh puts in round brackets
        behind a pattern may be code, which other shells do not know."""
        if not self.context.shell or self.action_kind != "command":
            return True
        if self.context.windows:
            return windows_options.is_installed(self.context.shell)
        folder, slash, shell = self.context.shell.rpartition("/")
        known = shell in POSIX_SHELLS and (not slash or folder in SYSTEM_FOLDERS)
        return known and not (shell == "zsh" and "(" in self.text)

    @property
    def understood(self) -> bool:
        """Whether all that the text would run is known."""
        return not (self.script.problems or self.script.opaque)

    @property
    def found(self) -> Findings | None:
        """What the rules say."""
        if not self._looked:
            self._looked = True
            try:
                self._found = self._find()
            except GivenUpError as error:
                self.doubt(error.reason)
            except (RecursionError, MemoryError):
                self.doubt(TOO_DEEP)
        return self._found

    def _find(self) -> Findings | None:
        if self.action_kind not in {"command", "code"}:
            return None
        rules = self.context.rules or shipped()
        unknown = self.context.unknown_commands
        if self.windows:
            return windows.findings(self.script, rules, self.facts, self.deadline, unknown, self._codes)
        return find(self.script, rules, self.facts, self.deadline, unknown, self._codes)

    @property
    def rule_keys(self) -> tuple[str, ...]:
        """The keys of the rules that fired, the gravest first."""
        return self.found.rule_keys if self.found is not None else ()


def read(action_kind: ActionKind, text: str, context: JudgeContext, clock: Callable[[], float]) -> Subject:
    """Read the text of an action. Never raises on any text."""
    warm()  # the time that loading the tables takes is not this text's
    try:
        begun = clock() if len(text) > LONG_CHARS else None
        inner = _inner(action_kind, text, context, clock)
        left_s = 0.0 if begun is None else VERDICT_BUDGET_S - (clock() - begun)
        deadline = Deadline(clock, max(left_s, LEAST_JUDGING_S))
    except (RecursionError, MemoryError):
        inner, deadline = Inner(Script(problems=(TOO_DEEP,))), Deadline(clock, LEAST_JUDGING_S)
    return Subject(action_kind, text, context, inner, deadline)


def _inner(action_kind: ActionKind, text: str, context: JudgeContext, clock: Callable[[], float]) -> Inner:
    if action_kind == "code":
        return _code(text, context, clock)
    if action_kind != "command":
        return Inner(Script())
    if context.windows:
        script = windows.read(text, context.read_as, Deadline(clock, SHORT_BUDGET_S))
        around = _surrounded(script, text, context)
        return read_inner(around, home=context.home, cwd=context.cwd, clock=clock, budget_s=SHORT_CODE_S)
    env = tuple([pair for pair in context.env if _VARIABLE.fullmatch(pair[0])]) if context.env else ()
    is_long = len(text) > LONG_CHARS
    budget_s = BUDGET_S if is_long else SHORT_BUDGET_S
    script = read_shell(text, home=context.home, cwd=context.cwd, env=env, clock=clock, budget_s=budget_s)
    is_zsh = context.shell is not None and context.shell.rpartition("/")[2] == "zsh"
    if is_zsh and not script.problems and zsh.reads_otherwise(text):
        script = replace(script, problems=(*script.problems, zsh.ZSH_ONLY))
    home = (dict(env).get("HOME") or context.home) if env else context.home
    budget_s = CODE_BUDGET_S if is_long else SHORT_CODE_S
    around = _surrounded(script, text, context)
    return read_inner(around, home=home, cwd=context.cwd, env=env, clock=clock, budget_s=budget_s)


def _surrounded(script: Script, text: str, context: JudgeContext) -> Script:
    """The script with what is set around it: each command sees it."""
    if not context.env:
        return script
    problems = script.problems
    lowered = text.casefold()
    if context.windows:
        if any(f"{mark}{name.casefold()}" in lowered for name, _value in context.env for mark in _WINDOWS_MARKS):
            problems = (*problems, USES_ENVIRONMENT)
    elif not all(_VARIABLE.fullmatch(name) for name, _value in context.env):
        problems = (*problems, ODD_NAME)
    commands = tuple(replace(each, assignments=(*context.env, *each.assignments)) for each in script.commands)
    return replace(script, commands=commands, problems=problems)


def _code(text: str, context: JudgeContext, clock: Callable[[], float]) -> Inner:
    """What a script would start, and what it would do itself, where its language is one that is read."""
    is_long = len(text) > LONG_CHARS
    budget_s, inner_s = (BUDGET_S, CODE_BUDGET_S) if is_long else (SHORT_BUDGET_S, SHORT_CODE_S)
    return read_code(text, context.language, Around(context.home, context.cwd, clock, budget_s, inner_s))

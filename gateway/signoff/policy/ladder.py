"""The ladder: one table of steps, and the first that has an answer gives it."""

import time
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec.structs import replace

from signoff.policy import deny, floors, windows
from signoff.policy.floors import OwnFacts
from signoff.policy.paths import PathFacts
from signoff.policy.shell import UNKNOWN, Script, read_shell
from signoff.policy.shell.deadline import Deadline, GivenUpError
from signoff.policy.shell.machine import TOO_DEEP
from signoff.policy.verdict import Severity, Verdict

Mode = Literal["deny", "approve", "defer"]
ActionKind = Literal["command", "code", "tool", "file_write", "rule", "elicitation"]

JUDGING_BUDGET_S = 0.03
"""The time for comparing what was read with deny rules and floors; with the time for reading it stays below 100 ms."""

MAX_NAME_CHARS = 40
MAX_PROGRAMS = 3
"""As many programs of one command are named; the rest is counted."""
"""The longest name of a tool, file or server in a description."""


class JudgeContext(msgspec.Struct, frozen=True, kw_only=True):
    """What is known around an action.

    `kind` is the session's, None when there is no session at all. `attended` says whether somebody could answer.
    `bypass` is the session's own, `isolated` an attested environment. `own_paths` and `own_pid` are the gateway's
    (absolute paths). `home` and `cwd` are those of the user the command would run as, None where they are not known.
    `language` names the language of a code action.
    """

    shell: str | None = None
    kind: str | None = None
    attended: bool = False
    mode: Literal["manual", "off"] = "manual"
    bypass: bool = False
    isolated: bool = False
    cron_mode: Mode = "deny"
    unattended_mode: Mode = "deny"
    single_query_mode: Mode = "deny"
    deny: tuple[str, ...] = ()
    own_paths: tuple[str, ...] = ()
    own_pid: int | None = None
    home: str | None = None
    cwd: str | None = None
    language: str = ""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One action as the rungs see it: its kind, text and context, and for commands what was read from the text."""

    action_kind: ActionKind
    text: str
    context: JudgeContext
    script: Script
    deadline: Deadline


class Rung(msgspec.Struct, frozen=True):
    """One step of the ladder; its function answers None to pass the action on."""

    name: str
    decide: Callable[[Subject], Verdict | None]


def judge(
    action_kind: ActionKind, text: str, context: JudgeContext, *, clock: Callable[[], float] = time.thread_time
) -> Verdict:
    """Judge one action.

    `text` is the command, the code, the name of a tool, the path of a file, the key of a plugin's rule or the name of
    the server that asks. Never raises on any text; `clock` bounds the time a command is read.
    """
    try:
        script = _read(text, context, clock) if action_kind == "command" else Script()
    except (RecursionError, MemoryError):
        script = Script(problems=(TOO_DEEP,))
    subject = Subject(
        action_kind=action_kind, text=text, context=context, script=script, deadline=Deadline(clock, JUDGING_BUDGET_S)
    )
    for rung in LADDER:
        try:
            verdict = rung.decide(subject)
        except GivenUpError as error:
            subject = _with_problem(subject, error.reason)
            continue
        except (RecursionError, MemoryError):
            subject = _with_problem(subject, TOO_DEEP)
            continue
        if verdict is not None:
            return verdict
    return _person(subject)


def _with_problem(subject: Subject, problem: str) -> Subject:
    """The subject after a step gave up: what that step would have found may be there, so no bypass may allow it."""
    problems = tuple(dict.fromkeys((*subject.script.problems, problem)))
    return replace(subject, script=replace(subject.script, problems=problems))


def _read(text: str, context: JudgeContext, clock: Callable[[], float]) -> Script:
    if context.shell in windows.SHELLS:
        return windows.read(text, context.shell)
    return read_shell(text, home=context.home, cwd=context.cwd, clock=clock)


def _deny_rules(subject: Subject) -> Verdict | None:
    if subject.action_kind != "command":
        return None
    found = deny.find(subject.context.deny, subject.script, subject.text, subject.deadline)
    if found is None:
        return None
    rule, command = found
    return Verdict(
        verdict="block",
        rule_keys=(f"deny:{rule}",),
        description=f"is forbidden by the deny rule {rule}",
        severity="high",
        why=(f"The deny rule `{rule}` fits `{_short(command)}`.",),
        rung="deny",
        setting="approvals.deny",
    )


def _isolated(subject: Subject) -> Verdict | None:
    # Where deny rules exist, a text that could not be read may hide what they forbid.
    if not subject.context.isolated or (subject.context.deny and subject.script.problems):
        return None
    return _allowed(subject, "isolated", "It runs in an isolated environment that was attested.")


def _floors(subject: Subject) -> Verdict | None:
    context = subject.context
    facts = OwnFacts(paths=PathFacts(home=context.home, own=context.own_paths), pid=context.own_pid)
    hit: floors.Hit | None
    if subject.action_kind == "file_write":
        hit = floors.own_file(subject.text, context.cwd, facts)
    elif subject.action_kind != "command":
        return None
    elif context.shell in windows.SHELLS:
        hit = windows.find(subject.script, facts, subject.deadline)
    else:
        hit = floors.find(subject.script, facts, subject.deadline) or _carried_windows(subject, facts)
    if hit is None:
        return None
    return Verdict(
        verdict="block",
        rule_keys=(hit.key,),
        description=hit.description,
        severity="critical",
        why=(f"`{_short(hit.command)}` {hit.description}. Nobody can approve that.",),
        rung="floor",
    )


def _carried_windows(subject: Subject, facts: OwnFacts) -> floors.Hit | None:
    """Floors in the text that a POSIX shell hands to cmd or PowerShell."""
    for command in subject.script.commands:
        carried = windows.carried_text([word.text for word in command.words]) if command.words else None
        hit = windows.find(windows.read(*carried), facts, subject.deadline) if carried else None
        if hit is not None:
            return hit
    return None


def _bypass(subject: Subject) -> Verdict | None:
    # A text that could not be read may hide a floor, and a bypass does not reach below the floors.
    if subject.script.problems:
        return None
    if subject.context.mode == "off":
        reason = "Approvals are switched off (approvals.mode)."
        return _allowed(subject, "mode_off", reason, setting="approvals.mode")
    return _allowed(subject, "bypass", "Approvals are bypassed in this session.") if subject.context.bypass else None


def _nobody(subject: Subject) -> Verdict | None:
    context = subject.context
    if context.kind is not None and context.attended and context.kind not in {"single_query", "cron", "webhook"}:
        return None
    setting, mode = _unattended_setting(context)
    if mode == "approve" and not subject.script.problems:
        return _allowed(subject, "nobody", f"Nobody is there to ask, and {setting} is approve.", setting=setting)
    description, severity = describe(subject)
    return Verdict(
        verdict="block",
        description=description,
        severity=severity,
        why=(_unattended_reason(subject, setting, mode), *_problem_lines(subject.script)),
        rung="nobody",
        setting=setting,
    )


def _unattended_setting(context: JudgeContext) -> tuple[str, Mode]:
    if context.kind == "single_query":
        return "approvals.single_query_mode", context.single_query_mode
    if context.kind == "cron":
        return "approvals.cron_mode", context.cron_mode
    if context.kind is None:
        return "approvals.unattended_mode", "deny"
    return "approvals.unattended_mode", context.unattended_mode


def _unattended_reason(subject: Subject, setting: str, mode: Mode) -> str:
    if subject.context.kind is None:
        return f"It belongs to no session, so nobody can be asked ({setting})."
    if mode == "defer":
        return f'{setting} = "defer" needs a registered executor for {subject.action_kind} actions, and there is none.'
    if mode == "approve":
        return f"Nobody is there to ask, and {setting} approves only what can be read."
    return f"Nobody is there to ask, and {setting} is deny."


def _person(subject: Subject) -> Verdict:
    description, severity = describe(subject)
    return Verdict(
        verdict="ask",
        description=description,
        severity=severity,
        why=_problem_lines(subject.script),
        rung="person",
    )


def _allowed(subject: Subject, rung: str, reason: str, *, setting: str | None = None) -> Verdict:
    description, severity = describe(subject)
    return Verdict(
        verdict="allow", description=description, severity=severity, why=(reason,), rung=rung, setting=setting
    )


def describe(subject: Subject) -> tuple[str, Severity]:
    """The sentence and the severity of an action that no rule spoke about."""
    text = subject.text
    if subject.action_kind == "command":
        return _describe_command(subject.script)
    if subject.action_kind == "code":
        language = {"python": "Python", "javascript": "JavaScript"}.get(subject.context.language.casefold())
        name = language or _short(subject.context.language, MAX_NAME_CHARS)
        lines = len(text.splitlines())
        return f"runs {name} code, {lines} lines".replace("  ", " ").replace(", 1 lines", ", 1 line"), "medium"
    if subject.action_kind == "tool":
        return f"calls tool {_short(text, MAX_NAME_CHARS)}", "medium"
    if subject.action_kind == "file_write":
        return f"changes {_short(text, MAX_NAME_CHARS)}", "high"
    if subject.action_kind == "rule":
        return f"plugin rule {_short(text, MAX_NAME_CHARS)} asks", "medium"
    return f"answers a question from {_short(text, MAX_NAME_CHARS)}", "medium"


def _describe_command(script: Script) -> tuple[str, Severity]:
    if script.problems:
        return f"cannot be understood: {script.problems[0]}", "high"
    if script.opaque:
        what = script.opaque[0]
        if what == "the program":
            return "cannot be understood: the program is only known when it runs", "high"
        return f"cannot be understood: {_short(what, MAX_NAME_CHARS)} runs text that is only known then", "high"
    names = [command.words[0].text for command in script.commands if command.words]
    if not names:
        return "runs no program", "low"
    programs = list(dict.fromkeys(name.rpartition("/")[2] or name for name in names))
    listed = ", ".join(_short(name, MAX_NAME_CHARS) for name in programs[:MAX_PROGRAMS])
    more = len(programs) - MAX_PROGRAMS
    return f"runs {listed} and {more} more" if more > 0 else f"runs {listed}", "medium"


def _problem_lines(script: Script) -> tuple[str, ...]:
    return tuple(f"The text cannot be understood: {problem}." for problem in script.problems)


def _short(text: str, limit: int = 120) -> str:
    plain = " ".join(text.replace(UNKNOWN, "…").split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


LADDER: tuple[Rung, ...] = (
    Rung("deny", _deny_rules),
    Rung("isolated", _isolated),
    Rung("floor", _floors),
    Rung("bypass", _bypass),
    Rung("nobody", _nobody),
    Rung("person", _person),
)
"""The steps in order. A deny rule of the operator stands above everything, a floor above every bypass."""

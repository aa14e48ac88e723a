"""The ladder: one table of steps, and the first that has an answer gives it.

Three more stand before the last: standing approvals, then a person's denial of the same action moments ago, for which
what is stored is needed, and the automatic reviewer. They are taken where a question is inserted, by what a verdict
says of itself: only one that asks gets there, and `coverage`, `once_only` and `reviewable` say what may answer it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from signoff.policy import deny, floors, windows
from signoff.policy.contexts import ActionKind, JudgeContext, Mode, Subject, read
from signoff.policy.describing import (
    MAX_FILES,
    MAX_NAME_CHARS,
    describe,
    protected_file,
    reach,
    reasons,
    rule_keys,
    short,
)
from signoff.policy.protected import PROTECTED_KEY, fits_some
from signoff.policy.ruleset import shipped
from signoff.policy.scripts import unread_file
from signoff.policy.shell.deadline import GivenUpError
from signoff.policy.shell.machine import TOO_DEEP
from signoff.policy.verdict import Verdict
from signoff.policy.windows_posix import as_posix

TOOL_GATE = "approvals.tool_gate.require_approval"
"""The setting that names the tools of the gate."""
FORBIDDING = ("deny", "floor")
"""The steps that nobody can approve past."""
MAX_ALLOWING = 8
"""As many of the rules that allowed a script are named."""


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
    subject = read(action_kind, text, context, clock)
    return _first(LADDER, subject) or _person(subject)


def forbidden(
    action_kind: ActionKind, text: str, context: JudgeContext, *, clock: Callable[[], float] = time.thread_time
) -> Verdict | None:
    """What a deny rule or a floor says against an action, wherever it is run; None where neither forbids it."""
    subject = read(action_kind, text, context, clock)
    return _first(tuple(rung for rung in LADDER if rung.name in FORBIDDING), subject)


def step(rung: Rung, subject: Subject) -> Verdict | None:
    """What one rung says; None where it passes the action on. One that gives up leaves a doubt behind."""
    return _first((rung,), subject)


def _first(rungs: tuple[Rung, ...], subject: Subject) -> Verdict | None:
    """What the first of them says that says something."""
    for rung in rungs:
        try:
            verdict = rung.decide(subject)
        except GivenUpError as error:
            subject.doubt(error.reason)
        except (RecursionError, MemoryError):
            subject.doubt(TOO_DEEP)
        else:
            if verdict is not None:
                return verdict
    return None


def _deny_rules(subject: Subject) -> Verdict | None:
    """What the operator forbids: texts of commands, and rules of their own."""
    if subject.action_kind not in {"command", "code"}:
        return None
    # Of code that is for no shell only the commands that it starts are looked at: its own text is no command.
    text = subject.text if subject.shell else ""
    found = None
    if subject.context.deny and (text or subject.script.commands):
        options_of = (subject.context.rules or shipped()).options_of
        found = deny.find(subject.context.deny, subject.script, text, subject.deadline, options_of)
    if found is None:
        return _blocked_by_rule(subject, own=True) if subject.context.own_blocks else None
    rule, hit = found
    return Verdict(
        verdict="block",
        rule_keys=(f"deny:{rule}",),
        description=f"is forbidden by the deny rule {rule}",
        severity="high",
        why=(f"The deny rule `{rule}` fits `{short(hit)}`.",),
        rung="deny",
        setting="approvals.deny",
    )


def _isolated(subject: Subject) -> Verdict | None:
    # An environment bounds what runs inside of it. Tools, servers' questions, plugin rules and file writes are carried
    # out by whoever calls, and reach as far as they would without it.
    if not subject.context.isolated or subject.action_kind not in {"command", "code"}:
        return None
    # Where the operator forbids something, a text that could not be read may hide it.
    if subject.unread and (subject.context.deny or subject.context.own_blocks):
        return None
    return _allowed(subject, "isolated", "It runs in an isolated environment that was attested.")


def _floors(subject: Subject) -> Verdict | None:
    """What nobody may allow: the end of the host or of this gateway."""
    facts = subject.facts
    hit: floors.Hit | None
    if subject.action_kind == "file_write":
        touched = (subject.text, *subject.context.files)
        hits = (floors.own_file(path, subject.context.cwd, facts) for path in touched)
        hit = next((each for each in hits if each is not None), None)
    elif subject.action_kind not in {"command", "code"}:
        return None
    elif subject.windows:
        hit = windows.find(subject.script, facts, subject.deadline)
        if hit is None and subject.finds_posix:
            hit = floors.find(as_posix(subject.script, facts.paths), facts, subject.deadline)
    else:
        hit = floors.find(subject.script, facts, subject.deadline) or _carried_windows(subject)
    if hit is None:
        return _blocked_by_rule(subject, own=False)
    return Verdict(
        verdict="block",
        rule_keys=(hit.key,),
        description=hit.description,
        severity="critical",
        why=(f"`{short(hit.command)}` {hit.description}. Nobody can approve that.",),
        rung="floor",
    )


def _carried_windows(subject: Subject) -> floors.Hit | None:
    """Floors in the text that a POSIX shell hands to cmd or PowerShell."""
    for command in subject.script.commands:
        if not command.words or not windows.may_carry(command.words[0].text):
            continue
        carried = windows.carried_text([word.text for word in command.words])
        script = windows.read(*carried, subject.deadline) if carried else None
        subject.deadline.check()  # what could not be read in time may hold one
        hit = windows.find(script, subject.facts, subject.deadline) if script else None
        if hit is not None:
            return hit
    return None


def _blocked_by_rule(subject: Subject, *, own: bool) -> Verdict | None:
    """A row that blocks: the operator's own stand with the deny rules, those of the package with the floors."""
    found = subject.found
    if found is None or found.verdict != "block":
        return None
    hits = [each for each in found.fired if each.rule.verdict == "block"]
    if own:
        hits = [each for each in hits if each.rule in subject.context.own_blocks]
    if not hits:
        return None
    rule = hits[0].rule
    return Verdict(
        verdict="block",
        rule_keys=tuple(dict.fromkeys(each.rule.key for each in hits)),
        description=rule.sentence,
        severity=rule.severity,
        why=tuple(dict.fromkeys(f"`{short(each.text)}` {each.rule.sentence}. (rule {each.rule.key})" for each in hits)),
        rung="deny" if own else "floor",
    )


def _one_protected(subject: Subject) -> str | None:
    """The protected file that is changed, and why it is one; so many files that one of them may be."""
    files, some = subject.context.files, subject.context.protect_instructions or subject.context.protected_files
    if len(files) > MAX_FILES and some:
        return f"`{short(subject.text)}` and {len(files):,} files in one change are more than are looked at"
    hit = next((path for path in (subject.text, *files[:MAX_FILES]) if protected_file(subject, path)), None)
    if hit is None:
        return None
    own = fits_some(hit, subject.context.protected_files)
    return f"`{short(hit)}` {'is one of approvals.protected_files' if own else 'tells agents how to behave'}"


def _protected(subject: Subject) -> Verdict | None:
    """Files that tell agents how to behave: each change is asked for, whatever is bypassed or granted."""
    if subject.action_kind != "file_write":
        return None
    found = _one_protected(subject)
    if found is None:
        return None
    description, severity = describe(subject)
    if subject.context.somebody:
        return Verdict(
            verdict="ask",
            rule_keys=(PROTECTED_KEY,),
            description=description,
            severity=severity,
            why=(f"{found}, so each change of it is asked for.",),
            rung="protected",
            once_only=True,
        )
    return Verdict(
        verdict="block",
        rule_keys=(PROTECTED_KEY,),
        description=description,
        severity=severity,
        why=(f"{found}, and nobody can be asked.",),
        rung="protected",
    )


def _bypass(subject: Subject) -> Verdict | None:
    # A text that could not be read may hide a floor, and a bypass does not reach below the floors. What a server asks
    # to be told, only a person can say.
    if subject.unread or subject.context.fields:
        return None
    if subject.context.mode == "off":
        reason = "Approvals are switched off (approvals.mode)."
        return _allowed(subject, "mode_off", reason, setting="approvals.mode")
    if not subject.context.bypass:
        return None
    words = subject.context.bypass_words
    told = f" ({words})" if words else ""
    return _allowed(subject, "bypass", f"Nothing is asked in this session{told}.", setting=words or None)


def _allowlist(subject: Subject) -> Verdict | None:
    context = subject.context
    if subject.action_kind != "command" or context.windows or context.env or not subject.read_as_meant:
        return None
    entry = context.allowlist.find(subject.text, subject.script, attended=context.somebody)
    if entry is None:
        return None
    reason = f"The allowlist has `{short(entry)}`."
    return _allowed(subject, "allowlist", reason, keys=(f"allowlist:{short(entry)}",))


def _rules(subject: Subject) -> Verdict | None:
    if subject.action_kind != "command" or not subject.understood or not subject.read_as_meant:
        return None
    found = subject.found
    if found is None or found.verdict != "allow" or subject.script.problems:
        return None
    keys = tuple(dict.fromkeys([each.rule.key for each in found.allowed]))[:MAX_ALLOWING]
    return _allowed(subject, "rules", "Rules allow every command in it.", keys=keys)


def _tool_gate(subject: Subject) -> Verdict | None:
    """Calls of tools that the operator wants approved: asked about where somebody is there and that is allowed, else
    kept, whatever the session's own setting says of actions in general."""
    context = subject.context
    if subject.action_kind != "tool" or not context.tool_gate:
        return None
    if context.tool_gate == "inline" and context.somebody:
        return None
    wanted = "Nobody is there to ask" if context.tool_gate == "inline" else "It is kept for a later yes"
    if context.can_stage:
        reason = f"{wanted}; a person decides later (approvals.tool_gate)."
        # A job's own setting stands above what was granted; naming a tool must not let it run where it would not.
        alone = not context.somebody and _unattended_setting(context)[1] != "approve"
        return msgspec.structs.replace(_staged(subject, "tool_gate", TOOL_GATE, reason), once_only=alone)
    description, severity = describe(subject)
    return Verdict(
        verdict="block",
        description=description,
        severity=severity,
        why=(f"{wanted}, but that needs a registered executor for {_runnable(subject)}, and there is none.",),
        rung="tool_gate",
        setting=TOOL_GATE,
        missing=_runnable(subject),
    )


def _staged(subject: Subject, rung: str, setting: str, reason: str) -> Verdict:
    description, severity = describe(subject)
    label, breadth, coverage = reach(subject) if subject.action_kind == "tool" else ("", "", ())
    return Verdict(
        verdict="stage",
        rule_keys=rule_keys(subject),
        description=description,
        severity=severity,
        why=(reason, *reasons(subject)),
        rung=rung,
        setting=setting,
        label=label,
        breadth=breadth,
        coverage=coverage,
    )


def _nobody(subject: Subject) -> Verdict | None:
    context = subject.context
    if context.somebody:
        return None
    setting, mode = _unattended_setting(context)
    if mode == "defer" and context.can_stage:
        return _staged(subject, "nobody", setting, f"Nobody is there to ask, and {setting} is defer.")
    if mode == "approve" and not subject.unread and not context.fields:
        return _allowed(subject, "nobody", f"Nobody is there to ask, and {setting} is approve.", setting=setting)
    description, severity = describe(subject)
    return Verdict(
        verdict="block",
        rule_keys=rule_keys(subject),
        description=description,
        severity=severity,
        why=(_unattended_reason(subject, setting, mode), *reasons(subject)),
        rung="nobody",
        setting=setting,
        missing=_runnable(subject) if mode == "defer" else "",
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
        return f'{setting} = "defer" needs a registered executor for {_runnable(subject)}, and there is none.'
    if mode == "approve" and subject.context.fields:
        return f"Nobody is there to ask, and {setting} cannot do what the server asks for."
    if mode == "approve":
        return f"Nobody is there to ask, and {setting} approves only what can be read."
    return f"Nobody is there to ask, and {setting} is deny."


def _runnable(subject: Subject) -> str:
    """What an executor would have to be registered for."""
    if subject.action_kind == "tool":
        return f"tool {short(subject.text, MAX_NAME_CHARS)}"
    return f"{subject.action_kind} actions"


def _person(subject: Subject) -> Verdict:
    description, severity = describe(subject)
    keys = rule_keys(subject)
    file = unread_file(subject) if subject.action_kind == "command" else ""
    # What another shell makes of the same words is not known: only this very action in it can be approved.
    exact = bool(file) or not subject.read_as_meant
    label, breadth, coverage = ("", "", ()) if exact else reach(subject)
    return Verdict(
        verdict="ask",
        rule_keys=keys,
        description=description,
        severity=severity,
        why=reasons(subject),
        rung="person",
        label=label,
        breadth=breadth,
        coverage=coverage,
        once_only=bool(file) or subject.action_kind == "elicitation",
        unread_file=file,
        reviewable=(
            subject.action_kind in {"command", "code"}
            and severity != "critical"
            and subject.understood
            and subject.read_as_meant
        ),
    )


def _allowed(
    subject: Subject, rung: str, reason: str, *, setting: str | None = None, keys: tuple[str, ...] = ()
) -> Verdict:
    description, severity = describe(subject)
    return Verdict(
        verdict="allow",
        rule_keys=keys,
        description=description,
        severity=severity,
        why=(reason,),
        rung=rung,
        setting=setting,
    )


LADDER: tuple[Rung, ...] = (
    Rung("deny", _deny_rules),
    Rung("isolated", _isolated),
    Rung("floor", _floors),
    Rung("protected", _protected),
    Rung("bypass", _bypass),
    Rung("allowlist", _allowlist),
    Rung("rules", _rules),
    Rung("tool_gate", _tool_gate),
    Rung("nobody", _nobody),
    Rung("person", _person),
)
"""The steps in order. A deny rule of the operator stands above everything, a floor above every bypass."""

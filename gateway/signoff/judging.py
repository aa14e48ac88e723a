"""From an action and who asks to a verdict: what the ladder is told, and what it is not."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from signoff import gating, routing
from signoff.changes.bypassing import live
from signoff.changes.staging import TakenBack
from signoff.elicitation import needs_somebody
from signoff.model import Action, ApprovalRequest, Code, Command, Elicitation, FileWrite, Rule, Session, Tool, replace
from signoff.policy import ActionKind, JudgeContext, Verdict, forbidden, judge
from signoff.policy.protected import files_of
from signoff.settings import AgentSettings, Profile
from signoff.wording import bypass_words

HOME = str(Path.home())
"""What `~` stands for when a path may be the gateway's own: agents on this machine run for the same user."""


UNATTENDED_SETTING = "approvals.unattended_mode"
NO_CONTEXT_SETTING = "no_context"
"""The argument of `Gateway` that says what becomes of a question outside of any session."""
UNATTENDED_KINDS = frozenset({"cron", "webhook", "worker"})
"""An agent is trusted to act with nobody there once an operator lets it declare one of these."""


def judge_action(
    action: Action,
    profile: Profile,
    agent: AgentSettings,
    session: Session,
    root: Session,
    *,
    attended: bool,
    now: datetime,
    no_context: Literal["deny", "approve"] | None = None,
) -> Verdict:
    """The ladder's verdict for this action in this session. Facts that lower a verdict come from the registration.

    `no_context` is what the embedding program wants of a question outside of any session, where nobody can be asked.
    """
    context, withheld = context_of(action, profile, agent, session, root, attended=attended, now=now)
    if no_context is not None:
        context = replace(context, attended=False, bypass=False, unattended_mode=no_context)
        return _outside(judge(kind_of(action), judged_text(action), context), no_context)
    return told_why(judge(kind_of(action), judged_text(action), context), profile, withheld)


def kind_of(action: Action) -> ActionKind:
    """The word of the ladder for this kind of action."""
    return action.__struct_config__.tag  # type: ignore[return-value]  # the tags are the kinds


def context_of(
    action: Action,
    profile: Profile,
    agent: AgentSettings,
    session: Session,
    root: Session,
    *,
    attended: bool,
    now: datetime,
) -> tuple[JudgeContext, str | None]:
    """What the ladder is told around this action, and why `unattended_mode` does not speak for the session, or None."""
    unattended_mode = profile.approvals.unattended_mode
    withheld = _withheld(agent, session, root) if unattended_mode == "approve" or root.kind == "child" else None
    context = JudgeContext(
        kind=root.kind,
        attended=attended,
        mode="off" if profile.approvals.mode == "off" else "manual",
        bypass=live(profile, session, root, now),
        bypass_words=bypass_words(session),
        isolated=agent.isolation is not None,
        cron_mode=profile.approvals.cron_mode,
        unattended_mode=unattended_mode if withheld is None else "deny",
        single_query_mode=profile.approvals.single_query_mode,
        allowlist=profile.allowlist,
        tool_gate=gating.gate_mode(profile.approvals.tool_gate, action.name) if isinstance(action, Tool) else "",
        can_stage=gating.executor_for(profile, action) is not None,
        **_bounds(action, profile),
    )
    return context, withheld


def _bounds(action: Action, profile: Profile) -> dict[str, Any]:
    """What the rules are told of an action, whoever asks and wherever."""
    return {
        "shell": action.shell if isinstance(action, Command) else None,
        "cwd": _folder(action),
        "home": HOME,
        "language": action.language if isinstance(action, Code) else "",
        "deny": profile.approvals.deny,
        "rules": profile.rules,
        "unknown_commands": profile.approvals.unknown_commands,
        "protect_instructions": profile.approvals.protect_instructions,
        "protected_files": profile.approvals.protected_files,
        "own_paths": profile.own_paths,
        "own_pid": profile.own_pid,
        **_around(action),
    }


def taken_back(row: ApprovalRequest, profile: Profile) -> TakenBack | None:
    """Why a kept action is not to be run by what is set now, long after it was judged: a deny rule or a floor forbids
    it, or its executor is registered for something else. None where it may run."""
    executor = profile.executors.get(row.executor or "")
    if executor is None or not gating.runs(executor, row.action):
        return "executor_changed"
    context = JudgeContext(**_bounds(row.action, profile))
    found = forbidden(kind_of(row.action), judged_text(row.action), context)
    return None if found is None else "forbidden_now"


def _outside(verdict: Verdict, no_context: str) -> Verdict:
    """The verdict on a question outside of any session: what no rule decides, the embedding program's argument does."""
    if verdict.setting != UNATTENDED_SETTING:
        return verdict
    why = ("It was asked outside of any session, so nobody can be asked.", *verdict.why[1:])
    return replace(verdict, setting=f'{NO_CONTEXT_SETTING} = "{no_context}"', why=why)


def told_why(verdict: Verdict, profile: Profile, withheld: str | None) -> Verdict:
    """The verdict, with the reason where a setting would have spoken for the session and was withheld, or needs an
    executor that is not there."""
    if verdict.missing:
        setting = routing.setting_value(profile, verdict.setting)
        return replace(verdict, setting=f"{setting} (no executor is registered for {verdict.missing})")
    if withheld is None or verdict.setting != UNATTENDED_SETTING:
        return verdict
    setting = f'{UNATTENDED_SETTING} = "{profile.approvals.unattended_mode}" ({withheld})'
    return replace(verdict, setting=setting, why=(f"Nobody is there to ask, and {withheld}.", *verdict.why[1:]))


def _withheld(agent: AgentSettings, session: Session, root: Session) -> str | None:
    """Why `unattended_mode = "approve"` does not speak for this session; None where it does.

    Otherwise an agent that may not declare an unattended kind would get its approvals by leaving out the place.
    """
    if root.kind == "child":
        return "no session above it can be found that a person answers for"
    if session.agent is None or UNATTENDED_KINDS & set(agent.kinds):
        return None
    return f"agents.{session.agent}.kinds holds none of {', '.join(sorted(UNATTENDED_KINDS))}"


def _around(action: Action) -> dict[str, Any]:
    """What stands around the judged text: a command's environment and reviewed files, the files that a change names."""
    if isinstance(action, Command):
        env = tuple(sorted((action.env or {}).items()))
        return {"env": env, "reviewed": tuple(operand.path for operand in action.operands)}
    if isinstance(action, FileWrite) and action.diff is not None:
        return {"files": files_of(action.diff)}
    return {"fields": True} if needs_somebody(action) else {}


def _folder(action: Action) -> str | None:
    """The folder an action runs in, where it is known whole."""
    cwd = action.cwd if isinstance(action, Command | Code) else None
    return cwd if cwd is not None and cwd.startswith("/") else None


def judged_text(action: Action) -> str:
    """The text of an action that is judged: the command, the script, the tool's or file's name."""
    if isinstance(action, Command):
        return action.command
    if isinstance(action, Code):
        return action.code
    if isinstance(action, Tool):
        return action.name
    if isinstance(action, FileWrite):
        return action.path
    if isinstance(action, Elicitation):
        return action.server
    assert isinstance(action, Rule)  # noqa: S101  # the union is closed
    return action.rule_key

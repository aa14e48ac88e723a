"""Typed settings of one profile, as the core reads them. Where they come from is `config.py`'s business."""

from __future__ import annotations

from typing import Any, Literal, get_args

from msgspec import Struct

from signoff.model import Destination, SessionKind
from signoff.policy.allow import NOTHING, Allowlist
from signoff.policy.ruleset import RuleSet
from signoff.policy.unknown import UnknownCommands

UnattendedMode = Literal["deny", "approve", "defer"]
StagedKind = Literal["command", "code", "file_write"]
STAGED_KINDS: tuple[StagedKind, ...] = get_args(StagedKind)
HookName = Literal["pre_approval_request", "post_approval_response", "agent_end"]
HOOK_NAMES: tuple[HookName, ...] = get_args(HookName)
YEAR_S = 365 * 86400.0
"""No window is longer: every number stays one that a timer can take."""


class SmartSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`approvals.smart.*`: the automatic reviewer's endpoint."""

    base_url: str = ""
    """The endpoint up to and without `/chat/completions`."""
    model: str = ""
    api_key: str = ""
    timeout_s: float = 30.0


class ToolGateSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`approvals.tool_gate.*`: which calls of tools need a person, and when that person is asked. Off by default."""

    require_approval: tuple[str, ...] = ()
    """Names of tools, or patterns of names; empty: the gate is off."""
    default_mode: Literal["inline", "deferred"] = "inline"
    force_deferred: tuple[str, ...] = ()
    """Those that are always kept for a later yes."""
    allow_inline: tuple[str, ...] = ()
    """Those that are asked about at once, where somebody can answer, whatever `default_mode` says."""
    pending_ttl_hours: float = 72.0


class ApprovalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`approvals.*`."""

    mode: Literal["manual", "smart", "off"] = "manual"
    timeout_s: float = 300.0
    max_timeout_s: float = 86400.0
    allow_no_deadline: bool = False
    claim_within_s: float = 300.0
    cron_mode: UnattendedMode = "deny"
    unattended_mode: UnattendedMode = "deny"
    single_query_mode: UnattendedMode = "deny"
    deny: tuple[str, ...] = ()
    protect_instructions: bool = True
    protected_files: tuple[str, ...] = ()
    unknown_commands: UnknownCommands = "verbs"
    loose_words: bool = False
    smart: SmartSettings = SmartSettings()
    also_to: tuple[Destination, ...] = ()
    fallback_destination: Destination | None = None
    staged_destination: Destination | None = None
    tool_gate: ToolGateSettings = ToolGateSettings()


class GrantSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`grants.*`: which answers a card offers for a kind of action."""

    command: tuple[str, ...] = ("once", "session", "always", "deny")
    code: tuple[str, ...] = ("once", "session", "always", "deny")
    tool: tuple[str, ...] = ("once", "session", "always", "deny")


class SessionSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`sessions.*`: when a session starts anew by itself."""

    idle_expires_s: float | None = None
    """After so long without use; None: never."""
    daily_reset_at: str | None = None
    """Each day at this time, `HH:MM`; None: never."""
    time_zone: str = "UTC"
    """Whose clock `daily_reset_at` goes by."""


class AgentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`agents.<name>.*`: what a registered caller may do. The defaults are those of an unregistered key."""

    kinds: tuple[SessionKind, ...] = ("api", "chat")
    destinations: tuple[str, ...] | None = None
    """Destinations or `platform` names it may ask in; None: any place on the profile's platforms."""
    acts_for: str | None = None
    isolation: str | None = None


class PrincipalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`principals.<name>.*`: one person behind several chat accounts."""

    accounts: tuple[str, ...] = ()
    """`platform:user_id` each."""


class HookSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`hooks.<name>.*`: somebody elsewhere who is told by signed webhooks."""

    url: str = ""
    secret: str = ""
    """`whsec_` and the key in base64."""
    events: tuple[HookName, ...] = HOOK_NAMES


class ExecutorSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`executors.<name>.*`: who runs kept actions. One of a program of its own has neither `command` nor `url`."""

    tools: tuple[str, ...] = ()
    """Names of tools, or patterns of names."""
    kinds: tuple[StagedKind, ...] = ()
    """Kinds of actions beside tool calls."""
    command: tuple[str, ...] = ()
    """A program and its arguments; it reads the action as JSON on its standard input."""
    url: str = ""
    secret: str = ""
    """`whsec_` and the key in base64, which signs what is posted to `url`."""
    timeout_s: float = 300.0


class Profile(Struct, frozen=True, kw_only=True):
    """One isolated tenant."""

    name: str = "default"
    approvals: ApprovalSettings = ApprovalSettings()
    grants: GrantSettings = GrantSettings()
    sessions: SessionSettings = SessionSettings()
    agents: dict[str, AgentSettings] = {}
    principals: dict[str, PrincipalSettings] = {}
    hooks: dict[str, HookSettings] = {}
    executors: dict[str, ExecutorSettings] = {}
    rules: RuleSet | None = None
    """The rules with the operator's own; None: those that come with the package."""
    allowlist: Allowlist = NOTHING
    """What runs without being asked."""
    platforms: dict[str, dict[str, Any]] = {}
    """Each platform's own settings without `approvers`."""
    approvers: dict[str, tuple[str, ...]] = {}
    """Per platform: user ids, `role:`/`group:` ids, or principals. Empty: nobody decides there."""
    own_paths: tuple[str, ...] = ()
    """Files and folders of the gateway itself, which no action may touch."""
    own_pid: int | None = None

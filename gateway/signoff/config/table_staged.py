"""The settings of kept actions and of the tool gate, as rows of the table: name, what may stand there, what it does."""

from __future__ import annotations

from typing import Any

from signoff.config import checks
from signoff.settings import STAGED_KINDS, ApprovalSettings, ExecutorSettings

_GATE = ApprovalSettings().tool_gate
_EXECUTOR = ExecutorSettings()
_MANY_TOOLS = checks.many(checks.text, '["send_email", "calendar_*"]')

STAGED: tuple[dict[str, Any], ...] = (
    {
        "name": "approvals.staged_destination",
        "doc": "The place for the cards of kept actions, `platform:chat[/thread]`. Without it they go to "
        "`approvals.fallback_destination`; without that, they stand in the console and in `signoff actions`.",
        "check": checks.destination,
        "default_text": "none",
    },
    {
        "name": "approvals.tool_gate.require_approval",
        "doc": "Tools whose calls need a person, by their exact names or by patterns in which `*`, `?` and `[…]` are "
        "special. Empty: the tool gate is off.",
        "check": _MANY_TOOLS,
        "shape": "list",
        "default": _GATE.require_approval,
    },
    {
        "name": "approvals.tool_gate.default_mode",
        "doc": "`inline` asks at once where somebody can answer, and the agent waits; `deferred` keeps the call for a "
        "later yes, and the agent goes on without its result. Where nobody can answer, calls are kept in both.",
        "check": checks.one_of("inline", "deferred"),
        "default": _GATE.default_mode,
    },
    {
        "name": "approvals.tool_gate.force_deferred",
        "doc": "Tools of the gate that are always kept for a later yes; names or patterns.",
        "check": _MANY_TOOLS,
        "shape": "list",
        "default": _GATE.force_deferred,
    },
    {
        "name": "approvals.tool_gate.allow_inline",
        "doc": "Tools of the gate that are asked about at once where somebody can answer, also under "
        '`default_mode = "deferred"`; names or patterns. `force_deferred` stands above it.',
        "check": _MANY_TOOLS,
        "shape": "list",
        "default": _GATE.allow_inline,
    },
    {
        "name": "approvals.tool_gate.pending_ttl_hours",
        "doc": "How long a kept action waits for an answer; then it is not run.",
        "check": checks.hours(1 / 60, 8760),
        "shape": "number",
        "default": _GATE.pending_ttl_hours,
        "unit": "hours",
    },
    {
        "name": "executors.<name>.tools",
        "doc": "The tools whose kept calls this executor runs; names or patterns.",
        "check": _MANY_TOOLS,
        "shape": "list",
        "default": _EXECUTOR.tools,
    },
    {
        "name": "executors.<name>.kinds",
        "doc": "The other kinds of kept actions that this executor runs: `command`, `code`, `file_write`.",
        "check": checks.many(checks.one_of(*STAGED_KINDS), '["command"]'),
        "shape": "list",
        "default": _EXECUTOR.kinds,
    },
    {
        "name": "executors.<name>.command",
        "doc": "The program that runs an approved action, and its arguments. It is started without a shell and reads "
        "the action as JSON on its standard input.",
        "check": checks.argv,
        "shape": "list",
        "default_text": "none; `command` or `url` is needed",
    },
    {
        "name": "executors.<name>.url",
        "doc": "Where an approved action is posted as signed JSON: `https`, or `http` on this machine.",
        "check": checks.hook_address,
        "default_text": "none; `command` or `url` is needed",
    },
    {
        "name": "executors.<name>.secret",
        "doc": "The secret that signs what is posted to `url`: `whsec_` and 24 to 64 bytes in base64.",
        "check": checks.hook_secret,
        "default_text": "none; needed with `url`",
        "secret": True,
    },
    {
        "name": "executors.<name>.timeout_s",
        "doc": "How long a run may take. One that takes longer is stopped, and counts as unknown.",
        "check": checks.seconds(1, 86400),
        "shape": "number",
        "default": _EXECUTOR.timeout_s,
        "unit": "seconds",
    },
)
"""What `table.PROFILE` makes settings of."""

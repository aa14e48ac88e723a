"""Which calls of tools need a person and when that person is asked, and who could run an action later. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from signoff.model import Action, Code, Command, FileWrite, Tool
from signoff.settings import ExecutorSettings, Profile, ToolGateSettings

GateMode = Literal["", "inline", "deferred"]
"""What the tool gate wants of a call: nothing, a question now, or to keep it for a later yes."""


def named(patterns: Iterable[str], tool: str) -> bool:
    """Whether a tool's name is among these names and patterns, in which `*`, `?` and `[…]` are special. Case counts."""
    return any(pattern == tool or fnmatchcase(tool, pattern) for pattern in patterns)


def gate_mode(settings: ToolGateSettings, tool: str) -> GateMode:
    """What the tool gate wants of a call of this tool."""
    if not settings.require_approval or not named(settings.require_approval, tool):
        return ""
    if named(settings.force_deferred, tool):
        return "deferred"
    return "inline" if named(settings.allow_inline, tool) else settings.default_mode


def executor_for(profile: Profile, action: Action) -> str | None:
    """The name of the executor that would run a kept action, or None where none is registered for it."""
    return next((name for name, executor in profile.executors.items() if runs(executor, action)), None)


def runs(executor: ExecutorSettings, action: Action) -> bool:
    """Whether an executor is registered for this action."""
    if isinstance(action, Tool):
        return named(executor.tools, action.name)
    if isinstance(action, Command | Code | FileWrite):
        return action.__struct_config__.tag in executor.kinds
    return False  # a question of a server, or a rule about a call, is nothing that could be run

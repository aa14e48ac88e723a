"""Every test here starts with nothing bound and an environment that says nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from signoff import context

STALE = {
    "SIGNOFF_PROFILE": "stale",
    "SIGNOFF_SESSION_ID": "stale-session",
    "SIGNOFF_TURN_ID": "stale-turn",
    "SIGNOFF_TOOL_CALL_ID": "stale-call",
    "SIGNOFF_SESSION_KIND": "chat",
    "SIGNOFF_DESTINATION": "fake:666",
    "SIGNOFF_USER_ID": "stale-user",
    "SIGNOFF_PARENT_SESSION": "stale-parent",
    "SIGNOFF_INTERACTIVE": "1",
    "SIGNOFF_ASK": "1",
}
"""An environment in which somebody left every one of the variables."""


@pytest.fixture(autouse=True)
def nothing_bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in context.VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    with context.fresh():
        yield


@pytest.fixture
def stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process's environment holds every variable."""
    for variable, value in STALE.items():
        monkeypatch.setenv(variable, value)

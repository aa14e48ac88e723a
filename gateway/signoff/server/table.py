"""All routes there are. The router, the OpenAPI document and the capabilities are made of this."""

from __future__ import annotations

from signoff.server import (
    events,
    on_about,
    on_actions,
    on_admin,
    on_allowlist,
    on_approvals,
    on_check,
    on_drills,
    on_sessions,
)
from signoff.server.routes import Route

ROUTES: tuple[Route, ...] = (
    *on_about.ROUTES,
    *on_sessions.ROUTES,
    *on_approvals.ROUTES,
    *on_actions.ROUTES,
    *on_check.ROUTES,
    *on_admin.ROUTES,
    *on_allowlist.ROUTES,
    *on_drills.ROUTES,
    *events.ROUTES,
)

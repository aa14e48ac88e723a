"""What the app must be allowed to do, and the manifest by which Slack makes such an app."""

from __future__ import annotations

SCOPES: tuple[str, ...] = (
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "usergroups:read",
    "users:read",
)
"""Of the bot's token. `*:history` brings typed commands in threads and direct chats, `*:read` lets a check-up see
whether the app is in a channel, `users:read` tells guests from members, `usergroups:read` who is in a user group."""
READS_GROUPS = "usergroups:read"
"""Missed only where a user group stands among the approvers."""
EVENTS: tuple[str, ...] = (
    "app_mention",
    "message.channels",
    "message.groups",
    "message.im",
    *(f"{kind}_{end}" for kind in ("channel", "group") for end in ("left", "archive", "deleted")),
)
"""Typed commands, and channels in which nothing can be answered any more."""

_TEMPLATE = """\
display_information:
  name: Signoff
  description: People sign off what agents do
  background_color: "#0b5394"
features:
  app_home:
    home_tab_enabled: false
    messages_tab_enabled: true
    messages_tab_read_only_enabled: false
  bot_user:
    display_name: signoff
    always_online: true
  slash_commands:
    - command: /signoff
      description: Answer, list and stop what agents ask
      usage_hint: "pending, approve [id], deny [id] [reason], stop, help"
      should_escape: false
oauth_config:
  scopes:
    bot:
{scopes}
settings:
  event_subscriptions:
    bot_events:
{events}
  interactivity:
    is_enabled: true
  org_deploy_enabled: false
  socket_mode_enabled: true
  token_rotation_enabled: false
"""


def manifest() -> str:
    """The whole manifest as YAML, to be pasted at api.slack.com/apps."""
    return _TEMPLATE.format(scopes=_items(SCOPES), events=_items(EVENTS))


def _items(names: tuple[str, ...]) -> str:
    return "\n".join(f"      - {name}" for name in names)

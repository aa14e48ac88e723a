"""Every setting, once: its name, meaning, unit and default, and what its value may be."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

from msgspec import Struct

from signoff.config import checks
from signoff.config.checks import Check
from signoff.config.table_staged import STAGED
from signoff.model import SessionKind
from signoff.settings import (
    HOOK_NAMES,
    YEAR_S,
    AgentSettings,
    ApprovalSettings,
    GrantSettings,
    PrincipalSettings,
    SessionSettings,
)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""Names that the operator gives: profiles, agents, principals, hooks."""

_APPROVALS = ApprovalSettings()
_GRANTS = GrantSettings()
_AGENT = AgentSettings()
_CHOICES = checks.choices
_UNATTENDED = checks.one_of("deny", "approve", "defer")
_CHOICE_LIST = '["once", "session", "always", "deny"]'


class Setting(Struct, frozen=True, kw_only=True):
    """One setting. `name` is dotted; `<name>` in it stands for a name that the operator gives."""

    name: str
    doc: str
    check: Check
    shape: Literal["text", "number", "boolean", "list"] = "text"
    default: Any = None
    default_text: str = ""
    """How the default is told where it is no plain value."""
    unit: str = ""
    secret: bool = False
    """`<name>_env` and `<name>_file` work beside it, and its value is never shown."""

    @property
    def path(self) -> tuple[str, ...]:
        """The name in parts."""
        return tuple(self.name.split("."))


def _approval_seconds(name: str, least: float, doc: str) -> Setting:
    return Setting(
        name=f"approvals.{name}",
        doc=doc,
        check=checks.seconds(least, YEAR_S),
        shape="number",
        default=getattr(_APPROVALS, name),
        unit="seconds",
    )


def _unattended(name: str, who: str) -> Setting:
    return Setting(
        name=f"approvals.{name}",
        doc=f"What happens to an action that needs a person {who}, where nobody can be asked: `deny` blocks it, "
        "`approve` lets it run, `defer` keeps it for a later yes where an executor is registered that could run it "
        "then (`executors`), and else blocks it.",
        check=_UNATTENDED,
        default=getattr(_APPROVALS, name),
    )


def _grant(name: str, what: str) -> Setting:
    return Setting(
        name=f"grants.{name}",
        doc=f"The answers that a card about {what} offers; a time box such as `30m` may stand among them.",
        check=_CHOICES,
        shape="list",
        default=getattr(_GRANTS, name),
    )


GATEWAY: tuple[Setting, ...] = (
    Setting(
        name="gateway.host",
        doc="The address the API listens on: a host name or IP address. The API has no TLS of its own, so one that "
        "other machines reach is for a proxy with https.",
        check=checks.host,
        default="127.0.0.1",
    ),
    Setting(
        name="gateway.port",
        doc="The API's TCP port; 0 picks a free one.",
        check=checks.port,
        shape="number",
        default=8787,
    ),
    Setting(
        name="gateway.hooks_host",
        doc="The address the listener for the platforms' webhooks is bound to, apart from the API.",
        check=checks.host,
        default="127.0.0.1",
    ),
    Setting(
        name="gateway.hooks_port",
        doc="The webhook listener's TCP port; 0 picks a free one.",
        check=checks.port,
        shape="number",
        default=8788,
    ),
    Setting(
        name="gateway.hooks_url",
        doc="The public address under which platforms reach the webhook listener; it is what is registered there.",
        check=checks.web_address,
        default_text="the webhook listener's own address",
    ),
    Setting(
        name="gateway.store",
        doc="Where everything is kept: `sqlite:///absolute/path.db`, `postgresql://user:password@host:5432/database`, "
        "or `memory://` (nothing outlives the process). "
        "It may carry a password, so it is treated as a secret.",
        check=checks.text,
        default_text="`signoff.db` in the state folder",
        secret=True,
    ),
    Setting(
        name="gateway.state_dir",
        doc="The folder of the gateway's own files, made with mode 0700. A relative path starts at the file's folder.",
        check=checks.text,
        default_text="the user's state folder for `signoff`",
    ),
    Setting(
        name="gateway.token_key_file",
        doc="The file with the key that signs buttons, made with mode 0600.",
        check=checks.text,
        default_text="`token.key` in the state folder",
    ),
    Setting(
        name="gateway.console",
        doc="Whether the web console answers under `/console` on the API's listener.",
        check=checks.boolean,
        shape="boolean",
        default=True,
    ),
    Setting(
        name="gateway.console_url",
        doc="The address under which browsers reach the API's listener. Links to the console begin with it; with it "
        "set, cards link to their own page there.",
        check=checks.web_address,
        default_text="none: cards carry no link",
    ),
)

PROFILE: tuple[Setting, ...] = (
    Setting(
        name="approvals.mode",
        doc="`manual` asks a person; `smart` has an automatic reviewer look first, which may approve what it finds "
        "harmless (`approvals.smart`); `off` approves everything that no deny rule or floor blocks.",
        check=checks.one_of("manual", "smart", "off"),
        default=_APPROVALS.mode,
    ),
    _approval_seconds("timeout_s", 1, "How long a person may take, where the agent does not say."),
    _approval_seconds("max_timeout_s", 1, "The longest window that an agent may ask for; longer ones are cut to it."),
    Setting(
        name="approvals.allow_no_deadline",
        doc="Whether an agent may ask without any deadline (`timeout_s: null`).",
        check=checks.boolean,
        shape="boolean",
        default=_APPROVALS.allow_no_deadline,
    ),
    _approval_seconds("claim_within_s", 1, "How long an approval stays good until the action is started."),
    _unattended("cron_mode", "in a cron session"),
    _unattended("unattended_mode", "in a webhook or worker session, or an API session without a place to ask"),
    _unattended("single_query_mode", "in a single-query session"),
    Setting(
        name="approvals.deny",
        doc="Commands that are always blocked, as words in which `*` alone is special and spans words.",
        check=checks.many(checks.pattern, '["git push --force *"]'),
        shape="list",
        default=_APPROVALS.deny,
    ),
    Setting(
        name="approvals.protect_instructions",
        doc="Whether each write to a file that tells agents how to behave, such as `CLAUDE.md` or `.cursor/`, is asked "
        "for, whatever is granted or switched off.",
        check=checks.boolean,
        shape="boolean",
        default=_APPROVALS.protect_instructions,
    ),
    Setting(
        name="approvals.protected_files",
        doc="Other files that are protected so: names, or paths from their end on, in which `*` alone is special.",
        check=checks.many(checks.text, '["POLICY.md", "deploy/*.yml"]'),
        shape="list",
        default=_APPROVALS.protected_files,
    ),
    Setting(
        name="approvals.unknown_commands",
        doc="What happens to a command that no rule knows: `verbs` asks where its words carry a destructive verb or "
        "flag, or its name is none that a program should have; `ask` asks always, `allow` never.",
        check=checks.one_of("verbs", "ask", "allow"),
        default=_APPROVALS.unknown_commands,
    ),
    Setting(
        name="approvals.loose_words",
        doc="Whether a word such as `yes` or `no` answers: alone in its message, in a direct chat, where exactly one "
        "question waits. It approves once, and nothing critical or kept.",
        check=checks.boolean,
        shape="boolean",
        default=_APPROVALS.loose_words,
    ),
    Setting(
        name="approvals.smart.base_url",
        doc="The reviewer's endpoint: any that speaks OpenAI's chat completions, up to and without "
        "`/chat/completions`. What it is shown is masked like a card.",
        check=checks.web_address,
        default_text="none; needed in mode `smart`",
    ),
    Setting(
        name="approvals.smart.model",
        doc="The model that reviews.",
        check=checks.text,
        default_text="none; needed in mode `smart`",
    ),
    Setting(
        name="approvals.smart.api_key",
        doc="The key for it, where the endpoint wants one.",
        check=checks.secret,
        default_text="none",
        secret=True,
    ),
    Setting(
        name="approvals.smart.timeout_s",
        doc="How long the reviewer may take; then a person is asked.",
        check=checks.seconds(0.1, 600),
        shape="number",
        default=_APPROVALS.smart.timeout_s,
        unit="seconds",
    ),
    Setting(
        name="rules",
        doc="Rules of your own, each a `[[rules]]` table with `key`, `verdict` (`allow`, `ask` or `block`) and what it "
        "is about: `programs`, `subcommands`, `flags`, `operands` and so on. They stand before those that come with "
        "Signoff.",
        check=checks.rules,
        shape="list",
        default=(),
        default_text="none",
    ),
    Setting(
        name="approvals.also_to",
        doc="Places that get every card of the profile too, each `platform:chat[/thread]`.",
        check=checks.many(checks.destination, '["telegram:-1001234567"]'),
        shape="list",
        default=_APPROVALS.also_to,
    ),
    Setting(
        name="approvals.fallback_destination",
        doc="The place for a card whose session has none of its own, or whose own place is gone.",
        check=checks.destination,
        default_text="none",
    ),
    *(Setting(**facts) for facts in STAGED),
    _grant("command", "a command"),
    _grant("code", "a script"),
    _grant("tool", "a tool call, a file or a rule"),
    Setting(
        name="sessions.idle_expires_s",
        doc="A session that was not used for so long starts anew, as with `/new`: its session answers end, and "
        "what it is asked next is asked. While something of it waits for a person or runs it is not idle.",
        check=checks.seconds(60, YEAR_S),
        shape="number",
        default_text="never",
        unit="seconds",
    ),
    Setting(
        name="sessions.daily_reset_at",
        doc="The time of day at which every session that was used since starts anew. What waits or runs then is "
        "withdrawn, and says so.",
        check=checks.time_of_day,
        default_text="never",
    ),
    Setting(
        name="sessions.time_zone",
        doc="Whose clock `sessions.daily_reset_at` goes by, such as `Europe/Madrid`.",
        check=checks.time_zone,
        default=SessionSettings().time_zone,
    ),
    Setting(
        name="agents.<name>.kinds",
        doc="The kinds of sessions this agent may declare. Without being listed: `child`, and `cron`, `webhook`, "
        "`worker` and `single_query` while the mode of that kind is `deny`.",
        check=checks.many(checks.one_of(*get_args(SessionKind)), '["api", "chat"]'),
        shape="list",
        default=_AGENT.kinds,
    ),
    Setting(
        name="agents.<name>.destinations",
        doc="Where this agent may ask: destinations, or a platform's name for all of its chats.",
        check=checks.many(checks.place_or_platform, '["telegram"]'),
        shape="list",
        default_text="any place on the profile's platforms",
    ),
    Setting(
        name="agents.<name>.acts_for",
        doc="The principal on whose behalf this agent asks.",
        check=checks.text,
        default_text="nobody",
    ),
    Setting(
        name="agents.<name>.isolation",
        doc="The isolated environment that the operator vouches this agent runs in, in a word such as `container`. "
        "Its commands and code run without being asked, except what a deny rule forbids. Its tool calls, file writes "
        "and other actions reach beyond such an environment and are judged as everybody's.",
        check=checks.text,
        default_text="none",
    ),
    Setting(
        name="principals.<name>.accounts",
        doc="The chat accounts of one person, each `platform:user_id`.",
        check=checks.many(checks.account, '["telegram:123456789"]'),
        shape="list",
        default=PrincipalSettings().accounts,
    ),
    Setting(
        name="hooks.<name>.url",
        doc="Where signed webhooks about questions, answers and ends of turns are posted: `https`, or `http` on this "
        "machine.",
        check=checks.hook_address,
        default_text="none; needed where the hook is named",
    ),
    Setting(
        name="hooks.<name>.secret",
        doc="What they are signed with: `whsec_` and 24 to 64 random bytes in base64.",
        check=checks.hook_secret,
        default_text="none; needed where the hook is named",
        secret=True,
    ),
    Setting(
        name="hooks.<name>.events",
        doc="Which of them this receiver is told.",
        check=checks.many(checks.one_of(*HOOK_NAMES), '["post_approval_response"]'),
        shape="list",
        default=HOOK_NAMES,
    ),
    Setting(
        name="platforms.telegram.token",
        doc="The bot token that @BotFather gave.",
        check=checks.secret,
        default_text="none; needed where the platform is named",
        secret=True,
    ),
    Setting(
        name="platforms.telegram.approvers",
        doc="Who may decide on Telegram: user ids or principals. Empty: nobody decides there.",
        check=checks.many(checks.identifier, '["123456789"]'),
        shape="list",
        default=(),
    ),
    Setting(
        name="platforms.telegram.api_base_url",
        doc="The Bot API's origin; `/bot<token>` is added.",
        check=checks.origin,
        default="https://api.telegram.org",
    ),
    Setting(
        name="platforms.telegram.mode",
        doc="How updates arrive: `polling` asks for them, `webhook` has them sent to the webhook listener.",
        check=checks.one_of("polling", "webhook"),
        default="polling",
    ),
    Setting(
        name="platforms.discord.token",
        doc="The bot's token, from the Bot page of the Discord developer portal.",
        check=checks.secret,
        default_text="none; needed where the platform is named",
        secret=True,
    ),
    Setting(
        name="platforms.discord.approvers",
        doc="Who may decide on Discord: user ids, `role:ID` for everybody with a server role, or principals. Empty: "
        "nobody decides there.",
        check=checks.many(checks.identifier, '["80351110224678912"]'),
        shape="list",
        default=(),
    ),
    Setting(
        name="platforms.discord.api_base_url",
        doc="The origin of Discord's API; `/api/v10` is added.",
        check=checks.origin,
        default="https://discord.com",
    ),
    Setting(
        name="platforms.discord.gateway_url",
        doc="The whole WebSocket address of Discord's gateway.",
        check=checks.socket_address,
        default="wss://gateway.discord.gg/",
    ),
    Setting(
        name="platforms.discord.mode",
        doc="How presses arrive: over the `gateway` connection, or posted over `http` to the webhook listener, which "
        "then receives slash commands and presses, but no typed messages.",
        check=checks.one_of("gateway", "http"),
        default="gateway",
    ),
    Setting(
        name="platforms.discord.public_key",
        doc="The application's public key, which signs what Discord posts; needed in mode `http`.",
        check=checks.hex_key,
        default_text="none; needed in mode `http`",
    ),
    Setting(
        name="platforms.slack.bot_token",
        doc="The bot's token, which begins with `xoxb-`.",
        check=checks.token_of("xoxb-", "bot token"),
        default_text="none; needed where the platform is named",
        secret=True,
    ),
    Setting(
        name="platforms.slack.app_token",
        doc="The app-level token, which begins with `xapp-`; needed in mode `socket`.",
        check=checks.token_of("xapp-", "app-level token"),
        default_text="none; needed in mode `socket`",
        secret=True,
    ),
    Setting(
        name="platforms.slack.signing_secret",
        doc="The app's signing secret; needed in mode `http`.",
        check=checks.secret,
        default_text="none; needed in mode `http`",
        secret=True,
    ),
    Setting(
        name="platforms.slack.approvers",
        doc="Who may decide on Slack: user ids, `group:ID` for everybody in a user group, or principals. Empty: nobody "
        "decides there.",
        check=checks.many(checks.identifier, '["U0123ABCD"]'),
        shape="list",
        default=(),
    ),
    Setting(
        name="platforms.slack.api_base_url",
        doc="The origin of Slack's API; `/api/` is added.",
        check=checks.origin,
        default="https://slack.com",
    ),
    Setting(
        name="platforms.slack.mode",
        doc="How presses arrive: over a `socket` that we open, or posted over `http` to the webhook listener.",
        check=checks.one_of("socket", "http"),
        default="socket",
    ),
)

SECTIONS: dict[str, str] = {
    "gateway": "[gateway]",
    "approvals": "[approvals]",
    "grants": "[grants]",
    "sessions": "[sessions]",
    "rules": "[[rules]]",
    "agents": "[agents.NAME]",
    "principals": "[principals.NAME]",
    "hooks": "[hooks.NAME]",
    "executors": "[executors.NAME]",
    "platforms": "[platforms.telegram]",
    "profiles": "[profiles.NAME.approvals]",
}
"""The top-level sections and how one begins."""


class SettingRow(Struct, frozen=True, kw_only=True):
    """A setting as the documentation lists it. `env` is empty where no variable can say it."""

    name: str
    env: str
    default: str
    unit: str
    doc: str


def settings_table() -> list[SettingRow]:
    """Every setting with its environment variable, default, unit and meaning; secrets also as `_env` and `_file`."""
    return [
        SettingRow(
            name=setting.name,
            env="SIGNOFF_" + "__".join(part.upper() for part in setting.path) if len(setting.path) > 1 else "",
            default=setting.default_text or checks.shown(setting.default),
            unit=setting.unit,
            doc=setting.doc + (" Also as `_env` and `_file`." if setting.secret else ""),
        )
        for setting in (*GATEWAY, *PROFILE)
    ]

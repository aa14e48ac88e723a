"""Checks that need several settings at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from urllib.parse import urlsplit

from signoff.config.shapes import GatewaySettings
from signoff.config.sources import Found, Path_
from signoff.console_adapter import PLATFORM as CONSOLE
from signoff.errors import ConfigError
from signoff.model import Destination
from signoff.settings import Profile

_NEEDED: dict[str, dict[str, tuple[str, ...]]] = {
    "telegram": {"polling": ("token",), "webhook": ("token",)},
    "discord": {"gateway": ("token",), "http": ("token", "public_key")},
    "slack": {"socket": ("bot_token", "app_token"), "http": ("bot_token", "signing_secret")},
}
"""What each platform needs, by its mode; the first mode is the default."""
_BOT: dict[str, tuple[str, ...]] = {
    "telegram": ("token",),
    "discord": ("token",),
    "slack": ("bot_token", "app_token"),
}
"""The secrets that are a bot, or its way in."""
_APPROVER: dict[str, tuple[re.Pattern[str], str]] = {
    "telegram": (
        re.compile(r"\d{1,20}"),
        (
            "is neither a numeric user id nor a principal; Telegram has no roles, and names there can change hands, so "
            "write the id"
        ),
    ),
    "discord": (
        re.compile(r"(?:role:)?\d{1,20}"),
        (
            "is neither a numeric user id, nor role:ID, nor a principal; names on Discord can change hands, so write "
            "the id (right-click the person or role, Copy ID)"
        ),
    ),
    "slack": (
        re.compile(r"(?:[UW]|group:S)[A-Z0-9]{2,20}"),
        (
            "is neither a member id such as U0123ABCD, nor group:ID of a user group such as group:S0123ABCD, nor a "
            "principal; names on Slack can change hands, so write the id (profile, More, Copy member ID)"
        ),
    ),
}
"""What an approver of each platform looks like, and what to say of one that does not."""


def check_gateway(gateway: GatewaySettings) -> None:
    """Raise `ConfigError` for listeners that collide and for a store that no engine serves."""
    if gateway.port and gateway.port == gateway.hooks_port and _overlap(gateway.host, gateway.hooks_host):
        raise ConfigError(
            f"gateway.hooks_port and gateway.port are both {gateway.port}; give one of them another port.",
            param="gateway.hooks_port",
        )
    try:
        parts = urlsplit(gateway.store)
        scheme = parts.scheme
    except ValueError:
        mend = (
            "gateway.store is not a URL; write sqlite:///absolute/path.db or postgresql://user:password@host/database."
        )
        raise ConfigError(mend, param="gateway.store") from None
    known = entry_points(group="signoff.stores").names
    if scheme not in known:
        schemes = ", ".join(f"{name}://" for name in sorted(known))
        what = f"names {scheme}://, which no installed engine serves" if scheme else "is no URL"
        raise ConfigError(
            f"gateway.store {what}; write for example sqlite:///absolute/path.db (known: {schemes}).",
            param="gateway.store",
        )
    if scheme == "sqlite" and (parts.netloc or parts.path in ("", "/")):
        raise ConfigError(
            "gateway.store needs three slashes and an absolute path: sqlite:///absolute/path.db.", param="gateway.store"
        )


def _overlap(one: str, other: str) -> bool:
    return one == other or {one, other} & {"0.0.0.0", "::"} != set()  # noqa: S104  # compared, not bound


def check_profiles(profiles: Mapping[str, Profile]) -> None:
    """Raise `ConfigError` where two profiles hold the same bot: a platform tells each press to one of its listeners."""
    holder: dict[tuple[str, str, str], str] = {}
    for name, profile in profiles.items():
        for platform, settings in profile.platforms.items():
            for word in _BOT.get(platform, ()):
                value = settings.get(word)
                if value is None:
                    continue
                other = holder.setdefault((platform, word, str(value)), name)
                if other != name:
                    raise ConfigError(
                        f"profiles {other!r} and {name!r} have the same platforms.{platform}.{word}; what people press "
                        "would reach only one of them. Make a bot of its own for each.",
                        param=f"platforms.{platform}.{word}",
                    )


def check_profile(profile: Profile, found: Mapping[Path_, Found]) -> None:
    """Raise `ConfigError` for what is possible alone and impossible together. `found` says where it was written."""
    _check_times(profile, found)
    _check_executors(profile, found)
    _check_reviewer(profile, found)
    _check_platforms(profile, found)
    _check_places(profile, found)
    _check_people(profile, found)
    check_hooks(profile, found)


def check_hooks(profile: Profile, found: Mapping[Path_, Found]) -> None:
    """Raise `ConfigError` for a hook without an address or a secret."""
    for name, hook in profile.hooks.items():
        place = next(each for path, each in found.items() if path[:2] == ("hooks", name)).where.partition(": ")[0]
        if not hook.url:
            what = f"hooks.{name}.url is missing: it says where its webhooks are posted"
            raise ConfigError(f"{place}: {what}.", param="hooks.<name>.url")
        if not hook.secret:
            what = f"hooks.{name}.secret is missing; give secret, secret_env or secret_file"
            raise ConfigError(f"{place}: {what}.", param="hooks.<name>.secret")


def _where(found: Mapping[Path_, Found], *path: str) -> str:
    return found[path].where if path in found else ".".join(path)


def _check_times(profile: Profile, found: Mapping[Path_, Found]) -> None:
    settings = profile.approvals
    if settings.timeout_s > settings.max_timeout_s:
        name = "timeout_s" if ("approvals", "timeout_s") in found else "max_timeout_s"
        raise ConfigError(
            f"{_where(found, 'approvals', name)}: approvals.timeout_s ({settings.timeout_s:g}) is above "
            f"approvals.max_timeout_s ({settings.max_timeout_s:g}); raise the one or lower the other.",
            param=f"approvals.{name}",
        )


def _check_executors(profile: Profile, found: Mapping[Path_, Found]) -> None:
    """Each runs something, in one way; which of two would run a tool must not be left to their order."""
    owner: dict[str, str] = {}
    for name, executor in profile.executors.items():
        place = next(each for path, each in found.items() if path[:2] == ("executors", name)).where.partition(": ")[0]
        if bool(executor.command) == bool(executor.url):
            what = "needs command or url: how is an approved action run?"
            if executor.url:
                what = "has both command and url; keep one of them"
            raise ConfigError(f"{place}: executors.{name} {what}", param="executors.<name>.command")
        if executor.url and not executor.secret:
            what = f"executors.{name}.secret is missing; give secret, secret_env or secret_file"
            raise ConfigError(f"{place}: {what}.", param="executors.<name>.secret")
        if not executor.tools and not executor.kinds:
            what = f"executors.{name} runs nothing; name tools or kinds"
            raise ConfigError(f"{place}: {what}.", param="executors.<name>.tools")
        for each in (*executor.tools, *executor.kinds):
            if owner.setdefault(each, name) != name:
                what = f"{each!r} is run by executors.{owner[each]} and by executors.{name}; name it once"
                raise ConfigError(f"{place}: {what}.", param="executors.<name>.tools")


def _check_reviewer(profile: Profile, found: Mapping[Path_, Found]) -> None:
    if profile.approvals.mode != "smart":
        return
    for name, told in (("base_url", "where the reviewer is asked"), ("model", "which model reviews")):
        if not getattr(profile.approvals.smart, name):
            raise ConfigError(
                f'{_where(found, "approvals", "mode")} is "smart", but approvals.smart.{name} is missing: '
                f"it says {told}.",
                param=f"approvals.smart.{name}",
            )


def _check_platforms(profile: Profile, found: Mapping[Path_, Found]) -> None:
    for platform, modes in _NEEDED.items():
        settings = profile.platforms.get(platform)
        if settings is None:
            continue
        mode = settings.get("mode") or next(iter(modes))
        for name in modes[mode]:
            if name not in settings:
                raise ConfigError(_missing(platform, name, mode, found), param=f"platforms.{platform}.{name}")


def _missing(platform: str, name: str, mode: str, found: Mapping[Path_, Found]) -> str:
    section = next(each for path, each in found.items() if path[:2] == ("platforms", platform))
    place = section.where.partition(": ")[0]
    forms = name if name == "public_key" else f"{name}, {name}_env or {name}_file"
    why = "" if name in ("token", "bot_token") else f' in mode "{mode}"'
    return f"{place}: platforms.{platform}.{name} is missing{why}; give {forms}, or remove the section."


def _check_places(profile: Profile, found: Mapping[Path_, Found]) -> None:
    settings = profile.approvals
    for place in settings.also_to:
        _check_served(profile, place, _where(found, "approvals", "also_to"))
    if settings.fallback_destination is not None:
        _check_served(profile, settings.fallback_destination, _where(found, "approvals", "fallback_destination"))
    if settings.staged_destination is not None:
        _check_served(profile, settings.staged_destination, _where(found, "approvals", "staged_destination"))
    for name, agent in profile.agents.items():
        for text in agent.destinations or ():
            _check_served(profile, text, _where(found, "agents", name, "destinations"))


def _check_served(profile: Profile, place: Destination | str, where: str) -> None:
    platform = str(place).partition(":")[0]
    if platform not in {*profile.platforms, CONSOLE}:
        served = ", ".join(sorted(profile.platforms)) or "none"
        raise ConfigError(
            f"{where} names the platform {platform!r}, which this profile does not have (it has: {served}); set "
            f"platforms.{platform} or name another place."
        )


def _check_people(profile: Profile, found: Mapping[Path_, Found]) -> None:
    owner: dict[str, str] = {}
    for name, principal in profile.principals.items():
        for account in principal.accounts:
            if account in owner:
                raise ConfigError(
                    f"{_where(found, 'principals', name, 'accounts')}: {account} already belongs to principal "
                    f"{owner[account]!r}; an account is of one person."
                )
            owner[account] = name
    for platform, (form, wrong) in _APPROVER.items():
        for entry in profile.approvers.get(platform, ()):
            if not (form.fullmatch(entry) or entry in profile.principals):
                raise ConfigError(
                    f"{_where(found, 'platforms', platform, 'approvers')}: {entry!r} {wrong}.",
                    param=f"platforms.{platform}.approvers",
                )

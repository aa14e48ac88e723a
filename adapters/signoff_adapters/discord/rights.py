"""Which permissions the bot needs, has and lacks, computed as Discord computes them.

Source: the API's documentation, topic Permissions: roles first, then the channel's rules for everybody, for the roles
together, and for the member; administrators and the owner have all of them.
"""

from __future__ import annotations

from msgspec import Struct

NEEDED: dict[str, int] = {
    "View Channel": 1 << 10,
    "Send Messages": 1 << 11,
    "Embed Links": 1 << 14,
    "Attach Files": 1 << 15,
    "Read Message History": 1 << 16,
}
"""In a channel."""
IN_THREADS: tuple[str, int] = ("Send Messages in Threads", 1 << 38)
"""In a thread, in place of Send Messages."""
INVITED: tuple[str, ...] = (*NEEDED, IN_THREADS[0])
"""What the invite link asks for."""
PERMISSIONS = sum(NEEDED.values()) | IN_THREADS[1]
ADMINISTRATOR = 1 << 3
SCOPES = "bot%20applications.commands"


class Role(Struct, frozen=True):
    """A role and its permissions, a number in text."""

    id: str
    permissions: str = "0"


class Guild(Struct, frozen=True):
    """A server."""

    id: str
    owner_id: str = ""
    roles: tuple[Role, ...] = ()


class Member(Struct, frozen=True):
    """The bot in a server: the ids of its roles, without the one that everybody has."""

    roles: tuple[str, ...] = ()


class Overwrite(Struct, frozen=True):
    """A channel's own rule for a role or a member."""

    id: str
    allow: str = "0"
    deny: str = "0"


def invite_url(application_id: str) -> str:
    """The address by which somebody adds the bot to a server, with exactly what it needs."""
    return f"https://discord.com/oauth2/authorize?client_id={application_id}&scope={SCOPES}&permissions={PERMISSIONS}"


def missing(
    guild: Guild, member: Member, user_id: str, overwrites: tuple[Overwrite, ...], *, thread: bool
) -> tuple[str, ...]:
    """The names of the permissions that this member lacks in a channel with these rules."""
    has = effective(guild, member, user_id, overwrites)
    needed = dict(NEEDED)
    if thread:
        del needed["Send Messages"]
        needed |= [IN_THREADS]
    return tuple(name for name, bit in needed.items() if not has & bit)


def effective(guild: Guild, member: Member, user_id: str, overwrites: tuple[Overwrite, ...]) -> int:
    """All permissions of a member in a channel, as bits."""
    mine = {guild.id, *member.roles}
    has = 0
    for role in guild.roles:
        if role.id in mine:
            has |= _bits(role.permissions)
    if user_id == guild.owner_id or has & ADMINISTRATOR:
        return ~0
    everybody = [rule for rule in overwrites if rule.id == guild.id]
    roles = [rule for rule in overwrites if rule.id in member.roles]
    own = [rule for rule in overwrites if rule.id == user_id]
    for rules in (everybody, roles, own):
        allow = deny = 0
        for rule in rules:
            allow |= _bits(rule.allow)
            deny |= _bits(rule.deny)
        has = has & ~deny | allow
    return has


def _bits(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0

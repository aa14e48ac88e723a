"""The one place that says who may do what. Taps, typed commands, HTTP and the command line all ask here; it fails
closed, and an empty approver list lets nobody decide in chat."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from signoff.model import Actor, Key, Person, Scope, Session
from signoff.settings import Profile

_MANY = ("role:", "group:")
"""What begins an approver that stands for many people."""
Operation = Literal["decide", "replay", "stop", "new", "revoke", "yolo", "read", "admin"]


class Allowed(Struct, frozen=True):
    """Yes, and who it is recorded as."""

    actor: Actor


class Refused(Struct, frozen=True):
    """No, and why: `nobody` (no approver is set up), `not_listed`, `guest`, or `scope` (the key's scope)."""

    why: Literal["nobody", "not_listed", "guest", "scope"]


def person_may(
    profile: Profile, person: Person, operation: Operation, session: Session | None, via: Literal["button", "command"]
) -> Allowed | Refused:
    """Whether somebody on a chat platform may do that. A session's own user may stop it and start it anew; for anything
    else the session does not count."""
    principal = principal_of(profile, person)
    actor = Actor(
        type="person",
        platform=person.platform,
        user_id=person.user_id,
        name=person.name,
        principal=principal,
        via=via,
    )
    listed = profile.approvers.get(person.platform, ())
    names = {person.user_id, *person.groups} | ({principal} if principal else set())
    if names & set(listed) and not person.guest:
        return Allowed(actor)
    own = session is not None and session.user_id == person.user_id and _platform(session) == person.platform
    if operation in ("stop", "new") and own:
        return Allowed(actor)
    if person.guest:
        return Refused("guest")
    return Refused("not_listed" if listed else "nobody")


_BY_SCOPE: dict[Scope, frozenset[Operation]] = {
    "approver": frozenset({"decide", "replay", "stop", "new", "revoke", "yolo", "read"}),
    "admin": frozenset({"decide", "replay", "stop", "new", "revoke", "yolo", "read", "admin"}),
    "ops": frozenset({"read"}),
    "agent": frozenset(),
}


def scopes_for(operation: Operation) -> frozenset[Scope]:
    """The scopes of the API keys that may do that. An approver key decides as its principal, whatever a platform's list
    says; what an agent may do in its own sessions is said by the routes."""
    return frozenset(scope for scope, operations in _BY_SCOPE.items() if operation in operations)


def console_may(scope: Scope, operation: Operation, *, principal: str | None, key_id: str | None) -> Allowed | Refused:
    """Whether somebody at the console may do that, whose log-in has that scope."""
    if operation not in _BY_SCOPE[scope]:
        return Refused("scope")
    return Allowed(console_actor(principal, key_id))


def console_actor(principal: str | None, key_id: str | None) -> Actor:
    """How deeds at the console are recorded: as the person's, and which key they had logged in with."""
    return Actor(type="person", principal=principal, name=principal, key_id=key_id, via="console")


def key_actor(key: Key) -> Actor:
    """How a key's deeds are recorded."""
    if key.scope == "agent":
        return Actor(type="agent", name=key.agent, key_id=key.key_id, via="api")
    return Actor(type="person", principal=key.principal, name=key.principal, key_id=key.key_id, via="api")


def local_actor(user_id: int, via: Literal["cli", "api"] = "cli") -> Actor:
    """Whoever reaches the 0600 socket in the 0700 state folder is the operator."""
    return Actor(type="person", platform="local", user_id=str(user_id), via=via)


def listed_on(profile: Profile, platform: str) -> tuple[str, ...]:
    """The accounts on a platform that may decide and are named one by one, not by a role or group."""
    found: dict[str, None] = {}
    for name in profile.approvers.get(platform, ()):
        principal = profile.principals.get(name)
        accounts = principal.accounts if principal is not None else (f"{platform}:{name}",)
        found |= {account.partition(":")[2]: None for account in accounts if account.startswith(f"{platform}:")}
    return tuple(user for user in found if not user.startswith(_MANY))


def groups_on(profile: Profile, platform: str) -> tuple[str, ...]:
    """The roles and groups of a platform whose members may decide, each once and as it stands in the settings."""
    return tuple(dict.fromkeys(name for name in profile.approvers.get(platform, ()) if name.startswith(_MANY)))


def principal_of(profile: Profile, person: Person) -> str | None:
    """The person behind a chat account, where the profile binds one."""
    account = f"{person.platform}:{person.user_id}"
    for name, principal in profile.principals.items():
        if account in principal.accounts:
            return name
    return None


def _platform(session: Session) -> str | None:
    return session.destination.platform if session.destination else None

"""Who calls: an API key, or whoever reached the local socket."""

from __future__ import annotations

from aiohttp import hdrs
from aiohttp.web_request import BaseRequest
from msgspec import Struct

from signoff import authorize
from signoff.errors import InsufficientScope, InvalidInput, Unauthenticated
from signoff.model import Actor, ApprovalRequest, Key, Scope
from signoff.server.core import Core
from signoff.server.faults import BadRequest
from signoff.server.local import is_local, peer_uid

PROFILE_HEADER = "X-Signoff-Profile"


class Caller(Struct, frozen=True, kw_only=True):
    """A caller with its profile and scope. `agent` is set for agent keys only and bounds what they see."""

    profile: str
    scope: Scope
    actor: Actor
    agent: str | None = None
    principal: str | None = None
    key_id: str | None = None

    def sees(self, row: ApprovalRequest) -> bool:
        """Whether this request exists for the caller."""
        return row.profile == self.profile and (self.agent is None or row.agent == self.agent)

    def exact(self, row: ApprovalRequest) -> bool:
        """Whether the caller may read the action unmasked: only the agent that asked."""
        return self.agent is not None and row.agent == self.agent


async def identify(core: Core, request: BaseRequest) -> Caller:
    """The caller of a request. Raises `Unauthenticated`, `InsufficientScope` (a foreign user on the local socket, or a
    key of another profile than the one that is named)."""
    given = request.headers.getall(hdrs.AUTHORIZATION, ())
    if not given:
        if is_local(request):
            return _operator(core, request)
        raise Unauthenticated
    if len(given) > 1:
        raise BadRequest("There are several Authorization headers; send one.")
    scheme, _, text = given[0].partition(" ")
    key = await core.keys.verify(text.strip()) if scheme.lower() == "bearer" else None
    if key is None:
        raise Unauthenticated
    named = request.headers.get(PROFILE_HEADER, key.profile)
    if named != key.profile:
        raise InsufficientScope(f"This key works in profile {key.profile}, and {named[:100]!r} was named.")
    return _holder(key)


def require(caller: Caller, scopes: frozenset[str]) -> None:
    """Raise `InsufficientScope` unless the caller's scope is one of those."""
    if caller.scope not in scopes:
        needed = " or ".join(sorted(scopes))
        raise InsufficientScope(f"This needs a key of scope {needed}; this one is {caller.scope}.")


def _holder(key: Key) -> Caller:
    agent = key.agent or f"key-{key.key_id}"
    return Caller(
        profile=key.profile,
        scope=key.scope,
        actor=authorize.key_actor(key),
        agent=agent if key.scope == "agent" else None,
        principal=key.principal,
        key_id=key.key_id,
    )


def _operator(core: Core, request: BaseRequest) -> Caller:
    profile = request.headers.get(PROFILE_HEADER, "default")
    if profile not in core.profiles:
        raise InvalidInput(f"There is no profile {profile[:100]!r}.", param=PROFILE_HEADER)
    return Caller(profile=profile, scope="admin", actor=authorize.local_actor(peer_uid(request)))

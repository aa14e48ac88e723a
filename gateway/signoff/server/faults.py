"""Errors at the server's edge: those that only HTTP has, and how every error is written.

`{"error": {"message", "type", "code", "param"}}`, with `approval` beside it where the error is about how a request
stands, and `cause` where a turn has ended.
"""

from __future__ import annotations

import difflib
import re
from typing import Literal

import msgspec
from msgspec import Struct

from signoff.errors import InvalidInput, NotFound, SignoffError
from signoff.expected import fields_at, problem
from signoff.record import Approval

ErrorType = Literal[
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "not_found_error",
    "conflict_error",
    "rate_limit_error",
    "server_error",
]
_TYPES: dict[int, ErrorType] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    421: "permission_error",
    429: "rate_limit_error",
}


class ErrorFacts(Struct, frozen=True, kw_only=True):
    """What went wrong. `code` is stable; `message` is for people and may change."""

    message: str
    type: ErrorType
    code: str
    param: str | None


class ErrorAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every answer that is not a success."""

    error: ErrorFacts
    approval: Approval | None = None
    """How the request stands, where the error is about that."""
    cause: str | None = None
    """Why the turn ended, where the error is `turn_ended`."""


class InvalidJson(SignoffError):
    """The body is not JSON in UTF-8."""

    code = "invalid_json"
    status = 400


class BadRequest(SignoffError):
    """The request is not proper HTTP."""

    code = "bad_request"
    status = 400


class InvalidPosition(SignoffError):
    """This position is not one of this profile's event log. Connect without one to begin now."""

    code = "invalid_position"
    status = 400


class RouteNotFound(NotFound):
    """There is no such route. /openapi.json lists them all."""

    code = "route_not_found"


class MethodNotAllowed(SignoffError):
    """This route does not know that method."""

    code = "method_not_allowed"
    status = 405


class RequestTimeout(SignoffError):
    """The body did not arrive in time."""

    code = "request_timeout"
    status = 408


class TooManyStreams(SignoffError):
    """Too many event streams are open. Close one, or try again later."""

    code = "too_many_streams"
    status = 429


class TooManyPending(SignoffError):
    """Too many questions of this agent wait. Wait for answers, or withdraw some."""

    code = "too_many_pending"
    status = 429


class WrongHost(SignoffError):
    """This gateway listens on loopback and does not serve that host name. Call it by its address or `localhost`."""

    code = "wrong_host"
    status = 421


class ShuttingDown(SignoffError):
    """The gateway is stopping. Try again in a moment."""

    code = "shutting_down"
    status = 503


def code_of(error: SignoffError) -> str:
    """The error's stable code."""
    return error.code


def type_of(status: int) -> ErrorType:
    """The family that a status belongs to."""
    return "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")


def facts_of(error: SignoffError) -> ErrorFacts:
    """What is written of an error. What went wrong inside is told by its class alone, not by its message."""
    message = error.message if error.status < 500 else type(error).summary()
    return ErrorFacts(message=message, type=type_of(error.status), code=code_of(error), param=error.param)


# --- what msgspec found wrong, in our words ------------------------------------------------------

_UNKNOWN = re.compile(r"^object contains unknown field `(.*?)`", re.DOTALL)
_MISSING = re.compile(r"^object missing required field `(.*?)`", re.DOTALL)


def invalid(error: msgspec.ValidationError, struct: type[Struct], where: str = "body") -> InvalidInput:
    """The error for input of a wrong form; an unknown field is answered with the nearest one there is."""
    path, said = problem(error, struct)
    for pattern in (_UNKNOWN, _MISSING):
        found = pattern.match(said)
        if found:
            param = f"{path}.{found[1]}" if path else found[1]
            missing = pattern is _MISSING
            told = f"{param} is missing." if missing else _unknown(param, found[1], fields_at(struct, path))
            return InvalidInput(told, param=param[:200])
    return InvalidInput(f"{path or f'The {where}'}: {said}.", param=path or None)


def _unknown(param: str, name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name[:100], known, 1)
    hint = f"Did you mean {near[0]}?" if near else f"Known here: {', '.join(known) or 'none'}."
    return f"There is no field {param[:200]!r}. {hint}"

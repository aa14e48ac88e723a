"""The HTTP contract without I/O: what to send for each verb, and what an answer means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from signoff.client.records import ApprovalRecord, Question
from signoff.errors import (
    ActionRefused,
    AdapterError,
    BodyTooLarge,
    ClaimRefused,
    Conflict,
    InsufficientScope,
    InvalidInput,
    NotFound,
    SignoffError,
    Unauthenticated,
)
from signoff.model import Action, Operand

LONGEST_WAIT_S = 60
"""The longest poll that the gateway holds open."""

CLAIM_CODES = frozenset(
    {"not_approved", "already_claimed", "digest_mismatch", "changed_since_review", "cancelled", "lapsed"}
)

ACTION_CODES = frozenset(
    {
        "already_approved",
        "already_run",
        "running",
        "denied",
        "expired",
        "unknown",
        "not_run",
        "not_run_yet",
        "no_executor",
        "forbidden_now",
        "executor_changed",
    }
)
"""Why a kept action is not run now, beside the reasons of a claim."""

T = TypeVar("T", bound=Struct)
Query = tuple[tuple[str, str], ...]


class Call(Struct, frozen=True, kw_only=True):
    """One HTTP request. `repeatable`: sending it twice does the same as once, so a lost answer is asked for again."""

    method: str
    path: str
    query: Query = ()
    body: Any = None
    repeatable: bool = True
    wait_s: float = 0.0
    """How long the gateway may hold the answer back."""


# --- what is sent ------------------------------------------------------------------------------


def submit(question: Question) -> Call:
    """Ask. The client's own `request_id` makes it repeatable."""
    body: dict[str, Any] = {
        "action": msgspec.to_builtins(question.action),
        "request_id": question.request_id,
        "session_id": question.session_id,
    }
    for name in ("turn_id", "tool_call_id", "host", "reason", "gate_token"):
        value = getattr(question, name)
        if value is not None:
            body[name] = value
    if question.choices is not None:
        body["choices"] = list(question.choices)
    if question.timeout_s != -1.0:
        body["timeout_s"] = question.timeout_s
    return Call(method="POST", path="/v1/approvals", body=body)


def get(request_id: str, wait_s: float = 0.0) -> Call:
    """Read a record; with `wait_s`, held back until it ended."""
    wait = min(max(0, int(wait_s)), LONGEST_WAIT_S)
    query: Query = (("wait", str(wait)),) if wait else ()
    return Call(method="GET", path=_approval(request_id), query=query, wait_s=wait)


def check(action: Action, session_id: str | None, turn_id: str | None, host: str | None, *, explain: bool) -> Call:
    """Judge without asking."""
    facts = {"session_id": session_id, "turn_id": turn_id, "host": host, "explain": explain or None}
    given = {name: value for name, value in facts.items() if value is not None}
    body = {"action": msgspec.to_builtins(action), **given}
    return Call(method="POST", path="/v1/check", body=body)


def why(request_id: str) -> Call:
    """Read why it was asked."""
    return Call(method="GET", path=_approval(request_id, "why"))


def card(request_id: str) -> Call:
    """Read the card that a person is to be shown."""
    return Call(method="GET", path=_approval(request_id, "card"))


def pending(session_id: str | None = None) -> Call:
    """List what waits."""
    query: Query = (("status", "pending"), *((("session_id", session_id),) if session_id else ()))
    return Call(method="GET", path="/v1/approvals", query=query)


def decide(request_id: str, choice: str, reason: str | None, content: Mapping[str, Any] | None = None) -> Call:
    """Decide. Not repeatable: a second one would be told that the first had won."""
    body: dict[str, Any] = {"choice": choice} | ({"reason": reason} if reason else {})
    if content is not None:
        body["content"] = dict(content)
    return Call(method="POST", path=_approval(request_id, "decision"), body=body, repeatable=False)


def cancel(request_id: str, cause: str) -> Call:
    """Withdraw a question."""
    return Call(method="POST", path=_approval(request_id, "cancel"), body={"cause": cause})


def claim(
    request_id: str, digest: str, claim_id: str, operands: Sequence[Operand], *, want_gate_token: bool = False
) -> Call:
    """Start the action; the same `claim_id` again gets the same answer."""
    body: dict[str, Any] = {"digest": digest, "claim_id": claim_id}
    if want_gate_token:
        body["want_gate_token"] = True
    if operands:
        body["operands"] = msgspec.to_builtins(tuple(operands))
    return Call(method="POST", path=_approval(request_id, "claim"), body=body)


def result(request_id: str, status: str, exit_code: int | None) -> Call:
    """Report how it went."""
    body: dict[str, Any] = {"status": status} | ({} if exit_code is None else {"exit_code": exit_code})
    return Call(method="POST", path=_approval(request_id, "result"), body=body)


def undo(request_id: str) -> Call:
    """Take an unclaimed approval back."""
    return Call(method="POST", path=_approval(request_id, "undo"), body={}, repeatable=False)


def actions() -> Call:
    """List kept actions."""
    return Call(method="GET", path="/v1/actions")


def answer_action(action_id: str, answer: str, reason: str | None) -> Call:
    """Approve or reject a kept action. Not repeatable: a second one would be told that the first had won."""
    body = {"reason": reason} if reason else {}
    return Call(method="POST", path=f"/v1/actions/{_part(action_id)}/{answer}", body=body, repeatable=False)


def replay_action(action_id: str, wait_s: float, *, again: bool, did_run: bool) -> Call:
    """Run a kept action, or say what is to become of it."""
    wait = min(max(0, int(wait_s)), LONGEST_WAIT_S)
    body = {name: True for name, wanted in (("again", again), ("did_run", did_run)) if wanted}
    path = f"/v1/actions/{_part(action_id)}/replay"
    query: Query = (("wait", str(wait)),)
    return Call(method="POST", path=path, query=query, body=body, repeatable=False, wait_s=wait)


def session(session_id: str, facts: Mapping[str, str | None]) -> Call:
    """Declare a session."""
    body = {name: value for name, value in facts.items() if value is not None}
    return Call(method="PUT", path=_session(session_id), body=body)


def find_session(session_id: str) -> Call:
    """Read a session."""
    return Call(method="GET", path=_session(session_id))


def attach(session_id: str, name: str, lease_s: float | None) -> Call:
    """Say that something here shows the session's questions to a person."""
    path = _session(session_id, f"notifiers/{_part(name)}")
    return Call(method="PUT", path=path, body={} if lease_s is None else {"lease_s": lease_s})


def detach(session_id: str, name: str, cause: str) -> Call:
    """Say that it does so no more."""
    return Call(method="DELETE", path=_session(session_id, f"notifiers/{_part(name)}"), query=(("cause", cause),))


def clear(session_id: str) -> Call:
    """End a session and drop its grants."""
    return Call(method="DELETE", path=_session(session_id))


def reset(session_id: str) -> Call:
    """Start a session anew. Not repeatable: work begun in between would be stopped too."""
    return Call(method="POST", path=_session(session_id, "reset"), body={}, repeatable=False)


def stop(session_id: str) -> Call:
    """Stop a session's work. Not repeatable: work begun in between would be stopped too."""
    return Call(method="POST", path=_session(session_id, "stop"), body={}, repeatable=False)


def sessions() -> Call:
    """List the open sessions."""
    return Call(method="GET", path="/v1/sessions")


def bypass(session_id: str, minutes: float) -> Call:
    """Ask nothing for a while. Not repeatable: somebody may have ended it in between."""
    return Call(method="POST", path=_session(session_id, "bypass"), body={"minutes": minutes}, repeatable=False)


def end_bypass(session_id: str) -> Call:
    """Ask again."""
    return Call(method="DELETE", path=_session(session_id, "bypass"))


def open_turn(session_id: str, turn_id: str, lease_s: float) -> Call:
    """Open a turn under the client's own id."""
    return Call(method="POST", path=_session(session_id, "turns"), body={"turn_id": turn_id, "lease_s": lease_s})


def heartbeat(turn_id: str) -> Call:
    """Renew a turn's lease."""
    return Call(method="POST", path=f"/v1/turns/{_part(turn_id)}/heartbeat", body={})


def end_turn(turn_id: str, cause: str) -> Call:
    """End a turn."""
    return Call(method="DELETE", path=f"/v1/turns/{_part(turn_id)}", query=(("cause", cause),))


def grants() -> Call:
    """List the live grants."""
    return Call(method="GET", path="/v1/grants")


def revoke(grant_id: str) -> Call:
    """End a grant."""
    return Call(method="DELETE", path=f"/v1/grants/{_part(grant_id)}", repeatable=False)


def events(after: int | None, session_id: str | None) -> Call:
    """Follow the event log."""
    query = [("after", str(after))] if after is not None else []
    query += [("session_id", session_id)] if session_id else []
    return Call(method="GET", path="/v1/events", query=tuple(query))


def health() -> Call:
    """Whether it lives."""
    return Call(method="GET", path="/health")


def health_detailed() -> Call:
    """How each of its parts is."""
    return Call(method="GET", path="/health/detailed")


def allowlist(*, removed: bool) -> Call:
    """List the allowlist's lines."""
    return Call(method="GET", path="/v1/allowlist", query=(("removed", "true"),) if removed else ())


def change_allowlist(body: dict[str, Any]) -> Call:
    """Add lines and take others out. Not repeatable: somebody may have removed them again in between."""
    return Call(method="POST", path="/v1/allowlist", body=body, repeatable=False)


def keys() -> Call:
    """List API keys."""
    return Call(method="GET", path="/v1/keys")


def create_key(scope: str, agent: str | None, principal: str | None) -> Call:
    """Make an API key. Not repeatable: each makes another."""
    facts = {"scope": scope, "agent": agent, "principal": principal}
    body = {name: value for name, value in facts.items() if value is not None}
    return Call(method="POST", path="/v1/keys", body=body, repeatable=False)


def start_drill(destinations: Sequence[str], wait_s: float) -> Call:
    """Send rehearsal cards. Not repeatable: each sends others."""
    body = {"destinations": list(destinations), "wait_s": wait_s}
    return Call(method="POST", path="/v1/drills", body=body, repeatable=False)


def drill(drill_id: str) -> Call:
    """Read what came of a drill."""
    return Call(method="GET", path=f"/v1/drills/{quote(drill_id, safe='')}")


def revoke_key(key_id: str) -> Call:
    """End an API key."""
    return Call(method="DELETE", path=f"/v1/keys/{_part(key_id)}")


def next_page(call: Call, cursor: str) -> Call:
    """The same list from `cursor` on."""
    rest = tuple(item for item in call.query if item[0] != "after")
    return msgspec.structs.replace(call, query=(*rest, ("after", cursor)))


def encode(body: Any) -> bytes:
    """A body as JSON; raises `InvalidInput` for what JSON cannot carry, such as text with undecodable bytes."""
    try:
        return msgspec.json.encode(body)
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError) as error:
        raise InvalidInput(f"This cannot be sent as JSON: {error}.") from None


def _approval(request_id: str, verb: str = "") -> str:
    return f"/v1/approvals/{_part(request_id)}" + (f"/{verb}" if verb else "")


def _session(session_id: str, verb: str = "") -> str:
    return f"/v1/sessions/{_part(session_id)}" + (f"/{verb}" if verb else "")


def _part(text: str) -> str:
    if text in ("", ".", ".."):
        raise InvalidInput(f"{text!r} is not an id.")
    return quote(text, safe="")


# --- what comes back ---------------------------------------------------------------------------


def record(body: bytes) -> ApprovalRecord:
    """The approval in an answer. What only a client can know is never taken from it."""
    return unclaimed(parsed(body, ApprovalRecord))


def unclaimed(found: ApprovalRecord) -> ApprovalRecord:
    """The record as one that this client did not claim."""
    return msgspec.structs.replace(found, claimed_here=False) if found.claimed_here else found


def parsed(body: bytes, shape: type[T]) -> T:
    """An answer as `shape`; raises `SignoffError` for an answer that is none of the gateway's."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SignoffError(
            f"The answer is not one of a Signoff gateway of this version ({error}); check the address."
        ) from None


class _Page(Struct):
    data: list[msgspec.Raw]
    next: str | int | None = None


def page(body: bytes, shape: type[T]) -> tuple[list[T], str | None]:
    """The items of a list answer, and the cursor of the next page."""
    found = parsed(body, _Page)
    cursor = None if found.next is None else str(found.next)
    return [parsed(bytes(item), shape) for item in found.data], cursor


class _Detail(Struct):
    message: str = ""
    type: str | None = None
    code: str | None = None
    param: str | None = None


class _Failure(Struct):
    error: _Detail


def failure(status: int, body: bytes) -> SignoffError:
    """The error that an answer stands for, by its code; by its status where it has none."""
    try:
        detail = msgspec.json.decode(body, type=_Failure).error
        raw = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        detail, raw = _Detail(), {}
    code = detail.code or ""
    message = detail.message or f"The gateway answered with HTTP {status}."
    facts = {key: value for key, value in {**raw, **raw.get("error", {})}.items() if key not in _KNOWN}
    if code in CLAIM_CODES:
        return ClaimRefused(message, code=code, **facts)
    if code in ACTION_CODES:
        return ActionRefused(message, code=code, **facts)
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, SignoffError)
    return kind(message, param=detail.param, **facts)


_KNOWN = frozenset({"error", "message", "type", "code", "param", "self"})
_BY_STATUS: dict[int, type[SignoffError]] = {
    400: InvalidInput,
    401: Unauthenticated,
    403: InsufficientScope,
    404: NotFound,
    409: Conflict,
    413: BodyTooLarge,
    422: InvalidInput,
}


def _tree(root: type[SignoffError]) -> dict[str, type[SignoffError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        # Those two are made with facts of their own and never come as a plain answer.
        if not issubclass(child, (ActionRefused, AdapterError, ClaimRefused)):
            found.update(_tree(child))
    return found


_BY_CODE = _tree(SignoffError)


def refused(found: ApprovalRecord, error: ClaimRefused) -> ApprovalRecord:
    """The record of an approval that may not be run (any more), with a message that says so."""
    message = found.message
    if not message.startswith(("BLOCKED:", "STAGED:")):
        blocked = error.message.startswith("BLOCKED: ")
        message = error.message if blocked else f"BLOCKED: {error.claim_code}. {error.message}"
    return msgspec.structs.replace(found, claimed_here=False, message=message)

"""The one tree of errors. Every error has a stable `code`, and its text says what happened and what to do next.

The server turns a code into an HTTP status, the command line into an exit code, an adapter into an answer;
nothing matches on text.
"""

from __future__ import annotations

from typing import Any, ClassVar


class SignoffError(Exception):
    """Something in Signoff went wrong."""

    code: str = "signoff_error"
    """The stable word: of the class, or where a class has several, of this very error."""
    status: ClassVar[int] = 500
    """HTTP status of this error at the server's edge."""

    def __init__(self, message: str = "", *, param: str | None = None, **facts: Any) -> None:
        self.message = message or self.summary()
        self.param = param
        self.facts = facts
        super().__init__(self.message)

    @classmethod
    def summary(cls) -> str:
        """What an error of this class says of itself; without docstrings (`python -OO`) its stable word has to do."""
        return next(iter((cls.__doc__ or "").strip().splitlines()), cls.code)


class InvalidInput(SignoffError):
    """The request could not be understood."""

    code = "invalid_request"
    status = 422


class ChoiceNotOffered(SignoffError):
    """This choice is not on offer for this request; nothing was decided."""

    code = "choice_not_offered"
    status = 400


class Unauthenticated(SignoffError):
    """No valid API key was given. Send `Authorization: Bearer <key>`; make one with `signoff key create`."""

    code = "invalid_api_key"
    status = 401


class InsufficientScope(SignoffError):
    """This key may not do that. Use a key of the scope that the message names."""

    code = "insufficient_scope"
    status = 403


class KindNotAllowed(SignoffError):
    """This agent may not declare sessions of that kind. Add it to agents.<name>.kinds."""

    code = "kind_not_allowed"
    status = 403


class DestinationNotAllowed(SignoffError):
    """This agent may not ask in that place. Add it to agents.<name>.destinations."""

    code = "destination_not_allowed"
    status = 403


class NotPermitted(SignoffError):
    """This person may not do that; nothing changed."""

    code = "not_permitted"
    status = 403


class NotFound(SignoffError):
    """There is no such thing here."""

    code = "not_found"
    status = 404


class RequestNotFound(NotFound):
    """No approval request with this id is known to this key."""

    code = "approval_not_found"


class SessionNotFound(NotFound):
    """No session with this id is known to this key. Declare it: `session(id)` in Python, `PUT /v1/sessions/{id}`."""

    code = "session_not_found"


class TurnNotFound(NotFound):
    """No turn with this id was ever opened. Open it: `turn(session)` in Python, `POST /v1/sessions/{id}/turns`."""

    code = "turn_not_found"


class GrantNotFound(NotFound):
    """No live grant with this id."""

    code = "grant_not_found"


class DrillNotFound(NotFound):
    """There is no drill with this id."""

    code = "drill_not_found"


class KeyNotFound(NotFound):
    """No API key with this id."""

    code = "key_not_found"


class Conflict(SignoffError):
    """The state of the thing does not allow that any more."""

    code = "conflict"
    status = 409


class AllowlistInFile(Conflict):
    """With this store each profile's allowlist.toml is its allowlist: edit the file, which is followed at once."""

    code = "allowlist_in_file"


class AlreadyResolved(Conflict):
    """The request had already ended; nothing was changed. `approval` holds how it ended."""

    code = "already_resolved"


class IdempotencyConflict(Conflict):
    """This request_id was used for another action or session. Use a new id for a new question."""

    code = "idempotency_conflict"


class TurnEnded(Conflict):
    """This turn has ended; open a new one."""

    code = "turn_ended"


class ClaimRefused(Conflict):
    """The approval does not allow a run now. `code` says why."""

    code = "not_approved"

    def __init__(self, message: str, *, code: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.code = self.claim_code = code


class ActionRefused(Conflict):
    """The kept action does not allow that now; nothing changed. `code` says why."""

    code = "not_approved"

    def __init__(self, message: str, *, code: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.code = code


class TooManyKept(Conflict):
    """Too many actions of this agent are kept and wait for people. Have them answered first; trying again is no use."""

    code = "too_many_kept"


class GatePassRefused(SignoffError):
    """This one-time token of the tool gate does not stand for this call. Ask for it without the token."""

    code = "gate_token_refused"
    status = 403


class UndoTooLate(Conflict):
    """The action was already started, so the approval cannot be taken back."""

    code = "too_late"


class BodyTooLarge(SignoffError):
    """The body is over 1 MiB. Send less, or put long content into a file that the action names."""

    code = "body_too_large"
    status = 413


class ConfigError(SignoffError):
    """A setting is wrong. The message names it and the mend."""

    code = "config_error"


class StoreError(SignoffError):
    """The store could not do that; nothing was saved."""

    code = "store_error"
    status = 503


class StoreUnavailable(StoreError):
    """The store cannot be written right now; nothing was saved. Try again."""

    code = "store_unavailable"


class SaveUnknown(StoreUnavailable):
    """It is not known whether that was saved. Look what became of it before you ask for it again."""

    code = "save_unknown"
    status = 500  # no 503: nobody may ask again unseen


class StoreTooNew(StoreError):
    """The store was written by a newer Signoff. Install that version, or point `gateway.store` elsewhere."""

    code = "store_too_new"


class StoreCorrupt(StoreError):
    """The store's file is damaged. Restore a backup, or move the file away to start empty."""

    code = "store_corrupt"


class Busy(SignoffError):
    """The session kept changing while the action was judged; nothing was asked. Try again."""

    code = "busy"
    status = 503


class GatewayUnreachable(SignoffError):
    """No gateway answers. Start one with `signoff serve`, or set SIGNOFF_URL."""

    code = "gateway_unreachable"
    status = 503


class AdapterError(SignoffError):
    """A chat platform refused or failed."""

    code = "adapter_error"
    status = 502


class RateLimited(AdapterError):
    """The platform asks us to wait before we send again."""

    code = "rate_limited"

    def __init__(self, message: str = "", *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AdapterUnavailable(AdapterError):
    """The platform could not be reached, so nothing was sent; it is tried again."""

    code = "adapter_unavailable"


class SendAmbiguous(AdapterError):
    """The message may or may not have been posted: the answer was lost."""

    code = "send_ambiguous"


class SendRefused(AdapterError):
    """The platform refused this message for good."""

    code = "send_refused"


class MessageGone(AdapterError):
    """The message to edit does not exist any more."""

    code = "message_gone"


class ChatMoved(AdapterError):
    """The chat has a new id."""

    code = "chat_moved"

    def __init__(self, message: str = "", *, new_chat_id: str) -> None:
        super().__init__(message)
        self.new_chat_id = new_chat_id


class AdapterFatal(AdapterError):
    """The platform will not serve us until an operator mends something, such as the token."""

    code = "adapter_fatal"

"""Exit codes, once. 75 and 77 are those of sysexits.h: EX_TEMPFAIL and EX_NOPERM."""

from __future__ import annotations

from signoff.client.records import ApprovalRecord
from signoff.errors import ClaimRefused, ConfigError, GatewayUnreachable, InvalidInput, SignoffError, StoreError

OK = 0
OTHER = 1
USAGE = 2
NOBODY = 75
"""Nobody could be asked: no gateway, a key that it does not take, no way to a person."""
NOT_APPROVED = 77
KEPT = 79
"""The action did not run: it is kept, and run for whoever asked once a person approves it. Next after the numbers that
sysexits.h has given out."""
NOT_FOUND = 127
"""As a shell: there is no such program."""
INTERRUPTED = 130
"""128 and SIGINT's number, as a shell says it."""

_NOBODY_CAUSES = frozenset({"no_prompt", "prompt_failed", "client_cannot_answer"})
_NOBODY_SETTINGS = frozenset({"unattended_mode", "cron_mode", "single_query_mode"})


def code_of(error: SignoffError) -> int:
    """The exit code of an error."""
    if isinstance(error, (InvalidInput, ConfigError)):
        return USAGE
    if isinstance(error, (GatewayUnreachable, StoreError)):
        return NOBODY
    return NOT_APPROVED if isinstance(error, ClaimRefused) else OTHER


def code_of_asking(error: SignoffError) -> int:
    """The exit code of an error that kept a question from being asked."""
    code = code_of(error)
    return NOBODY if code == OTHER else code


def code_of_record(record: ApprovalRecord) -> int:
    """The exit code of a question's end."""
    if record.may_run:
        return OK
    if record.outcome == "staged":
        return KEPT
    if record.outcome == "notify_failed" or record.cause in _NOBODY_CAUSES:
        return NOBODY
    named = (who.setting.partition(" ")[0] for who in record.decided_by if who.setting)
    settings = {setting.rpartition(".")[2] for setting in named}
    return NOBODY if record.outcome == "blocked" and settings & _NOBODY_SETTINGS else NOT_APPROVED

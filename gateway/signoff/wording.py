"""The words that several surfaces share: texts of the catalogue, names of people, causes, periods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

from signoff.changes.bypassing import BYPASS
from signoff.changes.grants import exact_label, exact_only, time_box
from signoff.clipping import cut_name
from signoff.display import REMEMBERED_CHARS, shown, shown_beginning
from signoff.durations import clock, window
from signoff.ids import called
from signoff.model import Actor, ApprovalRequest, Command, Covered, Elicitation, FileWrite, Session, replace
from signoff.policy.protected import PROTECTED_KEY
from signoff.texts import Catalogue

PlaceTitle = Callable[[str], str]
"""A platform's name for people, by its key."""

SHORT_PLATFORMS = {"telegram": "tg", "discord": "dc"}
"""Short names for accounts in brackets."""

NAME_CHARS = 512
"""Of a name that is longer than what is remembered so much is looked at."""

LEASE_WORDS_S = 60.0
"""The silence after which an agent is counted as gone, as texts name it where the turn's own is not known."""


@lru_cache(maxsize=1)
def _texts() -> Catalogue:
    return Catalogue.load()


def t(key: str, /, **values: str | int) -> str:
    """A text of the catalogue."""
    return _texts().filled(key, values)


def safe_name(text: str) -> str:
    """A name out of somebody else's hands: masked, escaped, on one line, at most 40 units. Of a very long one only the
    beginning is looked at.

    The same few agents, hosts and people stand on every card, so the last ones are remembered.
    """
    return _short_name(text) if len(text) <= REMEMBERED_CHARS else _long_name(text)


def session_name(session_id: str) -> str:
    """A session, for people."""
    return safe_name(called(session_id))


def _name(text: str) -> str:
    return cut_name(_one_line(shown(text, prose=True)), note=lambda n: t("clip.hidden_short", count=n)).text


def _one_line(text: str) -> str:
    """What begins a line on a card is read as words of our own."""
    return text.replace("\n", " ")


_short_name = lru_cache(maxsize=2048)(_name)


def _long_name(text: str) -> str:
    beginning, behind = _one_line(shown_beginning(text, NAME_CHARS, prose=True)), len(text) - NAME_CHARS
    return cut_name(beginning, note=lambda n: t("clip.hidden_short", count=n), behind_chars=behind).text


def person_name(actor: Actor | None) -> str:
    """Who a person is, for people: the principal's name where bound, else the name with the account."""
    if actor is None:
        return "Signoff"
    if actor.principal:
        return safe_name(actor.principal)
    if actor.type == "grant":
        return actor.grant_id or t("who.grant")
    if actor.type == "agent":
        return safe_name(actor.name) if actor.name else t("who.agent")
    if actor.platform == "local":
        return t("who.operator", user=actor.user_id or "")
    platform = SHORT_PLATFORMS.get(actor.platform or "", actor.platform or "key")
    account = f"{platform} {actor.user_id or actor.key_id or ''}".strip()
    if actor.name:
        return t("who.unbound", name=safe_name(actor.name), account=safe_name(account))
    return safe_name(account)


def people(actors: tuple[Actor, ...]) -> str:
    """Several people in a sentence."""
    names = [person_name(a) for a in actors]
    if len(names) < 2:
        return "".join(names)
    return t("list.and", first=", ".join(names[:-1]), last=names[-1])


def agent_name(row: ApprovalRequest) -> str:
    """The agent, for people."""
    return safe_name(row.agent) if row.agent else t("who.agent")


def by_policy(table: str, by: Actor) -> str:
    """The sentence of a setting's or a rule's decision, or of a bypass."""
    if by.rule == BYPASS and by.setting:
        return t(f"{table}.bypass", setting=by.setting)
    if by.setting:
        return t(f"{table}.setting", setting=by.setting)
    return t(f"{table}.rule", rule=by.rule or "policy")


def bypass_words(session: Session) -> str:
    """What a record names that a bypass let pass; it is kept, so it has the whole date. Empty without a bypass."""
    if session.bypass_until is None:
        return ""
    until = f"{session.bypass_until.astimezone(UTC):%Y-%m-%d %H:%M UTC}"
    return t("reply.yolo_record", until=until, person=person_name(session.bypass_by))


def blocked_text(table: str, row: ApprovalRequest, by: Actor) -> str:
    """The sentence of a blocked action: by a rule, by a setting, or for a file that only people may let change."""
    if by.rule == PROTECTED_KEY:
        path = row.action.path if isinstance(row.action, FileWrite) else ""
        return t(f"{table}.protected", file=safe_name(path))
    return by_policy(table, by)


def since_denied_s(row: ApprovalRequest) -> float:
    """How long before this one was asked a person had denied the same, in seconds."""
    return max(0.0, (row.created_at - row.repeat_at).total_seconds()) if row.repeat_at is not None else 0.0


def first_operand(row: ApprovalRequest) -> str:
    """The reviewed file, for people."""
    operands = getattr(row.action, "operands", ())
    return safe_name(operands[0].path) if operands else "a file"


def window_s(row: ApprovalRequest) -> float:
    """How long the question could be answered, in seconds, for texts about a window that passed."""
    return (row.timeout_s or 0.0) + row.stretched_s


def silence_s(row: ApprovalRequest) -> float:
    """How long the agent could be silent before it counted as gone, in seconds."""
    return LEASE_WORDS_S if row.lease_s is None else row.lease_s


def claim_window_s(row: ApprovalRequest) -> float:
    """How long a lapsed approval waited for its start, in seconds."""
    if row.decided_at is None or row.execution.ended_at is None:
        return 0.0
    return round((row.execution.ended_at - row.decided_at).total_seconds())


def undelivered(table: str, row: ApprovalRequest, title: PlaceTitle) -> str:
    """Why nobody could be asked, in the card's or the summary's form: a place refused it only where one did."""
    cause = shown((row.delivery_error or "no answer").rstrip("."), prose=True)
    if row.refused_by is not None:
        return t(f"{table}.refused", place=title(row.refused_by.platform), cause=cause)
    return t(f"{table}.silent", cause=cause) if row.destinations else t(f"{table}.no_place")


def once_label(row: ApprovalRequest, runs: int) -> str:
    """The button of the plain yes, where so many wait with it."""
    if isinstance(row.action, Elicitation):
        return t("button.accept_of", count=runs) if runs > 1 else t("button.accept")
    if row.stages is not None:
        return t("button.approve_and_run_critical" if row.severity == "critical" else "button.approve_and_run")
    if row.severity == "critical":
        return t("button.once_critical")
    return t("button.once_of", count=runs) if runs > 1 else t("button.once")


def deny_label(row: ApprovalRequest, runs: int) -> str:
    """The button of the no."""
    word = "decline" if isinstance(row.action, Elicitation) else "deny"
    return t(f"button.{word}_all", count=runs) if runs > 1 else t(f"button.{word}")


def because_label(row: ApprovalRequest) -> str:
    """The button of the no with a reason."""
    return t("button.decline_because" if isinstance(row.action, Elicitation) else "button.deny_because")


def always_words(row: ApprovalRequest) -> tuple[str, str]:
    """The label of a permanent approval, and the sentence that says how far it reaches."""
    profile = safe_name(row.profile)
    if isinstance(row.action, Command):
        label = t("button.always_exact", label=granted_label(row, "always"))
        return label, t("panel.always_exact", profile=profile, label=row.label)
    if exact_only(row.action):
        return t("button.always_exact", label=granted_label(row, "always")), t("panel.always_this", profile=profile)
    return (
        t("button.always_class", label=row.label),
        t("panel.always_class", breadth=shown(row.breadth, prose=True), profile=profile),
    )


def granted_label(row: ApprovalRequest, choice: str) -> str:
    """What the answer allows, in a few words: a permanent one may cover only this exact action."""
    return exact_label(row.action) if choice == "always" and exact_only(row.action) else row.label


def approved_text(table: str, row: ApprovalRequest, now: datetime) -> str:
    """The approval's own sentence, in the card's or the summary's form."""
    by = row.decided_by[0] if row.decided_by else Actor(type="policy", rule="policy")
    label = row.label
    if by.type == "grant":
        return _granted_text(table, row, by, now)
    if by.type == "policy":
        return by_policy(table, by)
    choice = row.choice or "once"
    name = people(row.decided_by)
    if isinstance(row.action, Elicitation):
        if table == "verdict.approved" and row.asked_runs > 1:
            return t(f"{table}.accepted_of", person=name, count=row.asked_runs)
        return t(f"{table}.accepted", person=name)
    if row.stages is not None:
        return t(f"{table}.kept", person=name)
    box = time_box(choice)
    if box:
        until = clock((row.decided_at or now) + box, now=now)
        return t(f"{table}.time_box", person=name, clock=until, label=label)
    if choice in ("session", "always"):
        return t(f"{table}.{choice}", person=name, label=granted_label(row, choice))
    if choice == "once_all" and row.runs > 1:  # one that waited with others counts its own run alone
        return t(f"{table}.once_all", person=name, count=row.runs)
    if table == "verdict.approved" and row.asked_runs > 1:
        return t(f"{table}.once_of", person=name, count=row.asked_runs)
    return t(f"{table}.once", person=name)


def _granted_text(table: str, row: ApprovalRequest, by: Actor, now: datetime) -> str:
    """A summary says all of it; on a card the rest stands behind the verdict."""
    grant = by.grant_id or ""
    if table != "summary.approved":
        return t(f"{table}.grant", grant=grant)
    person = person_name(person_behind(by))
    if row.covered is None:
        return t(f"{table}.grant_only", grant=grant, person=person)
    return t(f"{table}.grant", grant=grant, person=person, **_wide(row.covered, now))


def grant_origin(row: ApprovalRequest, now: datetime) -> str:
    """Of what a standing approval answered: who gave that, and how wide it is. Empty for all else."""
    by = row.decided_by[0] if row.decided_by else None
    if by is None or by.type != "grant" or row.covered is None:
        return ""
    return t("ending.grant_origin", person=person_name(person_behind(by)), **_wide(row.covered, now))


def _wide(covered: Covered, now: datetime) -> dict[str, str | int]:
    """The scope and label of a standing approval."""
    if covered.scope == "time_box" and covered.until is not None:
        return {"scope": t("scope.time_box", clock=clock(covered.until, now=now)), "label": covered.label}
    return {"scope": t(f"scope.{covered.scope}"), "label": covered.label}


def no_word(row: ApprovalRequest) -> str:
    """The texts of a person's no: a server's question is declined, an action is denied."""
    return "declined" if isinstance(row.action, Elicitation) else "denied"


def answer_word(row: ApprovalRequest) -> str:
    """How it ended, as the catalogue's key: a server's question is accepted or declined, all else has its outcome."""
    if row.outcome == "approved":
        return "accepted" if isinstance(row.action, Elicitation) else "approved"
    return no_word(row) if row.outcome == "denied" else row.outcome or "pending"


def person_behind(by: Actor) -> Actor:
    """The person behind a grant's actor."""
    return replace(by, type="person", grant_id=None)


def cause_words(row: ApprovalRequest, now: datetime, *, with_clock: bool = False) -> tuple[str, dict[str, str | int]]:
    """The catalogue's key and values of a cancellation's cause: a person is named where a person did it."""
    cause = row.cause or "withdrawn"
    person = row.ended_by if row.ended_by is not None and row.ended_by.type == "person" else None
    values: dict[str, str | int] = {}
    if cause == "requester_gone":
        values["duration"] = window(silence_s(row))
    if cause == "superseded":
        values["id"] = row.superseded_by or ""
    if cause == "stop_requested" and person is None:
        cause = "stop_requested_unnamed"
    elif cause in ("stop_requested", "undone"):
        values["person"] = person_name(person)
    elif cause == "session_ended" and person is not None:
        cause, values["person"] = "session_ended_by", person_name(person)
    if with_clock and cause.startswith("stop_requested"):
        values["clock"] = clock(row.decided_at or now, now=now)
    return cause, values

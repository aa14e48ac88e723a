"""What a typed message asks for: a command, something that looks like one, or neither. Pure; never raises.

A command begins with `/verb`, `!verb` or, in a message addressed to us, the bare verb. Its words are separated by
blanks, in any case. Only what the grammar names can approve: one word too many, or one that is not known, makes the
whole command decide nothing. Words that merely sound like an answer (`ok`, `yes`, a thumb) are recognised so that
they can be answered, and decide nothing unless the profile lets them.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from signoff.changes.grants import time_box
from signoff.clipping import cut_reason
from signoff.ids import SHORT_LENGTH, is_short

Verb = Literal["approve", "deny", "stop", "new", "pending", "grants", "revoke", "yolo", "why", "undo", "help"]
VERBS: tuple[Verb, ...] = (
    *("approve", "deny", "stop", "new", "pending", "grants", "revoke", "yolo", "why", "undo", "help"),
)
ALIASES: dict[str, Verb] = {"reset": "new", "start": "help", "accept": "approve", "decline": "deny"}
"""Other words for a verb; `accept` and `decline` are what the buttons of a server's question say."""
WITH_ID: frozenset[Verb] = frozenset({"revoke", "why", "undo"})

MAX_HEAD = 200
"""A verb and its `@bot` are shorter; a longer first word is not compared with the verbs."""
MAX_LOOSE_WORDS = 8
"""A longer message that begins with `ok` is talk, not an answer."""

_YES = (
    "ok okay okey k yes yep yeah yup y sure agreed lgtm approve approved allow allowed accept accepted confirm "
    "confirmed 👍 ✅ 👌 🆗 ✔"
)
_NO = "no nope nah n deny denied reject rejected don't dont 👎 ❌ 🚫 ⛔"
_EITHER = "fine agree go continue proceed cancel stop 🙏"
YES_WORDS: frozenset[str] = frozenset(_YES.split())
NO_WORDS: frozenset[str] = frozenset(_NO.split())
"""What a word alone says, where a profile lets it answer; the others are as likely meant for the agent."""
LOOSE_WORDS: frozenset[str] = YES_WORDS | NO_WORDS | frozenset(_EITHER.split())
"""First words that somebody may take for an answer."""

_HEAD = re.compile(r"([/!])([A-Za-z_]+)(?:@[A-Za-z0-9_.-]*)?")
_MENTION = re.compile(r"(?:@[A-Za-z0-9_.-]+|<@[!A-Za-z0-9_|.-]+>)[,:]?")
_OUTER = "\"'“”‘’.,;:!?…()*_~`"
_EMOJI_DRESS = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
"""Emoji style and skin tones, which change no meaning."""


class NotACommand(Struct, frozen=True):
    """Conversation."""


class Loose(Struct, frozen=True):
    """It sounds like an answer. `word` is one of `LOOSE_WORDS`."""

    word: str


class Unknown(Struct, frozen=True):
    """It is written like a command, with a verb that is none. `near` is the one that was perhaps meant."""

    word: str
    near: Verb | None = None


class Approve(Struct, frozen=True, kw_only=True):
    """`approve [id|all] [once|session|always|30m]`. `choice` None: none was typed."""

    target: str | None = None
    everything: bool = False
    choice: str | None = None


class Deny(Struct, frozen=True, kw_only=True):
    """`deny [id|all] [reason]`. A `target` that is not known must decide nothing: it may be an id mistyped."""

    target: str | None = None
    everything: bool = False
    reason: str | None = None
    cut: int = 0
    """How many characters of the reason were over the limit."""


class Other(Struct, frozen=True, kw_only=True):
    """A command that decides nothing. `target` is an id in capitals, `word` what stands in its place and is none."""

    verb: Verb
    target: str | None = None
    word: str | None = None


class Yolo(Struct, frozen=True, kw_only=True):
    """`yolo [minutes|off]`. `minutes` None: none were typed. `word`: it is neither, so nothing is done."""

    minutes: int | None = None
    off: bool = False
    word: str | None = None


class Unclear(Struct, frozen=True, kw_only=True):
    """An approval with a word that the grammar does not have, or one too many. It decides nothing."""

    word: str
    like_id: bool = False
    """The word is perhaps an id with a letter that ids do not have."""


Typed = NotACommand | Loose | Unknown | Approve | Deny | Other | Yolo | Unclear


def parse(text: str, *, addressed: bool = False) -> Typed:
    """What `text` asks for. `addressed`: it names the bot or replies to it, so that a bare verb counts."""
    words = text.split()
    named = bool(words and _MENTION.fullmatch(words[0][:MAX_HEAD]))
    if named:
        words = words[1:]
    if words and words[0].isascii() and words[0].lower() == "/signoff":
        words = [f"/{words[1]}", *words[2:]] if len(words) > 1 else ["/help"]
    if not words:
        return NotACommand()
    head = _HEAD.fullmatch(words[0]) if len(words[0]) <= MAX_HEAD else None
    if head is not None:
        return _prefixed(head[1], head[2].lower(), words[1:])
    bare = _verb(words[0].lower()) if words[0].isascii() else None
    if addressed and bare is not None:
        said = _command(bare, words[1:])
        return said if _exact(said, words[1:]) else NotACommand()
    return _loose(words)


def is_command(typed: Typed) -> bool:
    """Whether it was written as one of our commands, understood or not."""
    return isinstance(typed, Approve | Deny | Other | Yolo | Unclear)


def reads(typed: Typed) -> bool:
    """Whether it changes nothing, so that it can be done once more."""
    if isinstance(typed, Other):
        shown = ("pending", "grants", "why", "help")
        return typed.verb in shown or (typed.verb == "revoke" and not typed.target and not typed.word)
    return isinstance(typed, Unclear | Unknown | NotACommand)


def _verb(word: str) -> Verb | None:
    for verb in VERBS:
        if word == verb:
            return verb
    return ALIASES.get(word)


def _prefixed(prefix: str, word: str, rest: list[str]) -> Typed:
    verb = _verb(word)
    if verb is not None:
        return _command(verb, rest)
    near = nearest(word)
    return NotACommand() if prefix == "!" and near is None else Unknown(word, near)


def _command(verb: Verb, rest: list[str]) -> Typed:
    if verb == "approve":
        return _approve(rest)
    if verb == "deny":
        return _deny(rest)
    if verb == "yolo":
        return _yolo(rest)
    if verb not in WITH_ID or not rest:
        return Other(verb=verb)
    target = _short_id(rest[0])
    return Other(verb=verb, target=target, word=None if target else rest[0])


def _exact(said: Typed, rest: list[str]) -> bool:
    """Where nothing is decided, a bare verb is a command only with nothing else around it: `stop by the office` is
    talk."""
    if isinstance(said, Yolo):
        return said.word is None
    return not isinstance(said, Other) or len(rest) == (said.target is not None)


def _approve(rest: list[str]) -> Typed:
    target: str | None = None
    choice: str | None = None
    everything = False
    for word in rest:
        lower = word.lower() if word.isascii() else word
        short = _short_id(word)
        if short is not None and target is None and not everything:
            target = short
        elif lower == "all" and target is None and not everything:
            everything = True
        elif choice is None and short is None and (lower in ("once", "session", "always") or time_box(lower)):
            choice = lower
        else:
            return Unclear(word=word, like_id=_like_id(word))
    return Approve(target=target, everything=everything, choice=choice)


def _deny(rest: list[str]) -> Deny:
    target = _short_id(rest[0]) if rest else None
    everything = bool(rest) and rest[0].isascii() and rest[0].lower() == "all"
    words = rest[1:] if target or everything else rest
    reason = cut_reason(" ".join(words))
    return Deny(target=target, everything=everything, reason=reason.text or None, cut=reason.hidden_chars)


def _yolo(rest: list[str]) -> Yolo:
    if not rest:
        return Yolo()
    word = rest[0].lower() if rest[0].isascii() else rest[0]
    box = time_box(f"{word}m") or time_box(word)
    if len(rest) > 1 or (word != "off" and box is None):
        return Yolo(word=rest[-1] if len(rest) > 1 else rest[0])
    return Yolo(off=True) if box is None else Yolo(minutes=round(box.total_seconds() / 60))


def _short_id(word: str) -> str | None:
    """The id in capitals. `1440m` has an id's form too and is read as one: a day is written `24h`."""
    return word.upper() if word.isascii() and is_short(word) else None


def _like_id(word: str) -> bool:
    plain = len(word) == SHORT_LENGTH and word.isascii() and word.isalnum()
    return plain and any(c.isdigit() for c in word) and any(c.isalpha() for c in word)


def loose_answer(text: str) -> Literal["approve", "deny"] | None:
    """What a loose word says where it is the whole message, but for a full stop or exclamation marks behind it."""
    words = text.split()
    if len(words) != 1 or len(words[0]) > MAX_HEAD:
        return None
    word = _plain(words[0].rstrip(".!"))
    return "approve" if word in YES_WORDS else "deny" if word in NO_WORDS else None


def _loose(words: list[str]) -> Typed:
    if len(words) > MAX_LOOSE_WORDS or len(words[0]) > MAX_HEAD:
        return NotACommand()
    word = _plain(words[0].strip(_OUTER))
    return Loose(word) if word in LOOSE_WORDS else NotACommand()


def _plain(word: str) -> str:
    """The word as the tables have it."""
    return "".join(c for c in word.replace("’", "'").lower() if c not in _EMOJI_DRESS)


def nearest(word: str) -> Verb | None:
    """The verb that `word` is a slip of: one wrong, missing, surplus or swapped letter, two in longer verbs."""
    best: tuple[int, Verb] | None = None
    for name, verb in [*((v, v) for v in VERBS), *ALIASES.items()]:
        allowed = 1 if len(name) <= 5 else 2
        if abs(len(word) - len(name)) > allowed:
            continue
        slips = _slips(word, name)
        if slips <= allowed and (best is None or slips < best[0]):
            best = (slips, verb)
    return best[1] if best else None


def _slips(one: str, other: str) -> int:
    """How many letters must be changed, left out, put in or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        following = [i]
        for j, b in enumerate(other, 1):
            cost = min(row[j] + 1, following[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            following.append(cost)
        before, row = row, following
    return row[-1]

"""What a person reads of Discord's markup: enough to tell shown from hidden, clickable and notifying words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.platforms.telegram.clock import moment

MENTION_EVERYONE = ("everyone", "here")
FENCE = re.compile(r"```(?:([A-Za-z0-9_+\-.#]+)\n)?\n*(.+?)```", re.DOTALL)
INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
ESCAPE = re.compile(r"\\([^0-9A-Za-z\s])")
TIME = re.compile(r"<t:(-?\d{1,13})(?::([tTdDfFR]))?>")
MENTION = re.compile(r"<(@!?|@&|#)(\d{1,20})>")
MASKED = re.compile(r"\[((?:\\.|[^\[\]\\])+)\]\(\s*<?(https?://[^\s<>)]+)>?(?:\s+\"[^\"]*\")?\s*\)")
ANGLED = re.compile(r"<((?:https?://|mailto:|tel:)[^\s<>]+)>")
BARE = re.compile(r"https?://[^\s<]+[^<.,:;\"'\]\s)]", re.IGNORECASE)
COMMAND = re.compile(r"</([^:>]{1,100}):\d{1,20}>")
SPOILER = re.compile(r"\|\|(.+?)\|\|", re.DOTALL)
PAIRS = (
    re.compile(r"\*\*\*(\S(?:.*?\S)??)\*\*\*", re.DOTALL),
    re.compile(r"\*\*(\S(?:.*?\S)??)\*\*", re.DOTALL),
    re.compile(r"__(.+?)__(?!_)", re.DOTALL),
    re.compile(r"~~(.+?)~~", re.DOTALL),
    re.compile(r"(?<![*\w])\*(?=\S)([^*]+?)(?<=\S)\*(?!\*)", re.DOTALL),
    re.compile(r"(?<![_\w])_([^_]+?)_(?!\w)", re.DOTALL),
)
QUOTE = re.compile(r"^(?:> ?|>>> )(?=.)", re.MULTILINE)
SMALL = re.compile(r"^-# +(.+)$", re.MULTILINE)
HEADING = re.compile(r"^#{1,3} +(?=\S)", re.MULTILINE)
EVERYONE = re.compile(r"(?<!\w)@(everyone|here)\b")
USER_MARK = re.compile(r"<@!?(\d{1,20})>")
ROLE_MARK = re.compile(r"<@&(\d{1,20})>")
KEEP = "\ue000{}\ue001"
KEPT = re.compile("\ue000(\\d+)\ue001")


@dataclass
class Reading:
    """What is read, and what about it is special."""

    text: str = ""
    links: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    spoilers: list[str] = field(default_factory=list)
    small: list[str] = field(default_factory=list)
    timestamps: list[str] = field(default_factory=list)


class _Reader:
    """Takes finished pieces out of the text, so that later rules cannot touch them, and puts them back at the end."""

    def __init__(self, name_of: Callable[[str], str | None], now: float) -> None:
        self.reading = Reading()
        self._name_of = name_of
        self._now = now
        self._pieces: list[str] = []

    def keep(self, shown: str) -> str:
        """A mark that stands for a finished piece."""
        self._pieces.append(shown)
        return KEEP.format(len(self._pieces) - 1)

    def restore(self, text: str) -> str:
        """The text with the pieces back in it."""
        while KEPT.search(text):
            text = KEPT.sub(lambda found: self._pieces[int(found[1])], text)
        return text

    def fence(self, found: re.Match[str]) -> str:
        """A code block: its content alone is shown; a lone first word is content, not a language."""
        body = found[2].removesuffix("\n")
        self.reading.code.append(body)
        return self.keep(body)

    def inline(self, found: re.Match[str]) -> str:
        """Code in a line."""
        return self.keep(found[2].strip(" ") or found[2])

    def time(self, found: re.Match[str]) -> str:
        """A time in the reader's zone, here UTC."""
        self.reading.timestamps.append(found[0])
        return self.keep(show_time(int(found[1]), found[2] or "f", self._now))

    def mention(self, found: re.Match[str]) -> str:
        """A user, role or channel by name, which can be clicked."""
        kind = {"@&": "role", "#": "channel"}.get(found[1], "user")
        name = self._name_of(f"{kind}:{found[2]}")
        if name is None:
            return found[0]
        self.reading.links.append(name)
        return self.keep(name)

    def masked(self, found: re.Match[str]) -> str:
        """A word that hides an address."""
        self.reading.links.append(self.restore(found[1]))
        return found[1]

    def address(self, found: re.Match[str]) -> str:
        """An address, with or without angle brackets."""
        shown = found[1] if found.re is ANGLED else found[0]
        self.reading.links.append(shown)
        return self.keep(shown)

    def command(self, found: re.Match[str]) -> str:
        """A slash command that can be clicked."""
        self.reading.links.append(f"/{found[1]}")
        return self.keep(f"/{found[1]}")


def read(content: str, *, name_of: Callable[[str], str | None], now: float) -> Reading:
    """Interpret `content`; `name_of` gives the name of `user:1`, `role:1` or `channel:1`; `now` is for `<t:…:R>`.

    Not a client's whole grammar: lists and headings keep their text, and a quotation loses its mark.
    """
    reader = _Reader(name_of, now)
    text = content.replace("\ue000", "").replace("\ue001", "")
    text = _outside_escapes(text, FENCE, reader.fence)
    text = _outside_escapes(text, INLINE, reader.inline)
    text = ESCAPE.sub(lambda found: reader.keep(found[1]), text)
    for rule, handle in (
        (TIME, reader.time),
        (COMMAND, reader.command),
        (MENTION, reader.mention),
        (MASKED, reader.masked),
        (ANGLED, reader.address),
        (BARE, reader.address),
    ):
        text = rule.sub(handle, text)
    for hidden in SPOILER.findall(text):
        reader.reading.spoilers.append(reader.restore(hidden))
    text = SPOILER.sub(r"\1", text)
    for rule in PAIRS:
        text = rule.sub(r"\1", text)
    text = QUOTE.sub("", text)
    reader.reading.small.extend(reader.restore(line) for line in SMALL.findall(text))
    text = HEADING.sub("", SMALL.sub(r"\1", text))
    reader.reading.text = reader.restore(text)
    reader.reading.links = [reader.restore(each) for each in reader.reading.links]
    return reader.reading


def _outside_escapes(text: str, rule: re.Pattern[str], handle: Callable[[re.Match[str]], str]) -> str:
    """Apply a rule for code where no backslash takes away the meaning of its first mark."""

    done, at, kept = 0, 0, []
    while (found := rule.search(text, at)) is not None:
        before = text[: found.start()]
        if (len(before) - len(before.rstrip("\\"))) % 2:
            at = found.start() + 1
            continue
        kept += [text[done : found.start()], handle(found)]
        done = at = found.end()
    return "".join(kept) + text[done:]


def show_time(unix_s: int, style: str, now: float) -> str:
    """A `<t:…>` as shown, in UTC and English."""
    at = moment(unix_s)
    if style == "R":
        return _relative(unix_s - now)
    return {
        "t": f"{at:%H:%M}",
        "T": f"{at:%H:%M:%S}",
        "d": f"{at:%m/%d/%Y}",
        "D": f"{at:%B} {at.day}, {at.year}",
        "F": f"{at:%A}, {at:%B} {at.day}, {at.year} {at:%H:%M}",
    }.get(style, f"{at:%B} {at.day}, {at.year} {at:%H:%M}")


def _relative(seconds: float) -> str:
    size, unit = abs(seconds), "second"
    for each, length_s in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if size >= length_s * 0.95:
            size, unit = size / length_s, each
            break
    count = round(size)
    words = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"in {words}" if seconds >= 0 else f"{words} ago"


def pings_in(content: str, allowed: dict[str, list[str]] | None) -> list[str]:
    """Who a new message notifies: marks outside code, as far as `allowed_mentions` (none: everything) lets them.

    A backslash before a mark does not spare anybody: it changes how the mark is shown, not whom the server finds.
    """
    text = INLINE.sub(" ", FENCE.sub(" ", content))
    users = list(dict.fromkeys(f"user:{found}" for found in USER_MARK.findall(text)))
    roles = list(dict.fromkeys(f"role:{found}" for found in ROLE_MARK.findall(text)))
    all_ = list(dict.fromkeys(EVERYONE.findall(text)))
    if allowed is None:
        return users + roles + all_
    parse = allowed.get("parse") or []
    listed_users, listed_roles = allowed.get("users") or [], allowed.get("roles") or []
    kept = [who for who in users if "users" in parse or who[5:] in map(str, listed_users)]
    kept += [who for who in roles if "roles" in parse or who[5:] in map(str, listed_roles)]
    return kept + (all_ if "everyone" in parse else [])

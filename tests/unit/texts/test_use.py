"""Every text is one that somebody can come to read: the program names its key, or a comment says what will."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import signoff
import signoff_adapters
from signoff.texts import Catalogue

GATEWAY, ADAPTERS = Path(signoff.__file__).parent, Path(signoff_adapters.__file__).parent
LITERALS = [
    re.compile(rf"""(\+= )?(f?){quote}([\w.]*(?:\{{[^{{}}\n]*\}}[\w.]*)*){quote}(\s*[~+])?""") for quote in "\"'"
]
"""Of each quote by itself, for a template has them one inside the other."""
HOLE = re.compile(r"\{[^{}]*\}")
PART = r"[\w.]*"
LATER = re.compile(r"# later: \S")
"""Before the line of a text, or before a table, of a part that is still to come."""


def sources() -> Iterator[str]:
    for folder in (GATEWAY, ADAPTERS):
        for path in folder.rglob("*"):
            if path.suffix in (".py", ".html", ".js"):
                yield path.read_text(encoding="utf-8")


def named(texts: Iterator[str]) -> tuple[set[str], re.Pattern[str]]:
    """What the literals of a program may be keys of: whole ones, and patterns of those that it puts together.

    `"summary.blocked"` is also the table of what follows it.
    """
    whole, patterns = set(), set()
    for text in texts:
        for added, mark, literal, glued in (found for each in LITERALS for found in each.findall(text)):
            if not re.search(r"[._]", literal):
                continue
            if mark and "{" in literal:
                if re.match(r"[a-z]+[._]|\{(?:key|table)\}", literal) and re.search("[a-z]", HOLE.sub("", literal)):
                    patterns.add(PART.join(map(re.escape, HOLE.split(literal))))
            elif glued and literal[-1] in "._":
                patterns.add(re.escape(literal) + PART)
            elif added:
                patterns.add(PART + re.escape(literal))
            else:
                whole.add(literal)
                patterns.add(re.escape(literal) + r"\." + PART)
    return whole, re.compile("|".join(f"(?:{pattern})" for pattern in sorted(patterns)))


def later() -> set[str]:
    """The keys of parts that are still to come."""
    found, table, whole_table, marked = set(), "", False, False
    for line in (GATEWAY / "texts" / "en.toml").read_text(encoding="utf-8").splitlines():
        if head := re.fullmatch(r"\[([\w.]+)\]", line):
            table, whole_table = head[1], marked
        elif (entry := re.match(r"(\w+) = ", line)) and (marked or whole_table):
            found.add(f"{table}.{entry[1]}")
        marked = bool(LATER.match(line))
    return found


def unused() -> set[str]:
    whole, patterns = named(sources())
    every = Catalogue.load().keys()
    return {key for key in every if key not in whole and not patterns.fullmatch(key)}


def test_every_text_is_used_or_is_of_a_part_to_come() -> None:
    assert unused() == later()


def test_the_search_knows_how_keys_are_put_together() -> None:
    program = """t("a.one"); t(f"b.{word}"); t(f"{key}_end"); key += "_more"; people("c.d", row)"""
    template = """<p title="{{ t('e.f_' ~ index) }}">"""
    whole, patterns = named(iter([program, template]))
    assert "a.one" in whole
    for key in ("b.x", "b.x.y", "any.key_end", "any.key_more", "c.d.sentence", "e.f_2"):
        assert patterns.fullmatch(key), key
    for key in ("a.two", "b", "e.g", "any.key_begin", "c.e", "any_more.key"):
        assert key not in whole and not patterns.fullmatch(key), key

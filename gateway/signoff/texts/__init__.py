"""The catalogue of every sentence people and agents read.

A key names one whole text; values go into named places and are inserted as they are, so callers pass text that is
already escaped. Numbers are written with thousands separators. Languages live in `texts/<language>.toml`.
"""

from __future__ import annotations

import string
import tomllib
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import msgspec

from signoff.errors import SignoffError

Value = str | int
_FORMS: Final = frozenset({"one", "other"})
_PLURAL_BY: Final = "count"


class TextError(SignoffError):
    """A text was asked for by a wrong key or with wrong values: a mistake in the program, not of a person."""

    code = "text_error"


class _Pattern(msgspec.Struct, frozen=True):
    """A text taken apart: literal pieces, each followed by the name of a place (None after the last)."""

    pieces: tuple[tuple[str, str | None], ...]
    names: frozenset[str]

    def fill(self, values: dict[str, Value]) -> str:
        if not self.names:
            return self.pieces[0][0] if self.pieces else ""
        filled: list[str] = []
        for literal, name in self.pieces:
            filled.append(literal)
            if name is not None:
                value = values[name]
                filled.append(value if isinstance(value, str) else written(value))
        return "".join(filled)


class Catalogue:
    """The texts of one language. Get one with `Catalogue.load`."""

    def __init__(self, language: str, tree: dict[str, Any]) -> None:
        """Take a parsed catalogue file. Raises TextError for a text that is malformed."""
        self.language = language
        self._texts: dict[str, dict[str, _Pattern]] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._collect("", tree)

    @staticmethod
    @lru_cache(maxsize=8)
    def load(language: str = "en") -> Catalogue:
        """Return the shipped catalogue of a language, read once a process. Raises TextError for an unknown language."""
        if not (language.isascii() and language.replace("-", "").isalnum()):
            raise TextError(f"{language!r} is not the name of a language; use one like 'en'")
        file = resources.files(__name__).joinpath(f"{language}.toml")
        if not file.is_file():
            raise TextError(f"there are no texts for the language {language!r}")
        return Catalogue(language, tomllib.loads(file.read_text(encoding="utf-8")))

    def text(self, key: str, /, **values: Value) -> str:
        """Return the text of a key with its places filled; `count` chooses among plural forms.

        Raises TextError for an unknown key, a missing value, or a value the text has no place for.
        """
        forms = self._texts.get(key)
        if forms is None:
            raise TextError(f"there is no text {key!r} in the catalogue {self.language!r}")
        expected = self._names.get(key) or self.placeholders(key)
        if values.keys() != expected:
            missing, surplus = sorted(expected - values.keys()), sorted(values.keys() - expected)
            raise TextError(f"text {key!r}: missing values {missing}, values without a place {surplus}")
        if len(forms) == 1:
            return forms["other"].fill(values)
        count = values[_PLURAL_BY]
        if not isinstance(count, int):
            raise TextError(f"text {key!r} has plural forms, so its count must be a number, not {count!r}")
        return forms[plural_form(count)].fill(values)

    def keys(self) -> frozenset[str]:
        """Return every key of this catalogue."""
        return frozenset(self._texts)

    def placeholders(self, key: str) -> frozenset[str]:
        """Return the names of the values a text needs. Raises TextError for an unknown key."""
        known = self._names.get(key)
        if known is not None:
            return known
        if key not in self._texts:
            raise TextError(f"there is no text {key!r} in the catalogue {self.language!r}")
        forms = self._texts[key]
        names = frozenset[str]().union(*(form.names for form in forms.values()))
        self._names[key] = names | {_PLURAL_BY} if len(forms) > 1 else names
        return self._names[key]

    def forms(self, key: str) -> tuple[str, ...]:
        """Return the raw texts of a key, every plural form of it, with their places as `{name}`."""
        if key not in self._texts:
            raise TextError(f"there is no text {key!r} in the catalogue {self.language!r}")
        return tuple(
            "".join(literal + ("" if name is None else f"{{{name}}}") for literal, name in form.pieces)
            for form in self._texts[key].values()
        )

    def _collect(self, prefix: str, table: dict[str, Any]) -> None:
        for name, entry in table.items():
            key = f"{prefix}{name}"
            if isinstance(entry, str):
                self._texts[key] = {"other": _parse(key, entry)}
            elif isinstance(entry, dict) and entry.keys() == _FORMS:
                self._texts[key] = {form: _parse(key, text) for form, text in entry.items()}
            elif isinstance(entry, dict):
                self._collect(f"{key}.", entry)
            else:
                raise TextError(f"text {key!r} must be a sentence or a table, not {entry!r}")


def _parse(key: str, text: str) -> _Pattern:
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise TextError(f"text {key!r}: {error}") from error
    for _, name, spec, conversion in parts:
        if name is not None and (not name.isidentifier() or spec or conversion):
            raise TextError(f"text {key!r}: a place is a plain name like {{person}}, not {name!r}")
    pieces = tuple((literal, name) for literal, name, _, _ in parts)
    return _Pattern(pieces, frozenset(name for _, name in pieces if name is not None))


def plural_form(count: int) -> str:
    """Return the English plural form for a count: `one` for 1, else `other`."""
    return "one" if count == 1 else "other"


def written(value: Value) -> str:
    """Return a value as it stands in a text: a number with thousands separators, text as it is."""
    return f"{value:,}" if isinstance(value, int) else value

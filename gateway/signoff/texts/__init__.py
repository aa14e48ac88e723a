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


class _Sentence(msgspec.Struct, frozen=True):
    """A text with plain places `{name}` in it, checked when it was read; `fixed` is it where there are none."""

    template: str
    names: frozenset[str]
    fixed: str | None

    def fill(self, values: dict[str, Value]) -> str:
        if self.fixed is not None:
            return self.fixed
        for name, value in values.items():
            if not isinstance(value, str):
                values[name] = f"{value:,}"
        return self.template.format_map(values)


class _Entry(msgspec.Struct, frozen=True):
    """What stands under a key: its sentences, and the names of all values that it wants, the count included."""

    one: _Sentence
    other: _Sentence
    names: frozenset[str]

    @property
    def forms(self) -> tuple[_Sentence, ...]:
        return (self.other,) if self.one is self.other else (self.one, self.other)


class Catalogue:
    """The texts of one language. Get one with `Catalogue.load`."""

    def __init__(self, language: str, tree: dict[str, Any]) -> None:
        """Take a parsed catalogue file. Raises TextError for a text that is malformed."""
        self.language = language
        self._texts: dict[str, _Entry] = {}
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
        return self.filled(key, values)

    def filled(self, key: str, values: dict[str, Value]) -> str:
        """As `text`, with values that are the text's own from now on: its numbers are written into them."""
        entry = self._texts.get(key) or self._entry(key)
        if values.keys() != entry.names:
            missing, surplus = sorted(entry.names - values.keys()), sorted(values.keys() - entry.names)
            raise TextError(f"text {key!r}: missing values {missing}, values without a place {surplus}")
        if entry.one is entry.other:
            return entry.other.fill(values)
        count = values[_PLURAL_BY]
        if not isinstance(count, int):
            raise TextError(f"text {key!r} has plural forms, so its count must be a number, not {count!r}")
        return (entry.one if plural_form(count) == "one" else entry.other).fill(values)

    def keys(self) -> frozenset[str]:
        """Return every key of this catalogue."""
        return frozenset(self._texts)

    def placeholders(self, key: str) -> frozenset[str]:
        """Return the names of the values a text needs. Raises TextError for an unknown key."""
        return self._entry(key).names

    def forms(self, key: str) -> tuple[str, ...]:
        """Return the raw texts of a key, every plural form of it, with their places as `{name}`."""
        return tuple(
            form.template.format_map({name: f"{{{name}}}" for name in form.names}) for form in self._entry(key).forms
        )

    def _entry(self, key: str) -> _Entry:
        entry = self._texts.get(key)
        if entry is None:
            raise TextError(f"there is no text {key!r} in the catalogue {self.language!r}")
        return entry

    def _collect(self, prefix: str, table: dict[str, Any]) -> None:
        for name, entry in table.items():
            key = f"{prefix}{name}"
            if isinstance(entry, str):
                other = _parse(key, entry)
                self._texts[key] = _Entry(other, other, other.names)
            elif isinstance(entry, dict) and entry.keys() == _FORMS:
                one, other = _parse(key, entry["one"]), _parse(key, entry["other"])
                self._texts[key] = _Entry(one, other, one.names | other.names | {_PLURAL_BY})
            elif isinstance(entry, dict):
                self._collect(f"{key}.", entry)
            else:
                raise TextError(f"text {key!r} must be a sentence or a table, not {entry!r}")


def _parse(key: str, text: str) -> _Sentence:
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise TextError(f"text {key!r}: {error}") from error
    for _, name, spec, conversion in parts:
        if name is not None and (not name.isidentifier() or spec or conversion):
            raise TextError(f"text {key!r}: a place is a plain name like {{person}}, not {name!r}")
    names = frozenset(name for _, name, _, _ in parts if name is not None)
    return _Sentence(text, names, None if names else text.format_map({}))


def plural_form(count: int) -> str:
    """Return the English plural form for a count: `one` for 1, else `other`."""
    return "one" if count == 1 else "other"


def written(value: Value) -> str:
    """Return a value as it stands in a text: a number with thousands separators, text as it is."""
    return f"{value:,}" if isinstance(value, int) else value

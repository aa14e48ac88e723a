"""A secret as an operator gives it: a variable's name, a file's, or the secret itself."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from signoff.config.secrets import Secret, read_secret_file
from signoff.errors import ConfigError

_SHAPES: dict[tuple[str, str], tuple[re.Pattern[str], str]] = {
    ("telegram", "token"): (re.compile(r"\d+:\S+"), "it is a number, a colon and letters, as @BotFather shows it"),
    ("slack", "bot_token"): (re.compile(r"xoxb-\S+"), "it begins with xoxb-"),
    ("slack", "app_token"): (re.compile(r"xapp-\S+"), "it begins with xapp-"),
}
"""What is known of a token's form; Discord does not tell its own."""


class Given(Struct, frozen=True, kw_only=True):
    """A secret and where it stands. `value` is what is used, `source` what the settings name."""

    value: Secret
    kind: Literal["env", "file", "pasted"]
    source: str = ""


def from_variable(name: str, environ: Mapping[str, str]) -> Given:
    """The secret in a variable; raises `ConfigError` where it is not set."""
    value = environ.get(name, "").strip()
    if not value:
        raise ConfigError(f"The environment variable {name} is not set; set it, or name another.")
    return Given(value=Secret(value), kind="env", source=name)


def from_secret_file(path: str) -> Given:
    """The secret in a file; raises `ConfigError` as for any secret file."""
    whole = Path(path).expanduser().absolute()
    return Given(value=Secret(read_secret_file(whole, "The secret")), kind="file", source=str(whole))


def check_shape(platform: str, name: str, given: Given) -> None:
    """Raise `ConfigError` for what cannot be such a token, before anything is sent: it may be another secret."""
    form, told = _SHAPES.get((platform, name), (None, ""))
    if form is not None and form.fullmatch(given.value) is None:
        where = f"in {given.source}" if given.source else "there"
        raise ConfigError(f"What stands {where} is not this token of {platform.capitalize()}: {told}.")


def typed(answer: str, environ: Mapping[str, str] | None = None) -> Given:
    """What was typed at the prompt: `$NAME`, `@path`, or the secret itself. Raises `ConfigError`."""
    word = answer.strip()
    if word.startswith("$"):
        return from_variable(word[1:].strip("{}"), os.environ if environ is None else environ)
    if word.startswith("@"):
        return from_secret_file(word[1:])
    if not word or any(char.isspace() for char in word):
        raise ConfigError("A token is one word; paste it, or write $NAME of a variable or @PATH of a file.")
    return Given(value=Secret(word), kind="pasted")

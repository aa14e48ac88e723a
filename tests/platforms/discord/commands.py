"""Slash commands: what Discord accepts of a list of them, and the data of an interaction that uses one."""

from __future__ import annotations

import re
from typing import Any

from .model import JsonObject
from .refusal import FormErrors
from .world import BotAccount

NAME = re.compile(r"[-_'\w]{1,32}")
COMMANDS_MAX = 100
OPTIONS_MAX = 25
CHOICES_MAX = 25
SUM_MAX = 8000
SUB, GROUP = 1, 2
STRING, INTEGER, BOOLEAN, USER, CHANNEL, NUMBER = 3, 4, 5, 6, 7, 10
KINDS: dict[int, type[Any] | tuple[type[Any], ...]] = {
    STRING: str, INTEGER: int, BOOLEAN: bool, USER: int, CHANNEL: int, 8: int, 9: int, NUMBER: (int, float), 11: int,
}  # fmt: skip
Path = tuple[str | int, ...]


def check_commands(commands: Any) -> None:
    """Refused 50035 for a list that Discord would not register."""
    errors = FormErrors()
    if not isinstance(commands, list):
        errors.add((), "LIST_TYPE_CONVERT", "Must be an array")
        errors.raise_any()
        return
    if len(commands) > COMMANDS_MAX:
        errors.add((), "BASE_TYPE_MAX_LENGTH", f"Must be {COMMANDS_MAX} or fewer in length.")
    names: set[tuple[int, str]] = set()
    for place, command in enumerate(commands):
        kind = command.get("type") or 1
        _check_name(errors, (place, "name"), command.get("name"), chat=kind == 1)
        if kind == 1:
            errors.length((place, "description"), command.get("description"), 1, 100)
            _check_options(errors, (place,), command.get("options") or [])
        if (kind, str(command.get("name"))) in names:
            message = "Application command names must be unique"
            errors.add((place, "name"), "APPLICATION_COMMANDS_DUPLICATE_NAME", message)
        names.add((kind, str(command.get("name"))))
        if _size(command) > SUM_MAX:
            message = f"Command exceeds maximum size ({SUM_MAX})"
            errors.add((place,), "APPLICATION_COMMAND_TOO_LARGE", message)
    errors.raise_any()


def _check_name(errors: FormErrors, path: Path, name: Any, *, chat: bool = True) -> None:
    if errors.length(path, name, 1, 32) and chat and (not NAME.fullmatch(name) or name != name.lower()):
        message = "Command name is invalid"
        errors.add(path, "APPLICATION_COMMAND_INVALID_NAME", message)


def _size(command: JsonObject) -> int:
    """Characters of names, descriptions and values, with those of options."""
    own = sum(len(str(command.get(name) or "")) for name in ("name", "description"))
    choices = sum(len(str(each.get("name"))) + len(str(each.get("value"))) for each in command.get("choices") or [])
    return own + choices + sum(map(_size, command.get("options") or []))


def _check_options(errors: FormErrors, path: Path, options: list[JsonObject]) -> None:
    if len(options) > OPTIONS_MAX:
        errors.add((*path, "options"), "BASE_TYPE_MAX_LENGTH", f"Must be {OPTIONS_MAX} or fewer in length.")
    names: set[str] = set()
    optional_seen = False
    for place, option in enumerate(options):
        where: Path = (*path, "options", place)
        kind = option.get("type")
        if kind not in range(1, 12):
            errors.add((*where, "type"), "BASE_TYPE_CHOICES", "Value must be one of {1, ..., 11}.")
        _check_name(errors, (*where, "name"), option.get("name"))
        errors.length((*where, "description"), option.get("description"), 1, 100)
        if option.get("name") in names:
            message = "Option names must be unique"
            errors.add((*where, "name"), "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", message)
        names.add(str(option.get("name")))
        if option.get("required") and optional_seen:
            message = "Required options must be placed before non-required options"
            errors.add((*where, "required"), "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message)
        optional_seen = optional_seen or (not option.get("required") and kind not in (SUB, GROUP))
        _check_choices(errors, where, option)
        _check_options(errors, where, option.get("options") or [])


def _check_choices(errors: FormErrors, path: Path, option: JsonObject) -> None:
    choices = option.get("choices") or []
    if choices and option.get("autocomplete"):
        message = "Choices and autocomplete are mutually exclusive"
        errors.add((*path, "choices"), "APPLICATION_COMMAND_OPTIONS_CHOICES_AUTOCOMPLETE", message)
    if len(choices) > CHOICES_MAX:
        errors.add((*path, "choices"), "BASE_TYPE_MAX_LENGTH", f"Must be {CHOICES_MAX} or fewer in length.")
    for number, choice in enumerate(choices):
        errors.length((*path, "choices", number, "name"), choice.get("name"), 1, 100)
        if isinstance(choice.get("value"), str):
            errors.length((*path, "choices", number, "value"), choice.get("value"), 1, 100)


def command_data(
    bot: BotAccount, guild_id: int | None, words: str, given: dict[str, Any], focused: str | None = None
) -> JsonObject:
    """The `data` of an interaction by which somebody uses a command such as `approve` or `group sub`.

    LookupError for a command or option that is not registered; ValueError for what a client would not let through:
    a required option left out (except when completing), a value of the wrong type, or one that is not on offer.
    """
    name, *rest = words.removeprefix("/").split()
    listed = bot.commands.get(guild_id, []) if guild_id is not None else []
    found = [each for each in [*listed, *bot.commands.get(None, [])] if each["name"] == name]
    if not found:
        raise LookupError(f"no command /{name} is registered")
    command, options = found[0], found[0].get("options") or []
    path: list[JsonObject] = []
    for word in rest:
        matching = [each for each in options if each["name"] == word and each["type"] in (SUB, GROUP)]
        if not matching:
            raise LookupError(f"no subcommand {word!r} of /{name}")
        path.append({"name": word, "type": matching[0]["type"]})
        options = matching[0].get("options") or []
    if any(each["type"] in (SUB, GROUP) for each in options):
        raise ValueError(f"/{words} needs a subcommand")
    filled = _filled(options, given, focused)
    for step in reversed(path):
        filled = [step | {"options": filled}]
    data = {"id": command["id"], "name": name, "type": 1, "options": filled}
    return data | ({"guild_id": str(guild_id)} if command.get("guild_id") else {})


def _filled(options: list[JsonObject], given: dict[str, Any], focused: str | None) -> list[JsonObject]:
    known = {each["name"]: each for each in options}
    unknown = [each for each in [*given, *([focused] if focused else [])] if each not in known]
    if unknown:
        raise LookupError(f"no option {unknown[0]!r}; there are {sorted(known)}")
    if focused is not None and not known[focused].get("autocomplete"):
        raise ValueError(f"option {focused!r} does not complete")
    missing = [name for name, each in known.items() if each.get("required") and name not in given]
    if missing and focused is None:
        raise ValueError(f"option {missing[0]!r} is required")
    filled = []
    for name, value in given.items():
        option = known[name]
        if name != focused:
            _check_value(option, value)
        entry: JsonObject = {"name": name, "type": option["type"], "value": value}
        if option["type"] in (USER, CHANNEL):
            entry["value"] = str(value)
        filled.append(entry | ({"focused": True} if name == focused else {}))
    if focused is not None and focused not in given:
        filled.append({"name": focused, "type": known[focused]["type"], "value": "", "focused": True})
    return filled


def _check_value(option: JsonObject, value: Any) -> None:
    if not isinstance(value, KINDS[option["type"]]):
        raise ValueError(f"option {option['name']!r} takes another type than {value!r}")
    choices = [each["value"] for each in option.get("choices") or []]
    if choices and value not in choices:
        raise ValueError(f"option {option['name']!r} offers {choices}")
    if isinstance(value, str) and not option.get("min_length", 0) <= len(value) <= option.get("max_length", 6000):
        raise ValueError(f"option {option['name']!r} does not take {len(value)} characters")

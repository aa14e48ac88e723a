"""The commands that code starts, written as shell text for the shell front end."""

import shlex

import msgspec

from signoff.policy.python.model import Call, Seq, Table, Value, Values, text_of
from signoff.policy.python.rule import Runner
from signoff.policy.shell.model import UNKNOWN

_PLACEHOLDER = "${_unknown_}"
"""How a stretch that is not known is written into a shell text: a variable nobody has set."""

_MAX_WORDS = 400
"""More words of one command are not written out."""

MAX_COMMANDS_OF_CALL = 16
"""As many commands of one call, for all the values its arguments may have."""


class Started(msgspec.Struct, frozen=True):
    """One command that a call starts, and the folder it runs in where the call names one."""

    text: str
    cwd: str | None = None


def started(call: Call, runner: Runner) -> tuple[list[Started], bool]:
    """The commands of a call, and whether there is one whose program is not known."""
    texts, unknown = _texts(call, runner)
    around = _around(call)
    fed = _fed(call)
    folders = call.argument(None, "cwd") if any(name == "cwd" for name, _values in call.keywords) else None
    cwd = text_of(folders[0]) if folders is not None and len(folders) == 1 and folders[0] is not None else None
    found = [Started(fed(around + text), cwd) for text in texts[:MAX_COMMANDS_OF_CALL]]
    return found, unknown or len(texts) > MAX_COMMANDS_OF_CALL


def _texts(call: Call, runner: Runner) -> tuple[list[str], bool]:
    if call.kind == "reference":
        return [], True
    if runner.shape == "words":
        return _of_rows(call, runner)
    if runner.shape == "list":
        return _of_program_and_list(call, runner)
    values = call.argument(runner.at, runner.keyword)
    if values is None:
        return [], True
    texts: list[str] = []
    unknown = False
    other = call.argument(None, "executable") if any(name == "executable" for name, _values in call.keywords) else None
    for value in values:
        if isinstance(value, Seq):
            # An `executable` is what is run, whatever its first word says.
            items = (other[0], *value.items[1:]) if other and other != (None,) else value.items
            text = _words(items, loose=value.loose)
        else:
            text = _shell_text(value)
        if text is None:
            unknown = True
        else:
            texts.append(text)
    return texts, unknown


def _of_rows(call: Call, runner: Runner) -> tuple[list[str], bool]:
    before = (*runner.before, *(call.name.split(".")[runner.named :] if runner.named else ()))
    rows: list[Values] = [(word,) for word in before]
    rows += [row for place, row in enumerate(call.args) if place == runner.at or place > runner.at + runner.skip]
    if not rows:
        return [], True
    ways = max(len(row) for row in rows)
    texts = [_words(tuple(row[min(way, len(row) - 1)] for row in rows), loose=call.loose) for way in range(ways)]
    return [text for text in texts if text is not None], None in texts


def _of_program_and_list(call: Call, runner: Runner) -> tuple[list[str], bool]:
    programs = call.argument(runner.at) or (UNKNOWN,)
    lists = call.argument(runner.at + 1) or (UNKNOWN,)
    texts = [
        _words(
            (program, *(value.items[1:] if isinstance(value, Seq) else ())),
            loose=not isinstance(value, Seq) or value.loose,
        )
        for program in programs
        for value in lists
    ]
    return [text for text in texts if text is not None], None in texts


def _shell_text(value: Value) -> str | None:
    text = text_of(value)
    if text.startswith(UNKNOWN) or not text.strip():
        return None
    return text.replace(UNKNOWN, _PLACEHOLDER)


def _words(values: tuple[Value, ...], *, loose: bool) -> str | None:
    """The text of a list of words; None where the program itself is not known."""
    texts = [text_of(value) for value in values[:_MAX_WORDS]]
    if not texts or not texts[0].strip(UNKNOWN + "/"):
        return None
    words = [_word(text) for text in texts]
    if loose or len(values) > _MAX_WORDS:
        words.append(_PLACEHOLDER)
    return " ".join(words)


def _word(text: str) -> str:
    if UNKNOWN not in text:
        return shlex.quote(text)
    return f'"{_PLACEHOLDER}"'.join(shlex.quote(part) if part else "" for part in text.split(UNKNOWN))


def _around(call: Call) -> str:
    """The assignments of an `env` argument."""
    values = call.argument(None, "env") if any(name == "env" for name, _values in call.keywords) else None
    if values is None or len(values) != 1 or not isinstance(values[0], Table):
        return ""
    pairs = [(name, text_of(value)) for name, value in values[0].items[:_MAX_WORDS] if name.isidentifier()]
    return "".join(f"{name}={_word(value)} " for name, value in pairs)


def _fed(call: Call) -> "_Feeder":
    for name, values in call.keywords:
        if name == "input" and values != (None,):
            return _Feeder(text_of(values[0]) if len(values) == 1 else UNKNOWN)
        if name == "stdin" and values != (None,) and not _is_nothing(values[0]):
            return _Feeder(UNKNOWN)
    return _Feeder(None)


def _is_nothing(value: Value) -> bool:
    return getattr(value, "name", "") == "subprocess.DEVNULL"


class _Feeder:
    """Writes what a command reads behind it."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    def __call__(self, command: str) -> str:
        if self._text is None:
            return command
        if UNKNOWN in self._text:
            return f'cat "{_PLACEHOLDER}" | {command}'
        return f"{command} <<< {shlex.quote(self._text)}"

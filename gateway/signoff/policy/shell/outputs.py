"""The output of commands that only print what their words say."""

import base64
import binascii
import re
from collections.abc import Callable

from signoff.policy.shell import quoting
from signoff.policy.shell.model import UNKNOWN, Word

_FORMAT = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?([a-zA-Z]))")
_MAX_CHARS = 64 * 1024


def _echo(words: tuple[Word, ...], _stdin: str | None) -> str | None:
    texts = [word.text for word in words[1:]]
    newline, escapes = "\n", False
    while texts and re.fullmatch("-[neE]+", texts[0]):
        flags = texts.pop(0)
        newline = "" if "n" in flags else newline
        escapes = "e" in flags or (escapes and "E" not in flags)
    text = " ".join(texts)
    # echo writes its octal escapes with a zero more than the quoting form does.
    return (quoting.ansi_c(re.sub(r"\\0(?=[0-7])", r"\\", text)) if escapes else text) + newline


def _printf(words: tuple[Word, ...], _stdin: str | None) -> str | None:
    given = [word.text for word in words[1:] if word.text != "--"]
    if not given or given[0].startswith("-v"):
        return None
    form, arguments = given[0], given[1:]
    count = sum(1 for match in _FORMAT.finditer(form) if match.group(1))
    out: list[str] = []
    while True:
        queue = arguments[: count or None]
        out.append(_formatted(form, queue))
        arguments = arguments[len(queue) :] if count else []
        if not arguments or len(out) > 1000:
            return "".join(out)


def _formatted(form: str, queue: list[str]) -> str:
    values = iter(queue)

    def fill(match: re.Match[str]) -> str:
        letter = match.group(1)
        if letter is None:
            return "%"
        value = next(values, "")
        return quoting.ansi_c(value) if letter == "b" else value

    # The escapes of the format are resolved around the conversions, so that a value keeps its backslashes.
    parts: list[str] = []
    position = 0
    for match in _FORMAT.finditer(form):
        parts += [quoting.ansi_c(form[position : match.start()]), fill(match)]
        position = match.end()
    return "".join([*parts, quoting.ansi_c(form[position:])])


def _cat(words: tuple[Word, ...], stdin: str | None) -> str | None:
    operands = [word.text for word in words[1:] if not word.text.startswith("-") or word.text == "-"]
    given = [word for word in words[1:] if word.given]
    if given and len(given) == len(operands):
        contents = [word.content for word in given]
        return None if None in contents else "".join(text for text in contents if text)
    return stdin if set(operands) <= {"-", "/dev/stdin"} else None


def _base64(words: tuple[Word, ...], stdin: str | None) -> str | None:
    flags = {word.text for word in words[1:]}
    if stdin is None or UNKNOWN in stdin or not flags & {"-d", "-D", "--decode", "-di"}:
        return None
    try:
        return base64.b64decode("".join(stdin.split()), validate=False).decode()
    except (binascii.Error, ValueError):
        return None


def _reversed(_words: tuple[Word, ...], stdin: str | None) -> str | None:
    return None if stdin is None else "".join(line[::-1] + "\n" for line in stdin.splitlines())


def _unhex(words: tuple[Word, ...], stdin: str | None) -> str | None:
    flags = "".join(word.text for word in words[1:])
    if stdin is None or "r" not in flags or "p" not in flags:
        return None
    try:
        return bytes.fromhex(stdin).decode()
    except ValueError:
        return None


def _silent(_words: tuple[Word, ...], _stdin: str | None) -> str | None:
    return ""


_PRINTERS: dict[str, Callable[[tuple[Word, ...], str | None], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tee": lambda _words, stdin: stdin,
    "base64": _base64,
    "rev": _reversed,
    "xxd": _unhex,
    "cd": _silent,
    "export": _silent,
    "set": _silent,
    "true": _silent,
    "test": _silent,
    "[": _silent,
    ":": _silent,
}


def output(words: tuple[Word, ...], stdin: str | None) -> str | None:
    """What the command prints, with unknown stretches in it, or None when nothing is known of it."""
    printer = _PRINTERS.get(words[0].text.rpartition("/")[2]) if words else None
    if printer is None:
        return None
    text = printer(words, stdin)
    return None if text is None or len(text) > _MAX_CHARS else text.replace("\x00\x00", UNKNOWN)

"""What IPython and notebooks add to Python: `!command`, `%magic` and `%%magic`, written out as plain Python."""

import re

_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<target>[A-Za-z_][\w, .\[\]'\"]*=[ \t]*)?"
    r"(?:!!?|%(?:system|sx)[ \t]+|(?P<magic>%(?!%)))(?P<rest>(?:[^\\\n]++|\\\n|\\.)*+)",
    re.M,
)
_FILES = r"rm|rmdir|mv|cp|mkdir|ln|chmod|pip|conda|mamba|uv|system|sx"
_AUTOMATIC = re.compile(rf"^(?P<indent>[ \t]*)(?P<rest>(?:{_FILES})[ \t]+(?![=,.(\[:])(?:[^\\\n]++|\\\n|\\.)*+)", re.M)
"""Names that IPython takes for a magic without its sign."""

_HELP = re.compile(r"^[ \t]*(?:\?{1,2}[%\w.]+|[%\w.]+\?{1,2})[ \t]*$", re.M)
_CELL = re.compile(r"\s*%%(?P<name>\w+|!)[ \t]*(?P<line>[^\n]*)(?:\n|\Z)(?P<body>.*)", re.S)
_PROGRAMS = frozenset(
    {"bash", "sh", "zsh", "dash", "ksh", "fish", "python", "python2", "python3", "pypy", "perl", "ruby"}
)
"""Cells that a program of that name runs."""
_DATA = frozenset(
    {"writefile", "file", "html", "svg", "latex", "markdown", "javascript", "js", "sql", "r", "julia", "cython", "css"}
)
"""Cells that are no Python and start nothing here, or are kept as data."""
_SCRIPT_OPTION = re.compile(r"--(?:bg|no-raise-error|(?:out|err|proc)(?:[ =]\S+)?)(?:\s+|\Z)")
"""What IPython itself takes of the words behind `%%script`."""

_TIMING = frozenset({"time", "timeit", "prun", "memit"})
_TIMING_OPTIONS = re.compile(r"(?:-[A-Za-z]+\d*(?:[ \t]+\d+)?[ \t]+)+")
_END = "END_OF_CELL"


def as_python(text: str) -> str | None:
    """The same as plain Python, in which each line keeps its number; None where nothing in it is IPython's own."""
    cell = _CELL.match(text)
    if cell is not None:
        return _cell(cell["name"], cell["line"].strip(), cell["body"])
    if all(each.search(text) is None for each in (_LINE, _AUTOMATIC, _HELP)):
        return None
    return _AUTOMATIC.sub(_by_name, _LINE.sub(_plain, _HELP.sub("", text)))


def commands_of(text: str) -> str:
    """The lines that run commands, alone and as plain Python, of a text that has still more of its own."""
    return "\n".join(_system(found["rest"]) for found in _LINE.finditer(text) if not found["magic"])


def _plain(found: re.Match[str]) -> str:
    if found["magic"]:
        return found["indent"] + (found["target"] or "") + _magic(found["rest"]) + _same_lines(found["rest"])
    return found["indent"] + (found["target"] or "") + _system(found["rest"]) + _same_lines(found["rest"])


def _by_name(found: re.Match[str]) -> str:
    return found["indent"] + _magic(found["rest"]) + _same_lines(found["rest"])


def _same_lines(text: str) -> str:
    return "; " + "\\\n" * text.count("\n") + "pass" if "\n" in text else ""


def _magic(rest: str) -> str:
    """A line magic: those that run a command or a statement, and others that do nothing worth looking at."""
    name, _blank, line = rest.partition(" ")
    if name in {"system", "sx"}:
        return _system(line)
    if re.fullmatch(_FILES, name):
        return _system(rest)
    if name in _TIMING:
        timed = _TIMING_OPTIONS.sub("", line.strip(), count=1)
        return _system(timed.lstrip("!")) if timed[:1] == "!" else timed or "None"
    return "None"


def _system(command: str) -> str:
    return f"get_ipython().system({command.strip()!r})"


def _cell(name: str, line: str, body: str) -> str:
    if name in {"system", "sx", "!"}:
        return _system(f"{line}\n{body}")
    if name == "cmd":
        return f"__import__('subprocess').run(['cmd', '/c', {body!r}])"
    if name in {"powershell", "pwsh"}:
        return f"__import__('subprocess').run(['powershell', '-Command', {body!r}])"
    words = _SCRIPT_OPTION.sub("", line)
    if name == "script":
        return _system(f"{words} <<'{_END}'\n{body}\n{_END}")
    if name in _PROGRAMS:
        return _system(f"{name} {words} <<'{_END}'\n{body}\n{_END}")
    if name.casefold() in _DATA:
        return ""
    # `%%time` and its like run the rest, which may hold lines of IPython again.
    setup = _TIMING_OPTIONS.sub("", line, count=1) if name == "timeit" else ""
    return f"{setup}\n{as_python(body) or body}"

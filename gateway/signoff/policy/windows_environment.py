"""Whether a command of cmd or PowerShell prints variables that may hold secrets."""

import re

from signoff.policy.python.checks import is_secret_name

_PRINTERS = frozenset({"echo", "write", "write-host", "write-output"})
_LISTED = re.compile(r"env:[\\/]?([\w*]*)", re.I)
"""The environment as PowerShell lists it like a folder, and one variable in it."""
_NAMED = re.compile(r"%(\w+)%|!(\w+)!|\$\{?env:(\w+)\}?", re.I)


def shows_secrets(name: str, words: list[str]) -> bool:
    """Whether it prints the whole environment, or a variable whose name says that it is a secret."""
    if name == "set" and len(words) < 3 and "=" not in words[-1]:  # alone, or with how the names begin
        return len(words) == 1 or is_secret_name(words[1])
    listed = [found[1].strip("*") for word in words[1:] if (found := _LISTED.fullmatch(word))]
    if listed and name != "test-path":
        return any(not variable or is_secret_name(variable) for variable in listed)
    if name not in _PRINTERS:
        return False
    named = (next(filter(None, found.groups())) for word in words[1:] for found in _NAMED.finditer(word))
    return any(map(is_secret_name, named))

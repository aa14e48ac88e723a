"""Names of languages in which agents send code, as far as code in them is read."""

import re
from functools import lru_cache

_PYTHON = re.compile(r"(?:i|c|micro)?python[ \d.]*|py[\d.]*|pypy[\d.]*|jupyter|ipynb")
_WORD = re.compile(r"[a-z]+\d?")

_POSIX = frozenset(
    {"shell", "bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "yash", "rbash", "elvish", "nu"}
    | {"nushell", "shellscript", "shellsession", "posix", "console", "terminal", "busybox"}
)
"""Shells whose text is read as that of bash. In some of them it may mean more, but a plain command is one in all."""
WINDOWS_SHELLS = frozenset({"cmd", "powershell"})
_WINDOWS = {
    **dict.fromkeys(("powershell", "pwsh", "ps1", "posh"), "powershell"),
    **dict.fromkeys(("cmd", "bat", "batch", "batchfile", "dos", "dosbatch", "msdos"), "cmd"),
}


@lru_cache(maxsize=1024)
def is_python(language: str) -> bool:
    """Whether a language of this name is Python: `python3`, `IPython`, `py`."""
    return _PYTHON.fullmatch(language.casefold()) is not None


@lru_cache(maxsize=1024)
def shell_of(language: str) -> str:
    """The shell as which code of this language is read: `bash`, `zsh`, `powershell` or `cmd`; empty for any other.

    An agent may spell it as it likes: `Bash 5`, `/bin/sh`, `shell script`, `Windows PowerShell`.
    """
    words = _WORD.findall(language.casefold())
    for name in ("".join(words), *words):
        if name in _WINDOWS:
            return _WINDOWS[name]
    for name in ("".join(words), *(word.rstrip("0123456789") for word in words)):
        if name in _POSIX:
            return "zsh" if name == "zsh" else "bash"
    return ""

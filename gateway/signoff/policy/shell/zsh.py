"""What zsh makes of a text in another way than the shells whose text is read."""

import re

ZSH_ONLY = "zsh gives something in it a meaning of its own"
"""Why such a text is not understood; ends a sentence that begins with "cannot be understood"."""

_OTHERWISE = re.compile(
    r"(?:^|[\s;&|()<>`{}=:!])=(?![=~]?(?:\s|\Z))"  # `=rm` is the path of rm
    r"|\b(?:function|alias|galias|salias|command|option|dis_\w+)(?:e?s)\s*\[|\$\{?[=~^]"
    r"|\b(?:emulate|setopt|unsetopt|autoload|zmodload|zcompile|zle|sched|repeat|foreach|noglob|nocorrect|zsh_directory_name)\b"
    r"|\b(?:chpwd|precmd|preexec|periodic|zshexit|zshaddhistory|command_not_found_handler)\b|\b\w+_functions\b|\bTRAP[A-Z]"
    r"|>&*+[!|]|(?:^|[;&|({}]|\bthen|\bdo|\belse)[^\S\n]*+-\s",
    re.M,
)


_ARRAY = re.compile(r"(?:^|[\s;&|({}])\w{1,64}\+?=\(")
_VARIABLE_RUN = re.compile(r"(?:^|[;&|({}]|\b(?:then|do|else|command|exec|eval|sudo)\b)\s*+\$\{?\w", re.M)
"""A command that a variable names: of an array, `$x` is every word of it."""


def reads_otherwise(text: str) -> bool:
    """Whether something in the text may mean something else to zsh."""
    if _OTHERWISE.search(text) is not None:
        return True
    return "=(" in text and _ARRAY.search(text) is not None and _VARIABLE_RUN.search(text) is not None

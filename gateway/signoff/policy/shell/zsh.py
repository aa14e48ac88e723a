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
_VARIABLE_RUN = re.compile(r"(?:^|[;&|{}]|(?<!=)\(|\b(?:then|do|else|command|exec|eval|sudo)\b)[^\S\n]*+\$\{?\w", re.M)
"""A command that a variable names: of an array, `$x` is every word of it."""


def reads_otherwise(text: str) -> bool:
    """Whether something in the text may mean something else to zsh."""
    if _OTHERWISE.search(text) is not None:
        return True
    if "=(" not in text or _ARRAY.search(text) is None or _VARIABLE_RUN.search(text) is None:
        return False
    if _ODD_QUOTES.search(text) is None:
        text = _TEST.sub("q", _TEXT.sub("q", text))
    return _VARIABLE_RUN.search(text) is not None


_ODD_QUOTES = re.compile(r"['\\`#]|\$[({]|<<")
"""Signs with which it is not certain that a text goes from one `"` to the next."""
_TEXT = re.compile(r'"[^"]*"')
_TEST = re.compile(
    r"(?:(?<=[;&|\n])|\A|(?<!\S)(?:if|while|until|then|do|else)\s)[ \t]*+"
    r"\[\[\s[^\[\];&|\n]*+(?:(?:&&|\|\|)[^\[\];&|\n]*+)*+\]\]"
)
"""`[[ $a || $b ]]` where a command may stand."""

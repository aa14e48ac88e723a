"""Variables of the environment that a program shows: those of other processes, and those that a filter picks."""

import re
from collections.abc import Callable

from signoff.policy.predicates.secrets import SECRET_VARIABLE_NAME, into_file
from signoff.policy.predicates.whole import starts
from signoff.policy.seen import Seen

_PS_LONG_VALUES = frozenset(
    {"--sort", "--pid", "--ppid", "--user", "--User", "--group", "--Group", "--tty", "--format", "--cols", "--columns"}
    | {"--width", "--lines", "--rows", "--sid", "--quick-pid"}
)
_PS_VALUES = re.compile(r"[A-Za-z]*?[CGgopqstUuOnkN]")
"""A cluster up to the first letter that takes a value; without a dash these are fewer."""
_PS_PLAIN_VALUES = re.compile(r"[A-Za-z]*?[okOptUN]")
_PS_ALL_BUT_VALUES = re.compile(r"-(?=\w*x)(?=\w*e)[aAcefgjlmrsSTuvwxX]+")
"""With an `x` among them Linux reads the letters as if there were no dash."""


def _shows_environment_of_processes(seen: Seen) -> bool:
    """`ps auxe`, `ps eww 1`, `ps -E`: each process with its variables. With a dash `e` means every process."""
    texts = iter([word.text for word in seen.words[1:]])
    for text in texts:
        if text[:2] == "--":
            if text in _PS_LONG_VALUES:
                next(texts, None)
            continue
        dashed = text[:1] == "-"
        letters = text[1:] if dashed else text
        if _PS_ALL_BUT_VALUES.fullmatch(text):
            return True
        takes = (_PS_VALUES if dashed else _PS_PLAIN_VALUES).match(letters)
        flags = takes[0][:-1] if takes else letters
        if ("E" if dashed else "e") in flags and flags.isalpha():
            return True
        if takes and takes.end() == len(letters):
            next(texts, None)
    return False


_AWK_ALL = re.compile(r"\bin\s+ENVIRON\b")
_AWK_ONE = re.compile(r"\bENVIRON\s*\[\s*\"(\w+)\"")
_JQ_ALL = re.compile(r"(?<![.\w$\"'{@])(?:env|\$ENV)\b(?!\s*(?:[.\[(:},\w?]|\|\s*(?:keys|length|has)\b))")
_FILTERS = frozenset({"jq", "gojq", "jaq", "yq"})


def _filter_shows_environment(seen: Seen) -> bool:
    """`jq -n env`, `awk 'BEGIN { for (k in ENVIRON) print ENVIRON[k] }'`: every variable."""
    if into_file(seen.command):
        return False
    if seen.name in _FILTERS:
        return _JQ_ALL.search(_filter(seen)) is not None
    return any(_AWK_ALL.search(word.text) is not None for word in seen.words[1:])


_TWO_VALUES = frozenset({"--arg", "--argjson", "--slurpfile", "--rawfile"})


def _filter(seen: Seen) -> str:
    """The filter of jq: its first operand, which names and values of variables are not."""
    texts = iter([word.text for word in seen.words[1:]])
    for text in texts:
        if text in _TWO_VALUES:
            next(texts, None)
            next(texts, None)
        elif text[:1] != "-" and text not in {"e", "eval"}:
            return text
    return ""


def _awk_shows_secret(seen: Seen) -> bool:
    """`awk 'BEGIN { print ENVIRON["API_TOKEN"] }'`."""
    if into_file(seen.command):
        return False
    return any(
        SECRET_VARIABLE_NAME.fullmatch(match[1]) is not None
        for word in seen.words[1:]
        for match in _AWK_ONE.finditer(word.text)
    )


def _lists_variables(seen: Seen) -> bool:
    """`compgen -e`, `compgen -A variable`: all names, by which a loop prints every value."""
    return seen.has("-e", "-v") or any(word.text in {"export", "variable"} for word in seen.words[1:])


def _inspects_environment(seen: Seen) -> bool:
    """`docker inspect -f '{{.Config.Env}}' web`: the variables that a container was started with."""
    if not starts(seen.script, _CONTAINERS):
        return False
    return any(_CONTAINER_ENVIRONMENT.search(word.text) is not None for word in seen.words[1:])


_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_CONTAINER_ENVIRONMENT = re.compile(r"\.Config(?:\.Env\b|\s*\}\})|\bConfig\"?\s+\"?Env\b")


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "shows_environment_of_processes": _shows_environment_of_processes,
    "filter_shows_environment": _filter_shows_environment,
    "awk_shows_secret": _awk_shows_secret,
    "lists_variables": _lists_variables,
    "inspects_environment": _inspects_environment,
}

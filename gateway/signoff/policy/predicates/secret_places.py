"""Secrets that are reached by where a command works or what it serves, or named inside of another language."""

import re
from collections.abc import Callable
from functools import lru_cache

from signoff.policy.path_classes import CLASSES
from signoff.policy.paths import PathFacts
from signoff.policy.predicates.program_options import values_of
from signoff.policy.predicates.secrets import (
    KEEPS_SECRETS,
    NAMES_SECRET_VARIABLE,
    ONLY_NAME,
    SECRET_VARIABLE_NAME,
    into_file,
)
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Command, Word

_MANY = frozenset({".", "./", ".."})


def _works_in_secret_folder(seen: Seen) -> bool:
    """In `~/.ssh` or `~/.aws`: a program that reads all files there, or one that is only known when it runs."""
    return _in_secret_folder(seen) and seen.name not in ONLY_NAME and any(map(_may_be_all, seen.words[1:]))


def _in_secret_folder(seen: Seen) -> bool:
    cwd = seen.command.cwd
    return cwd is not None and _keeps_secrets(cwd, seen.facts.paths.home)


@lru_cache(maxsize=1024)
def _keeps_secrets(folder: str, home: str | None) -> bool:
    return CLASSES["secret_file"](Word(folder), None, PathFacts(home=home))


def _may_be_all(word: Word) -> bool:
    """Whether a word may name all files of a folder."""
    return word.pattern is not None or word.text in _MANY or (UNKNOWN in word.text and word.text.strip(UNKNOWN) == "")


_SERVED = ("-d", "--directory", "-t", "--root", "-r", "--dir", "--path", "-p")


def _serves_secrets(seen: Seen) -> bool:
    """A server of files for a home folder, the root, or a folder that holds secrets."""
    if seen.name.startswith("php") and not seen.has("-S"):
        return False
    places = [*values_of(seen, _SERVED), *seen.operands]
    facts = seen.facts.paths
    if seen.cwd is not None and not any("/" in word.text or word.text[:1] in {".", "~"} for word in places):
        places.append(Word(seen.cwd))
    return any(
        CLASSES["home"](word, seen.cwd, facts)
        or CLASSES["root"](word, seen.cwd, facts)
        or CLASSES["secret_file"](word, seen.cwd, facts)
        or KEEPS_SECRETS.match(word.text) is not None
        for word in places
    )


_SETTING = re.compile(
    r"(?:.*[:._*-])?(?:_?auth(?:token)?|_?password|extraheader|token|oauth\w*|api-?key|secret|private-?key|accesskey)\Z"
    r"|(?:github-oauth|gitlab-token|gitlab-oauth|bitbucket-oauth|http-basic|bearer|pypi-token)\.",
    re.I,
)


def _prints_secret_setting(seen: Seen) -> bool:
    """`npm config get //host/:_authToken`, `git config --get-all http.extraheader`."""
    texts = seen.texts
    if texts[:1] != ["config"]:
        return seen.name in {"npm", "pnpm"} and texts[:1] == ["get"] and any(map(_SETTING.match, texts[1:]))
    names = [text for text in texts[1:] if text not in {"get", "list", "--"}]
    return len(names) == 1 and _SETTING.match(names[0]) is not None


_KEPT = {
    "firebase": ("functions:config:get", "functions:secrets:access"),
    "snyk": ("config get",),
    "databricks": ("secrets get-secret", "secrets get"),
    "aws-vault": ("export",),
    "saml2aws": ("script",),
    "granted": ("credential-process",),
}
"""Commands that print what a client keeps for itself."""


def _prints_kept_secrets(seen: Seen) -> bool:
    told = " ".join(seen.texts[:2])
    return any(told == entry or told.startswith(f"{entry} ") for entry in _KEPT.get(seen.name, ()))


_ACCOUNTS = re.compile(r"\b(?:mysql\.(?:user|global_priv)|pg_shadow|pg_authid|pg_user_mapping)\b", re.I)


def _prints_accounts(seen: Seen) -> bool:
    """`getent shadow`, `redis-cli config get requirepass`, `select * from pg_shadow`."""
    texts = [text.lower() for text in seen.texts]
    if seen.name == "getent":
        return texts[:1] in (["shadow"], ["gshadow"])
    if "redis" in seen.name or "key" in seen.name:
        return texts[:2] == ["config", "get"] and any(text in {"*", "requirepass", "masterauth"} for text in texts[2:])
    statements = (*(word.text for word in seen.words[1:]), seen.command.stdin or "")
    return any(map(_ACCOUNTS.search, statements))


_FROM_ENVIRONMENT = re.compile(
    r"\$?\bENV\b(?:\.|\[\s*[\"'])(\w+)|\benv\.(\w+)|\b(?:str)?env\(\s*[\"']?(\w+)|\$__prog_env"
)


def _filter_prints_secret(seen: Seen) -> bool:
    """`jq -n '$ENV.API_TOKEN'`: a filter that takes a secret from the environment and shows it."""
    if any(redirect.writes and redirect.target.text[:5] != "/dev/" for redirect in seen.command.redirects):
        return False
    return any(
        SECRET_VARIABLE_NAME.fullmatch(name) is not None
        for word in seen.words[1:]
        for match in _FROM_ENVIRONMENT.finditer(word.text)
        for name in match.groups()
        if name
    )


_QUOTED = re.compile(r"'([^'\n]{2,400})'|\"([^\"\n]{2,400})\"")


_TRACES = re.compile(r"-[a-zA-Z]*x[a-zA-Z]*|xtrace")


def _traces_secret(seen: Seen) -> bool:
    """`set -x` in a text that names a variable with a secret, or reads a file of them."""
    if not any(_TRACES.fullmatch(word.text) for word in seen.words[1:]):
        return False
    return any(_names_secret(command, seen) for command in seen.script.commands)


def _names_secret(command: Command, seen: Seen) -> bool:
    if "$" in command.source and NAMES_SECRET_VARIABLE.search(command.source) is not None:
        return True
    return command.program in {".", "source"} and any(
        CLASSES["secret_file"](word, command.cwd, seen.facts.paths) for word in command.words[1:]
    )


_LOADS = re.compile(r"(?:load|read|scan|file)\w*\(\s*\Z")
"""What stands before the name of a file that a function opens: `load_str(`, `read_text(`."""


def _statement_names_secret(seen: Seen) -> bool:
    """A statement or a filter that names a secret file in quotes: `select * from read_text('~/.ssh/id_rsa')`."""
    texts = [word.text for word in seen.words[1:]]
    if seen.command.stdin:
        texts.append(seen.command.stdin)
    return any(
        ("/" in name or _LOADS.search(text, 0, match.start()) is not None)
        and CLASSES["secret_file"](Word(name), seen.cwd, seen.facts.paths)
        for text in texts
        for match in _QUOTED.finditer(text)
        for name in match.groups()
        if name
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "traces_secret": _traces_secret,
    "works_in_secret_folder": _works_in_secret_folder,
    "serves_secrets": _serves_secrets,
    "prints_secret_setting": _prints_secret_setting,
    "filter_prints_secret": _filter_prints_secret,
    "statement_names_secret": _statement_names_secret,
    "prints_kept_secrets": _prints_kept_secrets,
    "prints_accounts": _prints_accounts,
    "goes_into_file": lambda seen: into_file(seen.command),
}

NEEDS: dict[str, Callable[[Seen], bool]] = {"works_in_secret_folder": _in_secret_folder}

"""What rules about git ask that the fields of a rule cannot say."""

import re
from collections.abc import Callable

from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, Word
from signoff.policy.shell.options import OptionSpec, arguments

_FORCING = frozenset(
    {"-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "-d", "--prune"}
)


def _force_push(seen: Seen) -> bool:
    """Forced by an option, or by a refspec that starts with `+` (overwrite) or `:` (delete)."""
    return seen.has_any(_FORCING) or any(text[:1] in {"+", ":"} and len(text) > 1 for text in seen.texts[1:])


_FILE_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}\Z")


def _discards(seen: Seen) -> bool:
    """Whether `checkout`, `restore` or `switch` replaces files by an older state."""
    verb, *rest = seen.texts
    if seen.has("-p", "--patch"):
        return False
    if verb == "restore":
        return not seen.has("-S", "--staged") or seen.has("-W", "--worktree")
    if verb == "checkout-index":
        return seen.has("-f", "--force")
    if seen.has("-f", "--force", "--discard-changes"):
        return True
    if verb == "switch" or seen.has("-b", "-B", "--orphan", "--ours", "--theirs", "--detach"):
        return False
    if any(word.text == "--" for word in seen.words[2:]):
        return True
    return len(rest) > 1 or any(_looks_like_path(text) for text in rest)


def _looks_like_path(text: str) -> bool:
    return text in {".", ".."} or text.startswith(("./", "../", ":/", ":(")) or bool(_FILE_ENDING.search(text))


def _forced_branch_delete(seen: Seen) -> bool:
    return seen.has("-D") or (seen.has("-d", "--delete") and seen.has("-f", "--force"))


def _prunes_now(seen: Seen) -> bool:
    return any(value.text in {"now", "all"} or UNKNOWN in value.text for value in seen.values("--prune"))


_RUNS = re.compile(
    r"core\.(?:pager|editor|sshcommand|hookspath|fsmonitor|askpass|gitproxy|alternaterefscommand|worktree)"
    r"|sequence\.editor|credential\.(?:.+\.)?helper|diff\.external|diff\..+\.(?:command|textconv)"
    r"|(?:difftool|mergetool|browser|man|guitool)\..+\.(?:cmd|path)|merge\..+\.driver|filter\..+\.(?:clean|smudge|process)"
    r"|gpg\.(?:.+\.)?program|pager\..+|include\.path|includeif\..+\.path|url\..+\.(?:insteadof|pushinsteadof)"
    r"|remote\..+\.(?:url|pushurl|uploadpack|receivepack|vcs|proxy)|uploadpack\.packobjectshook|init\.templatedir"
    r"|interactive\.difffilter|trailer\..+\.(?:command|cmd)|web\.browser|protocol\.(?:.+\.)?allow"
    r"|http\.(?:.+\.)?(?:proxy|sslverify|sslcainfo|extraheader)|sendemail\..*|submodule\..+\.(?:url|update)"
    r"|ssh\.variant|imap\.tunnel|instaweb\..*|hook\..*|safe\.barerepository"
)
"""Settings by which git runs a program, reads more settings, or talks to another address (git-config(1))."""

_PLAIN_PROGRAMS = frozenset(
    {
        "",
        "cat",
        "less",
        "more",
        "less -FRX",
        "less -R",
        "true",
        ":",
        "false",
        "vi",
        "vim",
        "nvim",
        "nano",
        "emacs",
        "store",
        "cache",
    }
    | {
        "code --wait",
        "delta",
        "bat",
        "osxkeychain",
        "manager",
        "manager-core",
        "libsecret",
        "$EDITOR",
        "/bin/true",
        "/usr/bin/true",
    }
    | {"/bin/cat", "/usr/bin/cat", "ssh", "head"}
)
"""Values that name nothing but the editors, pagers and helpers everybody has."""

_READ_CONFIG = ("--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l", "--list", "--unset", "--unset-all")
_CONFIG_VERBS = frozenset({"set", "get", "list", "unset", "edit", "rename-section", "remove-section"})
_LEADING = OptionSpec(
    short_values="Cc", long_values=("git-dir", "work-tree", "namespace", "config-env", "super-prefix", "attr-source")
)


def _config_runs(seen: Seen) -> bool:
    """Settings given with `-c`, `--config-env`, `clone --config` or written by `git config`."""
    leads = len(seen.words) > 1 and seen.words[1].text[:1] == "-"
    for option in arguments(seen.words, _LEADING, stop=True).options if leads else ():
        if option.value is None:
            continue
        if option.name == "--exec-path":
            return True
        if option.name == "-c" and _pair_runs(option.value.text):
            return True
        if option.name == "--config-env" and _names_program(option.value.text.partition("=")[0], None):
            return True
    texts = seen.texts
    if texts[:1] == ["clone"]:
        return any(_pair_runs(value.text) for value in _values_behind(seen, _CLONE, "-c", "--config"))
    return texts[:1] == ["config"] and _writes_config(seen, texts[1:])


def _values_behind(seen: Seen, spec: OptionSpec, *names: str) -> list[Word]:
    """Values of options that only this command of git reads as options with one."""
    place = next((index for index, word in enumerate(seen.words) if word.text == seen.texts[0]), 0)
    options = arguments(seen.words[place:], spec).options
    return [option.value for option in options if option.name in names and option.value is not None]


_CLONE = OptionSpec(short_values="cbuoj", long_values=("config",))


def _pair_runs(text: str) -> bool:
    key, equals, value = text.partition("=")
    return _names_program(key, value if equals else "true")


def _names_program(key: str, value: str | None) -> bool:
    """Whether the setting makes git run what its value names; `value` is None where it is not known."""
    if UNKNOWN in key:
        return True
    folded = key.casefold()
    if folded.startswith("alias."):
        return value is None or UNKNOWN in value[:1] or value.lstrip().startswith("!") or _alias_asks(value)
    if not _RUNS.fullmatch(folded):
        return False
    return (
        value is None
        or value not in _PLAIN_PROGRAMS
        or not folded.startswith(("core.", "pager.", "sequence.", "credential."))
    )


def _alias_asks(value: str) -> bool:
    """An alias for what asks by its own name."""
    return not _ASKED_WORDS.isdisjoint(value.split())


_ASKED_WORDS = frozenset(
    {"push", "send-pack", "send-email", "clean", "filter-branch", "filter-repo", "prune", "drop", "clear", "expire"}
    | {"--hard", "--force", "-f", "-D", "--exec", "-x", "--upload-pack", "--receive-pack", "--ext-cmd", "--output"}
)


def _writes_config(seen: Seen, rest: list[str]) -> bool:
    if seen.has(*_READ_CONFIG):
        return False
    if rest[:1] and rest[0] in _CONFIG_VERBS:
        if rest[0] != "set":
            return False
        rest = rest[1:]
    return len(rest) > 1 and _names_program(rest[0], rest[1])


def _variables_are_plain(seen: Seen) -> bool:
    """Whether each variable that names a program for git names a plain one, as `GIT_EDITOR=true` does."""
    given = [(name, value) for name, value in seen.command.assignments if name.startswith(("GIT_", "SSH_"))]
    return bool(given) and all(
        not _VARIABLE.fullmatch(name) or value in _PLAIN_PROGRAMS or (name in _SETTINGS_FILES and value == "/dev/null")
        for name, value in given
    )


_VARIABLE = re.compile(
    r"GIT_(?:SSH|SSH_COMMAND|EXTERNAL_DIFF|PAGER|EDITOR|SEQUENCE_EDITOR|ASKPASS|PROXY_COMMAND|CONFIG.*|EXEC_PATH"
    r"|TEMPLATE_DIR|ALLOW_PROTOCOL)|SSH_ASKPASS"
)
_SETTINGS_FILES = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})

_TRANSPORT_VERBS = frozenset(
    {"clone", "fetch", "pull", "push", "ls-remote", "archive", "fetch-pack", "send-pack", "remote"}
)


def _transport_runs(seen: Seen) -> bool:
    """`--upload-pack=prog`, `--exec=prog`, `clone -u prog`, and addresses such as `ext::sh -c ...`."""
    texts = seen.texts
    if not texts or texts[0] not in _TRANSPORT_VERBS | {"submodule"}:
        return False
    if texts[0] in _TRANSPORT_VERBS and (
        seen.has("--upload-pack", "--receive-pack", "--exec") or (texts[0] == "clone" and seen.has("-u"))
    ):
        return True
    return any(text.startswith(("ext::", "fd::")) or re.match(r"ssh://-|-oProxy", text) for text in texts[1:])


def _viewer(seen: Seen) -> bool:
    """`difftool -x prog`, `grep -Oprog`; the plain pager that `-O` alone takes is the user's own."""
    if seen.texts[:1] == ["difftool"]:
        return seen.has("-x", "--extcmd")
    if seen.texts[:1] != ["grep"]:
        return False
    attached = any(word.text[:2] == "-O" and len(word.text) > 2 for word in seen.words)  # -O alone
    return attached or bool(seen.values("--open-files-in-pager"))


def _credentials(seen: Seen) -> bool:
    """`git credential fill` and its helpers; plain `get` only as the verb of a helper called by its own name."""
    texts = seen.texts
    return texts[:1] != [] and (seen.name != "git" or texts[0].startswith("credential"))


def _is_unknown(seen: Seen) -> bool:
    return bool(seen.operands) and UNKNOWN in seen.operands[0].text


def _vcs_is_local(seen: Seen) -> bool:
    """A commit or copy that stays in the work tree: everything but a push, unless it names an address."""
    if seen.texts[:1] in (["push"], ["submit"], ["email"], ["dcommit"]) or seen.texts[:2] == ["git", "push"]:
        return False
    if seen.texts[:1] in (["commit"], ["ci"]):
        return seen.name not in {"svn", "cvs"}
    return not any("://" in text for text in seen.texts)


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "git_force_push": _force_push,
    "git_discards": _discards,
    "git_forced_branch_delete": _forced_branch_delete,
    "git_prunes_now": _prunes_now,
    "git_config_runs": _config_runs,
    "git_variables_are_plain": _variables_are_plain,
    "git_transport_runs": _transport_runs,
    "git_viewer": _viewer,
    "git_credentials": _credentials,
    "git_is_unknown": _is_unknown,
    "vcs_is_local": _vcs_is_local,
}

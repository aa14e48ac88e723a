"""Settings and options by which a program is told of another one that it starts, or of code that it loads."""

import re
from collections.abc import Callable

from signoff.policy.predicates.program_options import values_of
from signoff.policy.seen import Seen

_APT_RUNS = re.compile(
    r".*-invoke\b|.*pre-install-pkgs|dir::bin\b|.*proxy-auto-detect|dir::etc::(?:main|parts)\b|binary::|dpkg::tools",
    re.I,
)


def _apt_runs(seen: Seen) -> bool:
    """`-o APT::Update::Pre-Invoke::=…`, or a file of such settings."""
    if values_of(seen, ("-c", "--config-file"), clustered=True):
        return True
    return any(_APT_RUNS.match(word.text) for word in values_of(seen, ("-o", "--option"), clustered=True))


_PLUGINS = re.compile(r"(?:pluginpath|pluginconfpath|plugins|installroot)\s*=", re.I)


def _package_settings(seen: Seen) -> bool:
    """A file of settings, or a folder of plugins or hooks."""
    if values_of(seen, ("--config", "--hookdir", "--plugindir", "--keys-dir")):
        return True
    if seen.name != "apk" and values_of(seen, ("-c",)):
        return True
    return any(_PLUGINS.match(word.text) for word in values_of(seen, ("--setopt",)))


_HG_LOADS = re.compile(r"\s*(?:hooks\.[^=]*=|extensions\.[^=]*=\s*[^\s!])", re.I)


def _hg_loads(seen: Seen) -> bool:
    """`--config hooks.x=…`, `--config extensions.x=FILE`, a file of settings.

    An extension without a file is Mercurial's own.
    """
    if values_of(seen, ("--config-file", "--configfile")):
        return True
    return any(_HG_LOADS.match(word.text) for word in values_of(seen, ("--config",)))


_VCS_RUNS = re.compile(
    r"config:(?:tunnels|helpers):|(?:ui\.(?:editor|pager|diff-editor|merge-editor)|merge-tools\.|fix\.tools|aliases\."
    r"|signing\.)",
    re.I,
)


def _vcs_runs(seen: Seen) -> bool:
    """`svn --config-option config:tunnels:x=…`, `jj --config ui.pager=…`."""
    values = values_of(seen, ("--config-option", "--config", "--config-toml", "--config-file"))
    return any(_VCS_RUNS.match(word.text) for word in values)


_LIBRARY = re.compile(r".*(?:/|\.so\b|\.dylib\b|\.dll\b)")


def _names_library(seen: Seen) -> bool:
    return any(_LIBRARY.match(word.text) for word in values_of(seen, ("-s", "-S", "-D", "-w")))


STARTS_PROGRAM = re.compile(
    r"(?<!\S)(?:-(?:B(?!/usr/)[./~]|fuse-ld=\S*/|Wl,-{1,2}plugin\b|-?plugin\b|fplugin=|wrapper\b|load\b|-config\b)"
    r"|(?:-C\s*|--codegen[ =])?linker=\S*/|(?:-Z\s*)?codegen-backend=|(?:(?!-extld=)\S)*+-extld=\S*/)"
)
"""Flags by which a compiler or linker starts or loads a program of somebody's own."""


def _compiler_starts(seen: Seen) -> bool:
    """`rustc -C linker=./x`, `gcc -B./x`, `ld --plugin=./x.so`, `go build -ldflags=-extld=./x`."""
    return any(STARTS_PROGRAM.match(word.text) for word in seen.words[1:])


_NIX_SETTINGS = frozenset({"post-build-hook", "pre-build-hook", "diff-hook", "plugin-files", "builders", "build-hook"})


def _nix_runs(seen: Seen) -> bool:
    """`--post-build-hook ./x`, `--option post-build-hook ./x`."""
    texts = [word.text for word in seen.words[1:]]
    if any(text[:2] == "--" and text[2:].partition("=")[0] in _NIX_SETTINGS for text in texts):
        return True
    return any(word.text in _NIX_SETTINGS for word in values_of(seen, ("--option",)))


_DOCUMENT_RUNS = re.compile(r"-dNOSAFER|shell-escape|-Zshell-escape|macro:|vnd\.sun\.star\.script:")


def _document_runs(seen: Seen) -> bool:
    """`gs -dNOSAFER`, `tectonic -Z shell-escape`, `soffice macro:///…`."""
    return any(_DOCUMENT_RUNS.match(word.text) for word in seen.words[1:])


_ASKS_NOBODY = re.compile(
    r"--(?:yolo|full-auto|force|auto-approve|yes|yes-always|always-approve|allow-all(?:-tools)?|trust-all-tools"
    r"|auto=?(?:high|medium)?|skip-permissions\S*|dangerously-\S+|auto-?run|permission-mode=bypass\S*"
    r"|approval-mode=(?:yolo|auto_edit|full-auto)|ask-for-approval=never|sandbox=danger-full-access)|-y"
)
_NOBODY = {
    "--permission-mode": re.compile(r"bypass"),
    "--approval-mode": re.compile(r"yolo|auto|full"),
    "--ask-for-approval": re.compile(r"never"),
    "-a": re.compile(r"never\Z"),
    "--sandbox": re.compile(r"danger"),
    "--allowedTools": re.compile(r".*Bash(?:\(\*|,|\Z| )"),
    "--allowed-tools": re.compile(r".*Bash(?:\(\*|,|\Z| )"),
}


def _asks_nobody(seen: Seen) -> bool:
    """`claude --dangerously-skip-permissions`, `codex --full-auto`, `gemini --approval-mode yolo`."""
    if any(_ASKS_NOBODY.fullmatch(word.text) for word in seen.words[1:]):
        return True
    return any(known.match(word.text) for name, known in _NOBODY.items() for word in values_of(seen, (name,)))


_LOOKS = frozenset(
    {"search", "getactivewindow", "getwindowname", "getwindowgeometry", "getmouselocation", "getwindowpid"}
)


def _only_looks_at_windows(seen: Seen) -> bool:
    return seen.name == "xdotool" and seen.texts[:1] != [] and seen.texts[0] in _LOOKS and "key" not in seen.texts


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "only_looks_at_windows": _only_looks_at_windows,
    "nix_runs": _nix_runs,
    "document_runs": _document_runs,
    "asks_nobody": _asks_nobody,
    "apt_runs": _apt_runs,
    "package_settings": _package_settings,
    "hg_loads": _hg_loads,
    "vcs_runs": _vcs_runs,
    "names_library": _names_library,
    "compiler_starts": _compiler_starts,
}

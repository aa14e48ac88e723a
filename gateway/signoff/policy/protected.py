"""Files that tell agents how to behave: whoever writes them changes what every later run of the agent does."""

from __future__ import annotations

import re
import unicodedata

from signoff.policy.deny import fits, pattern_parts

PROTECTED_KEY = "file.protected"
"""The key of the rule that asks for each change of such a file, whatever else is allowed."""

NAMES = frozenset(
    {
        "agents.md",
        "agents.override.md",
        "claude.md",
        "claude.local.md",
        "gemini.md",
        "soul.md",
        ".cursorrules",
        ".windsurfrules",
        ".clinerules",
        ".goosehints",
        ".mcp.json",
        "copilot-instructions.md",
    }
)
"""Instruction files by name, in any folder and in any spelling of upper and lower case."""

FOLDERS = frozenset({".claude", ".codex", ".cursor", ".gemini", ".hermes", ".windsurf", ".opencode"})
"""Folders of an agent's own configuration: settings, permissions, hooks and commands."""

_SHORT = re.compile(r"(?:claude|agents|cursor|codex|gemini|hermes|windsu|openco|copilo)~\d(?:\.\w{1,3})?")
"""The names that Windows gives such files and folders beside their own."""

_SEPARATORS = re.compile(r"[/\\]+")
_HEADER = re.compile(
    r"(?:\+\+\+|---|rename (?:to|from)|copy to|Index:|\*\*\* (?:Add|Update|Delete) File:|\*\*\* Move to:"
    r"|\*\*\*(?! (?:Begin|End) Patch| \d+(?:,\d+)? \*)) (\"?)(?:[ab]/)?([^\t\n]+)|diff --git \S+ (\"?)(?:b/)?([^\t\n]+)"
)
"""Headers of unified and context diffs, of git and Subversion, and of the patches that agents write."""
_STARTS = ("+++", "---", "***", "rename ", "copy to ", "diff --git ", "Index:")
_OCTAL = re.compile(r"\\([0-7]{3})")


def is_protected(path: str) -> bool:
    """Whether a path means an instruction file, or a file in an agent's configuration folder."""
    parts = [_folded(part) for part in _SEPARATORS.split(path)]
    parts = [part for part in parts if part not in {"", "."}]
    if not parts:
        return False
    return parts[-1] in NAMES or any(part in FOLDERS or _SHORT.fullmatch(part) for part in parts)


def fits_some(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path ends in one of these names or paths, in which `*` alone is special."""
    if not patterns:
        return False
    whole = "/" + plain_path(path)
    for pattern in patterns:
        plain = pattern.casefold().removeprefix("./")
        # A path may begin at any of the names: behind whatever stands before a slash.
        told = ("*/" + plain, whole) if "/" in pattern else (plain, whole.rpartition("/")[2])
        if fits(pattern_parts(told[0]), told[1]):
            return True
    return False


def plain_path(path: str) -> str:
    """The path as a file system that folds case sees it, with plain slashes between its names."""
    parts = [_folded(part) for part in _SEPARATORS.split(path)]
    return "/".join(part for place, part in enumerate(parts) if part not in {"", "."} or not place)


def _folded(part: str) -> str:
    """A name as a file system that folds case sees it: without characters that show nothing or steer a terminal,
    without a dot or blank at the end, without the name of a stream (`AGENTS.md::$DATA`)."""
    shown = (c for c in unicodedata.normalize("NFC", part) if unicodedata.category(c) not in {"Cf", "Cc"})
    plain = "".join(shown).casefold()
    return plain.partition(":")[0].rstrip(". ") or plain


def files_of(diff: str) -> tuple[str, ...]:
    """The files that a unified diff names in its headers: one change may touch several."""
    lines = dict.fromkeys(line for line in diff.split("\n") if line.startswith(_STARTS))
    headers = filter(None, map(_HEADER.match, lines))
    found = (_named(match[1] or match[3], match[2] or match[4]) for match in headers)
    return tuple(name for name in dict.fromkeys(found) if name != "/dev/null")


def _named(quote: str | None, name: str) -> str:
    """The name in a header, without the quotes and octal escapes of git."""
    name = name.strip()
    if not quote:
        return name
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), name.removesuffix('"'))

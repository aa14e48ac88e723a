"""Files that tell agents how to behave: whoever writes them changes what every later run of the agent does."""

from __future__ import annotations

import re
import unicodedata

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

_SEPARATORS = re.compile(r"[/\\]+")
_HEADER = re.compile(r"(?:\+\+\+|---|rename to|copy to) (?:[ab]/)?([^\t\n]+)|diff --git \S+ (?:b/)?([^\t\n]+)")


def is_protected(path: str) -> bool:
    """Whether a path means an instruction file, or a file in an agent's configuration folder."""
    parts = [_folded(part) for part in _SEPARATORS.split(path)]
    parts = [part for part in parts if part not in {"", "."}]
    if not parts:
        return False
    return parts[-1] in NAMES or any(part in FOLDERS for part in parts)


def _folded(part: str) -> str:
    """A name as a file system that folds case sees it: without characters that show nothing, without a dot or blank at
    the end, without the name of a stream (`AGENTS.md::$DATA`)."""
    plain = "".join(c for c in unicodedata.normalize("NFC", part) if unicodedata.category(c) != "Cf").casefold()
    return plain.partition(":")[0].rstrip(". ") or plain


def files_of(diff: str) -> tuple[str, ...]:
    """The files that a unified diff names in its headers: one change may touch several."""
    headers = (_HEADER.match(line) for line in diff.split("\n") if line[:1] in set("+-rcd"))
    found = ((match.group(1) or match.group(2)).strip() for match in headers if match is not None)
    return tuple(name for name in dict.fromkeys(found) if name != "/dev/null")

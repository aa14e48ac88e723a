"""The gateway's own files: whose they are, and who else may read or change them."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from signoff.allowlist_file import AllowlistError, AllowlistFile, allowlist_path
from signoff.config import Config
from signoff.config.sources import from_file
from signoff.config.table import PROFILE
from signoff.errors import ConfigError
from signoff.folder import user_name
from signoff.ports import Finding
from signoff.stores.open import shared

SECRETS = frozenset(setting.path[-1] for setting in PROFILE if setting.secret)
"""The names of settings that hold a secret themselves."""
_OTHERS, _GROUP_AND_OTHERS = 0o007, 0o077


def file_findings(config: Config) -> Iterator[Finding]:
    """The configuration file, the state folder and the key file."""
    if config.file is None:
        yield Finding.warning(
            "configuration",
            "There is no signoff.toml here; the environment and the defaults apply.",
            "Make one with `signoff init`, or name it with --config.",
        )
    else:
        yield _configuration(config.file)
    yield _folder(config.gateway.state_dir)
    key = config.gateway.token_key_file
    if key.exists():
        yield _private(key, "key file", "gateway.token_key_file")
    else:
        yield Finding.fine("key file", f"{key} is made at the first start.")
    followed = not _shared(config.gateway.store)
    for profile in config.profiles:
        path = allowlist_path(config.gateway.state_dir, profile)
        if path.exists():
            yield _allowlist(path) if followed else _unfollowed(path)


def _configuration(file: Path) -> Finding:
    mode, about = stat.S_IMODE(file.stat().st_mode), "configuration"
    if mode & stat.S_IWOTH:
        return Finding.problem(
            about, f"Everybody on this machine may change {file}, and so who may decide.", f"Run: chmod 600 {file}"
        )
    secrets = sorted(".".join(path) for path in from_file(file) if path[-1] in SECRETS)
    if secrets and mode & _OTHERS:
        return Finding.problem(
            about, f"{file} holds {', '.join(secrets)} and is open to everybody.", f"Run: chmod 600 {file}"
        )
    return Finding.fine(about, f"{file} is complete and sound.")


def _folder(folder: Path) -> Finding:
    about = "state folder"
    if not folder.exists():
        parent = existing(folder)
        if not takes_files(parent):
            return Finding.problem(
                about, f"{folder} cannot be made: {parent} takes nothing of ours.", "Set gateway.state_dir elsewhere."
            )
        return Finding.fine(about, f"{folder} is made at the first start.")
    return _private(folder, about, "gateway.state_dir")


def takes_files(folder: Path) -> bool:
    """Whether we may put files there. Root may write everywhere, and yet /proc and its like, without any size, take
    nothing."""
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) and shutil.disk_usage(folder).total > 0


def _allowlist(path: Path) -> Finding:
    """The file of commands that need no question: whoever may change it decides for everybody."""
    about = "allowlist"
    if stat.S_IMODE(path.stat().st_mode) & stat.S_IWOTH:
        who = f"Everybody on this machine may change {path}, and so what runs without a question."
        return Finding.problem(about, who, f"Run: chmod 600 {path}")
    try:
        entries = AllowlistFile(path).read()
    except AllowlistError as error:
        return Finding.problem(about, str(error), f"Mend {path}, or empty it.")
    if entries.warnings:
        return Finding.warning(about, entries.warnings[0], f"Mend {path}.")
    count = len(entries.commands) + len(entries.unattended_commands)
    return Finding.fine(about, f"{path} admits {count} {'command' if count == 1 else 'commands'}.")


def _unfollowed(path: Path) -> Finding:
    return Finding.fine("allowlist", f"{path} is not followed: the store has the allowlist (`signoff allowlist list`).")


def _shared(url: str) -> bool:
    try:
        return shared(url)
    except ConfigError:
        return False  # no engine serves it, which is told of the store


def _private(path: Path, about: str, setting: str) -> Finding:
    """A file or folder that must be ours alone."""
    facts = path.stat()
    if facts.st_uid != os.geteuid():
        return Finding.problem(
            about,
            f"{path} belongs to user {(owner := user_name(facts.st_uid))}, and this is user {user_name(os.geteuid())}.",
            f"Run it as that user (sudo -u {owner} signoff ...), or set {setting} to one of your own.",
        )
    if stat.S_IMODE(facts.st_mode) & _GROUP_AND_OTHERS:
        mode = "700" if path.is_dir() else "600"
        return Finding.warning(about, f"Others on this machine may look into {path}.", f"Run: chmod {mode} {path}")
    return Finding.fine(about, f"{path} is ours alone.")


def existing(path: Path) -> Path:
    """The path, or its nearest folder that exists."""
    while not path.exists():
        path = path.parent
    return path

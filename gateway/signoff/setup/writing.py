"""The settings file and the files of pasted secrets: complete, with comments, readable for their owner alone."""

from __future__ import annotations

import itertools
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from signoff.config.sources import from_file
from signoff.config.table import GATEWAY, PROFILE
from signoff.errors import ConfigError
from signoff.setup.secrets import Given
from signoff.visible import visible

_DOCS = {setting.name: setting.doc for setting in (*GATEWAY, *PROFILE)}


class Approver(Struct, frozen=True, kw_only=True):
    """Who may decide, and the name for a comment."""

    user_id: str
    name: str = ""


class PlatformChoice(Struct, frozen=True, kw_only=True):
    """One platform as it was answered."""

    platform: str
    secrets: dict[str, Given]
    """By the setting's last word, such as `token`."""
    settings: dict[str, str] = {}
    """Plain settings that differ from their defaults."""
    approvers: tuple[Approver, ...] = ()


class Choices(Struct, frozen=True, kw_only=True):
    """Everything that was answered."""

    platforms: tuple[PlatformChoice, ...]
    fallback: str | None = None
    inline_secrets: bool = False
    """Whether secrets stand in the file itself."""

    def secret_files(self, folder: Path) -> dict[Path, str]:
        """The files that pasted secrets go to, beside the settings, and what stands in them."""
        if self.inline_secrets:
            return {}
        return {
            folder / secret_name(choice.platform, name): f"{given.value}\n"
            for choice in self.platforms
            for name, given in choice.secrets.items()
            if given.kind == "pasted"
        }


def secret_name(platform: str, name: str) -> str:
    """The name of the file that a pasted secret goes to."""
    return f"{platform}.{name}"


def text_of(choices: Choices) -> str:
    """The settings file."""
    lines = [
        "# Signoff's settings, written by `signoff init`. `signoff doctor` examines them.",
        "# Each may also be an environment variable: SIGNOFF_<SECTION>__<NAME>.",
        "",
        "[gateway]",
        *_commented("gateway.port", "8787"),
        *_commented("gateway.state_dir", '"/var/lib/signoff"'),
        *_commented("gateway.console_url", '"https://signoff.example.org"'),
        "",
        "[approvals]",
        *_about("approvals.timeout_s"),
        "timeout_s = 300",
        *_about("approvals.fallback_destination"),
        f"fallback_destination = {_quoted(choices.fallback)}"
        if choices.fallback
        else '# fallback_destination = "telegram:123456789"',
    ]
    for choice in choices.platforms:
        lines += ["", *_platform(choice, inline=choices.inline_secrets)]
    return "\n".join(lines) + "\n"


def _platform(choice: PlatformChoice, *, inline: bool) -> Iterator[str]:
    section = f"platforms.{choice.platform}"
    yield f"[{section}]"
    for name, given in choice.secrets.items():
        yield from _about(f"{section}.{name}")
        if given.kind == "pasted":
            yield (
                f"{name} = {_quoted(given.value)}"
                if inline
                else f'{name}_file = "{secret_name(choice.platform, name)}"'
            )
        else:
            yield f"{name}_{given.kind} = {_quoted(given.source)}"
    for name, value in choice.settings.items():
        yield from _about(f"{section}.{name}")
        yield f"{name} = {_quoted(value)}"
    yield from _about(f"{section}.approvers")
    for approver in choice.approvers:
        if approver.name:
            yield f"# {approver.user_id}: {visible(' '.join(approver.name.split()))}"
    yield f"approvers = [{', '.join(_quoted(approver.user_id) for approver in choice.approvers)}]"


def _about(name: str) -> Iterator[str]:
    """The setting's meaning as a comment."""
    if name in _DOCS:
        yield f"# {_DOCS[name]}"


def _commented(name: str, value: str) -> Iterator[str]:
    """A setting at its default, to be uncommented."""
    yield from _about(name)
    yield f"# {name.rpartition('.')[2]} = {value}"


def _quoted(text: str) -> str:
    """A basic string of TOML, whose escapes JSON's are."""
    return json.dumps(str(text)).replace("\x7f", "\\u007f")


def check_free(path: Path, *, replace: bool) -> None:
    """Raise `ConfigError` where a file could not be written there now; nothing is."""
    if path.exists() and not replace:
        raise _in_the_way(path)
    folder = next(each for each in path.absolute().parents if each.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise ConfigError(f"{path} cannot be written: {folder} takes no file; name another place with --config.")


def kept_aside(path: Path) -> Path | None:
    """Keep the file that is about to be replaced under a name of its own beside it, `.bak` or `.bak2` and so on; None
    where there is none. Raises `ConfigError`."""
    for number in itertools.count(1):
        aside = path.with_name(f"{path.name}.bak{number if number > 1 else ''}")
        try:
            # A second name for the same file: as private as it was, and whole at every moment.
            os.link(path, aside)
        except FileNotFoundError:
            return None
        except FileExistsError:
            continue
        except OSError as error:
            raise ConfigError(f"{path} cannot be kept as {aside}: {error.strerror}; move it away yourself.") from None
        return aside
    return None


def dropped(before: Path, after: Path) -> list[str]:
    """The settings of one file that another does not have with the same value. Of a file that is none, nothing."""
    try:
        old, new = from_file(before), from_file(after)
    except ConfigError:
        return []
    return [
        ".".join(path)
        for path, found in old.items()
        if found.value != {} and (path not in new or new[path].value != found.value)
    ]


def write_private(path: Path, text: str, *, replace: bool) -> None:
    """Write a file with mode 0600, whole or not at all. Raises `ConfigError` where one is in the way and must stay."""
    write_all({path: text}, replace=replace)


def write_all(files: Mapping[Path, str], *, replace: bool) -> None:
    """Write files with mode 0600, all of them or none; one that replaced another is not taken back. Raises
    `ConfigError` where one is in the way and must stay."""
    drafts = {path: path.with_name(f".{path.name}.{secrets.token_hex(4)}") for path in files}
    placed: list[Path] = []
    path = next(iter(files))
    try:
        for path, draft in drafts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(files[path])
        for path, draft in drafts.items():
            if replace:
                draft.replace(path)
            else:
                os.link(draft, path)
                placed.append(path)
    except OSError as error:
        for each in placed:
            each.unlink(missing_ok=True)
        if isinstance(error, FileExistsError) and path.exists():
            raise _in_the_way(path) from None
        raise ConfigError(f"{path} cannot be written: {error.strerror}; name another place with --config.") from None
    finally:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def _in_the_way(path: Path) -> ConfigError:
    return ConfigError(f"{path} is there already and stays as it is; --force replaces it.")

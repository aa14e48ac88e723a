"""From a file and the environment to a checked, typed `Config`; every mistake is one line that names the mend."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
import platformdirs
from msgspec import Struct

from signoff.config import cross
from signoff.config.checks import Wrong
from signoff.config.matching import Matcher, split_profiles
from signoff.config.secrets import Secret, read_secret_file, refuse_open_file
from signoff.config.shapes import Config, GatewaySettings
from signoff.config.sources import NAMED, Found, Path_, from_environment, from_file, typed
from signoff.config.table import NAME, Setting
from signoff.errors import ConfigError
from signoff.settings import (
    AgentSettings,
    ApprovalSettings,
    ExecutorSettings,
    GrantSettings,
    HookSettings,
    PrincipalSettings,
    Profile,
    SessionSettings,
)

SOCKET_PATH_BYTES = 103 if sys.platform == "darwin" else 107
"""The longest path of a Unix socket: the kernel's field less its closing zero (sys/un.h)."""

FILE_NAME = "signoff.toml"

_OUTWARD = ("platforms", "hooks")
"""Sections of what a gateway reaches with secrets, which judging does without."""

Values = dict[Path_, Any]


def find_config(folder: Path | None = None) -> Path | None:
    """`signoff.toml` in `folder` (the working directory by default), else in the user's configuration folder."""
    places = (folder or Path.cwd(), Path(platformdirs.user_config_dir("signoff")))
    return next((place / FILE_NAME for place in places if (place / FILE_NAME).is_file()), None)


def load_config(
    file: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    platforms: Iterable[str] | None = None,
) -> Config:
    """Read and check the configuration. Without a file the environment and the defaults make it.

    `environ` is the process's own by default; `platforms` are the installed adapters' names (entry points by default).
    Raises `ConfigError`: one line naming the setting and the mend, never a secret.
    """
    path = Path(file).expanduser().absolute() if file is not None else None
    variables = os.environ if environ is None else environ
    found = from_file(path) if path is not None else {}
    _overlay(found, from_environment(variables, found))
    adapters = entry_points(group="signoff.adapters").names if platforms is None else platforms
    reader = _Reader(Matcher(adapters), variables, path.parent if path else Path.cwd())
    gateway_found, profiles_found = split_profiles(found)
    gateway = _gateway(reader.read(gateway_found), gateway_found, reader)
    own = _own_paths(gateway, path)
    profiles = {name: _profile(name, reader.read(each), each, own) for name, each in profiles_found.items()}
    cross.check_gateway(gateway)
    cross.check_profiles(profiles)
    return Config(gateway=gateway, profiles=profiles, file=path, secret_variables=frozenset(reader.variables))


def load_policy(file: Path | str | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """What judging needs: as `load_config`, without platforms and the reviewer, so that no secret has to be at hand.

    Raises `ConfigError`.
    """
    path, reader, gateway_found, profiles_found = _policy_found(file, environ)
    gateway = _gateway(reader.read(gateway_found), gateway_found, reader, serving=False)
    return Config(
        gateway=gateway, profiles=_judging_profiles(reader, profiles_found, _own_paths(gateway, path)), file=path
    )


def load_profiles(file: Path | str, environ: Mapping[str, str] | None = None) -> dict[str, Profile]:
    """The profiles of a file as judging needs them, whatever it says of a gateway. Raises `ConfigError`."""
    _path, reader, _gateway_found, profiles_found = _policy_found(file, environ)
    return _judging_profiles(reader, profiles_found, ())


def _policy_found(
    file: Path | str | None, environ: Mapping[str, str] | None
) -> tuple[Path | None, _Reader, dict[Path_, Found], dict[str, dict[Path_, Found]]]:
    path = Path(file).expanduser().absolute() if file is not None else None
    variables = os.environ if environ is None else environ
    found = from_file(path) if path is not None else {}
    _overlay(found, from_environment(variables, found))
    gateway_found, profiles_found = split_profiles(found)
    return path, _Reader(Matcher(), variables, path.parent if path else Path.cwd()), gateway_found, profiles_found


def _outward(path: Path_) -> bool:
    """Whether judging does without this setting."""
    signs = path[0] == "executors" and len(path) == 3 and path[2].startswith("secret")
    return path[0] in _OUTWARD or path[:2] == ("approvals", "smart") or signs


def _judging_profiles(
    reader: _Reader, found: Mapping[str, Mapping[Path_, Found]], own: tuple[str, ...]
) -> dict[str, Profile]:
    profiles = {}
    for name, each in found.items():
        told = {at: value for at, value in each.items() if not _outward(at)}
        profiles[name] = _profile(name, reader.read(told), told, own, whole=False)
    return profiles


def load_hooks(file: Path | str | None = None, environ: Mapping[str, str] | None = None) -> dict[str, Profile]:
    """Each profile with its hooks alone, so that no other secret has to be at hand. Raises `ConfigError`."""
    _path, reader, _gateway_found, profiles_found = _policy_found(file, environ)
    profiles = {}
    for name, each in profiles_found.items():
        told = {at: value for at, value in each.items() if at[0] == "hooks"}
        profiles[name] = _profile(name, reader.read(told), told, (), whole=False)
        cross.check_hooks(profiles[name], told)
    return profiles


class Location(Struct, frozen=True, kw_only=True):
    """Where a gateway keeps its things, and its profiles: what administration needs to reach it."""

    gateway: GatewaySettings
    profiles: frozenset[str]
    file: Path | None = None


def locate(file: Path | str | None = None, environ: Mapping[str, str] | None = None) -> Location:
    """Only `gateway.*` and the names of the profiles, so that no platform's secret has to be at hand.

    Raises `ConfigError`.
    """
    path = Path(file).expanduser().absolute() if file is not None else None
    variables = os.environ if environ is None else environ
    found = from_file(path) if path is not None else {}
    _overlay(found, from_environment(variables, found))
    gateway_found, profiles_found = split_profiles(found)
    reader = _Reader(Matcher(), variables, path.parent if path else Path.cwd())
    gateway = _gateway(reader.read(gateway_found), gateway_found, reader)
    cross.check_gateway(gateway)
    return Location(gateway=gateway, profiles=frozenset(profiles_found), file=path)


def _overlay(found: dict[Path_, Found], environment: dict[Path_, Found]) -> None:
    """Put the environment over the file: a variable also replaces the other forms (`_env`, `_file`) of its secret."""
    for path in environment:
        base = _base(path)
        for other in [known for known in found if _base(known) == base and known[:-1] == path[:-1]]:
            del found[other]
        for size in range(1, len(path)):
            if path[:size] in found and found[path[:size]].value == {}:
                del found[path[:size]]
    found.update(environment)


def _base(path: Path_) -> str:
    return path[-1].removesuffix("_env").removesuffix("_file")


class _Reader:
    """Checks found values against the table and reads the secrets they point to."""

    def __init__(self, matcher: Matcher, environ: Mapping[str, str], folder: Path) -> None:
        self._matcher, self._environ, self.folder = matcher, environ, folder
        self.variables: set[str] = set()
        """Those that a secret was read from."""

    def read(self, found: Mapping[Path_, Found]) -> Values:
        """The checked values by their path."""
        values: Values = {}
        for path, each in found.items():
            matched = self._matcher.match(path, each)
            if path[0] in NAMED - {"profiles"} and len(path) > 1 and NAME.fullmatch(path[1]) is None:
                raise ConfigError(f"{each.where}: a name has 1 to 64 letters, digits, '.', '_' and '-'; rename it.")
            if matched is None:
                values[path] = {}
                continue
            setting, suffix = matched
            plain = (*path[:-1], path[-1].removesuffix(suffix)) if suffix else path
            if plain in values:
                name = setting.path[-1]
                raise ConfigError(f"{each.where}: give only one of {name}, {name}_env and {name}_file.")
            values[plain] = self._value(setting, suffix, each)
        return values

    def _value(self, setting: Setting, suffix: str, found: Found) -> Any:
        raw = found.value
        if suffix:
            raw = self._secret(suffix, found)
        elif found.env is not None:
            raw = typed(raw, setting.shape)
        try:
            value = setting.check(raw)
        except Wrong as wrong:
            raise ConfigError(f"{found.where} {wrong}.", param=setting.name) from None
        return Secret(value) if setting.secret and isinstance(value, str) else value

    def _secret(self, suffix: str, found: Found) -> str:
        if not isinstance(found.value, str) or not found.value.strip():
            what = "variable" if suffix == "_env" else "file"
            raise ConfigError(f"{found.where} must be the name of a {what} in quotes.")
        if suffix == "_file":
            return read_secret_file(self.folder / Path(found.value).expanduser(), found.where)
        value = self._environ.get(found.value, "")
        self.variables.add(found.value)
        if not value.strip():
            raise ConfigError(f"{found.where}: the environment variable {found.value} is not set; set it.")
        return value.strip()


def _gateway(values: Values, found: Mapping[Path_, Found], reader: _Reader, *, serving: bool = True) -> GatewaySettings:
    """The gateway's own settings; `serving` says that they must do for a gateway that runs."""
    given = {path[1]: value for path, value in values.items() if len(path) > 1}

    def placed(name: str, default: Path) -> Path:
        raw = given.pop(name, None)
        return default if raw is None else Path(os.path.normpath(reader.folder / Path(raw).expanduser()))

    state_dir = placed("state_dir", Path(platformdirs.user_state_dir("signoff")))
    where = found["gateway", "state_dir"].where if ("gateway", "state_dir") in found else "gateway.state_dir"
    if state_dir.exists() and not state_dir.is_dir():
        raise ConfigError(f"{where}: {state_dir} is not a folder; name a folder, which is made if it does not exist.")
    if serving and len(os.fsencode(state_dir / "admin.sock")) > SOCKET_PATH_BYTES:
        raise ConfigError(
            f"{where}: the path {state_dir} is too long for the socket in it; use one of at most "
            f"{SOCKET_PATH_BYTES - len('/admin.sock')} bytes."
        )
    key_file = placed("token_key_file", state_dir / "token.key")
    if serving and key_file.exists():
        refuse_open_file(key_file, "gateway.token_key_file")
    store = given.pop("store", Secret(f"sqlite:///{quote(str(state_dir / 'signoff.db').lstrip('/'))}"))
    return GatewaySettings(state_dir=state_dir, token_key_file=key_file, store=store, **given)


def _own_paths(gateway: GatewaySettings, file: Path | None) -> tuple[str, ...]:
    """The gateway's own files, which no action may touch."""
    paths = [str(gateway.state_dir), str(gateway.token_key_file)]
    if file is not None:
        # And what `signoff init --force` kept of it, which may hold the same secrets.
        paths += [str(file), *map(str, sorted(file.parent.glob(f"{glob.escape(file.name)}.bak*")))]
    parts = urlsplit(gateway.store)
    if parts.scheme == "sqlite":
        database = "/" + unquote(parts.path).lstrip("/")
        paths += [database, f"{database}-wal", f"{database}-shm"]
    return tuple(dict.fromkeys(paths))


def _profile(
    name: str, values: Values, found: Mapping[Path_, Found], own_paths: tuple[str, ...], *, whole: bool = True
) -> Profile:
    """One profile's settings; `whole` says that its platforms are among them, so that places can be checked."""
    platforms: dict[str, dict[str, Any]] = {}
    approvers: dict[str, tuple[str, ...]] = {}
    for path, value in values.items():
        if path[0] != "platforms" or len(path) == 1:
            continue
        platforms.setdefault(path[1], {})
        approvers.setdefault(path[1], ())
        if len(path) > 2 and path[2] == "approvers":
            approvers[path[1]] = value
        elif len(path) > 2:
            platforms[path[1]][path[2]] = value
    profile = Profile(
        name=name,
        approvals=msgspec.convert(_approvals(values), ApprovalSettings),
        grants=msgspec.convert(_section(values, "grants"), GrantSettings),
        sessions=msgspec.convert(_section(values, "sessions"), SessionSettings),
        agents={key: AgentSettings(**each) for key, each in _named(values, "agents").items()},
        principals={key: PrincipalSettings(**each) for key, each in _named(values, "principals").items()},
        hooks={key: HookSettings(**each) for key, each in _named(values, "hooks").items()},
        executors={key: ExecutorSettings(**each) for key, each in _named(values, "executors").items()},
        rules=values.get(("rules",)),
        platforms=platforms,
        approvers=approvers,
        own_paths=own_paths,
        own_pid=os.getpid(),
    )
    if whole:
        cross.check_profile(profile, found)
    return profile


def _approvals(values: Values) -> dict[str, Any]:
    inner: dict[str, dict[str, Any]] = {"smart": {}, "tool_gate": {}}
    for path, value in values.items():
        if path[0] == "approvals" and len(path) == 3 and path[1] in inner:
            inner[path[1]][path[2]] = value
    return {**_section(values, "approvals"), **inner}


def _section(values: Values, section: str) -> dict[str, Any]:
    return {path[1]: value for path, value in values.items() if path[0] == section and len(path) == 2}


def _named(values: Values, section: str) -> dict[str, dict[str, Any]]:
    named: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        if path[0] == section and len(path) > 1:
            each = named.setdefault(path[1], {})
            if len(path) > 2:
                each[path[2]] = value
    return named

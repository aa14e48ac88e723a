"""What the names of targets and scripts say that a build tool or an interpreter is told to run."""

import re
from collections.abc import Callable
from functools import lru_cache

from signoff.policy.path_classes import is_outside
from signoff.policy.predicates.program_options import values_of
from signoff.policy.predicates.whole import per_command
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN, UNKNOWN_HOME, Word

_OUTWARD = frozenset(
    {
        "deploy",
        "deployment",
        "release",
        "publish",
        "upload",
        "push",
        "ship",
        "promote",
        "rollback",
        "undeploy",
        "submit",
        "notify",
        "announce",
        "sync",
    }
)
_GRAVE = frozenset(
    {
        "destroy",
        "drop",
        "nuke",
        "teardown",
        "wipe",
        "purge",
        "terminate",
        "truncate",
        "delete",
        "erase",
        "reset-db",
        "flush",
    }
)
_INSTALLS = frozenset({"install", "uninstall", "flash", "provision", "migrate", "seed", "restore", "apply"})
_FIRST_HARMLESS = frozenset(
    {
        "check",
        "test",
        "tests",
        "lint",
        "build",
        "validate",
        "verify",
        "dry",
        "list",
        "show",
        "generate",
        "docs",
        "doc",
        "print",
        "help",
        "plan",
        "preview",
        "local",
        "dev",
    }
    | {
        "watch",
        "compile",
        "package",
        "prepare",
        "format",
        "fmt",
        "typecheck",
        "bundle",
        "diff",
        "status",
        "download",
        "fetch",
        "pull",
        "clean",
        "debug",
        "pre",
        "mock",
    }
)
_HARMLESS_PARTS = frozenset(
    {
        "dry",
        "dryrun",
        "check",
        "local",
        "test",
        "tests",
        "build",
        "notes",
        "lint",
        "validate",
        "verify",
        "plan",
        "preview",
        "docs",
        "help",
        "status",
        "snapshot",
        "debug",
    }
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CUT = re.compile(r"[-_:./@]+")


@lru_cache(maxsize=1024)
def _words_of(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The words of a name: the first of each part, which in `assembleRelease` and `deployProd` says what is done, and
    all of them."""
    found = [part for part in _CUT.split(text) if part]
    if text == text.lower():
        folded = tuple([part.casefold() for part in found])
        return folded, frozenset(folded)
    parts = [_CAPITAL.split(part) for part in found]
    return tuple(part[0].casefold() for part in parts), frozenset(word.casefold() for part in parts for word in part)


def _speaks(text: str, verbs: frozenset[str]) -> bool:
    """Whether the name of a target or script says one of the verbs: `deploy`, `db:drop`, `release-prod`."""
    if text in verbs:
        return True
    first, known = _words_of(text)
    if not first or first[0] in _FIRST_HARMLESS or not _HARMLESS_PARTS.isdisjoint(known):
        return False
    if verbs is _GRAVE and "reset" in first and known & {"db", "database"}:
        return True
    return not verbs.isdisjoint(first)


def _targets(seen: Seen) -> list[str]:
    """The targets or scripts a build tool is told to run."""
    texts = [text for text in seen.texts if "=" not in text]
    if seen.name == "cmake":
        return _cmake_targets(seen)
    if seen.name in {"bazel", "bazelisk"}:
        return texts[1:2] if texts[:1] == ["run"] else []
    if seen.name in {
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "deno",
        "composer",
        "lerna",
        "nx",
        "turbo",
        "mise",
        "pdm",
        "poe",
        "hatch",
        "wireit",
    }:
        if texts[:1] and texts[0] in {"run", "run-script", "rum", "urn", "task", "workspace", "x"}:
            return texts[1:3] if texts[0] == "workspace" else texts[1:2]
        if seen.name in {"turbo", "poe", "nx", "lerna"}:
            return texts[:1]
        if seen.name not in {"yarn", "pnpm", "bun"} or (texts[:1] == ["deploy"] and seen.name == "pnpm"):
            return []
        return texts[:1] if texts[:1] and texts[0] not in _BUILT_IN else []
    return texts


def _cmake_targets(seen: Seen) -> list[str]:
    """`cmake --build FOLDER --target A B`, and what stands for the tool that builds behind `--`."""
    words = [word.text for word in seen.words[1:]]
    if words[:1] != ["--build"]:
        return []
    given = [word.text for word in values_of(seen, ("--target", "-t"))]
    return given + [text for text in words[2:] if text[:1] != "-"]


_BUILT_IN = frozenset(
    {
        "install",
        "add",
        "remove",
        "publish",
        "link",
        "unlink",
        "upgrade",
        "update",
        "up",
        "dlx",
        "exec",
        "create",
        "init",
        "audit",
        "list",
        "why",
        "outdated",
        "pack",
        "import",
        "i",
        "rm",
        "global",
    }
    | {
        "login",
        "logout",
        "owner",
        "tag",
        "team",
        "cache",
        "config",
        "info",
        "bin",
        "node",
        "patch",
        "prune",
        "rebuild",
        "store",
        "root",
        "fetch",
        "licenses",
        "uninstall",
        "dedupe",
    }
)


_targets_once = per_command(_targets)


def _runs_outward(seen: Seen) -> bool:
    return any(_speaks(text, _OUTWARD) for text in _targets_once(seen))


def _runs_grave(seen: Seen) -> bool:
    return any(_speaks(text, _GRAVE) for text in _targets_once(seen))


def _runs_install(seen: Seen) -> bool:
    """`make install`, `ninja install`, `cmake --install`: files go outside the project; not where a folder is named."""
    if not any(text in _INSTALLS for text in _targets_once(seen)):
        return False
    given = [text.partition("=") for text in seen.texts if "=" in text]
    folders = [value for name, _equals, value in given if name == "DESTDIR"]
    folders += [value for name, value in seen.command.assignments if name == "DESTDIR"]
    if folders:
        return not all(_is_near(folder, seen) for folder in folders)
    prefixes = [value for name, _equals, value in given if name in {"PREFIX", "prefix"}]
    home = seen.facts.paths.home or UNKNOWN_HOME
    return not prefixes or not all(_is_near(each, seen) or _is_below(each, home) for each in prefixes)


def _is_near(folder: str, seen: Seen) -> bool:
    """Whether a folder lies inside the project, among scratch files, or below one that is only known later: that alone
    may turn out empty, and then it is the system's root."""
    if ".." in folder.split("/") or (UNKNOWN in folder and not folder.strip(UNKNOWN + "/.")):
        return False
    return folder[:1] not in {"", "~"} and not is_outside(Word(folder), seen.cwd, seen.facts.paths)


def _is_below(folder: str, other: str) -> bool:
    return folder.startswith(f"{other}/") and ".." not in folder.split("/") and folder.strip("/") != other.strip("/")


def _script_name(seen: Seen) -> str:
    """The file that an interpreter runs, or the program itself, without its folder and ending."""
    if seen.name.startswith("./"):
        path = seen.words[0].text
    else:
        path = next((text for text in seen.texts if UNKNOWN not in text), "")
    return path.rpartition("/")[2].partition(".")[0]


def _script_outward(seen: Seen) -> bool:
    """`./deploy.sh`, `bash scripts/release.sh`: a script of the project that says so by its name."""
    return _speaks(_script_name(seen), _SCRIPT_VERBS)


_SCRIPT_VERBS = (_OUTWARD - {"sync", "notify"}) | (_GRAVE - {"delete", "flush", "drop"})


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "target_outward": _runs_outward,
    "target_grave": _runs_grave,
    "target_installs": _runs_install,
    "script_outward": _script_outward,
}

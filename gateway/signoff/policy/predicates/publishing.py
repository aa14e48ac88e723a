"""What rules about publishing ask that the fields of a rule cannot say."""

import re
from collections.abc import Callable

from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_READ_VERBS = frozenset({"ls", "list", "get", "view"})


def _publish_reads(seen: Seen) -> bool:
    """`npm access ls-packages`, `npm token list`: the groups that have commands which only read."""
    texts = seen.texts
    return texts[0] in {"access", "token", "team", "org"} and bool(texts[1:2]) and texts[1].split("-")[0] in _READ_VERBS


_UPDATES_LOCALLY = frozenset(
    {
        "poetry",
        "pdm",
        "composer",
        "conda",
        "mix",
        "stack",
        "opam",
        "gem",
        "helm",
        "snapcraft",
        "flatpak",
        "uv",
        "rye",
        "hatch",
        "dart",
        "flutter",
        "dotnet",
        "nuget",
        "pod",
        "luarocks",
        "cabal",
        "expo",
        "deno",
        "nx",
    }
)
_REMOTE_VERBS: dict[str, frozenset[str]] = {
    "update": frozenset({"eas"}),
    "delete": frozenset({"nuget", "dotnet"}),
    "sign": frozenset({"web-ext"}),
    "release": frozenset({"fastlane", "snapcraft", "nx", "cr", "jreleaser", "lerna", "mix"}),
    "deploy": frozenset({"lein", "clojure", "modal", "jreleaser", "sbt", "expo", "fastlane"}),
    "close": frozenset({"snapcraft"}),
    "promote": frozenset({"snapcraft"}),
    "push": frozenset(
        {"gem", "pod", "helm", "dvc", "nuget", "cog", "ollama", "replicate", "fury", "cloudsmith", "kaggle"}
    ),
    "submit": frozenset({"eas", "kaggle"}),
    "index": frozenset({"cr"}),
    "owner": frozenset({"gem", "mix"}),
}


def _is_local(seen: Seen) -> bool:
    """Words that publish for some of these programs and do something local for the others."""
    texts = seen.texts
    if seen.name == "dotnet" and texts[0] == "publish":
        return True
    allowed_for = _REMOTE_VERBS.get(texts[0])
    return allowed_for is not None and seen.name not in allowed_for


_BUILD_VERBS = frozenset(
    {
        "build",
        "check",
        "init",
        "healthcheck",
        "completion",
        "jsonschema",
        "help",
        "changelog",
        "info",
        "label",
        "mcp",
        "config",
        "update",
    }
)


def _builds_only(seen: Seen) -> bool:
    return seen.texts[:1] != [] and seen.texts[0] in _BUILD_VERBS


def _setup_py(seen: Seen) -> bool:
    return any(text.rpartition("/")[2] == "setup.py" for text in seen.texts)


_JAVA = re.compile(
    r"(?:.*:)?(?:deploy|deploy-file|deploy-only|perform|stage|publish(?!\w*(?:ToMavenLocal|Local)\b)[A-Za-z]*|upload[A-Z]\w*|closeAndRelease\w*|release(?:Repository|StagingRepository)\w*"
    r"|sonatypeBundleRelease|sonatypeCentralUpload|bintrayUpload|publishPlugins|appDistributionUpload\w*|jib|promote\w*)"
)
_JAVA_LOCAL = re.compile(
    r"(?:.*:)?(?:publishLocal|publishToMavenLocal|publishM2|publish\w*ToMavenLocal|jibDockerBuild|publish\w*ToLocal\w*)"
)


_JAVA_TOOLS = frozenset({"mvn", "mvnw", "./mvnw", "gradle", "gradlew", "./gradlew", "ant", "sbt", "lein", "mill"})


def _publishes_java(seen: Seen) -> bool:
    """Maven's deploy and release goals, Gradle's publish tasks, sbt's publish."""
    if seen.name not in _JAVA_TOOLS:
        return False
    known = (text for text in seen.texts if UNKNOWN not in text)
    return any(_JAVA.fullmatch(text) and not _JAVA_LOCAL.fullmatch(text) for text in known)


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "publish_reads": _publish_reads,
    "publish_is_local": _is_local,
    "publish_builds_only": _builds_only,
    "publish_setup_py": _setup_py,
    "publish_java": _publishes_java,
}

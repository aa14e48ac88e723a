"""What rules about the clients of code forges (gh, glab, hub, tea) ask that the fields of a rule cannot say."""

import re
from collections.abc import Callable

from signoff.policy import graphql
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_READS: dict[str, frozenset[str]] = {
    "gh": frozenset(
        {"pr list", "pr view", "pr diff", "pr checks", "pr status", "pr checkout", "pr co", "issue list", "issue view"}
        | {
            "issue status",
            "repo list",
            "repo view",
            "repo clone",
            "repo gitignore",
            "repo license",
            "run list",
            "run view",
        }
        | {
            "run watch",
            "run download",
            "workflow list",
            "workflow view",
            "release list",
            "release view",
            "release download",
        }
        | {
            "release verify",
            "search",
            "status",
            "browse",
            "gist list",
            "gist view",
            "gist clone",
            "label list",
            "cache list",
        }
        | {"secret list", "variable list", "variable get", "ruleset list", "ruleset view", "ruleset check", "org list"}
        | {"project list", "project view", "project item-list", "project field-list", "auth status", "config get"}
        | {
            "config list",
            "extension list",
            "extension search",
            "alias list",
            "help",
            "version",
            "completion",
            "ssh-key list",
        }
        | {
            "gpg-key list",
            "attestation verify",
            "attestation download",
            "codespace list",
            "codespace view",
            "codespace logs",
        }
        | {
            "cs list",
            "ext list",
            "pr ls",
            "issue ls",
            "repo ls",
            "run ls",
            "release ls",
            "workflow ls",
            "repo autolink list",
        }
        | {"repo deploy-key list", "issue develop --list", "repo set-default", "licenses", "reference"}
    ),
    "glab": frozenset(
        {
            "mr list",
            "mr view",
            "mr diff",
            "mr checkout",
            "mr issues",
            "mr approvers",
            "issue list",
            "issue view",
            "ci list",
        }
        | {
            "ci status",
            "ci view",
            "ci trace",
            "ci get",
            "ci lint",
            "ci config",
            "pipeline list",
            "pipeline status",
            "repo view",
        }
        | {
            "repo list",
            "repo search",
            "repo clone",
            "repo contributors",
            "release list",
            "release view",
            "release download",
        }
        | {"label list", "auth status", "config get", "help", "version", "completion", "check-update", "snippet list"}
        | {
            "schedule list",
            "user events",
            "alias list",
            "job artifact",
            "incident list",
            "incident view",
            "variable list",
        }
        | {"iteration list", "milestone list", "changelog generate"}
    ),
    "hub": frozenset(
        {"ci-status", "issue show", "issue labels", "pr list", "pr show", "pr checkout", "release show", "browse"}
        | {
            "release download",
            "compare",
            "version",
            "help",
            "clone",
            "fetch",
            "checkout",
            "status",
            "log",
            "diff",
            "sync",
        }
    ),
    "tea": frozenset(
        {"pulls list", "pulls checkout", "issues list", "releases list", "repos list", "repos search"}
        | {"logins list", "branches list", "labels list", "milestones list", "notifications list", "whoami", "clone"}
        | {"times list", "organizations list", "help", "open"}
    ),
}
"""The commands of each client that only read, or change the local folder alone."""


_LISTS_ALONE = frozenset({"pr", "issue", "pulls", "issues", "releases", "repos", "labels", "milestones"})
"""Words of hub and tea that list when nothing stands behind them, and print help in the other clients."""


def _reads(seen: Seen) -> bool:
    texts = seen.texts
    if not texts:
        return True  # without a command they print their help
    if any(UNKNOWN in text for text in texts[:2]):
        return False
    if seen.has("--help", "-h"):
        return True
    known = _READS.get(seen.name, frozenset())
    if texts[0] == "api":
        return not _api_changes(seen)
    if texts[0] in _LISTS_ALONE and len(texts) == 1:
        return True
    return texts[0] in known or " ".join(texts[:2]) in known or " ".join(texts[:3]) in known


_FIELDS = ("-f", "-F", "--field", "--raw-field", "--input", "--form")


def _api_changes(seen: Seen) -> bool:
    """`gh api`: GET unless a method is named or fields are given; GraphQL goes by its query."""
    texts = seen.texts
    if texts[:1] != ["api"]:
        return False
    method = _method(seen)
    if any(text.strip("/").rpartition("/")[2] == "graphql" for text in texts[1:]):
        return _graphql_changes(seen)
    if method in {"GET", "HEAD"}:
        return False
    return bool(method) or seen.has(*_FIELDS)


def _method(seen: Seen) -> str:
    values = seen.values("-X", "--method")
    return values[-1].text.upper() if values else ""


def _graphql_changes(seen: Seen) -> bool:
    if seen.has("--input"):
        return True
    queries = [value.text for value in seen.values("-f", "-F", "--field", "--raw-field")]
    queries = [text.partition("=")[2] for text in queries if text.partition("=")[0] == "query"]
    return not queries or any(graphql.changes(text) is not False for text in queries)


_WHOLE_REPOSITORY = re.compile(
    r"(?:https?://[^/]+/(?:api/v\d/)?)?/?(?:repos/[^/]+/[^/]+|orgs/[^/]+|projects/[^/]+|groups/[^/]+)/?"
)


def _deletes_repository(seen: Seen) -> bool:
    """`repo delete`, or DELETE on the address of a whole repository, project or organisation."""
    texts = seen.texts
    if texts[:2] in (["repo", "delete"], ["repos", "delete"]) or texts[:1] == ["delete"]:
        return True
    if texts[:1] != ["api"]:
        return False
    if _method(seen) == "DELETE":
        return any(_WHOLE_REPOSITORY.fullmatch(text.partition("?")[0]) for text in texts[1:])
    return any(
        re.search(r"\bdelete(?:Repository|Project\w*|Organization)\b", value.text)
        for value in seen.values("-f", "-F", "--field", "--raw-field")
    )


_TOKENS = frozenset({"auth token", "auth git-credential", "variable export", "variable get", "token"})


def _shows_token(seen: Seen) -> bool:
    texts = seen.texts
    if texts[:2] == ["auth", "status"]:
        return seen.has("-t", "--show-token")
    return " ".join(texts[:2]) in (_TOKENS if seen.name == "glab" else _TOKENS - {"variable get"})


_PUBLIC = frozenset(
    {"merge", "release", "secret", "variable", "workflow", "ruleset", "ssh-key", "gpg-key", "deploy-key"}
)


def _far_reaching(seen: Seen) -> bool:
    """Merges, releases, secrets, workflow runs, deletions, and requests that delete or replace."""
    texts = seen.texts
    if texts[:1] == ["api"]:
        return _method(seen) in {"DELETE", "PUT"} or any(
            re.search(r"\b(?:delete|merge|remove|archive|transfer)[A-Z]\w*", value.text)
            for value in seen.values("-f", "-F", "--field", "--raw-field")
        )
    return bool((_PUBLIC | {"delete", "archive", "transfer", "rename", "edit-visibility"}) & set(texts[:3]))


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "forge_reads": _reads,
    "forge_deletes_repository": _deletes_repository,
    "forge_shows_token": _shows_token,
    "forge_far_reaching": _far_reaching,
}

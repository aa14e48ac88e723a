"""What rules about cloud and infrastructure clients ask that the fields of a rule cannot say."""

from collections.abc import Callable

from signoff.policy.predicates.clients import only_reads
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_READ_VERBS = frozenset(
    {
        "list",
        "describe",
        "info",
        "version",
        "help",
        "search",
        "read",
        "topic",
        "show",
        "get-iam-policy",
        "get-value",
        "ls",
        "cat",
        "tail",
    }
    | {
        "du",
        "stat",
        "hash",
        "get-server-config",
        "get-ancestors",
        "list-tags",
        "browse",
        "cheat-sheet",
        "validate",
        "diagnose",
        "head",
    }
    | {
        "get",
        "list-locations",
        "exists",
        "wait",
        "get-operation",
        "get-health",
        "query",
        "check-name",
        "feedback",
        "survey",
        "interactive",
    }
)
_READ_STARTS = ("list-", "get-", "describe-", "show-", "check-")
_SECRET_READS = frozenset(
    {
        "print-access-token",
        "print-identity-token",
        "access",
        "get-credentials",
        "get-access-token",
        "get-upload-credentials",
    }
    | {
        "list-publishing-credentials",
        "list-publishing-profiles",
        "list-keys",
        "show-connection-string",
        "print-refresh-token",
    }
)
_SECRET_NOUNS = frozenset(
    {
        "keys",
        "key",
        "credential",
        "credentials",
        "connection-string",
        "secret",
        "admin-key",
        "query-key",
        "password",
        "appsettings",
    }
)


def _verb(seen: Seen) -> str:
    """The word of a gcloud or az command that says what is done: the first that is no group.

    Groups are nouns; so the first word that reads as a known verb decides, and a name behind it does not.
    """
    texts = seen.texts
    if seen.name == "gcloud":
        texts = texts[1:] if texts[:1] in (["alpha"], ["beta"], ["preview"]) else texts
        texts = texts[1:] if texts[:1] in (["run"], ["deploy"]) else texts
    for text in texts:
        if UNKNOWN in text:
            return ""
        if text in _SECRET_READS:
            return "secret"
        if text in _READ_VERBS or text.startswith(_READ_STARTS):
            return "read"
        if text.partition("-")[0] in _CHANGE_VERBS:
            return "change"
    return ""


_CHANGE_VERBS = frozenset(
    {
        "create",
        "delete",
        "update",
        "add",
        "remove",
        "set",
        "unset",
        "deploy",
        "ssh",
        "scp",
        "start",
        "stop",
        "reset",
        "run",
        "restart",
    }
    | {
        "import",
        "export",
        "patch",
        "enable",
        "disable",
        "attach",
        "detach",
        "move",
        "rollback",
        "promote",
        "cancel",
        "execute",
        "call",
    }
    | {
        "publish",
        "pull",
        "ack",
        "seek",
        "resize",
        "upgrade",
        "migrate",
        "grant",
        "revoke",
        "undelete",
        "restore",
        "clone",
        "suspend",
    }
    | {
        "resume",
        "replace",
        "submit",
        "login",
        "logout",
        "activate",
        "deallocate",
        "redeploy",
        "purge",
        "recover",
        "invoke",
        "assign",
        "rm",
    }
    | {
        "cp",
        "mv",
        "rsync",
        "mb",
        "rb",
        "write",
        "simulate",
        "failover",
        "upload",
        "install",
        "apply",
        "regenerate",
        "swap",
        "up",
        "sign",
    }
)


def _verb_reads(seen: Seen) -> bool:
    """gcloud and az: whether the command only reads, and nothing secret."""
    texts = seen.texts
    if not texts:
        return True
    if seen.has("--help", "-h"):
        return True
    if texts[:2] in (
        ["config", "list"],
        ["config", "get-value"],
        ["config", "get"],
        ["auth", "list"],
        ["account", "show"],
        ["bicep", "build"],
        ["bicep", "lint"],
    ):
        return True
    if texts[:1] == ["storage"] and texts[1:2] in (["cp"], ["rsync"]):
        return seen.name == "gcloud" and _downloads(texts[2:], "gs://")
    return _verb(seen) == "read" and not _verb_secret(seen)


def _verb_secret(seen: Seen) -> bool:
    """Prints a token, a password or a key."""
    texts = seen.texts
    verb = _verb(seen)
    if verb == "secret":
        return True
    if texts[:1] == ["keyvault"] and texts[1:3] in (["secret", "show"], ["secret", "download"], ["key", "download"]):
        return True
    if texts[:2] == ["secrets", "versions"] and texts[2:3] == ["access"]:
        return True
    if verb != "read" or seen.name != "az" or texts[:1] == ["keyvault"]:
        return False
    return any(text in _SECRET_NOUNS for text in texts[1:-1]) or any(text in _SECRET_NOUNS for text in texts[1:3])


def _downloads(texts: list[str], scheme: str) -> bool:
    """Whether a copy goes from the store to here."""
    places = [text for text in texts if text not in {"-r", "-m"}]
    return len(places) > 1 and all(text.startswith(scheme) for text in places[:-1]) and "://" not in places[-1]


def _store_reads(seen: Seen) -> bool:
    """gsutil, bq, `aws s3` and their like: lists, and copies that come from the store."""
    texts = seen.texts
    if not texts:
        return True
    if seen.name == "aws":
        return (
            texts[0] == "s3"
            and texts[1:2] in (["cp"], ["sync"])
            and _downloads(texts[2:], "s3://")
            and not seen.has("--delete")
        )
    if seen.name == "gsutil":
        if texts[0] in {"cp", "rsync"}:
            return _downloads(texts[1:], "gs://") and not seen.has("-d")
        return texts[0] in {"ls", "cat", "stat", "du", "version", "hash", "help"} or texts[1:2] == ["get"]
    if seen.name == "s3cmd":
        return texts[0] in {"ls", "la", "info", "du", "get"}
    if seen.name == "mc":
        return texts[0] in {"ls", "cat", "stat", "du", "find", "diff", "tree", "head", "--version"} or texts[:2] == [
            "admin",
            "info",
        ]
    if seen.name in {"azcopy", "b2"}:
        return texts[0] in {
            "list",
            "ls",
            "jobs",
            "account",
            "get-file-info",
            "list-buckets",
            "list-file-names",
            "version",
            "help",
            "get-account-info",
        }
    return False


_AWS_SECRETS = frozenset(
    {
        "secretsmanager get-secret-value",
        "secretsmanager batch-get-secret-value",
        "sts get-session-token",
        "sts assume-role",
    }
    | {
        "sts assume-role-with-saml",
        "sts assume-role-with-web-identity",
        "sts get-federation-token",
        "ecr get-login-password",
    }
    | {
        "ecr get-authorization-token",
        "ecr get-login",
        "ecr-public get-login-password",
        "ecr-public get-authorization-token",
        "kms decrypt",
    }
    | {
        "iam create-access-key",
        "configure export-credentials",
        "rds generate-db-auth-token",
        "eks get-token",
        "ec2 get-password-data",
    }
    | {
        "codeartifact get-authorization-token",
        "lightsail download-default-key-pair",
        "sso get-role-credentials",
        "redshift get-cluster-credentials",
    }
    | {
        "cognito-identity get-credentials-for-identity",
        "dsql generate-db-connect-auth-token",
        "lightsail get-instance-access-details",
    }
    | {
        "lightsail get-relational-database-master-user-password",
        "apigateway get-api-keys",
        "apigateway get-api-key",
        "gamelift get-compute-auth-token",
    }
)


def _aws_secret(seen: Seen) -> bool:
    """A secret, password or session of AWS; parameters only where they are decrypted."""
    texts = seen.texts
    if seen.name != "aws":
        return False
    if texts[:1] == ["ssm"] and texts[1:2] != [] and texts[1].startswith("get-parameter"):
        return seen.has("--with-decryption")
    if texts[:2] == ["configure", "get"]:
        return any(part in texts[-1] for part in ("secret", "token", "access_key"))
    if texts[:1] == ["apigateway"]:
        return " ".join(texts[:2]) in _AWS_SECRETS and seen.has("--include-value", "--include-values")
    return " ".join(texts[:2]) in _AWS_SECRETS


_GRAVE_PARTS = frozenset(
    {
        "delete",
        "terminate",
        "destroy",
        "remove",
        "purge",
        "deregister",
        "rb",
        "rm",
        "wipe",
        "erase",
        "drop",
        "deprovision",
        "reset",
    }
)


def _destroys(seen: Seen) -> bool:
    """Whether the command deletes or ends something, by its words."""
    for text in seen.texts[:6]:
        if _GRAVE_PARTS & set(text.replace(":", "-").split("-")):
            return True
    return seen.texts[:2] in (["s3", "sync"], ["storage", "rsync"]) and seen.has(
        "--delete", "--delete-unmatched-destination-objects"
    )


def _client_reads(seen: Seen) -> bool:
    """Whether the client is told only to read, by whichever of the tables is about it."""
    if seen.name in {"gcloud", "az"}:
        return _verb_reads(seen)
    return only_reads(seen) or _store_reads(seen) or (seen.name == "aws" and _dry_run(seen))


def _dry_run(seen: Seen) -> bool:
    """`aws s3 rm --dryrun`, `aws ec2 run-instances --dry-run`; a later word may take that back, cut short as well."""
    option = {"s3": "--dryrun", "ec2": "--dry-run"}.get(next(iter(seen.texts), ""))
    taken_back = any(flag.startswith("--no-d") for flag in seen.flags)
    return option in seen.flags and not taken_back and not any(UNKNOWN in word.text for word in seen.words)


def _is_bare(seen: Seen) -> bool:
    """Without a command, only options: `vercel` and `now` then deploy the folder."""
    return not seen.operands and not seen.has("--help", "-h", "--version", "-v")


def _config_value(seen: Seen) -> bool:
    """`heroku config`, `railway variables`, `netlify env:get`: the values of settings, which hold passwords."""
    texts = seen.texts
    if texts[:1] == ["env"] or seen.name in {"vercel", "now"}:
        return texts[:2] == ["env", "pull"]
    return texts[:1] in (
        ["config"],
        ["config:get"],
        ["variables"],
        ["env:get"],
        ["env:list"],
        ["pg:credentials"],
        ["auth:token"],
        ["printenv"],
    )


_RIGHTS_GROUPS = frozenset(
    {"iam", "organizations", "sso-admin", "identitystore", "ad", "role", "org-policies", "resource-manager"}
)
_WHOLE = frozenset({"projects", "project", "organizations", "folders", "group", "compartment", "account", "resource"})


def _rights(seen: Seen) -> bool:
    """Rights and organisations in any way, and the deletion of what holds everything else."""
    texts = [text.lower() for text in seen.texts]
    if texts[:1] and texts[0] in _RIGHTS_GROUPS:
        return True
    if any("iam-policy" in text or text in {"service-accounts", "setiampolicy"} for text in texts[:4]):
        return True
    if seen.name == "gsutil" and texts[:1] == ["iam"]:
        return True
    return bool(texts) and texts[0] in _WHOLE and any(text in {"delete", "remove", "rm"} for text in texts[1:4])


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "cloud_rights": _rights,
    "client_reads": _client_reads,
    "cloud_verb_secret": _verb_secret,
    "aws_secret": _aws_secret,
    "cloud_destroys": _destroys,
    "cloud_is_bare": _is_bare,
    "cloud_config_value": _config_value,
}

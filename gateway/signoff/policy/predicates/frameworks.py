"""What rules about web frameworks ask that the fields of a rule cannot say."""

from collections.abc import Callable

from signoff.policy.predicates.whole import per_command
from signoff.policy.seen import Seen
from signoff.policy.shell import UNKNOWN

_SCRIPTS = frozenset({"manage.py", "artisan", "rails", "django-admin"})


_STATEMENTS = frozenset({"dbal:run-sql", "doctrine:query:sql", "doctrine:query:dql"})
"""Commands of Symfony's console that take a statement for the database."""


def _told(seen: Seen) -> list[str]:
    """What the framework is told, behind its script where an interpreter runs that."""
    texts = seen.texts
    if seen.name.startswith(("python", "pypy", "php")):
        script = texts[0].rpartition("/")[2] if texts else ""
        return (
            texts[1:] if script in _SCRIPTS or (script == "console" and texts[1:2] and texts[1] in _STATEMENTS) else []
        )
    return texts


def _code(seen: Seen) -> bool:
    """`rails runner 'User.delete_all'`, `manage.py shell -c`, `artisan tinker --execute`, `mix run -e`."""
    told = _told(seen)
    verb = told[0] if told else ""
    if verb in _STATEMENTS:
        return True
    if verb in {"runner", "r"} and seen.name.endswith("rails"):
        return len(told) > 1 and not told[1].endswith(".rb")
    if verb in {"shell", "shell_plus", "console", "tinker"} and seen.name != "bun":
        return seen.has("-c", "--command", "--execute") or seen.command.fed or seen.command.stdin is not None
    return seen.name == "mix" and ((verb == "run" and seen.has("-e", "--eval", "-r")) or verb == "eval")


_ACCOUNTS = frozenset(
    {
        "createsuperuser",
        "changepassword",
        "dbshell",
        "dbconsole",
        "db",
        "drf_create_token",
        "clearsessions",
        "remove_stale_contenttypes",
    }
    | {
        "make:admin",
        "user:create",
        "user:delete",
        "passport:keys",
        "key:generate",
        "credentials:edit",
        "credentials:show",
        "secrets:edit",
    }
    | {
        "queue:flush",
        "queue:clear",
        "cache:clear-all",
        "telescope:prune",
        "createcachetable",
        "sqlclear",
        "dumpdata_all",
        "encrypted:show",
    }
)


def _accounts(seen: Seen) -> bool:
    told = _told(seen)
    return bool(told) and told[0] in _ACCOUNTS


_SITE_READS = frozenset(
    {
        "list",
        "get",
        "status",
        "info",
        "version",
        "check",
        "show",
        "search",
        "exists",
        "is-installed",
        "path",
        "pluck",
        "verify-checksums",
        "help",
        "--info",
    }
    | {
        "core:status",
        "pm:list",
        "config:get",
        "config:export",
        "user:information",
        "watchdog:show",
        "sql:dump",
        "sql:cli",
        "cache:rebuild",
        "cr",
        "st",
        "export",
    }
    | {
        "config:status",
        "state:get",
        "views:list",
        "route",
        "app:list",
        "config:list",
        "user:list",
        "user:info",
        "files:scan",
        "integrity:check-core",
        "cache:flush",
        "cache:clean",
    }
    | {
        "setup:di:compile",
        "setup:static-content:deploy",
        "indexer:status",
        "module:status",
        "develop",
        "build",
        "dev",
        "start",
        "deploy:mode:show",
        "ls",
        "doctor",
        "typegen",
    }
)


def _site_reads(seen: Seen) -> bool:
    """Commands of content systems that only look: by their first or second word."""
    texts = seen.texts
    if any(UNKNOWN in text for text in texts[:2]):
        return False
    return bool(_SITE_READS & set(texts[:2])) or texts[:2] in (
        ["db", "size"],
        ["db", "tables"],
        ["db", "export"],
        ["cache", "flush"],
        ["rewrite", "flush"],
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "framework_code": _code,
    "framework_accounts": _accounts,
    "framework_site_reads": _site_reads,
}


@per_command
def may_manage(seen: Seen) -> bool:
    """Whether an interpreter, if it is one, runs a script of a framework."""
    if not seen.name.startswith(("python", "pypy", "php")):
        return True
    return any(text.endswith(_ENDINGS) for text in seen.texts[:1])


_ENDINGS = (*_SCRIPTS, "console")
NEEDS: dict[str, Callable[[Seen], bool]] = {"framework_accounts": may_manage, "framework_code": may_manage}

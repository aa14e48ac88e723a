"""What rules about migrations of databases ask that the fields of a rule cannot say."""

import re
from collections.abc import Callable

from signoff.policy.predicates.frameworks import may_manage
from signoff.policy.seen import Seen

_MIGRATE = re.compile(
    r"(?:db:migrate(?::(?:up|down|redo))?|db:rollback|db:seed|db:setup|db:prepare|db:schema:load|db:structure:load|db:push|migrate|migrate:rollback|migration:run|migration:revert|migrations:migrate|migrations:execute"
    r"|doctrine:migrations:(?:migrate|execute)|doctrine:schema:update|ecto\.migrate|ecto\.rollback|ecto\.setup|typeorm:migrate|loaddata|seed|db:seed:all|migrate:up|migrate:down|migrate:latest|upgrade|downgrade|stamp)"
)
_WIPE = re.compile(
    r"(?:db:drop(?::\w+)?|db:reset|db:purge|db:truncate\w*|db:wipe|db:migrate:reset|db:schema:drop|migrate:fresh|migrate:reset|migrate:refresh|ecto\.drop|ecto\.reset|flush|sqlflush|reset_db|schema:drop"
    r"|doctrine:schema:drop|doctrine:database:drop|db:nuke|db:setup:fresh|db:fixtures:load|drop_all|sqlclear)"
)


def _management(seen: Seen) -> list[str]:
    """What `manage.py`, `rails`, `rake`, `artisan`, `bin/console`, `mix`, `flask db`, `alembic` are told to do."""
    texts = seen.texts
    if seen.name.startswith(("python", "pypy", "php")) or seen.name in {
        "./manage.py",
        "./artisan",
        "./console",
        "./rails",
        "./rake",
    }:
        if seen.name.startswith("./"):
            return texts[:1]
        script = texts[0].rpartition("/")[2] if texts else ""
        return texts[1:2] if script in {"manage.py", "artisan", "console", "django-admin"} else []
    if seen.name == "flask":
        # `flask db migrate` writes down what is to be changed; `flask db upgrade` changes it.
        return texts[1:2] if texts[:1] == ["db"] and texts[1:2] != ["migrate"] else []
    if seen.name in {"alembic", "rails", "rake", "django-admin", "mix", "artisan", "symfony"}:
        skip = 1 if texts[:1] in (["exec"], ["console"]) else 0
        return texts[skip : skip + 3] if seen.name == "rake" else texts[skip : skip + 1]
    return []


def _migrates(seen: Seen) -> bool:
    if seen.has("--check", "--plan", "--help", "--sql", "--dry-run", "--pretend", "--list"):
        return False
    return any(_MIGRATE.fullmatch(text) for text in _management(seen))


def _wipes(seen: Seen) -> bool:
    return not seen.has("--help", "--pretend") and any(_WIPE.fullmatch(text) for text in _management(seen))


def _only_plans(seen: Seen) -> bool:
    """Commands of migration tools that share a word with the others but only make files or report."""
    texts = seen.texts
    if seen.has("--help", "--dry-run", "--create-only", "--status") or (seen.name == "dotnet" and texts[:1] != ["ef"]):
        return True
    return texts[:2] in (
        ["migrate", "diff"],
        ["migrate", "status"],
        ["migrate", "reset"],
        ["migrate", "drop"],
        ["migrate", "make"],
        ["migrate", "lint"],
        ["migrate", "validate"],
        ["migrate", "hash"],
        ["migrate", "new"],
        ["migrate", "info"],
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "migration_runs": _migrates,
    "migration_wipes": _wipes,
    "migration_only_plans": _only_plans,
}

NEEDS: dict[str, Callable[[Seen], bool]] = {"migration_runs": may_manage, "migration_wipes": may_manage}

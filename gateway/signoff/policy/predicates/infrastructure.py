"""What rules about infrastructure as code ask that the fields of a rule cannot say."""

from collections.abc import Callable

from signoff.policy.seen import Seen


def _plan_destroys(seen: Seen) -> bool:
    return seen.texts[:1] == ["apply"] and seen.has("-destroy", "--destroy")


def _playbook_only_checks(seen: Seen) -> bool:
    return seen.has(
        "--check",
        "-C",
        "--syntax-check",
        "--list-hosts",
        "--list-tasks",
        "--list-tags",
        "--version",
        "--help",
        "-h",
        "--graph",
        "--list",
    )


_AD_HOC_READS = frozenset(
    {
        "ping",
        "setup",
        "debug",
        "stat",
        "gather_facts",
        "ansible.builtin.ping",
        "ansible.builtin.setup",
        "service_facts",
        "package_facts",
    }
)


def _ad_hoc_reads(seen: Seen) -> bool:
    """`ansible all -m ping`: modules that only report."""
    modules = seen.values("-m", "--module-name")
    return _playbook_only_checks(seen) or (bool(modules) and all(value.text in _AD_HOC_READS for value in modules))


_OWN_RULE = (
    "destroy",
    "down",
    "import",
    "taint",
    "untaint",
    "refresh",
    "force-unlock",
    "cancel",
    "destroy-all",
    "run-all destroy",
    "run destroy",
    "stack rm",
    "workspace delete",
    "state rm",
    "state mv",
    "state push",
    "state replace-provider",
    "state delete",
    "state unprotect",
    "state edit",
    "state rename",
    "state repair",
    "state upgrade",
    "stack import",
    "stack change-secrets-provider",
    "box remove",
)


def _has_own_rule(seen: Seen) -> bool:
    """Commands that have a rule with a sentence of their own."""
    texts = seen.texts
    return texts[:1] != [] and (texts[0] in _OWN_RULE or " ".join(texts[:2]) in _OWN_RULE or _plan_destroys(seen))


_MANAGER_READS: dict[str, frozenset[str]] = {
    "puppet": frozenset({"parser", "facts", "lookup", "help", "config", "describe", "doc", "epp", "strings"}),
    "knife": frozenset({"list", "show", "search", "status", "diff", "help"}),
    "bolt": frozenset({"inventory", "plan-show", "help"}),
    "mco": frozenset({"ping", "find", "inventory", "facts", "help"}),
    "nixos-rebuild": frozenset({"build", "dry-build", "dry-activate", "list-generations", "build-vm"}),
    "darwin-rebuild": frozenset({"build", "check"}),
    "colmena": frozenset({"build", "eval", "introspect"}),
    "morph": frozenset({"build"}),
}


def _manager_reads(seen: Seen) -> bool:
    known = _MANAGER_READS.get(seen.name, frozenset())
    return bool(known & set(seen.texts[:2])) or (
        not seen.operands and seen.name not in {"chef-client", "ansible-pull", "ansible-console"}
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "infra_plan_destroys": _plan_destroys,
    "infra_has_own_rule": _has_own_rule,
    "infra_manager_reads": _manager_reads,
    "infra_only_checks": _playbook_only_checks,
    "infra_ad_hoc_reads": _ad_hoc_reads,
}

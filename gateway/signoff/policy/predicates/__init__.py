"""Predicates: what rules ask of a command by name, because no field of a rule can say it.

Each module of this package has one `PREDICATES`, and no name may be in two of them. `NEEDS` of a module says for some
of them what is cheap to tell and true wherever they are, or the options of which one is given there: the rules that ask
for them are not looked at where it is not.
"""

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType

from signoff.policy.seen import Seen

Predicate = Callable[[Seen], bool]


@cache
def needs() -> dict[str, Predicate | tuple[str, ...]]:
    """What must be true for these predicates to be true, by their names."""
    found: dict[str, Predicate | tuple[str, ...]] = {}
    for module in _modules():
        found |= getattr(module, "NEEDS", {})
    return found


def _modules() -> list[ModuleType]:
    names = sorted(item.name for item in pkgutil.iter_modules(__path__))
    return [import_module(f"{__name__}.{name}") for name in names]


@cache
def table() -> dict[str, Predicate]:
    """All predicates by name."""
    found: dict[str, Predicate] = {}
    for module in _modules():
        own: dict[str, Predicate] = module.PREDICATES
        twice = found.keys() & own.keys()
        if twice:
            raise ValueError(f"predicates with the same name: {', '.join(sorted(twice))}")
        found |= own
    return found

"""Predicates: what rules ask of a command by name, because no field of a rule can say it.

Each module of this package has one `PREDICATES`, and no name may be in two of them.
"""

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module

from signoff.policy.seen import Seen

Predicate = Callable[[Seen], bool]


@cache
def table() -> dict[str, Predicate]:
    """All predicates by name."""
    found: dict[str, Predicate] = {}
    for module in sorted(item.name for item in pkgutil.iter_modules(__path__)):
        own: dict[str, Predicate] = import_module(f"{__name__}.{module}").PREDICATES
        twice = found.keys() & own.keys()
        if twice:
            raise ValueError(f"predicates with the same name: {', '.join(sorted(twice))}")
        found |= own
    return found

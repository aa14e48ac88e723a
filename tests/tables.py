"""One test over a table of rows: thousands of small checks without a test's own costs for each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

SHOWN = 20
"""Rows that a failure names; of the rest it tells how many they are."""


def every(
    names: str, rows: Sequence[Any], *, ids: Callable[[Any], str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but one test, which fails with the name and the error of every row that fails.

    `names` are separated by commas; with a single name each row is the value itself. `ids` names a value. The test's
    other parameters are fixtures, shared by all rows: what a row changed, the next would see.
    """
    parameters = [name.strip() for name in names.split(",")]
    assert rows, "a table without rows proves nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        assert not inspect.iscoroutinefunction(test), "a row is not awaited"

        def over_all(**fixtures: Any) -> None:
            failed: list[tuple[str, Exception]] = []
            for row in rows:
                values = (row,) if len(parameters) == 1 else row
                try:
                    test(**dict(zip(parameters, values, strict=True)), **fixtures)
                except Exception as error:  # told below, with the others
                    failed.append((", ".join(map(ids or _short, values)), error))
            if failed:
                raise AssertionError(_told(failed, len(rows))) from failed[0][1]

        over_all.__name__, over_all.__doc__, over_all.__module__ = test.__name__, test.__doc__, test.__module__
        taken = inspect.signature(test).parameters
        assert set(parameters) <= set(taken), f"{test.__name__} takes not all of {names}"
        others = [taken[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in taken if name not in parameters]
        over_all.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]  # what pytest reads fixtures from
        return over_all

    return decorate


def _short(value: object) -> str:
    text = value if isinstance(value, str) else getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _told(failed: list[tuple[str, Exception]], count: int) -> str:
    lines = [f"{len(failed)} of {count} rows failed:"]
    lines += [f"  {row}\n    {type(error).__name__}: {error}" for row, error in failed[:SHOWN]]
    if len(failed) > SHOWN:
        lines.append(f"  and {len(failed) - SHOWN} more")
    return "\n".join(lines)

"""Compare things of one kind. Pure; standard library only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


def median(values: Iterable[float]) -> float:
    from statistics import median as of  # here: it takes milliseconds, which the guard does not have

    return of(values)


def agreed(values: Iterable[Any]) -> Any:
    """Return the value that at least three quarters of four or more values share, or None."""
    seen = Counter(values)
    total = sum(seen.values())
    value, count = seen.most_common(1)[0] if seen else (None, 0)
    return value if total >= 4 and count * 4 >= total * 3 else None


def odd_ones(seen: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the value that at least three quarters of four or more peers share, and the subjects that differ from it."""
    common = agreed(seen.values())
    return common or "", () if common is None else tuple(subject for subject, value in seen.items() if value != common)

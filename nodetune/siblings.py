"""Things of one kind held against each other. Pure; standard library only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any


def agreed(values: Iterable[Any]) -> Any:
    """What at least three quarters of four or more agree on; None where they do not."""
    seen = Counter(values)
    value, count = seen.most_common(1)[0] if seen else (None, 0)
    return value if seen.total() >= 4 and count * 4 >= seen.total() * 3 else None

"""GPUs of one model on one host, held against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any


def outliers(values: Mapping[str, Any], models: Mapping[str, str]) -> dict[str, Any]:
    """Each GPU → None, or what most GPUs of its model have where it differs. A tie blames nobody."""
    found: dict[str, Any] = {}
    for gpu, value in values.items():
        counted = Counter(other for name, other in values.items() if models.get(name) == models.get(gpu))
        common, count = counted.most_common(1)[0]
        found[gpu] = common if value != common and count > counted[value] else None
    return found

"""GPUs of one model on one host, held against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any


def highest(values: Mapping[str, Any], models: Mapping[str, str]) -> dict[str, Any]:
    """Each GPU → the highest value that any GPU of its model has."""
    best: dict[str | None, Any] = {}
    for gpu, value in values.items():
        model = models.get(gpu)
        best[model] = max(value, best.get(model, value))
    return {gpu: best[models.get(gpu)] for gpu in values}


def outliers(values: Mapping[str, Any], models: Mapping[str, str]) -> dict[str, Any]:
    """Each GPU → None, or what most GPUs of its model have where it differs. A tie blames nobody."""
    counted: dict[str | None, Counter[Any]] = {}
    for gpu, value in values.items():
        counted.setdefault(models.get(gpu), Counter())[value] += 1
    most = {model: counter.most_common(1)[0] for model, counter in counted.items()}
    found: dict[str, Any] = {}
    for gpu, value in values.items():
        common, count = most[models.get(gpu)]
        found[gpu] = common if value != common and count > counted[models.get(gpu)][value] else None
    return found

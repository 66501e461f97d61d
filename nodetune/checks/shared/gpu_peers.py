"""Compare the GPUs of one model on one host."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from nodetune.api import FactsView

MODELS = ("gpu.pci_device_id", "gpu.names")


RACKS = re.compile(r"\b(?:G[BR][23]00|VR200)\b")
"""Names of GPUs whose NVLink joins the trays of a rack, four GPUs in each. VR200: Rubin, by NCCL 2.32.6 and NVIDIA's AICR 0.22."""


def models(facts: FactsView) -> dict[str, str]:
    """Return GPU → its PCI device ID; its name where a recording has no IDs."""
    found: dict[str, str] = facts.readable(MODELS[0]) or facts[MODELS[1]]
    return found


def highest(values: Mapping[str, Any], models: Mapping[str, str]) -> dict[str, Any]:
    """Return GPU → the highest value among the GPUs of its model."""
    best: dict[str | None, Any] = {}
    for gpu, value in values.items():
        model = models.get(gpu)
        best[model] = max(value, best.get(model, value))
    return {gpu: best[models.get(gpu)] for gpu in values}


def outliers(values: Mapping[str, Any], models: Mapping[str, str]) -> dict[str, Any]:
    """Return GPU → what most GPUs of its model have, or None where it does not differ. A tie names no GPU."""
    counted: dict[str | None, Counter[Any]] = {}
    for gpu, value in values.items():
        counted.setdefault(models.get(gpu), Counter())[value] += 1
    most = {model: counter.most_common(1)[0] for model, counter in counted.items()}
    found: dict[str, Any] = {}
    for gpu, value in values.items():
        common, count = most[models.get(gpu)]
        found[gpu] = common if value != common and count > counted[models.get(gpu)][value] else None
    return found

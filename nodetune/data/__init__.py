"""Reference data about GPUs, machines, drivers and NCCL.

People write it as YAML. What is read is tables.json, which `make write` makes of it: YAML takes twenty times as long.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads((_HERE / "tables.json").read_text("utf-8"))
    return tables


def table(name: str) -> Any:
    """Return the content of a file of this folder, of the comparisons, or of the profiles with their lines."""
    return _tables()[name]


@cache
def _gpus() -> dict[str, Mapping[str, Any]]:
    return {device_id: model for model in table("gpus")["gpus"] for device_id in model["pci_device_ids"]}


@cache
def _gpus_by_name() -> dict[str, Mapping[str, Any]]:
    return {model["name"]: model for model in table("gpus")["gpus"]}


def gpu(model: str) -> Mapping[str, Any]:
    """Return what is known of the GPU model with that PCI device ID, or that name; else an empty mapping."""
    return _gpus().get(model) or _gpus_by_name().get(model, {})


def gpus_of_machine(product_name: str) -> int:
    """Return the number of GPUs of a machine type, or 0 if unknown."""
    found: int = table("machines")["gpus"].get(product_name, 0)
    return found


def network_cards_of_machine(product_name: str) -> int:
    """Return the number of network cards with EFA of a machine type, or 0 if unknown."""
    found: int = table("machines")["network_cards"].get(product_name, 0)
    return found


def drivers() -> Mapping[str, Any]:
    """Return minimum versions, security fixes and the end of life of driver branches."""
    found: Mapping[str, Any] = table("drivers")
    return found


LASTS = datetime.timedelta(days=180)
"""For so long a table of driver versions is taken as new: NVIDIA publishes a bulletin every few months."""


def aged(today: datetime.date) -> str:
    """Return a sentence about the age of the table of driver versions; empty while it is new."""
    since = datetime.date.fromisoformat(drivers()["as_of"])
    if today - since <= LASTS:
        return ""
    return f"driver versions are judged by a table of {since}: newer security bulletins are not in it; upgrade nodetune"


def version(text: str) -> tuple[int, ...]:
    """Turn `580.159.04` into (580, 159, 4) for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", text))

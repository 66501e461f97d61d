"""Name the devices and files that swap consists of."""

from __future__ import annotations

from typing import Any

from nodetune.api import FactsView
from nodetune.foundation import text

ZRAM = "/dev/zram"


def on_disk(facts: FactsView) -> dict[str, Any]:
    """Return the swap on disks and in files, without compressed memory."""
    return {path: about for path, about in facts.get("memory.swaps", {}).items() if not path.startswith(ZRAM)}


def devices(facts: FactsView, _subjects: tuple[str, ...]) -> str:
    """Return each device with its kind and size, largest first."""
    swaps = sorted(facts["memory.swaps"].items(), key=lambda swap: -swap[1]["size_kb"])
    told = [f"{path} ({_kind(path, about)}): {text.value(about['size_kb'], 'KiB')}" for path, about in swaps]
    return f"swap on {text.names(told)}" if told else ""


def _kind(path: str, about: dict[str, Any]) -> str:
    return "compressed memory" if path.startswith(ZRAM) else str(about["type"])

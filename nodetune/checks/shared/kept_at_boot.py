"""Find what brings a setting of GPUs back at each boot, which the driver forgets."""

from __future__ import annotations

from nodetune.api import FactsView
from nodetune.foundation import text

KEPT_IN = "file./etc/nodetune/gpu.conf"


def needs(setting: str, unit: str) -> tuple[str, ...]:
    return KEPT_IN, f"persisted.gpu.{setting}", f"services.{unit}"


def kept_by(facts: FactsView, setting: str, unit: str) -> str:
    """Return what sets it at the next boot; empty if nothing does. Raise FactUnreadError if unknown.

    A unit that failed at this boot counts no more than one that does not start.
    """
    state = facts.get(f"services.{unit}") or {}
    if state.get("enabled") in ("enabled", "static") and state["active"] != "failed":
        return f"{unit}.service"
    if setting in (text.own_settings(str(facts.get(KEPT_IN) or "")) or {}):
        return "nodetune-gpu.service"
    command = facts.get(f"persisted.gpu.{setting}")
    ours = command and not (state.get("active") == "failed" and unit in str(command["value"]))
    return f"{command['file']} line {command['line']}" if ours else ""

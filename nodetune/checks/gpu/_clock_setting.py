"""Find GPUs whose SM clock a setting limits, for two checks."""

from __future__ import annotations

from nodetune.api import FactsView

NEEDS = (
    "gpu.clocks_event_reasons",
    "gpu.clock_info.sm",
    "gpu.max_clock_info.sm",
    "gpu.applications_clock.sm",
    "gpu.default_applications_clock.sm",
)
ALIKE = 0.98


def held_down(facts: FactsView) -> dict[str, str]:
    """Return GPU → the clock that it is held at. A board that runs at its default application clock is not held down."""
    now, most = facts["gpu.clock_info.sm"], facts["gpu.max_clock_info.sm"]
    setting = facts.readable("gpu.applications_clock.sm", {})
    default = facts.readable("gpu.default_applications_clock.sm", {})
    found = {}
    for name, reasons in facts["gpu.clocks_event_reasons"].items():
        limited = "applications_clocks_setting" in reasons and now.get(name, 0) < most.get(name, 0)
        shipped = name in default and setting.get(name) == default[name]
        found[name] = f"{now[name]} of {most[name]} MHz" if limited and not shipped else ""
    return found


def is_decision(facts: FactsView, held: dict[str, str]) -> bool:
    """Return whether all of several GPUs are held at the same clock: somebody wants it so."""
    clocks = [facts["gpu.clock_info.sm"][name] for name in held]
    return len(held) > 1 and all(held.values()) and min(clocks) >= max(clocks) * ALIKE

"""Find GPUs whose clocks a setting limits, and what is a decision for all GPUs of a host."""

from __future__ import annotations

from collections.abc import Mapping

from nodetune.api import FactsView

NEEDS = (
    "gpu.clocks_event_reasons",
    "gpu.clock_info.sm",
    "gpu.max_clock_info.sm",
    "gpu.applications_clock.sm",
    "gpu.default_applications_clock.sm",
    "gpu.performance_state",
)
MEMORY_NEEDS = ("gpu.clock_info.memory", "gpu.max_clock_info.memory")
SETTING = "applications_clocks_setting"
ALIKE = 0.98
MEMORY_TOLERANCE = 0.99


def held_down(facts: FactsView) -> dict[str, str]:
    """Return GPU → the clock that it is held at.

    A board at its default application clock is not held down, unless it is busy and that is not what holds its clock:
    then the clocks are locked.
    """
    now, most = facts["gpu.clock_info.sm"], facts["gpu.max_clock_info.sm"]
    setting = facts.readable("gpu.applications_clock.sm", {})
    default = facts.readable("gpu.default_applications_clock.sm", {})
    states = facts.readable("gpu.performance_state", {})
    found = {}
    for name, reasons in facts["gpu.clocks_event_reasons"].items():
        limited = SETTING in reasons and now.get(name, 0) < most.get(name, 0)
        locked = (
            states.get(name) == 0 and list(reasons) == [SETTING] and _unlike(now.get(name, 0), default.get(name, 0))
        )
        shipped = name in default and setting.get(name) == default[name] and not locked
        found[name] = f"{now[name]} of {most[name]} MHz" if limited and not shipped else ""
    return found


def _unlike(one: int, other: int) -> bool:
    return min(one, other) < max(one, other) * ALIKE


def is_decision(facts: FactsView, held: dict[str, str]) -> bool:
    """Return whether all of several GPUs are held at the same clock, which is then intended."""
    clocks = [facts["gpu.clock_info.sm"][name] for name in held]
    return len(held) > 1 and all(held.values()) and min(clocks) >= max(clocks) * ALIKE


def judged_memory_clocks(facts: FactsView) -> dict[str, int]:
    """Return the memory clocks of the GPUs in the highest performance state."""
    states, most = facts["gpu.performance_state"], facts["gpu.max_clock_info.memory"]
    clocks: dict[str, int] = facts["gpu.clock_info.memory"]
    return {name: clock for name, clock in clocks.items() if states.get(name) == 0 and name in most}


def below_alike(clocks: Mapping[str, int], most: Mapping[str, int], tolerance: float = 1.0) -> dict[str, str]:
    """Return GPU → its clock, if all of several GPUs have one clock below `most`, which is then intended."""
    known = {name: clock for name, clock in clocks.items() if name in most}
    low = len(known) > 1 and all(clock < most[name] * tolerance for name, clock in known.items())
    if not low or min(known.values()) < max(known.values()) * ALIKE:
        return {}
    return {name: f"{clock} of {most[name]} MHz" for name, clock in known.items()}

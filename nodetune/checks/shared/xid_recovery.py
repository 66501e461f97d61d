"""Find the GPUs that have recovered since an error in the kernel log, by their current state.

A reset leaves no line in the log: a GPU that is initialised again logs no Xid 154, and drivers before 565 do not know it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from nodetune import data
from nodetune.api import FactAbsentError, FactsView
from nodetune.checks.shared.kernel_events import UPTIME
from nodetune.checks.shared.xids import GSP_TIMEOUT, RECOVERY_ACTION_CHANGED

NEEDS = (
    "pci.gpus",
    "gpu.bdf",
    "gpu.access",
    "gpu.recovery_action",
    "gpu.persistence_mode",
    "gpu.ecc_uncorrected_volatile",
    "gpu.driver_version",
)
LOST, CONTAINED, UNCONTAINED = 79, 94, 95
MEMORY_ERRORS = (48, 171, 172)
FATAL_TIMEOUTS = 3
STARTS_NOT = "RmInitAdapter failed"
IS_LOST = "NV_ERR_GPU_IS_LOST|status[ =]0x0000000f"
NOT_SUPPORTED = "not supported by (?:open|the)"
UNNAMED = "GPU not named"
DAY = 86400
BURST = 60
"""Seconds: Xid 94 within them says that the GPU contained a memory error, 95 that it did not."""


def require_gpu(facts: FactsView, *events: str) -> None:
    """Raise FactAbsentError on a host without a GPU, unless its log mentions one, which has then left the bus."""
    if facts.readable("pci.gpus") == [] and not any(facts.readable(name) for name in events):
        raise FactAbsentError("no NVIDIA GPU on the PCI bus")


def _now(facts: FactsView, name: str) -> dict[str, Any]:
    """Return GPU address → what the GPU says now, for those that answer."""
    places, said = facts.readable("gpu.bdf", {}), facts.readable(name, {})
    return {places[gpu]: value for gpu, value in said.items() if gpu in places}


def reset_since(facts: FactsView, events: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Return the GPUs that needed a recovery action (Xid 154) and need none now → when it was needed last.

    What they logged after that may be newer than their reset.
    """
    needed = {each["bdf"]: each["time"] for each in events if each["xid"] == RECOVERY_ACTION_CHANGED}
    sound = {bdf for bdf, action in _now(facts, "gpu.recovery_action").items() if action == "none"}
    return {bdf: time for bdf, time in needed.items() if bdf in sound}


def answering(facts: FactsView) -> set[str]:
    """Return the addresses of GPUs that answer: one that fell off the bus does so only after its recovery."""
    return {bdf for bdf, access in _now(facts, "gpu.access").items() if access == "ok"}


def without_errors(facts: FactsView) -> set[str]:
    """Return the addresses of GPUs without uncorrected errors since their last reset.

    Without persistence mode, the counter starts again with each program.
    """
    modes = _now(facts, "gpu.persistence_mode")
    counted = _now(facts, "gpu.ecc_uncorrected_volatile")
    return {bdf for bdf, errors in counted.items() if errors == 0 and modes.get(bdf) == "enabled"}


def slow_gsp(facts: FactsView, events: Iterable[dict[str, Any]]) -> set[str]:
    """Return the GPUs whose Xids 119 alone are not fatal: from driver 590 on, which marks the GPU for reset at the third."""
    if data.version(facts.readable("gpu.driver_version", "")) < (590,):
        return set()
    counts: dict[str, int] = {}
    for each in events:
        if each["xid"] == GSP_TIMEOUT:
            counts[each["bdf"]] = counts.get(each["bdf"], 0) + each["count"]
    return {bdf for bdf, count in counts.items() if count < FATAL_TIMEOUTS}


def nvlink_peers(facts: FactsView) -> dict[str, str]:
    """Return GPU address → what its NVLinks lead to, where that is one kind of device."""
    return {bdf: next(iter(kinds)) for bdf, kinds in _now(facts, "gpu.nvlink_remote").items() if len(kinds) == 1}


def _causes(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the Xids that only their consequences show, if the log has lost them: `caused by previous Xid 149`."""
    from nodetune.onhost.xid_text import CAUSE  # here: most hosts have logged none

    told = {(each["bdf"], int(cause[1])): each["time"] for each in events if (cause := re.search(CAUSE, each["text"]))}
    known = {(each["bdf"], each["xid"]) for each in events}
    lost = sorted(told.keys() - known)
    return [{"bdf": bdf, "xid": xid, "time": told[bdf, xid], "text": "", "count": 1} for bdf, xid in lost]


def _contained(events: Sequence[dict[str, Any]]) -> set[tuple[str, float]]:
    """Return (GPU, time) of the memory errors that the GPU contained.

    The probe knows it of each; facts of earlier versions have each event by itself.
    """

    def contained(event: dict[str, Any]) -> bool:
        near = {
            each["xid"] for each in events if each["bdf"] == event["bdf"] and abs(each["time"] - event["time"]) <= BURST
        }
        return CONTAINED in near and UNCONTAINED not in near

    errors = [each for each in events if each["xid"] in MEMORY_ERRORS]
    return {
        (each["bdf"], each["time"])
        for each in errors
        if (each["contained"] if "contained" in each else contained(each))
    }


def standing(facts: FactsView) -> list[dict[str, Any]]:
    """Return the logged Xids, each with its `count`, without those that a GPU has contained or recovered from.

    Of Xid 154, only the last of each GPU is left.
    """
    logged = [{"count": 1, **each} for each in facts["xid.events"]]
    events = [*logged, *(_causes(logged) if logged else ())]
    reset, alive, clean = reset_since(facts, events), answering(facts), without_errors(facts)
    contained = _contained(events)
    asked = {each["bdf"]: each for each in events if each["xid"] == RECOVERY_ACTION_CHANGED}

    def over(event: dict[str, Any]) -> bool:
        bdf, xid, time = event["bdf"], event["xid"], event["time"]
        if xid in MEMORY_ERRORS and (bdf in clean or (bdf, time) in contained):
            return True
        gone = {LOST: alive, UNCONTAINED: clean}.get(xid, ())
        replaced = xid == RECOVERY_ACTION_CHANGED and event is not asked[bdf]
        return time <= reset.get(bdf, -1) or bdf in gone or replaced

    return [event for event in events if not over(event)]


def without_xid(facts: FactsView) -> list[dict[str, Any]]:
    """Return the lines of the last day without an Xid about GPUs that may still need a recovery.

    A line that names no GPU counts while any GPU may need one.
    """
    places, actions = facts.readable("gpu.bdf", {}), facts.readable("gpu.recovery_action", {})
    sound, alive = {places.get(gpu) for gpu, action in actions.items() if action == "none"}, answering(facts)
    whole = bool(places) and len(places) >= len(facts.readable("pci.gpus", ()))
    all_sound, all_alive = (whole and good >= set(places.values()) for good in (sound, alive))
    since = facts.readable(UPTIME, 0) - DAY

    def over(event: dict[str, Any]) -> bool:
        started = STARTS_NOT in event["text"] and event["bdf"] in alive
        back = all_alive and bool(re.search(IS_LOST, event["text"]))
        return event["time"] <= since or started or back or (event["bdf"] in sound if event["bdf"] else all_sound)

    return [event for event in facts["xid.reset_required"] if not over(event)]


def without_driver(facts: FactsView) -> list[dict[str, Any]]:
    """Return the lines about GPUs that have no driver now: neither NVIDIA's nor that of a passed-through GPU.

    The age of such a line does not matter. On a vGPU host, the driver takes no virtual function.
    """
    devices = facts.readable("pci.devices", {})
    bare = {
        bdf
        for bdf in facts.readable("pci.gpus", ())
        if bdf in devices and devices[bdf]["driver"] is None and not devices[bdf].get("virtual_function")
    }
    return [event for event in facts["xid.reset_required"] if event["bdf"] in bare]

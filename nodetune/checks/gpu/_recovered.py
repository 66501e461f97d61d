"""Find the GPUs that have recovered since an error in the kernel log, by their current state.

A reset leaves no line in the log: a GPU that is initialised again logs no Xid 154, and drivers before 565 do not know it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from nodetune.api import FactAbsentError, FactsView

NEEDS = (
    "pci.gpus",
    "gpu.bdf",
    "gpu.access",
    "gpu.recovery_action",
    "gpu.persistence_mode",
    "gpu.ecc_uncorrected_volatile",
)
CAUSE = re.compile(r"caused by previous Xid (\d{1,4})$")
LOST = 79
RECOVERY_ACTION_CHANGED = 154
OF_MEMORY = (48, 95)
"""Xids that count as uncorrected errors until the GPU is reset."""


def require_gpu(facts: FactsView, *events: str) -> None:
    """Raise FactAbsentError on a host without a GPU, unless its log mentions one, which has then left the bus."""
    if facts.readable("pci.gpus") == [] and not any(facts.readable(name) for name in events):
        raise FactAbsentError("no NVIDIA GPU on the PCI bus")


def _now(facts: FactsView, name: str) -> dict[str, Any]:
    """Return GPU address → what the GPU says now, for those that answer."""
    places, said = facts.readable("gpu.bdf", {}), facts.readable(name, {})
    return {places[gpu]: value for gpu, value in said.items() if gpu in places}


def reset_since(facts: FactsView, events: Iterable[dict[str, Any]]) -> set[str]:
    """Return the addresses of GPUs that needed a recovery action (Xid 154) and need none now."""
    needed = {each["bdf"] for each in events if each["xid"] == RECOVERY_ACTION_CHANGED}
    return {bdf for bdf, action in _now(facts, "gpu.recovery_action").items() if action == "none"} & needed


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


def _causes(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the Xids that only their consequences show, if the log has lost them: `caused by previous Xid 149`."""
    told = {(each["bdf"], int(cause[1])) for each in events if (cause := CAUSE.search(each["text"]))}
    known = {(each["bdf"], each["xid"]) for each in events}
    return [{"bdf": bdf, "xid": xid, "time": 0.0, "text": ""} for bdf, xid in sorted(told - known)]


def standing(facts: FactsView) -> list[dict[str, Any]]:
    """Return the logged Xids without those that a GPU has recovered from."""
    events = [*facts["xid.events"], *_causes(facts["xid.events"])]
    reset, alive, clean = reset_since(facts, events), answering(facts), without_errors(facts)

    def over(event: dict[str, Any]) -> bool:
        bdf, xid = event["bdf"], event["xid"]
        return bdf in reset or (xid == LOST and bdf in alive) or (xid in OF_MEMORY and bdf in clean)

    return [event for event in events if not over(event)]

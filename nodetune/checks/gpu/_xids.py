"""Xids that checks report, from NVIDIA's catalogue of driver errors, in two groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

HARDWARE = {
    46: "GPU stopped processing",
    48: "double-bit ECC error",
    54: "auxiliary power is not connected",
    62: "internal micro-controller halt",
    64: "row remapping failed",
    79: "GPU has fallen off the bus",
    95: "uncontained memory error",
    119: "GSP does not answer",
    120: "GSP error",
    136: "NVLink training failed",
    140: "unrecovered ECC error",
    143: "GPU did not initialise",
    154: "the driver asks for a reset or a reboot",
    158: "GPU fatal timeout",
    167: "PCIe fatal timeout",
}
"""Xids that require a GPU reset, a reboot or a look at the plugs according to the catalogue. No program alone can cause them."""

SUSPECT = {
    74: "NVLink error",
    92: "many single-bit ECC errors",
    94: "contained memory error",
    109: "context switch timeout",
    110: "security fault",
    121: "C2C error",
    137: "NVLink privilege error",
    144: "NVLink SAW error",
    145: "NVLink RLW error",
    146: "NVLink TLW error",
    147: "NVLink TREX error",
    148: "NVLink control error",
    149: "NVLink NETIR error",
    150: "NVLink MSE error",
    155: "NVLink software-defined error",
    156: "resource retirement",
    157: "resource retirement failed",
    160: "channel retirement",
    161: "channel retirement failed",
}
"""Xids that often come from a link or memory that begins to fail, and sometimes only from a program."""


def by_gpu(events: Iterable[Mapping[str, Any]], described: Mapping[int, str]) -> dict[str, list[str]]:
    """Return GPU address → one text per kind of Xid logged there: `Xid 79 GPU has fallen off the bus (2 times)`."""
    counted: dict[str, dict[int, int]] = {}
    for event in events:
        if event["xid"] in described:
            counts = counted.setdefault(event["bdf"], {})
            counts[event["xid"]] = counts.get(event["xid"], 0) + 1
    return {
        bdf: [
            f"Xid {xid} {described[xid]}" + (f" ({count} times)" if count > 1 else "") for xid, count in counts.items()
        ]
        for bdf, counts in counted.items()
    }

"""Xids that checks report, from NVIDIA's catalogue of driver errors, in two groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

HARDWARE = {
    46: "GPU stopped processing",
    48: "double-bit ECC error",
    54: "auxiliary power is not connected",
    62: "internal micro-controller halt",
    64: "bad memory could not be retired or remapped",
    79: "GPU has fallen off the bus",
    95: "uncontained memory error",
    119: "GSP does not answer",
    120: "GSP error",
    136: "NVLink training failed",
    140: "unrecovered ECC error",
    143: "GPU did not initialise",
    158: "GPU fatal timeout",
    167: "PCIe fatal timeout",
    169: "security micro-controller (SEC2) halt",
    171: "uncorrectable DRAM error",
    172: "uncorrectable SRAM error",
    173: "C2C link failed",
    175: "memory subsystem does not answer",
}
"""Xids that require a GPU reset, a reboot or a look at the plugs according to the catalogue. No program alone can cause them."""

NVLINK = {
    144: "NVLink SAW error",
    145: "NVLink RLW error",
    146: "NVLink TLW error",
    147: "NVLink TREX error",
    148: "NVLink control error",
    149: "NVLink NETIR error",
    150: "NVLink MSE error",
}
"""Xids of NVLink 5: hardware if their text says Fatal, suspect otherwise."""

SUSPECT = {
    8: "GPU stopped processing a program's work",
    74: "NVLink error",
    92: "many single-bit ECC errors",
    94: "contained memory error",
    109: "context switch timeout",
    110: "security fault",
    121: "C2C error",
    151: "key rotation failed: restart the virtual machine",
    155: "NVLink software-defined error",
    156: "resource retirement",
    157: "resource retirement failed",
    160: "channel retirement",
    161: "channel retirement failed",
    163: "power smoothing is off",
    164: "little lifetime left for power smoothing",
    165: "no lifetime left for power smoothing",
    166: "NVLink encryption error",
    168: "less memory than before",
    170: "NVLink security error",
    176: "PCIe correctable errors",
}
"""Xids that often come from a link or memory that begins to fail, and sometimes only from a program."""

LAST_KNOWN = 176
"""Xids up to this one have a meaning here, or are a program's or no fault; later drivers may log more."""

RECOVERY_ACTION_CHANGED, GSP_TIMEOUT, NETIR, WATCHDOG = 154, 119, 149, 8
ASKED = re.compile(r" to 0x([1-9a-f]) ")
RESET = "the driver asks for a reset or a reboot"
DRAIN_AND_RESET = "4"
ACTIONS = {
    "3": "the driver asks to drain peer-to-peer traffic",
    DRAIN_AND_RESET: "the driver asks to drain and reset the GPU",
    "5": "the driver asks to recover the IMEX domain",
}
"""Recovery actions of Xid 154 other than a reset or a reboot (0x1, 0x2, 0x6, 0x7)."""

IGNORED = (0x26, 0x28)
AT_THE_OTHER_END = range(0x20, 0x26)


def hardware(event: Mapping[str, Any], slow_gsp: Container[str], peers: Mapping[str, str]) -> str:
    """Return what a Xid means that calls for a reset or a repair; empty for others.

    `slow_gsp`: the GPUs whose Xids 119 alone are not fatal. `peers`: what the NVLinks of each GPU lead to.
    """
    xid, asked = event["xid"], _asked(event)
    if xid in NVLINK:
        return _fatal(event, peers.get(event["bdf"], "device"))
    if xid == GSP_TIMEOUT and event["bdf"] in slow_gsp:
        return ""
    return ACTIONS.get(asked, RESET) if asked and asked != DRAIN_AND_RESET else HARDWARE.get(xid, "")


def suspect(event: Mapping[str, Any], slow_gsp: Container[str]) -> str:
    """Return what a Xid means that may announce a fault; empty for others."""
    xid = event["xid"]
    if xid in NVLINK:
        link = _link(event)
        return "" if link and (link[1] == "Fatal" or int(link[2])) else NVLINK[xid]
    if xid == GSP_TIMEOUT and event["bdf"] in slow_gsp:
        return HARDWARE[xid]
    return ACTIONS[DRAIN_AND_RESET] if _asked(event) == DRAIN_AND_RESET else SUSPECT.get(xid, "")


def _asked(event: Mapping[str, Any]) -> str:
    """Return the number of the action that Xid 154 asks for."""
    asked = ASKED.search(event["text"]) if event["xid"] == RECOVERY_ACTION_CHANGED else None
    return asked[1] if asked else ""


def _link(event: Mapping[str, Any]) -> re.Match[str] | None:
    from nodetune.onhost.xid_text import LINK_5  # here: most hosts have logged none

    return re.search(LINK_5, event["text"])


def _fatal(event: Mapping[str, Any], peer: str) -> str:
    link = _link(event)
    if not link or link[1] != "Fatal" or int(link[2]):
        return ""
    code = int(link[4], 16) & 0x3F if link[4] and event["xid"] == NETIR else 0
    if code in IGNORED:
        return ""
    place = f" on link {int(link[3])}" if link[3] and int(link[3]) >= 0 else ""
    cause = f" (caused by the {peer} at its other end)" if code in AT_THE_OTHER_END else ""
    return f"{NVLINK[event['xid']]}{place}{cause}"


def by_gpu(events: Iterable[Mapping[str, Any]], meaning: Callable[[Mapping[str, Any]], str]) -> dict[str, list[str]]:
    """Return GPU address → one text per kind of Xid logged there: `Xid 79 GPU has fallen off the bus (2 times)`."""
    counted: dict[str, dict[str, int]] = {}
    for event in events:
        words = meaning(event)
        if words:
            counts, said = counted.setdefault(event["bdf"], {}), f"Xid {event['xid']} {words}"
            counts[said] = counts.get(said, 0) + event["count"]
    return {
        bdf: [said + (f" ({count} times)" if count > 1 else "") for said, count in counts.items()]
        for bdf, counts in counted.items()
    }

"""Memory modules of a host run at different speeds.

Why it matters: The slowest module sets the pace of its channel, and often of all modules of its processor. Copies
between host and GPU then differ by NUMA node. The firmware slows modules down where one failed its training, or where
modules of several kinds are mixed. The check compares modules of one type with each other, never with the speed that
they are sold for.
Confirm manually: sudo dmidecode -t memory | grep -E 'Locator|Configured Memory Speed'
Side effects of the fix: The node is out of service while modules are reseated or replaced.
Sources: https://www.dmtf.org/standards/smbios (Memory Device, type 17: Configured Memory Speed)
"""

from __future__ import annotations

from nodetune.api import BARE_METAL, Check, Empty, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> dict[str, str]:
    fastest: dict[int, int] = {}
    told = [each for each in facts["memory.modules"] if each["size_mb"] and each["speed_mts"]]
    if not told:
        raise FactAbsentError("the firmware does not report the speed of memory modules")
    for each in told:
        fastest[each["type"]] = max(each["speed_mts"], fastest.get(each["type"], 0))
    return {each["slot"]: _slower(each["speed_mts"], fastest[each["type"]]) for each in told}


def _slower(speed: int, best: int) -> str:
    return f"{speed} MT/s, others {best}" if speed < best else ""


CHECK = Check(
    needs=("memory.modules",),
    observe=observe,
    accept=Empty("the speed of the others"),
    applies=(BARE_METAL,),
    remedy=manual(
        "Compare kind and slot of the modules with the server's population rules (dmidecode -t memory), and read the "
        "BMC's event log for failed memory training. Reseat the slow modules, then replace them."
    ),
    severity="low",
)

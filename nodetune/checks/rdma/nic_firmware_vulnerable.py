"""The firmware of a ConnectX or BlueField card lacks security fixes.

Why it matters: A program that has a virtual function of the card can run code in the card (CVE-2025-23350, CVE-2025-23351).
That matters where virtual machines or containers get virtual functions. Each release train of the firmware (the second number of
its version) has a build of its own with the fixes; trains between those of the table get none. The table used carries its date.
Confirm manually: grep . /sys/class/infiniband/*/fw_ver; mlxfwmanager --query
Side effects of the fix: Firmware takes effect after a reset of the card or a reboot. Cards of a server's maker take the maker's
firmware.
Sources: https://github.com/NVIDIA/product-security/tree/main/2026/5699
"""

from __future__ import annotations

from typing import Any

from nodetune import data
from nodetune.api import BARE_METAL, RDMA, Check, Empty, FactsView, manual
from nodetune.checks.shared import floors

MAKER = "15b3"
"""The PCI vendor of ConnectX and BlueField."""


def observe(facts: FactsView) -> dict[str, str]:
    return {
        name: _lacks(device["firmware"])
        for name, device in facts["rdma.devices"].items()
        if device["vendor"] == MAKER and device["firmware"] and not device["virtual_function"]
    }


def _lacks(version: str) -> str:
    numbers, table = data.version(version), data.table("floors")["nic_firmware"]
    trains: dict[int, Any] = {int(train): build for train, build in table["trains"].items()}
    if len(numbers) != 3 or numbers[1] > max(trains):
        return ""
    train, build = numbers[1:]
    if build >= trains.get(train, build + 1):
        return ""
    fixed = next(each for each in sorted(trains) if each >= train)
    return f"{version}: fixed in {numbers[0]}.{fixed}.{trains[fixed]} ({floors.told(table['notice'], table['cve'])})"


CHECK = Check(
    needs=("rdma.devices",),
    observe=observe,
    accept=Empty("a build with the fixes of the newest bulletin"),
    applies=(RDMA, BARE_METAL),
    remedy=manual(
        "mlxfwmanager --query, then update all cards of the model to the named build, or a newer train that supports them; "
        "mlxfwreset -d DEVICE reset or reboot."
    ),
    severity="low",
    cost="setting",
)

"""A network card's PCIe link is slower or narrower than card and slot allow.

Why it matters: A 400 Gb/s card needs 16 lanes at 32 GT/s. Bad contacts, risers and signal trouble make the link
train at half or a quarter of that, and nothing else reports it: the port still shows its full rate.
Confirm by hand: lspci -vv -s BDF | grep -E 'LnkCap:|LnkSta:'
Side effects of the fix: Reseating needs the machine off.
Sources: https://docs.kernel.org/PCI/sysfs-pci.html ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html
"""

from typing import Any

from nodetune.conditions import BARE_METAL
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    devices = facts["pci.devices"]
    links = [link for link in facts["net.links"].values() if link["up"]]
    ports = [port for port in facts["rdma.ports"].values() if port["state"] == "ACTIVE"]
    in_use = {each["bdf"] for each in [*links, *ports] if not each.get("virtual_function")}
    return {bdf: _degraded(devices[bdf], devices) for bdf in sorted(in_use & set(devices))}


def _degraded(device: dict[str, Any], devices: dict[str, Any]) -> str:
    """What card and slot both can do, against what they do."""
    slot = devices.get(device["parents"][-1], {}) if device["parents"] else {}
    now, best = [], []
    for key in ("link_speed_gts", "link_width"):
        able = [each["max_" + key] for each in (device, slot) if each.get("max_" + key)]
        now.append(device[key] or 0)
        best.append(min(able) if device[key] and able else 0)
    if now[0] >= best[0] and now[1] >= best[1]:
        return ""
    return f"{now[0]:g} GT/s x{now[1]}, able to do {best[0]:g} GT/s x{best[1]}"


CHECK = Check(
    needs=("pci.devices", "net.links", "rdma.ports"),
    observe=observe,
    accept=Empty("what card and slot can do"),
    applies=(BARE_METAL,),
    remedy=manual(
        "Look for PCIe errors (journalctl -k | grep -i aer) and for a speed limit in the firmware set-up; power the "
        "machine off, reseat the card and its riser; swap slots to see whether card or slot is at fault."
    ),
    severity="high",
)

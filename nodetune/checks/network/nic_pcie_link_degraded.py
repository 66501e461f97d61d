"""The PCIe link of a network card is degraded.

Why it matters: The link is slower or narrower than card and slot support. A 400 Gb/s card needs 16 lanes at 32 GT/s.
Bad contacts, risers and poor signals make the link train at half or a quarter of that. Nothing else reports it: the
port still shows its full rate.
Healthy exception: A card in an older slot uses all that the slot supports.
Confirm manually: lspci -vv -s BDF | grep -E 'LnkCap:|LnkSta:'
Side effects of the fix: Reseating needs the machine off.
Sources: https://docs.kernel.org/PCI/sysfs-pci.html ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html
"""

from typing import Any

from nodetune.api import BARE_METAL, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, str]:
    devices = facts["pci.devices"]
    links = [link for link in facts["net.links"].values() if link["up"]]
    ports = [port for port in facts["rdma.ports"].values() if port["state"] == "ACTIVE"]
    in_use = {each["bdf"] for each in [*links, *ports] if not each.get("virtual_function")}
    return {bdf: _degraded(devices[bdf], devices) for bdf in sorted(in_use & set(devices))}


def _degraded(device: dict[str, Any], devices: dict[str, Any]) -> str:
    """Compare the trained link with what both card and slot support."""
    slot = devices.get(device["parents"][-1], {}) if device["parents"] else {}
    now, best = [], []
    for key in ("link_speed_gts", "link_width"):
        maxima = [each["max_" + key] for each in (device, slot) if each.get("max_" + key)]
        now.append(device[key] or 0)
        best.append(min(maxima) if device[key] and len(maxima) == 2 else 0)
    if now[0] >= best[0] and now[1] >= best[1]:
        return ""
    return f"{now[0]:g} GT/s x{now[1]}, supports {best[0]:g} GT/s x{best[1]}"


CHECK = Check(
    needs=("pci.devices", "net.links", "rdma.ports"),
    observe=observe,
    accept=Empty("the full speed and width of card and slot"),
    applies=(BARE_METAL,),
    remedy=manual(
        "Look for PCIe errors (journalctl -k | grep -i aer) and for a speed limit in the firmware setup. Power the "
        "machine off and reseat the card and its riser. Swap slots to find out whether the card or the slot is "
        "faulty."
    ),
    severity="high",
)

"""Network ports can carry more than the PCIe link that they share.

Why it matters: Two 400 Gb/s ports on one card, or two cards under one switch port, get no more than that link: about
500 Gb/s on 16 lanes at 32 GT/s. A 400 Gb/s card in a slot of 16 GT/s gets 250. No setting helps; what to expect
from the node changes, and which ports a job should use.
Confirm by hand: lspci -tv; lspci -vv -s BDF | grep LnkSta
Side effects of the fix: Moving cards needs the machine off.
Sources: https://docs.kernel.org/PCI/sysfs-pci.html ; https://pcisig.com/pci-express-6.0-specification
"""

from typing import Any

from nodetune.conditions import BARE_METAL
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

USABLE = 0.97
"""What line coding leaves of the raw rate from 8 GT/s on; packet headers take a little more."""


def observe(facts: View) -> dict[str, str]:
    """For every bridge with ports behind it: their rates together against its link's."""
    devices = facts["pci.devices"]
    behind: dict[str, list[float]] = {}
    for bdf, rate in _rates(facts).items():
        for bridge in devices.get(bdf, {}).get("parents", []):
            behind.setdefault(bridge, []).append(rate)
    return {bridge: _over(devices.get(bridge, {}), rates) for bridge, rates in sorted(behind.items())}


def _rates(facts: View) -> dict[str, float]:
    """Gb/s of each network function that is in use, by its PCI address."""
    links = [link for link in facts["net.links"].values() if link["physical"] and link["up"] and link["speed_mbps"]]
    ports = [port for port in facts["rdma.ports"].values() if port["state"] == "ACTIVE"]
    found = {each["bdf"]: each["speed_mbps"] / 1000 for each in links if not each["virtual_function"]}
    found.update({each["bdf"]: each["rate_gbps"] for each in ports if not each["virtual_function"]})
    return {bdf: rate for bdf, rate in found.items() if bdf}


def _over(link: dict[str, Any], rates: list[float]) -> str:
    able = (link.get("link_speed_gts") or 0) * (link.get("link_width") or 0) * USABLE
    if not able or sum(rates) <= able:
        return ""
    return f"{sum(rates):g} Gb/s of ports behind {able:.0f} Gb/s"


CHECK = Check(
    needs=("pci.devices", "net.links", "rdma.ports"),
    observe=observe,
    accept=Empty("ports that fit their PCIe link"),
    applies=(BARE_METAL,),
    remedy=manual(
        "Move one of the cards to a slot under another root port, or leave the second port out of NCCL_IB_HCA; otherwise "
        "waive this and expect the PCIe figure."
    ),
    severity="info",
)

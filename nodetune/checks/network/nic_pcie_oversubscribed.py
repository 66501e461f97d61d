"""Network ports exceed the bandwidth of their PCIe link.

Why it matters: Two 400 Gb/s ports on one card, or two cards below one switch port, share one PCIe link: about 500 Gb/s
on 16 lanes at 32 GT/s. A 400 Gb/s card in a slot of 16 GT/s gets 250. No setting helps. Expect less from the node, and
choose the ports that a job uses accordingly. The check ignores switches that GPUs share with the cards: GPUDirect
traffic stays below them.
Confirm manually: lspci -tv; lspci -vv -s BDF | grep LnkSta
Side effects of the fix: Moving cards needs the machine off.
Sources: https://docs.kernel.org/PCI/sysfs-pci.html ; https://pcisig.com/pci-express-6.0-specification
"""

from typing import Any

from nodetune.api import BARE_METAL, Check, Empty, FactsView, manual

USABLE = 0.97
"""The share of the raw rate that line coding leaves from 8 GT/s on; packet headers take a little more."""


def observe(facts: FactsView) -> dict[str, str]:
    """Compare, for every bridge, the total rate of the ports behind it with the rate of its link."""
    devices = facts["pci.devices"]
    gpus = [each for each in devices.values() if each["vendor"] == "10de" and each["class"] in ("0300", "0302")]
    shared = {bridge for gpu in gpus for bridge in gpu["parents"]}
    behind: dict[str, list[float]] = {}
    for bdf, rate in _rates(facts).items():
        for bridge in devices.get(bdf, {}).get("parents", []):
            if bridge not in shared:
                behind.setdefault(bridge, []).append(rate)
    return {bridge: _over(devices.get(bridge, {}), rates) for bridge, rates in sorted(behind.items())}


def _rates(facts: FactsView) -> dict[str, float]:
    """Return Gb/s of each network function in use, by PCI address."""
    links = [link for link in facts["net.links"].values() if link["physical"] and link["up"] and link["speed_mbps"]]
    ports = [port for port in facts["rdma.ports"].values() if port["state"] == "ACTIVE"]
    found = {each["bdf"]: each["speed_mbps"] / 1000 for each in links if not each["virtual_function"]}
    found.update({each["bdf"]: each["rate_gbps"] for each in ports if not each["virtual_function"]})
    return {bdf: rate for bdf, rate in found.items() if bdf}


def _over(link: dict[str, Any], rates: list[float]) -> str:
    capacity = (link.get("link_speed_gts") or 0) * (link.get("link_width") or 0) * USABLE
    if not capacity or sum(rates) <= capacity:
        return ""
    return f"{sum(rates):g} Gb/s of ports behind {capacity:.0f} Gb/s"


CHECK = Check(
    needs=("pci.devices", "net.links", "rdma.ports"),
    observe=observe,
    accept=Empty("ports that fit their PCIe link"),
    applies=(BARE_METAL,),
    remedy=manual(
        "Move one of the cards to a slot under another root port, or leave the second port out of NCCL_IB_HCA. "
        "Otherwise waive this finding and expect the PCIe figure."
    ),
    severity="info",
)

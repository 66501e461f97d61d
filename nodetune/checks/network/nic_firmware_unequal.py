"""Network cards of the same model run different firmware.

Why it matters: Cards with different firmware differ in defaults, in congestion control and in bugs. A fault on only
one of several links takes days to trace to its firmware. One version for all makes the host's behaviour explainable.
Confirm manually: for link in $(ls /sys/class/net); do ethtool -i $link 2>/dev/null | grep -E 'driver|firmware'; done
Side effects of the fix: Firmware takes effect after a reset of the card or a reboot.
Sources: https://docs.kernel.org/networking/ethtool-netlink.html ;
https://docs.nvidia.com/networking/display/mftv4310/mlxfwmanager+%E2%80%93+Firmware+Update+and+Query+Tool
"""

from collections import Counter

from nodetune.api import Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, str]:
    """Compare firmware by model, without RDMA devices: hca-firmware-unequal judges those."""
    devices, rdma = facts["pci.devices"], {port["bdf"] for port in facts["rdma.ports"].values()}
    links = facts["net.links"]
    models: dict[tuple[str, ...], dict[str, str]] = {}
    for name, info in facts["net.driver_info"].items():
        bdf = links.get(name, {}).get("bdf")
        if bdf in devices and bdf not in rdma and info["firmware"] and not links[name]["virtual_function"]:
            key = (info["driver"], devices[bdf]["vendor"], devices[bdf]["device"])
            models.setdefault(key, {})[name] = info["firmware"]
    return {name: text for versions in models.values() for name, text in _unequal(versions).items()}


def _unequal(versions: dict[str, str]) -> dict[str, str]:
    usual = Counter(versions.values()).most_common(1)[0][0]
    return {name: "" if version == usual else f"{version}, others {usual}" for name, version in versions.items()}


CHECK = Check(
    needs=("net.driver_info", "net.links", "pci.devices", "rdma.ports"),
    observe=observe,
    accept=Empty("the firmware of its peers"),
    remedy=manual("Bring all cards of the model to one version with the vendor's tool, then reboot the host."),
    severity="low",
    cost="setting",
)

"""A PCIe device has uncorrectable errors.

Why it matters: Each one is a lost or broken transaction that the link could not repair: a timeout, a malformed or
poisoned packet, a link that went down. The driver resets the device, or the job dies. The check ignores unsupported
requests alone: drivers cause them while they probe a device. The counters start at boot.
Healthy exception: Drivers cause unsupported requests while they probe a device.
Confirm manually: grep . /sys/bus/pci/devices/BDF/aer_dev_fatal /sys/bus/pci/devices/BDF/aer_dev_nonfatal | grep -v ' 0$'
Side effects of the fix: Reseating or replacing needs the machine off.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci-devices-aer ;
https://docs.kernel.org/PCI/pcieaer-howto.html
"""

from nodetune.api import Check, Equals, FactsView, manual

HARMLESS = ("UnsupReq", "Unsupported Request")
NONE = "no errors"


def observe(facts: FactsView) -> dict[str, str]:
    return {bdf: _errors(counted) for bdf, counted in facts["pci.aer"].items()}


def _errors(counted: dict[str, dict[str, int]]) -> str:
    found = [
        f"{number} x {name} ({kind})"
        for kind in ("fatal", "nonfatal")
        for name, number in counted.get(kind, {}).items()
        if kind == "fatal" or name not in HARMLESS
    ]
    return ", ".join(found) or NONE


CHECK = Check(
    needs=("pci.aer",),
    observe=observe,
    accept=Equals(NONE),
    remedy=manual(
        "Look in dmesg for the AER messages of the addresses named: one end may report an error that the other end "
        "caused. Update the firmware of device and switch, and reseat the device. If the errors come back, replace "
        "it."
    ),
    severity="high",
    part_of=("gpu-lost", "gpu-missing", "pci-device-not-answering", "gpu-xid-hardware"),
    cost="hardware",
)

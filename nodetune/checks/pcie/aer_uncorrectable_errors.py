"""PCIe devices have counted uncorrectable errors.

Why it matters: Each one is a lost or broken transaction, not one that the link repaired by itself: timeouts, malformed or
poisoned packets, a link that went down. The driver resets the device or the job dies. Unsupported requests alone are not
judged: drivers cause them while they probe a device. Counters start at boot.
Confirm by hand: grep . /sys/bus/pci/devices/BDF/aer_dev_fatal /sys/bus/pci/devices/BDF/aer_dev_nonfatal | grep -v ' 0$'
Side effects of the fix: Reseating or replacing needs the machine off.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci-devices-aer ;
https://docs.kernel.org/PCI/pcieaer-howto.html
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

HARMLESS = ("UnsupReq", "Unsupported Request")
NONE = "no errors"


def observe(facts: View) -> dict[str, str]:
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
        "Look in dmesg for the AER messages of the addresses named: the error may have been seen by one end and caused by the "
        "other. Update the firmware of device and switch, reseat the device; replace it when the errors come back."
    ),
    severity="high",
)

"""An NVSwitch reported a fatal error.

Why it matters: The switch has stopped carrying traffic on a link or altogether. Jobs over NVLink hang or fail until
the GPUs and switches are reset together.
Confirm by hand: journalctl -k -b | grep SXid
Side effects of the fix: Resetting GPUs and NVSwitches ends every GPU program on the node.
Sources: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
"""

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str] | list[str]:
    return {
        event["bdf"]: f"SXid {event['xid']} {event['text']}"
        for event in facts["xid.nvswitch"]
        if event["text"].startswith("Fatal")
    } or []


CHECK = Check(
    needs=("xid.nvswitch",),
    observe=observe,
    accept=Empty("no fatal SXid since the driver was loaded"),
    applies=(GPU_ON_PCI,),
    remedy=manual(
        "Drain the node, stop Fabric Manager, reset all GPUs and switches (nvidia-smi -r) and start it again, or reboot. When "
        "the same switch fails again, open a case with the vendor."
    ),
    severity="critical",
)

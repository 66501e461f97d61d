"""The host does not have as many GPUs as it should.

Why it matters: A GPU that vanished from the PCI bus leaves no other trace than the number. By default at least one is
wanted; a site says how many its hosts have (accept: 8).
Confirm by hand: nvidia-smi -L | wc -l
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.count",
    accept=AtLeast(1),
    applies=(GPU_ON_PCI,),
    remedy=manual(
        "Compare lspci -d 10de: with what the machine was bought with. A GPU that is not on the bus: power the host off and "
        "on, check seating and power cables, read the BMC's event log, then open a case with the vendor."
    ),
    severity="critical",
)

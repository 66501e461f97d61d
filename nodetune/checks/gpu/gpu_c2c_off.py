"""The NVLink-C2C link between a Grace CPU and its GPU is off.

Why it matters: It is the GPU's way to the host: without it all transfers go over a narrow PCIe link and coherent
memory is gone.
Confirm by hand: nvidia-smi -q | grep -i c2c
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/grace-perf-tuning-guide/index.html
"""

from nodetune import data
from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check, When
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    models = facts["gpu.pci_device_id"]
    return {name: mode for name, mode in facts["gpu.c2c_mode"].items() if data.gpu(models.get(name, "")).get("c2c")}


CHECK = Check(
    needs=("gpu.c2c_mode", "gpu.pci_device_id"),
    observe=observe,
    accept=Equals("enabled"),
    applies=(GPU, When("host.arch", Equals("aarch64"), "no Grace CPU")),
    remedy=manual(
        "Power the host off and on; read dmesg for C2C errors (Xid 121); update the firmware; ask the vendor."
    ),
    severity="high",
)

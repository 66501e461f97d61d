"""NVLink-C2C between a Grace CPU and its GPU is off.

Why it matters: NVLink-C2C is the path from the GPU to the host. Without it, all transfers use a narrow PCIe link, and
coherent memory is not available.
Healthy exception: Only superchips have NVLink-C2C.
Confirm manually: nvidia-smi -q | grep -i c2c
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/grace-perf-tuning-guide/index.html
"""

from nodetune import data
from nodetune.api import GPU, Check, Equals, FactsView, When, manual
from nodetune.checks.shared.gpu_peers import MODELS, models


def observe(facts: FactsView) -> dict[str, str]:
    model_of = models(facts)
    return {name: mode for name, mode in facts["gpu.c2c_mode"].items() if data.gpu(model_of.get(name, "")).get("c2c")}


CHECK = Check(
    needs=("gpu.c2c_mode", *MODELS),
    observe=observe,
    accept=Equals("enabled"),
    applies=(GPU, When("host.arch", Equals("aarch64"), "no Grace CPU")),
    remedy=manual(
        "Power the host off and on. Read dmesg for C2C errors (Xid 121). Update the firmware, then ask the vendor."
    ),
    severity="high",
    name="NVLink-C2C",
    cost="bandwidth",
)

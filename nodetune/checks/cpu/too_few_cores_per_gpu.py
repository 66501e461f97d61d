"""There are too few CPU cores per GPU.

Why it matters: Each GPU needs a core for the process that drives it, some for NCCL's proxy threads and several for data
loading. NVIDIA's configuration guide for certified systems requires at least six physical cores per GPU. With fewer,
input pipelines and checkpoint writes delay the GPUs.
Confirm manually: lscpu | grep -E 'Core|Socket'; lspci -d 10de: | grep -c -E '3D|VGA'
Side effects of the fix: None. The fix is fewer data-loader workers, or a machine with more cores.
Sources: https://docs.nvidia.com/certification-programs/nvidia-certified-configuration-guide/index.html
"""

from nodetune.api import GPU_ON_PCI, AtLeast, Check, FactsView, manual
from nodetune.checks.shared.pci_devices import gpus_of_host


def observe(facts: FactsView) -> float:
    share: float = facts["cpu.cores"] / len(gpus_of_host(facts))
    return int(share) if share >= 1 else round(share, 2)


CHECK = Check(
    observe=observe,
    needs=("cpu.cores", "pci.gpus", "pci.devices"),
    applies=(GPU_ON_PCI,),
    accept=AtLeast(6),
    unit="cores per GPU",
    remedy=manual(
        "Check that no core is offline or unavailable to jobs (lscpu). Keep data-loader workers below the cores per GPU, move "
        "decoding to the GPU (DALI), and plan for more cores in the next machine."
    ),
    severity="info",
    name="CPU cores",
)

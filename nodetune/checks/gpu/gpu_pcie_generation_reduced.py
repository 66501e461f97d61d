"""A busy GPU's PCIe link runs below the speed that it and the host support.

Why it matters: Half the generation is half the bandwidth to host, NIC and storage. Idle GPUs lower the speed to save
power: only one that works in its highest performance state is judged.
Confirm by hand: nvidia-smi --query-gpu=index,pstate,pcie.link.gen.current,pcie.link.gen.max --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import data
from nodetune.conditions import GPU
from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, int]:
    states, reasons = facts["gpu.performance_state"], facts["gpu.clocks_event_reasons"]
    models = facts["gpu.pci_device_id"]
    return {
        name: generation
        for name, generation in facts["gpu.curr_pcie_link_generation"].items()
        if states.get(name) == 0
        and "idle" not in reasons.get(name, ["idle"])
        and not data.gpu(models.get(name, "")).get("c2c")
    }


CHECK = Check(
    needs=("gpu.curr_pcie_link_generation", "gpu.performance_state", "gpu.clocks_event_reasons", "gpu.pci_device_id"),
    observe=observe,
    accept=AtLeast(Ref("gpu.max_pcie_link_generation")),
    applies=(GPU,),
    remedy=manual(
        "Check the slot's speed in the firmware set-up and the errors of the link (lspci -vv -s BDF, aer_dev_correctable); "
        "reseat the GPU or its riser."
    ),
    severity="high",
)

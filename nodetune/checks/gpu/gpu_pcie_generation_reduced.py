"""The PCIe link of a busy GPU runs below its maximum generation.

Why it matters: One generation lower means half the bandwidth to the host, NICs and storage. The maximum is the highest
generation that both the GPU and the host support. Idle GPUs lower the link speed to save power, so the check judges
only busy GPUs in the highest performance state.
Healthy exception: An idle GPU lowers its link speed to save power.
Confirm manually: nvidia-smi --query-gpu=index,pstate,pcie.link.gen.current,pcie.link.gen.max --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import data
from nodetune.api import GPU, AtLeast, Check, FactsView, Ref, manual
from nodetune.checks.shared.gpu_peers import MODELS, models


def observe(facts: FactsView) -> dict[str, int]:
    states, reasons = facts["gpu.performance_state"], facts["gpu.clocks_event_reasons"]
    model_of = models(facts)
    return {
        name: generation
        for name, generation in facts["gpu.curr_pcie_link_generation"].items()
        if states.get(name) == 0
        and "idle" not in reasons.get(name, ["idle"])
        and not data.gpu(model_of.get(name, "")).get("c2c")
    }


CHECK = Check(
    needs=("gpu.curr_pcie_link_generation", "gpu.performance_state", "gpu.clocks_event_reasons", *MODELS),
    observe=observe,
    accept=AtLeast(Ref("gpu.max_pcie_link_generation")),
    applies=(GPU,),
    remedy=manual(
        "Check the slot's speed in the firmware setup and the errors of the link (lspci -vv -s BDF, "
        "aer_dev_correctable). Reseat the GPU or its riser."
    ),
    severity="high",
    name="PCIe generation",
    cost="bandwidth",
    part_of="gpu-pcie-width-reduced",
)

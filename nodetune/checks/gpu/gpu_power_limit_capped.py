"""The power of a GPU is capped below that of its peers.

Why it matters: Something other than the setting (the BMC, a power supply, the board) holds one GPU to less power than the
others of its model. It runs slower under load, and a collective waits for it. The driver enforces the lowest of all limits.
Confirm manually: nvidia-smi -q -d POWER
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://github.com/l4rz/reverse-engineering-dell-idrac-to-get-rid-of-gpu-throttling/issues/3 (one V100 of four at 150 W) ;
https://github.com/stackhpc/ansible-slurm-appliance/pull/975 (all alike, by the BMC: gpu-power-limit-not-enforced)
"""

from __future__ import annotations

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_peers import MODELS, highest, models
from nodetune.foundation import text

ENFORCED, SET, DEFAULT = "gpu.enforced_power_limit", "gpu.power_management_limit", "gpu.power_management_default_limit"


def observe(facts: FactsView) -> dict[str, str]:
    """Compare cards with one default limit; a limit that is set so low is for gpu-power-limit-unequal."""
    limits, wanted, defaults = facts[ENFORCED], facts.readable(SET, {}), facts.readable(DEFAULT, {})
    kinds = {gpu: f"{model} {defaults.get(gpu)}" for gpu, model in models(facts).items()}
    return {
        gpu: f"{text.value(limits[gpu], 'mW')}, a peer {text.value(best, 'mW')}"
        if limits[gpu] < min(best, wanted.get(gpu, best))
        else ""
        for gpu, best in highest(limits, kinds).items()
    }


CHECK = Check(
    needs=(ENFORCED, SET, DEFAULT, *MODELS),
    observe=observe,
    accept=Empty("no lower limit than its peers"),
    applies=(GPU,),
    remedy=manual(
        "Compare the GPU's power cables, slot and riser with those of its peers. Look for a power cap in the BMC (Redfish "
        "PowerControl, the vendor's tool), and check the power supplies."
    ),
    severity="medium",
    cost="bandwidth",
    name="enforced power limit",
)

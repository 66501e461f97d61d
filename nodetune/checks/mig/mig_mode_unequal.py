"""One GPU is in MIG mode and its peers are not, or the other way round.

Why it matters: A job that takes all GPUs of the node cannot use the odd one, and NCCL has no peer access to it. A layout
that was chosen divides several GPUs; a single one is often left over from a test.
Confirm manually: nvidia-smi --query-gpu=index,name,mig.mode.current --format=csv
Side effects of the fix: Turning MIG off destroys the instances of the GPU, which must be idle.
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_peers import MODELS, models
from nodetune.foundation.stats import odd_ones


def observe(facts: FactsView) -> dict[str, str]:
    modes, model_of = facts["gpu.mig_mode"], models(facts)
    found = dict.fromkeys(modes, "")
    for model in set(model_of.values()):
        alike = {name: mode for name, mode in modes.items() if model_of.get(name) == model}
        usual, odd = odd_ones(alike)
        if len(odd) == 1:
            found[odd[0]] = f"{modes[odd[0]]}, its peers {usual}"
    return found


CHECK = Check(
    needs=("gpu.mig_mode", *MODELS),
    observe=observe,
    accept=Empty("the MIG mode of its peers"),
    applies=(GPU,),
    remedy=manual(
        "If this is not intended, on a drained node: nvidia-smi -i INDEX -mig 0 (1 where the peers are divided), then look "
        "for what sets it at boot: systemctl status nvidia-mig-manager. Else state the layout in the site file "
        "(mig-layout-unwanted)."
    ),
    severity="low",
    name="MIG mode",
    part_of=("mig-without-instances", "mig-mode-on"),
)

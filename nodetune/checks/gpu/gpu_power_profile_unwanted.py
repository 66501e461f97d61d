"""The workload power profile of a GPU is not the one that the site declares.

Why it matters: Blackwell's power profiles (max-p, max-q, llm-training …) change power limits and clocks together: by NVIDIA's
figures, max-q saves up to 15 % of energy and costs up to 3 % of speed. One that an earlier job left behind slows the next, or
draws more than its circuit has. The site file declares one for each model: accept: {by_model: {NVIDIA B200: max-p}}; none is
the value without any, and several are in the order of their numbers (max-q, llm-training). Without such a line the check
does not apply.
Confirm manually: nvidia-smi power-profiles -ge
Side effects of the fix: Clocks and power draw change at once, also for a job that runs.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlPowerProfiles.html ;
https://developer.nvidia.com/blog/optimize-data-center-efficiency-for-ai-and-hpc-workloads-with-power-profiles
"""

from nodetune.api import GPU, Check, FactsView, manual


def observe(facts: FactsView) -> dict[str, dict[str, str]]:
    names = facts["gpu.names"]
    profiles = {gpu: ", ".join(each) or "none" for gpu, each in facts["gpu.power_profiles"].items()}
    return {gpu: {names[gpu]: each} for gpu, each in profiles.items() if gpu in names}


CHECK = Check(
    needs=("gpu.power_profiles", "gpu.names"),
    observe=observe,
    accept=None,
    applies=(GPU,),
    remedy=manual(
        "nvidia-smi power-profiles -l lists the profiles with their numbers. As root: -cr NUMBER clears one that was "
        "requested, -sr NUMBER requests one. If a scheduler's prolog sets profiles, let its epilog clear them."
    ),
    severity="medium",
    name="power profile",
)

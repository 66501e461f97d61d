"""The compute mode of a GPU restricts which programs can use it.

Why it matters: In exclusive mode only one process can use the GPU; in prohibited mode none can. A second process of
the same job, a health check or a monitoring probe then fails with a message that does not name the cause. Exclusive
mode cannot be combined with MIG. If all GPUs are in exclusive process mode, or some of them while MPS runs (NVIDIA's
guide for MPS sets it), that is a decision: it does not count.
Healthy exception: Exclusive process mode on all GPUs, or while MPS runs, is a decision, as NVIDIA's guide to MPS sets it.
Confirm manually: nvidia-smi --query-gpu=index,compute_mode --format=csv
Side effects of the fix: Programs of several users can then share a GPU unless the scheduler separates them.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://docs.nvidia.com/deploy/mps/index.html
"""

from nodetune.api import GPU, Check, Equals, Fact, FactsView, gpu
from nodetune.checks.gpu._each import each

DECISION = "exclusive_process"
MPS = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server")


def observe(facts: FactsView) -> Fact:
    modes = set(facts.readable("gpu.compute_mode", {}).values())
    shared = any(daemon in facts.readable("services.processes", {}) for daemon in MPS)
    decided = modes == {DECISION} or (shared and modes <= {DECISION, "default"})
    return each(facts, "gpu.compute_mode", lambda mode: "default" if decided else mode)


CHECK = Check(
    needs=("gpu.compute_mode", "services.processes"),
    observe=observe,
    accept=Equals("default"),
    set="default",
    applies=(GPU,),
    remedy=gpu("compute_mode"),
    severity="high",
    name="compute mode",
)

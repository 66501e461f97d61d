"""The host has much less memory than its GPUs.

Why it matters: Checkpoints, data loaders, pinned buffers and the page cache of weights stage what the GPUs hold. With
256 GiB and eight GPUs of 141 GB, a checkpoint or a model that is loaded does not fit in memory once. NVIDIA's systems
have a multiple: a DGX H100 has 2 TB for 640 GB. Parts of a machine that a cloud lends often have a little less than their
GPUs, which is not reported.
Confirm manually: free -g; nvidia-smi --query-gpu=memory.total --format=csv
Side effects of the fix: None: more modules, or another machine type.
Sources: https://docs.nvidia.com/dgx/dgxh100-user-guide/introduction-to-dgxh100.html ;
https://docs.nvidia.com/certification-programs/nvidia-certified-configuration-guide/index.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual

SMALLEST_SHARE = 0.75
GIB = 1 << 30


def observe(facts: FactsView) -> str:
    host, gpus = facts["memory.total_kb"] << 10, sum(facts["gpu.memory_total"].values())
    enough = host >= gpus * SMALLEST_SHARE
    return "" if enough else f"{host / GIB:.0f} GiB for {gpus / GIB:.0f} GiB of GPU memory"


CHECK = Check(
    observe=observe,
    needs=("memory.total_kb", "gpu.memory_total"),
    applies=(GPU,),
    accept=Empty("at least three quarters of the memory of all GPUs"),
    remedy=manual(
        "Check that no module is missing (dmidecode -t memory). Otherwise give each GPU its share in the scheduler "
        "(DefMemPerGPU), write checkpoints in shards, and plan for more memory in the next machine."
    ),
    severity="info",
)

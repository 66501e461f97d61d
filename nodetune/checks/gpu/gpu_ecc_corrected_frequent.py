"""A GPU corrects memory errors in a storm.

Why it matters: A few corrected errors are normal and cost nothing. Tens of millions since the driver was loaded mean
that a part of the memory fails all the time: the GPU may be slower, and an uncorrectable error ends a job sooner or
later. Azure takes a GPU with more than 20 million out of service. The counter restarts at zero after a driver load or a
GPU reset.
Confirm manually: nvidia-smi --query-gpu=index,ecc.errors.corrected.volatile.total --format=csv
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://github.com/Azure/azurehpc-health-checks (check_gpu_ecc 20000000) ;
https://github.com/NVIDIA/DCGM/issues/313 ;
https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
"""

from nodetune.api import GPU, AtMost, Check, manual

CHECK = Check(
    fact="gpu.ecc_corrected_volatile",
    accept=AtMost(20_000_000),
    unit="errors",
    applies=(GPU,),
    remedy=manual(
        "Read the counter twice, some minutes apart and under load. If it grows, drain the node, reset the GPU "
        "(nvidia-smi -r) and run dcgmi diag -r 3. If the errors come back, ask the vendor for a replacement."
    ),
    severity="medium",
    name="corrected",
    cost="hardware",
)

"""The application clock of a GPU is below its maximum.

Why it matters: The application clock caps the SM clock of every program. Some boards ship with a default below the
maximum (T4 585 of 1590 MHz, V100 1312 of 1530, some A100 1155 of 1410). On newer drivers, locked clocks replace the
setting and it is absent.
Confirm manually: nvidia-smi --query-gpu=index,clocks.applications.graphics,clocks.max.sm --format=csv
Side effects of the fix: The GPU boosts to what power and temperature allow.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, AtLeast, Check, Ref, gpu

CHECK = Check(
    fact="gpu.applications_clock.sm",
    accept=AtLeast(Ref("gpu.max_clock_info.sm")),
    set="max",
    unit="MHz",
    applies=(GPU,),
    remedy=gpu("applications_clocks"),
    severity="low",
)

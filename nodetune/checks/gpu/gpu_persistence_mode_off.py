"""GPU persistence mode is off.

Why it matters: Without persistence mode, the driver releases a GPU when the last program ends. The next program waits
seconds for the GPU to initialise, and power limits and clock settings are lost each time. The daemon alone is not
enough: some packages start it with the mode off.
Healthy exception: A host without an NVML library has no such mode.
Confirm manually: nvidia-smi --query-gpu=index,persistence_mode --format=csv
Side effects of the fix: An idle GPU draws a few watts more. On Grace, never switch it off again while jobs run: the
GPU's memory would vanish.
Sources: https://docs.nvidia.com/deploy/driver-persistence/persistence-mode-legacy.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Equals, gpu

CHECK = Check(
    fact="gpu.persistence_mode",
    accept=Equals("enabled"),
    set="enabled",
    applies=(GPU,),
    remedy=gpu("persistence_mode"),
    severity="high",
    name="persistence mode",
)

"""A GPU's MIG devices are not those that are wanted.

Why it matters: Instances are never kept over a reset or reboot: unless something makes them again, jobs that ask for a
profile find none. The wanted layout stands in the site file as mig-parted writes it, for example accept: {equals:
{1g.18gb: 7}}.
Confirm by hand: nvidia-smi mig -lgi; nvidia-smi -L
Side effects of the fix: Instances are destroyed and made anew: needs the GPU idle. nodetune-gpu.service makes them
again at each boot.
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://github.com/NVIDIA/mig-parted
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import gpu

CHECK = Check(
    fact="gpu.mig_devices",
    accept=Equals({}),
    set={},
    applies=(GPU,),
    remedy=gpu("mig_devices", "idle GPU"),
    severity="high",
)

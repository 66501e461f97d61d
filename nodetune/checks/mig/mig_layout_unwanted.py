"""The MIG layout differs from the wanted layout.

Why it matters: MIG instances do not survive a reset or a reboot. Unless something recreates them, jobs that request a
profile find none. The site file defines the wanted layout in mig-parted's notation, for example accept: {equals:
{1g.18gb: 7}}.
Healthy exception: Some GPUs cannot be divided.
Confirm manually: nvidia-smi mig -lgi; nvidia-smi -L
Side effects of the fix: Instances are destroyed and recreated, which needs an idle GPU. nodetune-gpu.service recreates
them at each boot.
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://github.com/NVIDIA/mig-parted
"""

from nodetune.api import GPU, Check, Equals, gpu

CHECK = Check(
    fact="gpu.mig_devices",
    accept=Equals({}),
    set={},
    applies=(GPU,),
    remedy=gpu("mig_devices", "idle GPU"),
    severity="high",
    name="MIG layout",
)

"""Any user may read the GPUs' performance counters.

Why it matters: The counters show what other users' programs do: NVIDIA closed them to all but administrators for that
reason. Sites whose nodes are never shared open them so that users can profile.
Confirm by hand: grep RmProfilingAdminOnly /proc/driver/nvidia/params
Side effects of the fix: Users can then no longer profile their kernels without help.
Sources: https://developer.nvidia.com/ERR_NVGPUCTRPERM
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.profiling_admin_only",
    accept=Equals(wanted=True),
    applies=(GPU,),
    remedy=manual(
        "Put options nvidia NVreg_RestrictProfilingToAdminUsers=1 (0 to open them) into /etc/modprobe.d/nvidia-prof.conf, "
        "rebuild the initramfs (update-initramfs -u or dracut -f) and reboot."
    ),
    severity="info",
)

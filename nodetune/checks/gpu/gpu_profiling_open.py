"""GPU performance counters are open to all users.

Why it matters: The counters reveal what other users' programs do. NVIDIA restricts them to administrators for that
reason. Sites whose nodes are never shared open them so that users can profile.
Confirm manually: grep RmProfilingAdminOnly /proc/driver/nvidia/params
Side effects of the fix: Users can then no longer profile their kernels without help.
Sources: https://developer.nvidia.com/ERR_NVGPUCTRPERM
"""

from nodetune.api import GPU, Check, Equals, manual

CHECK = Check(
    fact="gpu.profiling_admin_only",
    accept=Equals(wanted=True),
    applies=(GPU,),
    remedy=manual(
        "Put options nvidia NVreg_RestrictProfilingToAdminUsers=1 (0 to open them) into /etc/modprobe.d/nvidia-prof.conf, "
        "rebuild the initramfs (update-initramfs -u or dracut -f) and reboot."
    ),
    severity="info",
    name="counters for root only",
)

"""Users cannot read GPU performance counters.

Why it matters: Nsight Compute and Nsight Systems fail with ERR_NVGPUCTRPERM for ordinary users. NVIDIA restricts the counters
because they reveal what other users' programs do. The check is off: a site whose nodes are never shared, and whose users
profile, switches it on.
Confirm manually: grep RmProfilingAdminOnly /proc/driver/nvidia/params
Side effects of the fix: Every user of the node sees the counters of all programs. The driver is loaded again, by a reboot.
Sources: https://developer.nvidia.com/ERR_NVGPUCTRPERM
"""

from nodetune.api import GPU, Check, Equals, manual

CHECK = Check(
    fact="gpu.profiling_admin_only",
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=manual(
        "Put options nvidia NVreg_RestrictProfilingToAdminUsers=0 into /etc/modprobe.d/nvidia-prof.conf, rebuild the initramfs "
        "(update-initramfs -u or dracut -f) and reboot."
    ),
    severity="info",
)

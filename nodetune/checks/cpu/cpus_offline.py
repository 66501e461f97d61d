"""Some CPUs are offline.

Why it matters: The scheduler cannot give offline cores to any job. CPU lists written for a full node (rank bindings,
Slurm's gres.conf, interrupt affinities) name CPUs that are not there. EPYC hosts with 256 threads or more come up with
255 CPUs when the IOMMU is off: interrupts for CPUs above 254 need x2APIC, and x2APIC needs the IOMMU.
Healthy exception: The second threads of the cores are offline where SMT is off.
Confirm manually: lscpu | grep -iE 'on-line|off-line'
Side effects of the fix: None for running work. Slurm reports the node's full CPU count again after slurmd restarts.
Sources: https://docs.kernel.org/core-api/cpu_hotplug.html ;
https://github.com/ROCm/ROCm (system optimization guides: IOMMU and 256 threads)
"""

from nodetune.api import Check, Empty, FactsView, manual

LOST_WITHOUT_X2APIC = 255


def observe(facts: FactsView) -> str:
    """Return the offline CPUs, except second threads that are off because SMT is off."""
    if facts["cpu.count"] == LOST_WITHOUT_X2APIC and not facts["cpu.offline"]:
        return "255 online: CPUs above 254 need x2APIC"
    smt_off = facts.get("cpu.smt_control") in ("off", "forceoff")
    if smt_off and facts["cpu.offline_count"] <= facts["cpu.count"]:
        return ""
    return str(facts["cpu.offline"])


CHECK = Check(
    observe=observe,
    needs=("cpu.offline", "cpu.offline_count", "cpu.count", "cpu.smt_control"),
    accept=Empty("every CPU online"),
    remedy=manual(
        "For each CPU number N: echo 1 > /sys/devices/system/cpu/cpuN/online. If it is offline again after a reboot, look for "
        "maxcpus= or nr_cpus= in /proc/cmdline and for the cause in journalctl -k. With 255 CPUs: enable the "
        "IOMMU and x2APIC in the BIOS, remove intel_iommu=off, amd_iommu=off or iommu=off, and add iommu=pt."
    ),
    severity="high",
    name="offline CPUs",
    cost="bandwidth",
)

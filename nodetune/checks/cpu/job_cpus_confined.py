"""Jobs are confined to the CPUs meant for system tasks.

Why it matters: AllowedCPUs= on system.slice keeps daemons off the cores of jobs, unless jobs run in that slice too.
With control groups v2, Slurm puts every job under system.slice/slurmstepd.scope, and Docker puts containers there. A
slice confined to four cores then gives a whole training job four cores. Kubernetes pods have their own slice.
Healthy exception: Daemons may be confined to a few CPUs where no job runs in system.slice: Kubernetes pods have their
own slice.
Confirm manually: cat /sys/fs/cgroup/system.slice/cpuset.cpus.effective; systemctl show -p AllowedCPUs system.slice
Side effects of the fix: System daemons may run on every CPU again until they are confined one by one.
Sources: https://slurm.schedmd.com/cgroup_v2.html ;
https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html ;
https://docs.docker.com/reference/cli/dockerd/ (option --cgroup-parent) ;
https://github.com/systemd/systemd/issues/43846 (an empty list leaves groups that have tasks as they are)
"""

from nodetune.api import AtLeast, Check, FactAbsentError, FactsView, Ref, manual
from nodetune.checks.shared import job_cpus


def observe(facts: FactsView) -> int:
    """Return how many CPUs the slice that contains jobs may use."""
    if not job_cpus.in_system_slice(facts):
        raise FactAbsentError("neither Slurm nor Docker puts jobs into system.slice")
    slice_ = facts["cpu.cpusets"].get("system.slice")
    return int(slice_["count"] if slice_ else facts["cpu.count"])


CHECK = Check(
    observe=observe,
    needs=("cpu.cpusets", "cpu.count", *job_cpus.NEEDS),
    accept=AtLeast(Ref("cpu.count")),
    unit="CPUs",
    remedy=manual(
        "Run systemctl set-property system.slice AllowedCPUs= (and remove it from drop-ins: systemctl cat system.slice). The kernel "
        "keeps the old list then, until the next boot or: systemctl set-property --runtime system.slice "
        "AllowedCPUs=$(cat /sys/fs/cgroup/cpuset.cpus.effective). To keep daemons off the cores of jobs, set AllowedCPUs= on the services themselves, or use Slurm's CpuSpecList, or "
        "Docker's cgroup-parent: a slice outside of system.slice, for containers that are made from then on."
    ),
    severity="high",
    name="CPUs of jobs",
)

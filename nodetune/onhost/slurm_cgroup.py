"""The cgroup of a Slurm job, as the kernel shows it of a process in /proc/PID/cgroup.

From Slurm 26.05 on its name (v2) is the job's SLUID, not its number, unless cgroup.conf has CgroupJobIdPaths=yes, an option of
26.05.2. Whose it is, Slurm says in two places: the slurmstepd of a step, in step_*/slurm, has the number in its title; the
environment of a prolog or epilog has SLURM_JOB_SLUID. Source: cgroup_v2.shtml, cgroup.conf.5 and cgroup_v2.c of 26.05.3.
"""

import glob
import re

JOB = re.compile(
    r"^\d+:[^:]*:(?!.*/user(?:\.slice|@))(?:/.*?)?/(?:[^/]*slurmstepd\.scope|uid_\d+)"
    r"/(?:job_(\d+)|(?!system(?:/|$))([^/\n]+))(?=/|$)",
    re.MULTILINE,
)
"""The cgroup of a job (v2 and v1), where Slurm makes it: the number, or another name. Below their own slice users may call theirs the same."""

STEPD = re.compile(r"slurmstepd: \[(\d+)\.")
"""How the slurmstepd of a job's step calls itself."""

MOUNTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")


def job(cgroups, titled, root=""):
    """Return the number of a process's job by its cgroups; empty if Slurm made none of them.

    `titled` returns the job that a slurmstepd, by its process number, has in its title. If they do not all name one and the same,
    the answer is the name of the cgroup, which cannot be a number: it belongs to a job, and nobody knows to which.
    """
    found = JOB.search(cgroups)
    if not found:
        return ""
    path = found.group(0).split(":", 2)[2]
    named = {titled(pid) for pid in _slurmstepds(root, path)} if found.group(2) else set()
    return found.group(1) or (named.pop() if len(named) == 1 and "" not in named else found.group(2))


def _slurmstepds(root, path):
    """Yield the numbers of the processes in the part of a job's cgroup that is Slurm's own."""
    for mount in MOUNTS:
        for file in glob.glob(glob.escape(root + mount + path) + "/step_*/slurm/cgroup.procs"):
            try:
                with open(file) as lines:
                    yield from (int(line) for line in lines)
            except (OSError, ValueError):
                continue

"""The cgroup of a Slurm job, as the kernel shows it of a process in /proc/PID/cgroup."""

import re

JOB = re.compile(
    r"^\d+:[^:]*:(?!.*/user(?:\.slice|@))(?:/.*?)?/(?:[^/]*slurmstepd\.scope|uid_\d+)/job_(\d+)(?:/|$)", re.MULTILINE
)
"""The cgroup of a job (v2 and v1), where Slurm makes it. Below their own slice users may call theirs the same."""

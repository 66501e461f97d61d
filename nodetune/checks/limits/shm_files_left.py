"""Files of users who no longer run anything fill /dev/shm.

Why it matters: /dev/shm is memory. Files of ended jobs stay there until a user removes them or the node reboots; the jobs
that follow have less. A user may have put data there on purpose.
Confirm manually: find /dev/shm -type f -printf '%u %s %p\\n' | sort; ps -U USER
Side effects of the fix: What is removed is lost.
Sources: https://github.com/nebius/soperator/blob/main/helm/slurm-cluster/slurm_scripts/drop_posix_shmem.sh ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from nodetune.api import NOT_CONTAINER, Check, Empty, FactsView, manual
from nodetune.foundation import text

ENOUGH = 1 << 30


def observe(facts: FactsView) -> str:
    left = {user: each for user, each in facts["leftovers.shm"].items() if each["bytes"] >= ENOUGH}
    sums = [
        f"{text.size(each['bytes'])} in {text.count(each['files'], 'file')} of user {user}"
        for user, each in left.items()
    ]
    return ", ".join(sorted(sums))


CHECK = Check(
    needs=("leftovers.shm",),
    observe=observe,
    accept=Empty("less than 1 GiB a user"),
    applies=(NOT_CONTAINER,),
    part_of="shm-nearly-full",
    remedy=manual(
        "Ask the users, or remove the files: find /dev/shm -user USER -delete. Do so in the scheduler's epilog after the last job of "
        "a user, or let Slurm give each job its own: JobContainerType=job_container/tmpfs."
    ),
    severity="low",
)

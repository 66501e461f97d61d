"""logind removes a user's shared memory when the last session ends.

Why it matters: Jobs that were started by Slurm or mpirun belong to no session. When their user logs out of the node,
or was never logged in, /dev/shm/nccl-* and POSIX semaphores are removed under the running job, which then fails.
Confirm by hand: loginctl show-session --property=RemoveIPC
Side effects of the fix: Left-over segments stay: clean /dev/shm of the job's user in the epilog. Restarting logind may
disturb graphical sessions.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://www.freedesktop.org/software/systemd/man/latest/logind.conf.html
"""

from dataclasses import replace

from nodetune.expect import Equals
from nodetune.model import Check, When
from nodetune.remedies import systemd_dropin

CHECK = Check(
    fact="services.remove_ipc",
    accept=Equals("no"),
    set="no",
    applies=(When("kubernetes.present", Equals(wanted=False), "pods have shared memory of their own"),),
    remedy=replace(systemd_dropin("logind.conf", "Login", "RemoveIPC"), persisted="services.remove_ipc_set"),
    severity="medium",
)

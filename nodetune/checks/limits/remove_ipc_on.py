"""RemoveIPC is on in logind.conf.

Why it matters: logind then removes a user's shared memory when the user's last session ends. Jobs that were started by
Slurm or mpirun belong to no session. When their user logs out of the node, or was never logged in, logind removes
/dev/shm/nccl-* and POSIX semaphores under the running job, which then fails.
Confirm manually: loginctl show-session --property=RemoveIPC
Side effects of the fix: Leftover segments stay: remove the job user's files from /dev/shm in the epilog. Restarting
logind may disturb graphical sessions.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://www.freedesktop.org/software/systemd/man/latest/logind.conf.html
"""

from dataclasses import replace

from nodetune.api import Check, Equals, When, systemd_dropin

CHECK = Check(
    fact="services.remove_ipc",
    accept=Equals("no"),
    set="no",
    applies=(When("kubernetes.present", Equals(wanted=False), "each pod has its own shared memory"),),
    remedy=replace(systemd_dropin("logind.conf", "Login", "RemoveIPC"), persisted="services.remove_ipc_set"),
    severity="medium",
    name="RemoveIPC",
)

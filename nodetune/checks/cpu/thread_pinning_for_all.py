"""A system-wide setting pins the threads of every process to CPUs.

Why it matters: GOMP_CPU_AFFINITY, KMP_AFFINITY, OMP_PLACES and OMP_PROC_BIND make each process bind its threads, starting
from the first CPU that it may use. On a node where several processes (one for each GPU, data-loader workers) may use the
same CPUs, all of them bind to the same few cores while the others idle.
Confirm by hand: grep -rnE 'AFFINITY|OMP_PLACES|PROC_BIND' /etc/environment /etc/profile.d /etc/security/pam_env.conf
Side effects of the fix: Threads of new sessions and services are placed by the scheduler again.
Sources: https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fCPU_005fAFFINITY.html ;
https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fPROC_005fBIND.html
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

PINNING = ("GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND")
HARMLESS = ("false", "none", "disabled")


def observe(facts: View) -> Any:
    """Each setting that pins."""
    settings = facts["cpu.thread_settings"].items()
    return {
        place: [] if text.lower() in HARMLESS else text for place, text in settings if place.endswith(PINNING)
    } or []


CHECK = Check(
    observe=observe,
    needs=("cpu.thread_settings",),
    accept=Empty("unset for everyone"),
    remedy=manual(
        "Remove the line from the file named. Pin in the job instead, where its CPUs are known: srun "
        "--cpu-bind, mpirun --bind-to, numactl --cpunodebind."
    ),
    severity="medium",
)

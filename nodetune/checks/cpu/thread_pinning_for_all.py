"""A system-wide setting pins the threads of every process.

Why it matters: GOMP_CPU_AFFINITY, KMP_AFFINITY, OMP_PLACES and OMP_PROC_BIND make each process bind its threads,
starting from the first CPU that it may use. Several processes on a node (one per GPU, data-loader workers) may share
the same CPUs. All of them then bind to the same few cores while the others idle.
Confirm manually: grep -rnE 'AFFINITY|OMP_PLACES|PROC_BIND' /etc/environment /etc/profile.d /etc/security/pam_env.conf
Side effects of the fix: The scheduler places the threads of new sessions and services again.
Sources: https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fCPU_005fAFFINITY.html ;
https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fPROC_005fBIND.html
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual

PINNING = ("GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND")
HARMLESS = ("false", "none", "disabled")


def observe(facts: FactsView) -> Any:
    """Return each setting that pins threads."""
    settings = facts["cpu.thread_settings"].items()
    return {name: [] if text.lower() in HARMLESS else text for name, text in settings if name.endswith(PINNING)} or []


CHECK = Check(
    observe=observe,
    needs=("cpu.thread_settings",),
    accept=Empty("unset for everyone"),
    remedy=manual(
        "Remove the line from the named file. Pin in the job instead, which has its CPUs assigned: srun "
        "--cpu-bind, mpirun --bind-to, numactl --cpunodebind."
    ),
    severity="medium",
)

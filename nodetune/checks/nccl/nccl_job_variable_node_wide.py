"""A setting that belongs to one job is made for the whole node.

Why it matters: A rendezvous address or a host identity shared by all jobs breaks or mixes them; a dump file is
overwritten by each job. CUDA_LAUNCH_BLOCKING serialises every kernel launch, and a fixed CUDA_VISIBLE_DEVICES fights
the one that the scheduler sets.
Confirm by hand: grep -rnE "NCCL_(COMM_ID|HOSTID|TOPO_DUMP_FILE|GRAPH_DUMP_FILE)|CUDA_(LAUNCH_BLOCKING|VISIBLE_DEVICES)" /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None, but for the one job that it was meant for: set it there.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/NVIDIA/nccl (src/misc/utils.cc, src/misc/cudawrap.cc) ; https://slurm.schedmd.com/prolog_epilog.html
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import effects
from nodetune.remedies import manual
from nodetune.view import View


def job_settings(facts: View) -> Any:
    return effects.per_job(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=job_settings,
    accept=Empty("nothing that belongs to a single job"),
    remedy=manual("Delete the line named; set the name in the script of the job that needs it."),
    severity="high",
)

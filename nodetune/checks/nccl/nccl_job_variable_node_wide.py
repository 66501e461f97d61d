"""A per-job NCCL setting is set for the whole node.

Why it matters: A rendezvous address or a host identity shared by all jobs breaks or mixes them. Each job overwrites a
dump file. CUDA_LAUNCH_BLOCKING serialises every kernel launch. A fixed CUDA_VISIBLE_DEVICES conflicts with the one that
the scheduler sets.
Healthy exception: Settings that suit every job may be set for the node.
Confirm manually: grep -rnE "NCCL_(COMM_ID|HOSTID|TOPO_DUMP_FILE|GRAPH_DUMP_FILE)|CUDA_(LAUNCH_BLOCKING|VISIBLE_DEVICES)" /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None, except for the one job that needs the setting: set it there.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/NVIDIA/nccl (src/misc/utils.cc, src/misc/cudawrap.cc) ; https://slurm.schedmd.com/prolog_epilog.html
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl._effects import per_job
from nodetune.checks.shared.nccl_settings import problems


def job_settings(facts: FactsView) -> Any:
    return per_job(facts["nccl.settings"]) or []


OF_THE_SITE = {
    "NCCL_COMM_ID": "a program may have no other way to find its ranks",
    "NCCL_HOSTID": "it may separate or join containers of this host",
    "CUDA_VISIBLE_DEVICES": "it may keep a GPU for another use",
}


def left_alone(facts: FactsView) -> dict[str, str]:
    return problems(facts["nccl.settings"], lambda setting, _: OF_THE_SITE.get(setting["name"], ""))


CHECK = Check(
    needs=("nccl.settings",),
    observe=job_settings,
    accept=Empty("no per-job setting"),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(steps="Delete the named line. Set the variable in the script of the job that needs it."),
    severity="high",
)

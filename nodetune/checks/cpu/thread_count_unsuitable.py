"""A system-wide thread count (such as OMP_NUM_THREADS) is unsuitable.

Why it matters: On a GPU node one process runs for each GPU. With a system-wide OMP_NUM_THREADS (or that of MKL,
OpenBLAS …) above the cores per GPU, these processes compete for cores in every CPU operation. With 1, most cores of a
large node idle during preprocessing that a program expects to run in parallel. Launchers such as torchrun set the
variable only if it is unset.
Confirm manually: grep -rn NUM_THREADS /etc/environment /etc/profile.d /etc/security/pam_env.conf /etc/systemd/system.conf
Side effects of the fix: New sessions and services choose their own number. Programs without a setting use every CPU
that they are allowed to use. apply removes lines from /etc/environment where the task prolog of nodetune's guard then sets the
number of each task by its CPUs and GPUs. It leaves a line alone: to the prolog, the user has set it.
Sources: https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fNUM_005fTHREADS.html ;
https://docs.pytorch.org/docs/stable/elastic/run.html ;
https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

import re
from typing import Any

from nodetune.api import GPU_ON_PCI, Check, Empty, FactsView, nccl_conf
from nodetune.checks.shared.pci_devices import gpus_of_host

MANY_CORES = 8
TASK_PROLOG = "/opt/nodetune/guard/taskprolog"


def observe(facts: FactsView) -> Any:
    """Return the problem of each thread count setting."""
    cores, gpus = facts["cpu.cores"], len(gpus_of_host(facts))
    share = cores // gpus
    there = f"with {share} cores per GPU" if share else f"with {cores} cores for {gpus} GPUs"
    settings = facts["cpu.thread_settings"].items()
    return {name: _problem(text, share, there) for name, text in settings if name.endswith("_THREADS")} or []


def _problem(text: str, share: int, there: str) -> Any:
    number = re.match(r"\d{1,6}\b", text)
    if number is None:
        return f"{text} (all CPUs), {there}" if "nproc" in text else []
    threads = int(number[0])
    if threads > max(share, 1) or (threads == 1 and share >= MANY_CORES):
        return f"{threads}, {there}"
    return []


def left_alone(facts: FactsView) -> dict[str, str]:
    """Leave what jobs may need: without our task prolog nothing else sets it, and the lines of a profile make a program."""
    prolog = (facts.readable("slurm.config") or {}).get("settings", {}).get("taskprolog", "")
    ours = str(prolog).startswith(TASK_PROLOG)
    lines = [line for line in facts["cpu.thread_settings"] if not (ours and line.startswith("/etc/environment:"))]
    why = "it counts over the task prolog" if ours else f"TaskProlog={TASK_PROLOG} would set it for each job"
    return dict.fromkeys(lines, why)


CHECK = Check(
    observe=observe,
    needs=("cpu.thread_settings", "cpu.cores", "pci.gpus", "pci.devices", "slurm.config"),
    applies=(GPU_ON_PCI,),
    accept=Empty("unset, or between 2 and the cores per GPU"),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(
        file="/etc/environment",
        steps="Remove the line from the named file, and let the job's launcher set it: torchrun does, and on a Slurm node so does the task "
        "prolog of the guard (nodetune guard install -i HOSTS -b), by the CPUs and GPUs of each task.",
    ),
    severity="low",
)

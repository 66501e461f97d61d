"""A system-wide setting gives every process an unsuitable number of threads.

Why it matters: On a GPU node one process runs for each GPU. A system-wide OMP_NUM_THREADS (or that of MKL, OpenBLAS …)
above the cores per GPU makes these processes fight for cores in every CPU operation; 1 leaves most cores of a large node
idle in preprocessing that a program expected to be parallel. Launchers such as torchrun set it only where it is unset.
Confirm by hand: grep -rn NUM_THREADS /etc/environment /etc/profile.d /etc/security/pam_env.conf /etc/systemd/system.conf
Side effects of the fix: New sessions and services choose their own number; programs without a setting use every CPU that
they are allowed.
Sources: https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fNUM_005fTHREADS.html ;
https://docs.pytorch.org/docs/stable/elastic/run.html ;
https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

import re
from typing import Any

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

MANY_CORES = 8


def observe(facts: View) -> Any:
    """What is wrong with each setting of a number of threads."""
    share = facts["cpu.cores"] // len(facts["pci.gpus"])
    settings = facts["cpu.thread_settings"].items()
    return {place: _problem(text, share) for place, text in settings if place.endswith("_THREADS")} or []


def _problem(text: str, share: int) -> Any:
    number = re.match(r"\d{1,6}\b", text)
    if number is None:
        return f"{text} (all CPUs), with {share} cores per GPU" if "nproc" in text else []
    threads = int(number[0])
    if threads > share or (threads == 1 and share >= MANY_CORES):
        return f"{threads}, with {share} cores per GPU"
    return []


CHECK = Check(
    observe=observe,
    needs=("cpu.thread_settings", "cpu.cores", "pci.gpus"),
    applies=(GPU_ON_PCI,),
    accept=Empty("unset, or between 2 and the cores per GPU"),
    remedy=manual(
        "Remove the line from the file named, and let the job's launcher set it: torchrun does, and in Slurm a job says "
        "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK."
    ),
    severity="low",
)

"""The job, as Slurm describes it to prolog and epilog in the environment. Imports nothing, so that a cached pass is fast."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # the real one is in typing, which costs more than the whole short way
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_GPUS = 1024


class Job:
    """A job with its GPUs.

    `gpus` are places in Slurm's list of the node's GPUs (see gpu_index). A job may hold GPUs (`has_gpus`) that are not
    named there: MIG devices. `node` is what Slurm or the pod (NODE_NAME) calls it. `conf` is the slurm.conf in use; empty if Slurm does not say.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        number = environment.get("SLURM_JOB_ID", "")
        self.id = number if number.isascii() and number.isdigit() and len(number) < 20 else ""
        self.node = environment.get("SLURMD_NODENAME") or environment.get("NODE_NAME") or os.uname().nodename
        self.conf = environment.get("SLURM_CONF", "")
        named = environment.get("SLURM_JOB_GPUS", "").strip()
        mig = "MIG-" in environment.get("CUDA_VISIBLE_DEVICES", "")
        self.has_gpus = bool(named)
        self.gpus: tuple[int, ...] = () if mig else _numbers(named)


def _numbers(text: str) -> tuple[int, ...]:
    """Parse `0,2-3` into (0, 2, 3); return nothing for any other text."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.strip().partition("-")
        if not (first.isascii() and first.isdigit() and (not dash or (last.isascii() and last.isdigit()))):
            return ()
        low, high = int(first), int(last or first)
        if not low <= high < MAX_GPUS:
            return ()
        found.update(range(low, high + 1))
    return tuple(sorted(found))

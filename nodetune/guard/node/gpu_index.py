"""How Slurm counts the GPUs of a node: SLURM_JOB_GPUS are places in its list of them, not numbers of /dev/nvidiaN.

The list is that of gres.conf in its own order where it names device files (seen with Slurm 22.05: of File=/dev/nvidia[4-5] a
job gets 0 and 1), and the order on the PCI bus where slurmd detects them (_sort_gpu_by_links_order in its
src/plugins/gres/gpu/gres_gpu.c).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from nodetune.onhost import cpu_list
from nodetune.probe import slurm, slurm_conf

PART = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
NUMBERS = re.compile(r"(?:\[([^\]]*)\]|(\d+))$")


def listed(config: str, node: str) -> tuple[int, ...]:
    """Return the numbers of the device files that gres.conf lists for this node, in its order; empty if none.

    `config` is the slurm.conf in the same folder as gres.conf, from the environment of prolog and epilog. Raise OSError
    or ValueError if it cannot be read: a guess would blame the GPU of another job.
    """
    path = os.path.join(os.path.dirname(config or next(filter(os.path.exists, slurm.CONFIGS), "")), "gres.conf")
    if not (os.path.isabs(path) and os.path.lexists(path)):
        return ()
    lines = list(slurm_conf.config_lines(path))
    if slurm.gres(lines, node)["autodetect"] not in (None, "off"):
        return ()
    return tuple(number for text in _files(lines, node) for number in _numbers(text))


def _files(lines: Iterable[str], node: str) -> Iterable[str]:
    for line in lines:
        settings = dict(slurm_conf.pairs(line))
        here = "nodename" not in settings or slurm_conf.names_host(settings["nodename"], node)
        if here and settings.get("name", "").lower() == "gpu":
            yield settings.get("file", "")


def _numbers(text: str) -> Iterable[int]:
    """Parse `/dev/nvidia[0-2,5],/dev/nvidia7` into 0, 1, 2, 5, 7."""
    for part in PART.findall(text):
        found = NUMBERS.search(part)
        if found:
            yield from cpu_list.parse(found[1]) if found[1] else (int(found[2]),)

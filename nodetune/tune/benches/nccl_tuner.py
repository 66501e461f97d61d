"""The tuner plugin: the rows for a setting, and the folder with the plugin's source, its rows and instructions.

NVIDIA's example plugin sets one channel for every row without a number and every collective without a row (NCCL 2.30.7), so it
is not used: nodetune/data/tuner/nodetune_tuner.c leaves everything without a row to NCCL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from nodetune.foundation import file_io, paths, text
from nodetune.tune.benches.nccl_cases import NcclRequest
from nodetune.tune.benches.nccl_space import FUNCTIONS, Survey
from nodetune.tune.model import Setting

SOURCE, LIBRARY, ROWS, INSTALL = "nodetune_tuner.c", "libnodetune-tuner.so", "nccl_tuner.csv", "INSTALL.txt"
FOLDER = "/etc/nodetune"
"""Where the plugin finds its rows: it accepts only an absolute path."""

FIRST = "2.22"
"""The release since which a tuner gets the cost table of NCCL (tuner API 3)."""

NEAR = 4
"""Measured sizes up to this factor apart form one range of a row. Between others, NCCL decides."""

HEADER = "# collective,min_bytes,max_bytes,algorithm,channels,nodes,ranks; -1: any, channels: NCCL's choice\n"
STEPS = """NCCL {version}, measured on {nodes} of {gpus} GPUs. On every host of a job, the same files:

gcc -O2 -Wall -Wextra -shared -fPIC -o {library} {source}
install -D -m 644 {rows} {folder}/{rows}
install -D -m 755 {library} {folder}/{library}

and in /etc/nccl.conf, or in the environment of the jobs that it was measured for:

NCCL_TUNER_PLUGIN={folder}/{library}

NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING shows the number of valid rows and a checksum: it must be the same on all
hosts, since ranks that choose differently wait for each other forever. A tuner turns off NCCL_CTA_POLICY=EFFICIENCY.
"""


def rows(setting: Setting, wanted: NcclRequest, survey: Survey) -> list[str]:
    """Return the rows of a setting of NCCL_ALGO for the measured sizes and for communicators of the same shape."""
    named = {FUNCTIONS[name] for name in wanted.names if name in FUNCTIONS}
    chosen = [value for name, value in setting if name == "NCCL_ALGO"]
    pairs = [str(each).partition(":")[::2] for each in chosen]
    return [
        f"{collective},{low},{high},{algorithm},-1,{survey.nodes},{survey.gpus}"
        for collective, algorithm in pairs
        if collective in named
        for low, high in _spans(wanted.aims)
    ]


def _spans(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the sizes as ranges: near sizes are joined, and the ends extend by half a power of two."""
    found: list[tuple[int, int]] = []
    for size in sorted(sizes):
        near = found and size <= NEAR * found[-1][1]
        found.append((found.pop()[0] if near else size, size))
    return [(math.ceil(low / math.sqrt(2)), math.floor(high * math.sqrt(2))) for low, high in found]


def write(folder: Path, lines: Sequence[str], survey: Survey) -> list[Path]:
    """Write the plugin's source, its rows and how to install both. Return the files. Raise OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes = text.count(survey.nodes, "node")
    steps = STEPS.format(
        version=survey.version, nodes=nodes, gpus=survey.gpus, library=LIBRARY, source=SOURCE, rows=ROWS, folder=FOLDER
    )
    source = paths.bundled(f"data/tuner/{SOURCE}").read_text("utf-8")
    texts = {SOURCE: source, ROWS: HEADER + "".join(f"{each}\n" for each in lines), INSTALL: steps}
    for name, content in texts.items():
        file_io.write(folder / name, content)
    return [folder / name for name in texts]

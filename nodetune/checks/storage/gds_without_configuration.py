"""nvidia-fs is loaded, but cuFile has no configuration file.

Why it matters: GPUDirect Storage was set up here. Without /etc/cufile.json, cuFile uses what it was built with: PCI P2PDMA
is off, and reads go through host memory without a message if anything is missing. Programs may name a file of their own
(CUFILE_ENV_PATH_JSON), and containers bring one.
Confirm manually: ls -l /etc/cufile.json; /usr/local/cuda/gds/tools/gdscheck -p
Side effects of the fix: Programs that start afterwards read the file.
Sources: https://docs.nvidia.com/gpudirect-storage/configuration-guide/index.html ;
https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/index.html
"""

from __future__ import annotations

from nodetune.api import BARE_METAL, GPU_ON_PCI, Absent, Check, Equals, FactsView, manual


def observe(facts: FactsView) -> str | Absent:
    if "nvidia_fs" not in facts["modules.loaded"]:
        return Absent("nvidia-fs is not loaded")
    return "no file" if facts.get("block.gds") is None else "a file"


CHECK = Check(
    needs=("block.gds", "modules.loaded"),
    observe=observe,
    accept=Equals("a file"),
    applies=(BARE_METAL, GPU_ON_PCI),
    remedy=manual(
        "Copy the toolkit's file: cp /usr/local/cuda/gds/cufile.json /etc/cufile.json (it comes with the package gds-tools). Then "
        "run gdscheck -p."
    ),
    severity="info",
)

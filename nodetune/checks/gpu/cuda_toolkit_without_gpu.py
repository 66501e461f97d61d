"""No CUDA toolkit of this host compiles for its GPUs.

Why it matters: A toolkit that is older than the GPU's architecture makes no code for it: what is built here is compiled by the
driver at each first start, from PTX without the GPU's own instructions, or does not run. One that has dropped an architecture
refuses to compile for it. One toolkit of several is enough. What jobs bring themselves (containers, conda) is not seen.
Confirm manually: nvcc --list-gpu-code; nvidia-smi --query-gpu=name,compute_cap --format=csv
Side effects of the fix: None: toolkits live side by side.
Sources: https://docs.nvidia.com/cuda/hopper-compatibility-guide/ (11.8) ; https://docs.nvidia.com/cuda/ada-compatibility-guide/ (11.8) ;
https://docs.nvidia.com/cuda/blackwell-compatibility-guide/ (12.8) ;
https://docs.nvidia.com/cuda/archive/12.9.1/cuda-features-archive/ (10.3 and 12.1: 12.9) ;
https://docs.nvidia.com/cuda/ampere-compatibility-guide/ (11.0) ; https://docs.nvidia.com/cuda/turing-compatibility-guide/ (10.0) ;
https://docs.nvidia.com/cuda/cuda-features-archive/ (13.0: from Turing on)
"""

from __future__ import annotations

import re

from nodetune.api import GPU, Check, Empty, FactAbsentError, FactsView, manual
from nodetune.checks.shared.nccl_table import release

FIRST = {"volta": "9.0", "turing": "10.0", "ampere": "11.0", "ada": "11.8", "hopper": "11.8", "blackwell": "12.8"}
LATER = (re.compile(r"\bG?B300\b|\bGB10\b"), "12.9")
DROPPED = {"maxwell": "13.0", "pascal": "13.0", "volta": "13.0"}


def observe(facts: FactsView) -> dict[str, str]:
    toolkits = {path: each["version"] for path, each in facts["libraries.cuda_toolkits"].items()}
    if not toolkits:
        raise FactAbsentError("no CUDA toolkit in /usr/local")
    names = facts.readable("gpu.names", {})
    return {gpu: _lacking(kind, names.get(gpu, ""), toolkits) for gpu, kind in facts["gpu.architecture"].items()}


def _lacking(kind: str, name: str, toolkits: dict[str, str]) -> str:
    pattern, later = LATER
    first = later if pattern.search(name) else FIRST.get(kind, "")
    ended = DROPPED.get(kind, "")
    fits = any(
        release(first) <= release(each) and not (ended and release(each) >= release(ended))
        for each in toolkits.values()
    )
    needs = " and ".join(filter(None, (first and f"CUDA {first} or newer", ended and f"older than {ended}")))
    return "" if fits else f"{kind} needs {needs}; here: {', '.join(sorted(toolkits.values(), key=release))}"


CHECK = Check(
    needs=("gpu.architecture", "gpu.names", "libraries.cuda_toolkits"),
    observe=observe,
    accept=Empty("a toolkit that compiles for it"),
    applies=(GPU,),
    remedy=manual(
        "Install a toolkit that has the architecture, along with the others, from NVIDIA's CUDA repository; or remove these."
    ),
    severity="low",
)

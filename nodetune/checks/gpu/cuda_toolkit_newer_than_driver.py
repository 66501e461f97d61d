"""A CUDA toolkit on this host is a major version too new for the driver.

Why it matters: What is built with it ends at once: "CUDA driver version is insufficient for CUDA runtime version". Within one
major version older drivers run newer toolkits; across major versions only with the package cuda-compat, whose libraries lie
in the toolkit's folder compat. A cuDNN for that toolkit needs the same driver.
Healthy exception: A toolkit with cuda-compat in its folder runs on an older driver, but not on GeForce and TITAN cards,
which refuse its libraries (error 804).
Confirm manually: cat /usr/local/cuda*/version.json; nvidia-smi | grep 'CUDA Version'
Side effects of the fix: A newer driver needs a reboot.
Sources: https://docs.nvidia.com/deploy/cuda-compatibility/ ; https://github.com/gpustack/gpustack/issues/1254 ;
https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/support-matrix.html
"""

from __future__ import annotations

from nodetune.api import Absent, Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_cards import CONSUMER, readable_names


def observe(facts: FactsView) -> dict[str, str] | Absent:
    driver = facts["gpu.cuda_driver_version"]
    toolkits = {path: each for path, each in facts["libraries.cuda_toolkits"].items() if each["version"]}
    refused = any(CONSUMER.search(name) for name in readable_names(facts))
    newer = {
        path: int(each["version"].partition(".")[0]) > int(driver.partition(".")[0]) and (refused or not each["compat"])
        for path, each in toolkits.items()
    }
    if not newer:
        return Absent("no CUDA toolkit in /usr/local")
    return {path: f"CUDA {toolkits[path]['version']}, driver {driver}" * too for path, too in newer.items()}


CHECK = Check(
    needs=("gpu.cuda_driver_version", "libraries.cuda_toolkits", "gpu.names"),
    observe=observe,
    accept=Empty("a toolkit that the driver runs"),
    remedy=manual(
        "Install a driver of that CUDA version, or the package cuda-compat of the toolkit, or remove the toolkit if nothing "
        "is built with it."
    ),
    severity="low",
)

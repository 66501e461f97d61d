"""`nodetune tune nccl`."""

from __future__ import annotations

from pathlib import Path

from nodetune.cli import requests
from nodetune.cli.commands._tune import _nccl, _study
from nodetune.tune.benches.nccl_cases import NcclRequest


@requests.command("nccl", NcclRequest)
@_nccl.options
@_study.options
def command(request: NcclRequest, job_profile: Path | None, output_format: str, output: Path | None) -> int:
    """Find NCCL settings that are better than the hosts' own.

    \b
    nodetune tune nccl -i gpu001                           large messages on one host
    nodetune tune nccl -i prod --multi-node --budget 1h    across all hosts
    nodetune tune nccl -i gpu001 --objective overlap       with a GEMM that runs meanwhile
    nodetune tune nccl -i gpu001 --profile inspector/      the sizes of a job
    salloc -N2 --gpus-per-node=8 nodetune tune nccl --transport slurm --multi-node

    Changes nothing on a host: every trial sets variables for its own processes. Each trial checks all data and the kernel
    log. The result is a proposal for a site file, or that nothing beats the default.
    Exit code: 0 for a decision, 2 usage, 3 if there is none, 130 after Ctrl-C.
    """
    return _nccl.tuned(request, job_profile, output_format, output)

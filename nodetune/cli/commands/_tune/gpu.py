"""`nodetune tune gpu`."""

import re
from pathlib import Path

import click

from nodetune.cli import options as cli_options
from nodetune.cli import requests, verbosity
from nodetune.cli.commands._tune import _study
from nodetune.cli.requests import of
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.tune.benches.gpu import GpuBench, GpuRequest
from nodetune.verify.verify_hosts import measure_by

MAX_SLOWDOWN = 50.0


def _slowdown(ctx: click.Context, param: click.Parameter, typed: str) -> float:  # noqa: ARG001
    """Return a part of one: `3%` is 0.03."""
    found = re.fullmatch(r"(\d{1,2}(?:\.\d+)?)\s*%", typed.strip())
    if found is None or float(found[1]) > MAX_SLOWDOWN:
        raise click.BadParameter(f"write a percentage from 0% to {MAX_SLOWDOWN:g}%, such as 3%")
    return float(found[1]) / 100


@requests.command("gpu", GpuRequest)
@cli_options.hosts_or_nodes
@click.option(
    "--allow-gpu-settings",
    is_flag=True,
    help="Change clocks or power limits while measuring. Required.",
)
@click.option("--assume-drained", is_flag=True, help="Assume that the node is drained: slurmd starts no jobs there.")
@click.option(
    "--ladder",
    **of(GpuRequest, "ladder"),
    help="Setting to lower: locked SM clocks, or the power limit.",
)
@click.option(
    "--work",
    **of(GpuRequest, "work"),
    help="Work that the setting is for: matrix products, as in training, or reading GPU memory, as in decoding.",
)
@click.option("--rungs", **of(GpuRequest, "rungs"), help="Number of values to try.")
@click.option(
    "--max-slowdown",
    "slowdown",
    callback=_slowdown,
    default="3%",
    show_default=True,
    metavar="PERCENT",
    help="Maximum slowdown of that work.",
)
@_study.options
def command(request: GpuRequest, output_format: str, output: Path | None) -> int:
    """Find the clock or power limit that costs the least energy.

    \b
    nodetune tune gpu -i prod -l gpu001 --allow-gpu-settings
    nodetune tune gpu -i prod -l gpu001 --allow-gpu-settings --ladder power --max-slowdown 1%

    Each rung is a bf16 matrix product, and reading memory, on all GPUs of one host, with the joules that NVML counts for each.
    --work decides which of them chooses the rung; the other one is shown. It changes clocks or
    power limits while it measures, only on a host whose GPUs nobody uses, and restores what held before, also when it is
    killed. The result is a proposal for a site file, or that nothing beats the default.
    Exit code: 0 for a decision, 2 usage, 3 if there is none, 130 after Ctrl-C.
    """
    connection = request.connection
    return _study.run(request.study, "gpu", lambda: _bench(request), connection, output_format, output)


def _bench(request: GpuRequest) -> GpuBench:
    targets = selected_hosts(request.connection, verbosity.detail)
    if len(targets) != 1:
        raise click.UsageError(f"{len(targets)} hosts: a ladder is for one host at a time: select it with -l HOST")
    return GpuBench(targets[0], request, request.connection, measure_by(request.connection))

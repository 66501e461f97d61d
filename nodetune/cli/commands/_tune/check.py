"""`nodetune tune check`."""

from pathlib import Path

import click

from nodetune.cli import measuring_options, options, requests, verbosity
from nodetune.foundation import text
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.tune.benches.nccl import NcclBench
from nodetune.tune.benches.nccl_cases import NcclRequest
from nodetune.tune.benches.nccl_check import CheckRequest, check
from nodetune.verify.verify_hosts import measure_by


@requests.command("check", CheckRequest)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@options.hosts_or_nodes
@measuring_options.budget(CheckRequest.budget)
@measuring_options.nccl
@click.option("--allow-busy", is_flag=True, help="Measure on hosts whose GPUs are in use. Disturbs their jobs.")
def command(request: CheckRequest) -> int:
    """Check that a setting of a tuning still pays, on fresh runs against the default.

    \b
    nodetune tune check tuning-nccl.json -i prod -l gpu001
    nodetune tune check tuning-nccl.json -i prod -l gpu001 --budget 5m

    It also says what has changed since: the driver, NCCL, the machine. Changes nothing, and compares with NCCL's own default
    also where the setting is applied. For results of nodetune tune nccl.
    Exit code: 0 it still pays, 1 it does not or something has changed, 2 usage, 3 undecided.
    """
    found = check(request, lambda wanted: _bench(request, wanted))
    click.echo(f"{found.state}: {found.reason}")
    for each in found.stale:
        click.echo(f"stale: {each}: tune again (nodetune tune nccl)")
    return found.code


def _bench(request: CheckRequest, wanted: NcclRequest) -> NcclBench:
    targets = selected_hosts(request.connection, verbosity.detail)
    if len(targets) > 1 and not wanted.multi_node:
        raise click.UsageError(
            f"{text.count(len(targets), 'host')}: the tuning was of one host: select one with -l HOST"
        )
    return NcclBench(targets, wanted, request.connection, measure_by(request.connection))

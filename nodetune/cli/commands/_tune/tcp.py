"""`nodetune tune tcp`."""

from __future__ import annotations

from typing import Any

import click

from nodetune.cli import options as cli_options
from nodetune.cli.commands._run import selected_hosts
from nodetune.cli.commands._tune import _study
from nodetune.foundation import text
from nodetune.tune.benches.tcp import OBJECTIVES, TcpBench, Wanted
from nodetune.verify import remote, slurm


@click.command("tcp")
@cli_options.hosts_or_nodes
@click.option("--allow-settings", is_flag=True, help="Change sysctls of both hosts while measuring. Required.")
@click.option(
    "--objective",
    type=click.Choice(list(OBJECTIVES)),
    default="one-stream",
    show_default=True,
    help="What to improve: a single connection, or 16 together. The other must not become worse.",
)
@click.option("--network", default="", metavar="CIDR", help="Use the hosts' addresses in this network (10.1.0.0/16).")
@click.option("--interface", default="", metavar="NAME", help="Use this interface of both hosts.")
@_study.options
def command(**given: Any) -> int:
    """Find TCP buffers and congestion control for a path.

    \b
    nodetune tune tcp -i prod -l gpu001,gpu002 -b --allow-settings
    nodetune tune tcp -i prod -l gpu001,store1 -b --allow-settings --network 10.1.0.0/16

    Each trial is iperf3 between two hosts, both ways, with one connection and with 16. It changes sysctls of both hosts while
    it measures, for all new connections there, and restores what held before, also when it is killed. The result is a
    proposal for a site file, or that nothing beats the default.
    Exit code: 0 for a decision, 2 usage, 3 if there is none, 130 after Ctrl-C.
    """
    wanted = Wanted(given["allow_settings"], given["objective"], given["network"], given["interface"])
    return _study.run(lambda: _bench(given, wanted), "tcp", given)


def _bench(given: dict[str, Any], wanted: Wanted) -> TcpBench:
    if not wanted.allow_settings:
        raise click.UsageError("sysctls of both hosts change while it measures: --allow-settings allows it")
    reach = _study.reach(given)
    targets = selected_hosts(reach)
    if len(targets) != 2:
        raise click.UsageError(f"{text.count(len(targets), 'host')}: TCP is tuned between two, -l HOST,HOST names them")
    return TcpBench(targets, wanted, reach, slurm.measure if reach.transport == "slurm" else remote.measure)

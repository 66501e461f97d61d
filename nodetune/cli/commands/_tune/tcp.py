"""`nodetune tune tcp`."""

from pathlib import Path

import click

from nodetune.cli import options as cli_options
from nodetune.cli import requests, verbosity
from nodetune.cli.commands._tune import _study
from nodetune.cli.requests import of
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.tune.benches.tcp import TcpBench, TcpRequest
from nodetune.verify.verify_hosts import measure_by


@requests.command("tcp", TcpRequest)
@cli_options.hosts_or_nodes
@click.option("--allow-settings", is_flag=True, help="Change sysctls of both hosts while measuring. Required.")
@click.option(
    "--objective",
    **of(TcpRequest, "objective"),
    help="Objective: a single connection, or 16 together. The other must not become worse.",
)
@click.option("--network", default="", metavar="CIDR", help="Use the hosts' addresses in this network (10.1.0.0/16).")
@click.option("--interface", default="", metavar="NAME", help="Use this interface of both hosts.")
@_study.options
def command(request: TcpRequest, output_format: str, output: Path | None) -> int:
    """Find TCP buffers and congestion control for a path.

    \b
    nodetune tune tcp -i prod -l gpu001,gpu002 -b --allow-settings
    nodetune tune tcp -i prod -l gpu001,store1 -b --allow-settings --network 10.1.0.0/16

    Each trial is iperf3 between two hosts, both ways, with one connection and with 16. It changes sysctls of both hosts while
    it measures, for all new connections there, and restores what held before, also when it is killed. The result is a
    proposal for a site file, or that nothing beats the default.
    Exit code: 0 for a decision, 2 usage, 3 if there is none, 130 after Ctrl-C.
    """
    connection = request.connection
    return _study.run(request.study, "tcp", lambda: _bench(request), connection, output_format, output)


def _bench(request: TcpRequest) -> TcpBench:
    targets = selected_hosts(request.connection, verbosity.detail)
    return TcpBench(targets, request, request.connection, measure_by(request.connection))

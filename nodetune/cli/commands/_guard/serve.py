"""`nodetune guard serve`."""

import click

from nodetune.cli import requests
from nodetune.cli.requests import of
from nodetune.foundation import UserError
from nodetune.guard.serve.request import ServeRequest


@requests.command("serve", ServeRequest)
@click.option(
    "--unix", **requests.FILE, required=True, help="Unix socket to listen at. Every user of the node may ask there."
)
@click.option("--policy", **{**requests.FILE, **of(ServeRequest, "policy")}, help="Policy of the guard.")
@click.option(
    "--state", **{**requests.FOLDER, **of(ServeRequest, "state")}, help="The guard's folder for what it keeps."
)
def command(request: ServeRequest) -> None:
    """Answer programs on this node that ask whether it is healthy, by gRPC.

    \b
    nodetune guard serve --unix /run/nvhcd.sock
    ft_launcher --ft-node-health-check-endpoint unix:///run/nvhcd.sock train.py

    Serves the node health check of NVIDIA's resiliency extension (nvhcd). Runs on a node on which `nodetune guard install`
    ran, as root, until it is ended. The policy's mode decides: in observe mode no failing check makes the node unhealthy,
    and a node that cannot be judged is never unhealthy. Nothing is drained.
    """
    try:
        from nodetune.guard.serve import service
    except ModuleNotFoundError as problem:
        raise UserError(
            f"the library {problem.name} is not installed here: install nodetune with its extra: nodetune[serve]"
        ) from None
    service.serve(request)

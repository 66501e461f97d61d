"""`nodetune guard manifests`: the guard for Kubernetes."""

import click

from nodetune.cli import options as cli_options
from nodetune.cli import requests
from nodetune.cli.requests import of
from nodetune.guard.deploy.kubernetes import manifests
from nodetune.guard.deploy.request import ManifestsRequest


@requests.command("manifests", ManifestsRequest)
@click.option(
    "--kind",
    **of(ManifestsRequest, "kind"),
    help="Guard as a DaemonSet; rules of the Node Readiness Controller (nrc); plugin of node-problem-detector (npd); device "
    "taints (dra); alerts for the Prometheus operator (alerts); an account that may apply fixes (fixes); a Job that removes "
    "the condition from all nodes (clear); a Job that measures a node (verify); all but these four.",
)
@cli_options.judging
@click.option(
    "--enforce",
    multiple=True,
    metavar="CHECK",
    help="Gating check that makes a problem, or all. May be repeated. Default: none, all are only observed.",
)
@click.option(
    "--image",
    **of(ManifestsRequest, "image"),
    metavar="IMAGE",
    help="Image made by `make image`; of --kind verify: one with nodetune, NCCL and cuBLAS.",
)
@click.option(
    "--kubernetes", **of(ManifestsRequest, "kubernetes"), metavar="VERSION", help="Oldest API server of the cluster."
)
@click.option("--gpus", **of(ManifestsRequest, "gpus"), metavar="N", help="GPUs of a node, for --kind verify.")
@click.option("--device", multiple=True, metavar="POOL/DEVICE", help="GPU for --kind dra. May be repeated.")
@click.option(
    "--node-label",
    "node_labels",
    multiple=True,
    default=ManifestsRequest.node_labels,
    show_default=True,
    metavar="NAME=VALUE",
    help="Label of the nodes to guard. May be repeated.",
)
def command(request: ManifestsRequest) -> None:
    """Print manifests of the guard for Kubernetes.

    \b
    nodetune guard manifests | kubectl apply --server-side -f -     observe: no node gets a problem
    nodetune guard manifests --enforce gpu-lost                     a lost GPU makes NodetuneGPUProblem true
    nodetune guard manifests --kind nrc                             rules that turn the condition into a taint (dry run)
    nodetune guard manifests --kind clear                           after the guard is deleted: remove the condition

    Asks no cluster. Exit code: 0 done, 2 usage.
    """
    click.echo(manifests.text(request), nl=False)

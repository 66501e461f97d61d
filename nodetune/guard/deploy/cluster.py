"""The cluster as its Slurm reports it, and how to reach its nodes."""

import os
import shutil
import socket
from collections.abc import Iterable, Mapping
from dataclasses import replace

from nodetune.foundation import UserError, nodeset
from nodetune.guard.node import scontrol
from nodetune.guard.node.scontrol import Slurm, SlurmNode
from nodetune.hosts import patterns
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.inventory import selection
from nodetune.hosts.target import Target


class ClusterError(UserError):
    """Slurm cannot be queried here, or the node does not exist; one line that says what to do."""


def here() -> Slurm:
    """Return Slurm by this machine's own scontrol. Raise ClusterError."""
    tool = shutil.which("scontrol", path=f"{os.environ.get('PATH') or '/bin'}:/usr/bin:/usr/local/bin:/opt/slurm/bin")
    if tool is None:
        raise ClusterError("scontrol not found: run this on a machine of the cluster with Slurm's commands")
    return Slurm(tool)


def nodes(slurm: Slurm, node_sets: Iterable[str]) -> list[SlurmNode]:
    """Return these nodes (node sets) as Slurm knows them, or all nodes. Raise ClusterError, InventoryError."""
    names = {name for text in node_sets for name in patterns.expand(text)}
    try:
        found = slurm.nodes()
    except scontrol.ScontrolError as problem:
        asked = str(problem).startswith("scontrol")
        raise ClusterError(f"{problem}{': run this on a machine of the cluster, or set SLURM_CONF' * asked}") from None
    unknown = names - {node.name for node in found}
    if unknown:
        raise ClusterError(f"Slurm has no node {nodeset.fold(unknown)}")
    return [node for node in found if not names or node.name in names]


def targets(connection: ConnectionOptions, nodes: Mapping[str, SlurmNode]) -> list[Target]:
    """Return how to reach these nodes: as the inventory says, else by name. Raise InventoryError.

    Without an inventory, the node that this runs on is read without a connection: it need not accept its own login.
    """
    if connection.inventory is not None:
        return [target for target in selection.selected(connection) if target.name in nodes]
    found = selection.selected(replace(connection, inventory=",".join(sorted(nodes))))
    name = socket.gethostname().partition(".")[0]
    if not name or connection.transport != "auto":
        return found
    here = [node.name for node in nodes.values() if node.hostname.partition(".")[0] == name]
    this = selection.this_host()
    return [connection.applied_to(replace(this, name=each.name)) if each.name in here else each for each in found]

"""The start of a readmission, before anything is measured: the node in Slurm, the neighbours, the facts from before."""

from dataclasses import dataclass

from nodetune.api.model import HostFacts
from nodetune.facts import document as facts_document
from nodetune.foundation import UserError, sealed, text
from nodetune.foundation.stage_output import Show
from nodetune.guard.deploy import cluster
from nodetune.guard.deploy.cluster import ClusterError
from nodetune.guard.node import drain
from nodetune.guard.node.scontrol import SlurmNode
from nodetune.provision.readmit import neighbours
from nodetune.provision.readmit.request import ReadmitRequest
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.verify import baseline


@dataclass(frozen=True)
class Prepared:
    """The facts before anything is measured. `node`: the host in Slurm (None: no Slurm here, for the reason in `no_slurm`)."""

    request: ReadmitRequest
    node: SlurmNode | None
    no_slurm: str
    before: HostFacts | None
    neighbours: tuple[str, ...]
    alone: str
    """Why there are no neighbours."""

    @property
    def may_be_ours(self) -> bool:
        return self.node is not None and drain.claimed(self.node)


def prepare(request: ReadmitRequest, show: Show) -> Prepared:
    """Look at Slurm and at the files; measure nothing. Raise UserError, also for a host that is in service."""
    if request.key:
        sealed.signature(b"", request.key)  # a key that cannot sign is found before the load
    if request.baseline:
        baseline.read(request.baseline)
    before = _facts_before(request)
    nodes, no_slurm = _nodes(show)
    node = nodes.get(request.host)
    if nodes and node is None:
        raise ClusterError(f"Slurm has no node {text.plain(request.host)}")
    if node and not node.out_of_service:
        raise UserError(f"{node.name} is in service ({node.state}): nothing to readmit")
    near, alone = neighbours.chosen(request, nodes, show)
    selected_hosts(request.to(request.host, *near), show.detail)
    return Prepared(request, node, no_slurm, before, near, alone)


def _nodes(show: Show) -> tuple[dict[str, SlurmNode], str]:
    """Return the nodes of Slurm by name, or none and why: the proof is worth having without Slurm too."""
    try:
        return {node.name: node for node in cluster.nodes(cluster.here(), ())}, ""
    except ClusterError as problem:
        show.warn(f"{problem}: nothing will be resumed")
        return {}, str(problem)


def _facts_before(request: ReadmitRequest) -> HostFacts | None:
    if request.before is None:
        return None
    facts = facts_document.load(request.before)
    if facts.host != request.host:
        raise UserError(f"--before {request.before}: contains facts for {facts.host}, not for {request.host}")
    return facts

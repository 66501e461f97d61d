"""The hosts that find-slow compares a readmitted host with: those that were named, else the two nearest that are idle."""

from collections.abc import Mapping, Sequence

from nodetune.foundation import nodeset, text
from nodetune.foundation.stage_output import Show
from nodetune.guard.node.scontrol import SlurmNode
from nodetune.hosts import patterns
from nodetune.provision.readmit.request import NOBODY, ReadmitRequest
from nodetune.remote.selected_hosts import selected_hosts

MAX_NEIGHBOURS = 2
IDLE = "IDLE"


def chosen(request: ReadmitRequest, nodes: Mapping[str, SlurmNode], show: Show) -> tuple[tuple[str, ...], str]:
    """Return the neighbours, or none and why. `nodes`: those of Slurm, by name. Raise InventoryError."""
    if request.neighbours == (NOBODY,):
        return (), f"--with {NOBODY}"
    if request.neighbours:
        return tuple(name for each in request.neighbours for name in patterns.expand(each)), ""
    if request.connection.inventory is None:
        return (), "without -i there are no neighbours: --with names some"
    others = [each.name for each in selected_hosts(request.connection, show.detail) if each.name != request.host]
    if not others:
        return (), "the inventory has no other host"
    idle = [name for name in others if name in nodes and nodes[name].state == IDLE]
    if not idle:
        return (), f"none of {text.count(len(others), 'other host')} is idle in Slurm: --with names good ones"
    return _nearest(request.host, idle), ""


def _nearest(host: str, idle: Sequence[str]) -> tuple[str, ...]:
    order = list(nodeset.unfold(nodeset.fold([host, *idle])))
    return tuple(sorted(idle, key=lambda name: abs(order.index(name) - order.index(host)))[:MAX_NEIGHBOURS])

"""An RDMA port loses its link far more often than its peers.

Why it matters: Every loss breaks the connections of the running job. Restarts of hosts and switches count on all ports
alike, so the number means something only in comparison with the peers.
Confirm manually: grep . /sys/class/infiniband/*/ports/*/counters/link_downed
Side effects of the fix: Work on the cable takes the link down.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html ;
https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
"""

from nodetune.api import RDMA, Check, Empty, FactsView, manual
from nodetune.checks.shared.rdma_ports import active, groups, more_than_peers


def observe(facts: FactsView) -> dict[str, str]:
    counters, found = facts["rdma.counters"], {}
    for group in groups(active(facts["rdma.ports"])):
        downs = {name: counters[name]["link_downed"] for name in group if "link_downed" in counters.get(name, {})}
        found.update(more_than_peers(downs))
    return found


CHECK = Check(
    needs=("rdma.ports", "rdma.counters"),
    observe=observe,
    accept=Empty("as often as its peers"),
    applies=(RDMA,),
    remedy=manual(
        "Swap its cable or optics with those of a good port, clear the counters (perfquery -R) and check after a week "
        "which side the losses follow."
    ),
    severity="low",
    cost="hardware",
)

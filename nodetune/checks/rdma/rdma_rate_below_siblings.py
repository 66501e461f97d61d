"""An RDMA port is slower than its peers.

Why it matters: After errors, a port may come back at half its speed or with fewer lanes, still ACTIVE and without a
message. Collectives use all ports alike, so one slow port slows every node of the job. Several ports with one lower rate
and all their lanes have another role, such as storage. So may one of an unknown model.
Healthy exception: Several ports with one lower rate have another role, such as storage.
Confirm manually: grep . /sys/class/infiniband/*/ports/*/rate
Side effects of the fix: Work on the cable or the switch port takes the link down.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html ;
https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
"""

from collections import Counter
from typing import Any

from nodetune.api import RDMA, Check, Empty, FactsView, manual
from nodetune.checks.shared.rdma_ports import active, groups


def observe(facts: FactsView) -> dict[str, str]:
    found = {}
    for group in groups(active(facts["rdma.ports"])):
        best = max(port["rate_gbps"] or 0 for port in group.values())
        lanes = max(port["width"] or 0 for port in group.values())
        rates = Counter(port["rate_gbps"] for port in group.values() if port["width"] == lanes)
        known = all(port["model"] for port in group.values())
        roles = {rate for rate, count in rates.items() if count > 1 or not known}
        found.update({name: _slow(port, best, lanes, roles) for name, port in group.items()})
    return found


def _slow(port: dict[str, Any], best: float, lanes: int, roles: set[float]) -> str:
    rate = port["rate_gbps"] or 0
    if rate < best and (port["width"] != lanes or rate not in roles):
        return f"{rate:g} Gb/s, its peers have {best:g} Gb/s"
    if port["link_layer"] == "InfiniBand" and port["width"] == 1:
        return f"{rate:g} Gb/s on a single lane"
    return ""


CHECK = Check(
    needs=("rdma.ports",),
    observe=observe,
    accept=Empty("the rate of its peers"),
    applies=(RDMA,),
    remedy=manual(
        "mlxlink -d DEVICE (or ibdiagnet) for lanes, speed and errors. Reseat or replace the cable, and compare the "
        "speed that the switch port allows. Then reset the port and read the rate again."
    ),
    severity="high",
)

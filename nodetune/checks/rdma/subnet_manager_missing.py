"""An InfiniBand port knows no subnet manager.

Why it matters: Without a subnet manager a port gets no address and no routes: it stays in INIT, or keeps an old
state in which new connections fail. No RDMA traffic passes, and NCCL falls back to sockets or stops.
Confirm by hand: sminfo; grep . /sys/class/infiniband/*/ports/*/sm_lid
Side effects of the fix: A second subnet manager of higher priority takes the fabric over: start one on purpose only.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html ;
https://docs.kernel.org/infiniband/user_mad.html
"""

from nodetune.checks.rdma._ports import own
from nodetune.expect import Not
from nodetune.model import Absent, Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, int] | Absent:
    """The address of the subnet manager at each InfiniBand port that has a link."""
    ports = own(facts["rdma.ports"])
    seen = {
        name: port["sm_lid"]
        for name, port in ports.items()
        if port["link_layer"] == "InfiniBand" and port["phys_state"] == "LinkUp" and port["sm_lid"] is not None
    }
    return seen or Absent("no InfiniBand port with a link")


CHECK = Check(
    needs=("rdma.ports",),
    observe=observe,
    accept=Not(0),
    remedy=manual(
        "Find out where the fabric's subnet manager should run (a switch, UFM, a server with opensm) and start it: "
        "systemctl start opensm there. If other hosts see one (sminfo), look at this port's cable and switch."
    ),
    severity="critical",
)

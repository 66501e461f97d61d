"""A firewall drops what other nodes of the cluster send to ephemeral ports.

Why it matters: NCCL and MPI meet on TCP ports that the kernel picks, also where the data itself goes over RDMA. Behind
a firewall that opens single ports only, jobs of several nodes hang at their start until they time out.
Confirm by hand: ufw status (or: firewall-cmd --get-active-zones), nc -vz OTHERNODE PORT
Side effects of the fix: All hosts of the named network can reach all ports: name the cluster's network only.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://documentation.ubuntu.com/server/how-to/security/firewalls/
"""

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> dict[str, str] | list[str]:
    """Firewalls without any network or interface from which all ports are open. Hosts that work alone are left out."""
    if not facts.get("rdma.ports") and not facts.get("slurm.present"):
        raise Missing("neither RDMA nor Slurm: no sign of a cluster")
    closed = [name for name, opened in facts["services.firewall"].items() if not opened]
    return dict.fromkeys(closed, "opens all ports to no network") or []


CHECK = Check(
    needs=("services.firewall", "rdma.ports", "slurm.present"),
    observe=observe,
    accept=Empty("all ports open to the cluster's network"),
    remedy=manual(
        "ufw: ufw allow from NETWORK/BITS. firewalld: firewall-cmd --permanent --zone=trusted --add-source=NETWORK/BITS; "
        "firewall-cmd --reload. To open fewer ports narrow net.ipv4.ip_local_port_range and open that range."
    ),
    severity="low",
)

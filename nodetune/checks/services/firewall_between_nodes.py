"""A firewall blocks ephemeral ports between cluster nodes.

Why it matters: NCCL and MPI connect over TCP ports that the kernel picks, even if the data itself uses RDMA. Behind a
firewall that opens only single ports, multi-node jobs hang at start until they time out.
Confirm manually: ufw status (or: firewall-cmd --get-active-zones), nc -vz OTHERNODE PORT
Side effects of the fix: All hosts of the named network can reach all ports: name the cluster's network only.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://documentation.ubuntu.com/server/how-to/security/firewalls/
"""

from __future__ import annotations

from nodetune.api import Check, Empty, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    """Find firewalls that open all ports to no network or interface. Ignore hosts outside a cluster."""
    if not facts.get("rdma.ports") and not facts.get("slurm.present"):
        raise FactAbsentError("neither RDMA nor Slurm: no sign of a cluster")
    closed = [name for name, opened in facts["services.firewall"].items() if not opened]
    return dict.fromkeys(closed, "opens all ports to no network") or []


CHECK = Check(
    needs=("services.firewall", "rdma.ports", "slurm.present"),
    observe=observe,
    accept=Empty("all ports open to the cluster's network"),
    remedy=manual(
        "ufw: ufw allow from NETWORK/BITS. firewalld: firewall-cmd --permanent --zone=trusted "
        "--add-source=NETWORK/BITS; firewall-cmd --reload. To open fewer ports, narrow net.ipv4.ip_local_port_range "
        "and open that range."
    ),
    severity="low",
)

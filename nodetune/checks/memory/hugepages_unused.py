"""Static huge pages are reserved and nobody uses them.

Why it matters: A reserved huge page is lost to everything that does not ask for it by name: page cache, data loaders,
pinned buffers. Reservations outlive what they were made for (DPDK, SPDK, a database, virtual machines). AWS machines with
EFA are not judged: their pages wait for the next job on purpose.
Confirm by hand: grep -H . /sys/kernel/mm/hugepages/*/{nr,free,resv}_hugepages
Side effects of the fix: A program that starts later and expects the pages does not start; find it first.
Sources: https://docs.kernel.org/admin-guide/mm/hugetlbpage.html
"""

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def unused_kb(facts: View) -> dict[str, int]:
    if any(device["driver"] == "efa" for device in facts.get("pci.devices", {}).values()):
        raise Missing("EFA's software reserves them for the next job")
    pools = facts["memory.hugepages"]
    return {f"pool of {size} KiB pages": int(size) * (pool["free"] - pool["promised"]) for size, pool in pools.items()}


CHECK = Check(
    observe=unused_kb,
    needs=("memory.hugepages", "pci.devices"),
    accept=AtMost(1 << 20),
    unit="KiB",
    remedy=manual(
        "Who reserves them: grep -r hugepages /etc/sysctl.d /etc/sysctl.conf /proc/cmdline. When nothing needs them: "
        "sysctl -w vm.nr_hugepages=0, and remove the line (or the kernel argument) found above"
    ),
    severity="low",
)

"""Static huge pages are reserved but unused.

Why it matters: Only programs that request huge pages explicitly can use reserved ones. The page cache, data loaders and
pinned buffers lose that memory. Reservations often outlive their purpose (DPDK, SPDK, a database, virtual machines).
AWS machines with EFA are not checked: their pages are reserved for the next job on purpose.
Confirm manually: grep -H . /sys/kernel/mm/hugepages/*/{nr,free,resv}_hugepages
Side effects of the fix: A program that starts later and expects the pages fails to start. Find it first.
Sources: https://docs.kernel.org/admin-guide/mm/hugetlbpage.html
"""

from nodetune.api import AtMost, Check, FactAbsentError, FactsView, manual


def unused_kb(facts: FactsView) -> dict[str, int]:
    if any(device["driver"] == "efa" for device in facts.get("pci.devices", {}).values()):
        raise FactAbsentError("EFA's software reserves huge pages for the next job")
    pools = facts["memory.hugepages"]
    return {f"pool of {size} KiB pages": int(size) * (pool["free"] - pool["promised"]) for size, pool in pools.items()}


CHECK = Check(
    observe=unused_kb,
    needs=("memory.hugepages", "pci.devices"),
    accept=AtMost(1 << 20),
    unit="KiB",
    remedy=manual(
        "Find what reserves them: grep -r hugepages /etc/sysctl.d /etc/sysctl.conf /proc/cmdline. If nothing needs them: "
        "sysctl -w vm.nr_hugepages=0, and remove the line (or the kernel argument) found above"
    ),
    severity="low",
)

"""Memory of several sockets is interleaved.

Why it matters: With node interleaving in the BIOS (NPS0 on EPYC), or numa=off, there are fewer NUMA nodes than sockets:
memory of all sockets is mixed page by page or line by line. Half of all accesses go to the far socket, and nothing can
be placed near a GPU or a card. Splitting a socket into several nodes (NPS2, NPS4, sub-NUMA clusters) is a site
decision: a site file may require a number here. 8-GPU hosts usually use one.
Confirm manually: lscpu | grep -E 'Socket|NUMA'
Side effects of the fix: The change needs a reboot into the BIOS. Scripts that name NUMA nodes by number must be
checked.
Sources: https://docs.kernel.org/mm/numa.html ;
https://github.com/ROCm/ROCm (system optimization guides: NPS)
"""

from nodetune.api import BARE_METAL, AtLeast, Check, Equals, FactsView, When, manual


def observe(facts: FactsView) -> float:
    """Return the number of NUMA nodes with CPUs per socket."""
    return float(facts.get("numa.node_count", 1) / facts["cpu.sockets"])


CHECK = Check(
    observe=observe,
    needs=("numa.node_count", "cpu.sockets"),
    applies=(
        BARE_METAL,
        When("host.arch", Equals("x86_64"), "the kernel does not identify sockets reliably on this CPU"),
    ),
    accept=AtLeast(1),
    unit="NUMA nodes per socket",
    remedy=manual(
        "In the BIOS disable node interleaving (Intel) or set NUMA nodes per socket to NPS1 (AMD; vendor tools and "
        "Redfish can). Remove numa=off from the kernel command line. Reboot."
    ),
    severity="medium",
    name="NUMA nodes",
)

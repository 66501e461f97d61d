"""Memory of several sockets is interleaved: fewer NUMA nodes than sockets.

Why it matters: With node interleaving in the BIOS (NPS0 on EPYC), or numa=off, memory of all sockets is mixed page by
page or line by line. Half of all accesses go to the far socket and nothing can be placed near a GPU or a card. How many
nodes a socket is split into beyond one (NPS2, NPS4, sub-NUMA clusters) is a choice of the site: a site file may ask for
a number here; 8-GPU hosts usually use one.
Confirm by hand: lscpu | grep -E 'Socket|NUMA'
Side effects of the fix: A reboot into the BIOS; scripts that name NUMA nodes by number need another look.
Sources: https://docs.kernel.org/mm/numa.html ;
https://github.com/ROCm/ROCm (system optimization guides: NPS)
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import AtLeast, Equals
from nodetune.model import Check, When
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> float:
    """NUMA nodes (those with CPUs) per socket."""
    return float(facts.get("numa.node_count", 1) / facts["cpu.sockets"])


CHECK = Check(
    observe=observe,
    needs=("numa.node_count", "cpu.sockets"),
    applies=(BARE_METAL, When("host.arch", Equals("x86_64"), "the kernel does not tell sockets apart reliably here")),
    accept=AtLeast(1),
    unit="NUMA nodes per socket",
    remedy=manual(
        "In the BIOS disable node interleaving (Intel) or set NUMA nodes per socket to NPS1 (AMD; vendor tools and "
        "Redfish can). Remove numa=off from the kernel command line. Reboot."
    ),
    severity="medium",
)

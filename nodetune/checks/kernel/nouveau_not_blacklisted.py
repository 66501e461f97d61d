"""Nothing keeps the nouveau driver from taking the GPUs at the next boot.

Why it matters: Which of two drivers for the same device loads first is chance: after a kernel or driver update the
node may come up with nouveau on its GPUs and no CUDA.
Confirm by hand: modprobe --showconfig | grep nouveau
Side effects of the fix: The initial RAM disk must be built anew, or nouveau loads from it all the same.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import Empty, Not
from nodetune.model import Check, When
from nodetune.remedies import modprobe
from nodetune.view import View


def open_door(facts: View) -> str:
    return "" if facts.get("modules.blacklist.nouveau") else "nothing blacklists it"


CHECK = Check(
    observe=open_door,
    needs=("modules.blacklist.nouveau",),
    accept=Empty("blacklisted"),
    set="blacklist",
    applies=(GPU_ON_PCI, When("modules.available.nouveau", Not(Empty()), "this kernel comes without nouveau")),
    remedy=modprobe("nouveau", disruption="none"),
    severity="medium",
)

"""The nouveau driver is not blacklisted.

Why it matters: Nothing controls which of two drivers for the same device loads first. After a kernel or driver update,
the node may boot with nouveau on its GPUs and without CUDA.
Confirm manually: modprobe --showconfig | grep nouveau
Side effects of the fix: The initramfs must be rebuilt. Otherwise nouveau still loads from it.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from nodetune.api import GPU_ON_PCI, Check, Empty, FactsView, Not, When, modprobe


def unlisted(facts: FactsView) -> str:
    return "" if facts.get("modules.blacklist.nouveau") else "not blacklisted"


CHECK = Check(
    observe=unlisted,
    needs=("modules.blacklist.nouveau",),
    accept=Empty("blacklisted"),
    set="blacklist",
    applies=(GPU_ON_PCI, When("modules.available.nouveau", Not(Empty()), "this kernel does not include nouveau")),
    remedy=modprobe("nouveau", disruption="none"),
    severity="medium",
)

"""The kubelet is told to run although the host swaps.

Why it matters: failSwapOn: false only silences the check. Whatever runs outside pods, and pods too where swap is given
to them, is then paged out under pressure: a stalled data loader stalls all ranks.
Confirm by hand: grep failSwapOn /var/lib/kubelet/config.yaml; swapon --show
Side effects of the fix: With swap off a node short of memory ends processes instead of slowing down.
Sources: https://kubernetes.io/docs/concepts/cluster-administration/swap-memory-management/
"""

from nodetune.conditions import GPU_ON_PCI, KUBELET
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> str:
    if not facts["memory.swaps"]:
        raise Missing("the host has no swap")
    return "tolerated" if facts["kubernetes.kubelet"]["settings"].get("failSwapOn") == "false" else "refused"


CHECK = Check(
    needs=("kubernetes.kubelet", "memory.swaps"),
    observe=observe,
    accept=Equals("refused"),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=manual(
        "swapoff -a, take the swap lines out of /etc/fstab, then failSwapOn: true in /var/lib/kubelet/config.yaml"
    ),
    severity="low",
)

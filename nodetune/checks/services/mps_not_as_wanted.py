"""The state of CUDA MPS differs from the profile.

Why it matters: A left-over MPS daemon makes programs of one user wait for another user's, and a fault of one client
ends all of them. A serving node that relies on MPS runs its programs one after another without it.
Confirm manually: pgrep -a nvidia-cuda-mps
Side effects of the fix: Stopping it ends its clients.
Sources: https://docs.nvidia.com/deploy/mps/index.html
"""

from nodetune.api import GPU_ON_PCI, Check, Equals, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> str:
    ours = facts.readable("services.nodetune-mps") or {}
    if ours.get("active") == "active":
        raise FactAbsentError("nodetune-mps.service runs it: see mps-setup-unwanted")
    return "on" if facts["services.processes"].get("nvidia-cuda-mps-control") else "off"


CHECK = Check(
    needs=("services.processes", "services.nodetune-mps"),
    observe=observe,
    accept=Equals("off"),
    applies=(GPU_ON_PCI,),
    remedy=manual(
        "To stop it: echo quit | nvidia-cuda-mps-control. To start it: nvidia-cuda-mps-control -d (as the user of the "
        "GPUs)"
    ),
    severity="info",
    name="CUDA MPS",
)

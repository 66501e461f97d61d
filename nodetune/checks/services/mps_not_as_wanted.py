"""CUDA's Multi-Process Service is not in the state that this profile wants.

Why it matters: A left-over MPS daemon makes programs of one user wait for another's and lets one client's fault end
all of them; a serving node that counts on MPS runs its programs one after another without it.
Confirm by hand: pgrep -a nvidia-cuda-mps
Side effects of the fix: Stopping it ends its clients.
Sources: https://docs.nvidia.com/deploy/mps/index.html
"""

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    return "on" if facts["services.processes"].get("nvidia-cuda-mps-control") else "off"


CHECK = Check(
    needs=("services.processes",),
    observe=observe,
    accept=Equals("off"),
    applies=(GPU_ON_PCI,),
    remedy=manual(
        "To stop it: echo quit | nvidia-cuda-mps-control; to start it: nvidia-cuda-mps-control -d (as the user of the GPUs)"
    ),
    severity="info",
)

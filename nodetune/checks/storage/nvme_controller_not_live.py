"""An NVMe controller is not ready for use.

Why it matters: A controller that is resetting, connecting or dead keeps every read and write waiting, or fails them; file
systems on it hang or turn read-only.
Confirm by hand: grep . /sys/class/nvme/nvme*/state
Side effects of the fix: Resetting a controller fails what waits for it.
Sources: https://docs.kernel.org/nvme/index.html ; https://github.com/linux-nvme/nvme-cli
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    return {name: seen["state"] for name, seen in facts["block.nvme"].items() if seen["state"]}


CHECK = Check(
    needs=("block.nvme",),
    observe=observe,
    accept=Equals("live"),
    remedy=manual(
        "Read its messages (dmesg | grep nvme). When it stays away: nvme reset /dev/nvmeX, else power-cycle and replace it."
    ),
    severity="high",
)

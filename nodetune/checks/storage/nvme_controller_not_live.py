"""An NVMe controller is not live.

Why it matters: A controller that is resetting, connecting or dead delays every read and write, or fails it. File
systems on it hang or turn read-only.
Healthy exception: Some kernels report no state.
Confirm manually: grep . /sys/class/nvme/nvme*/state
Side effects of the fix: Resetting a controller fails the requests that wait for it.
Sources: https://docs.kernel.org/nvme/index.html ; https://github.com/linux-nvme/nvme-cli
"""

from nodetune.api import Check, Equals, FactsView, repair


def observe(facts: FactsView) -> dict[str, str]:
    return {name: controller["state"] for name, controller in facts["block.nvme"].items() if controller["state"]}


CHECK = Check(
    needs=("block.nvme",),
    observe=observe,
    accept=Equals("live"),
    remedy=repair(
        "Read its messages (dmesg | grep nvme). If it stays unavailable: nvme reset /dev/nvmeX, else power-cycle and "
        "replace it."
    ),
    severity="high",
    part_of="pci-device-not-answering",
)

"""The NVIDIA driver of Windows, which Linux uses in WSL: its versions are not those of the Linux driver."""

from nodetune import data
from nodetune.api import FactAbsentError, FactsView

KERNEL = "host.kernel"
FIRST_REGULAR, STEP = 450, 5
"""Since R450, the branches of the Linux driver are multiples of five; Windows has others in between, such as 546 and 572."""


def only_linux(facts: FactsView) -> None:
    """Raise FactAbsentError where the driver is that of Windows, by the kernel or by its branch."""
    branch = (*data.version(facts.readable("gpu.driver_version", "")), 0)[0]
    if "microsoft" in facts.readable(KERNEL, "").lower() or (branch >= FIRST_REGULAR and branch % STEP):
        raise FactAbsentError("the driver is that of Windows (WSL), with versions of its own")

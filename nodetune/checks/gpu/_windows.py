"""The NVIDIA driver of Windows, which Linux uses in WSL: its versions are not those of the Linux driver."""

from nodetune.api import FactAbsentError, FactsView

KERNEL = "host.kernel"


def only_linux(facts: FactsView) -> None:
    """Raise FactAbsentError where the driver is that of Windows."""
    if "microsoft" in facts.readable(KERNEL, "").lower():
        raise FactAbsentError("the driver is that of Windows (WSL), with versions of its own")

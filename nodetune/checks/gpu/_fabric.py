"""Hosts whose Fabric Manager gives GPUs to virtual machines: a GPU has the NVLinks of its partition, if it is in one."""

from nodetune.api import Absent, FactsView

MODE = "services.fabric_mode"
GIVEN_AWAY = Absent("Fabric Manager gives the GPUs to virtual machines: this one may be in no partition")


def shared(facts: FactsView) -> bool:
    """Return whether the host shares the NVSwitches among virtual machines (FABRIC_MODE=1), or runs vGPUs (2)."""
    return facts.readable(MODE) in (1, 2)

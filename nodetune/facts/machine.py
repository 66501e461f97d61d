"""The machine of a host in short: what its figures are compared by, and its title."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nodetune import data
from nodetune.api.facts_view import FactAbsentError, FactUnreadError, value_of
from nodetune.api.model import Each, HostFacts, Value
from nodetune.foundation import text

FACTS = frozenset(
    {
        "gpu.count",
        "pci.gpus",
        "pci.devices",
        "gpu.names",
        "gpu.pci_device_id",
        "gpu.bdf",
        "gpu.nvlink_remote",
        "gpu.nvlink_state",
        "gpu.curr_pcie_link_generation",
        "gpu.curr_pcie_link_width",
        "gpu.max_pcie_link_generation",
        "gpu.max_pcie_link_width",
        "gpu.power_management_limit",
        "gpu.power_management_default_limit",
        "gpu.driver_version",
        "cpu.model",
        "cpu.count",
        "numa.node_count",
        "rdma.ports",
        "host.virtual",
    }
)
"""Facts that the probe must collect."""


@dataclass(frozen=True)
class Machine:
    """One host. `fabric`: nvswitch, nvlink (GPUs linked to one another), pcie, or empty without GPUs.

    `links` maps a GPU to its PCIe link: generation, current and maximum width. `model` is empty if different GPU models
    are in one host. `gpus`: those that the driver offers; `pci_gpus`: those on the PCI bus, but for virtual functions and GPUs that
    are given to virtual machines.
    """

    model: str = ""
    gpus: int = 0
    fabric: str = ""
    driver: str = ""
    cpu: str = ""
    cpus: int = 0
    numa_nodes: int = 0
    bdf: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    nvlinks: Mapping[str, int] = field(default_factory=dict)
    power_watts: Mapping[str, float] = field(default_factory=dict)
    lowered_power: tuple[str, ...] = ()
    hcas: tuple[str, ...] = ()
    virtual: bool = False
    pci_gpus: int = 0

    @property
    def like(self) -> dict[str, Any]:
        """The key that comparable hosts share."""
        return {
            "gpu": self.model,
            "gpus": self.gpus,
            "fabric": self.fabric,
            "cpu": self.cpu,
            "cpus": self.cpus,
            "numa_nodes": self.numa_nodes,
        }

    @property
    def most_gpus(self) -> int:
        """The GPUs that are there, whether the driver offers them or not."""
        return max(self.gpus, self.pci_gpus)

    @property
    def title(self) -> str:
        """`8 x NVIDIA H200 (nvswitch)`, or the CPU model of a host without GPUs."""
        if self == UNKNOWN:
            return "unknown hardware"
        if not self.gpus:
            return text.plain(self.cpu, 60) or "no GPU"
        return f"{self.gpus} x {self.model or 'GPUs of several models'} ({self.fabric})"

    def data(self) -> dict[str, Any]:
        return asdict(self)


UNKNOWN = Machine()
"""A host that was measured although its facts could not be read."""


def of(facts: HostFacts) -> Machine:
    """Return the machine from the facts; missing parts stay empty."""
    names, ids = _each(facts, "gpu.names"), _each(facts, "gpu.pci_device_id")
    models = {str(data.gpu(str(ids.get(gpu))).get("name") or name) for gpu, name in names.items()}
    limits, usual = (_each(facts, f"gpu.power_management_{which}") for which in ("limit", "default_limit"))
    ports = _value(facts, "rdma.ports", {})
    return Machine(
        model=text.plain(models.pop()) if len(models) == 1 else "",
        gpus=_number(facts, "gpu.count"),
        fabric=_fabric(facts),
        driver=text.plain(_value(facts, "gpu.driver_version", "")),
        cpu=text.plain(_value(facts, "cpu.model", "")),
        cpus=_number(facts, "cpu.count"),
        numa_nodes=_number(facts, "numa.node_count"),
        bdf={gpu: text.plain(bdf) for gpu, bdf in _each(facts, "gpu.bdf").items()},
        links=_links(facts),
        nvlinks={gpu: len(_active(state)) for gpu, state in _each(facts, "gpu.nvlink_state").items()},
        power_watts={gpu: limit / 1000 for gpu, limit in limits.items() if isinstance(limit, int)},
        lowered_power=tuple(gpu for gpu, limit in limits.items() if usual.get(gpu) not in (None, limit)),
        hcas=tuple(sorted(map(text.plain, ports))) if isinstance(ports, Mapping) else (),
        virtual=_value(facts, "host.virtual", otherwise=False) is True,
        pci_gpus=_on_pci(facts),
    )


def _on_pci(facts: HostFacts) -> int:
    devices = _value(facts, "pci.devices", {})
    found = [devices.get(bdf) or {} for bdf in _value(facts, "pci.gpus", ())]
    return sum(not each.get("virtual_function") and each.get("driver") != "vfio-pci" for each in found)


def _value(facts: HostFacts, name: str, otherwise: Any) -> Any:
    try:
        return value_of(name, facts.get(name))
    except (FactAbsentError, FactUnreadError):
        return otherwise


def _number(facts: HostFacts, name: str) -> int:
    found = _value(facts, name, 0)
    return found if isinstance(found, int) else 0


def _each(facts: HostFacts, name: str) -> dict[str, Any]:
    """Return subject → value for those that could be read."""
    found = facts.get(name)
    of_each = found.of if isinstance(found, Each) else {}
    return {text.plain(subject, 80): one.value for subject, one in of_each.items() if isinstance(one, Value)}


def _active(state: Any) -> list[Any]:
    active = state.get("active") if isinstance(state, Mapping) else None
    return active if isinstance(active, list) else []


def _fabric(facts: HostFacts) -> str:
    if not _each(facts, "gpu.names"):
        return ""
    kinds = {
        kind for remote in _each(facts, "gpu.nvlink_remote").values() if isinstance(remote, dict) for kind in remote
    }
    return "nvswitch" if "switch" in kinds else "nvlink" if "gpu" in kinds else "pcie"


def _links(facts: HostFacts) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for name in (
        "curr_pcie_link_generation",
        "curr_pcie_link_width",
        "max_pcie_link_generation",
        "max_pcie_link_width",
    ):
        when, _, what = name.replace("pcie_link_", "").partition("_")
        for gpu, number in _each(facts, f"gpu.{name}").items():
            if isinstance(number, int):
                found.setdefault(gpu, {})[what if when == "curr" else f"most_{what}"] = number
    return found

"""The devices of a host by all their names, and the text about a finding that names them so. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nodetune.api.device import Device
from nodetune.api.model import Each, Finding, HostFacts, Value
from nodetune.foundation import text as plain_text

OF_GPUS = ("gpu.bdf", "gpu.uuid", "gpu.serial", "gpu.access", "pci.gpus", "pci.devices")
OF_LINKS, OF_DRIVES = ("net.links", "rdma.ports"), ("block.nvme",)
NEEDS = {
    "gpu": OF_GPUS,
    "xid": OF_GPUS,
    "net": OF_LINKS,
    "rdma": OF_LINKS,
    "block": OF_DRIVES,
    "pci": (*OF_GPUS, *OF_LINKS, *OF_DRIVES),
}
"""The facts that name the devices in findings about facts of a family."""

ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
FEW = 4


class Names:
    """Finds devices by any of their names."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self._of: dict[str, Device] = {}
        for device in devices:
            for name in filter(None, (device.name, device.address, device.netdev)):
                self._of.setdefault(name, device)

    def device(self, subject: str) -> Device | None:
        """Return the device that a subject names: `GPU3`, `0000:61:00.0`, `mlx5_2/1`."""
        return self._of.get(subject) or self._of.get(subject.partition("/")[0])

    def key(self, subject: str) -> str:
        """Return a text that is the same for all names of one device, and for its values: `GPU3 power_limit`."""
        device = self.device(subject) or self.device(subject.partition(" ")[0])
        return device.address if device else subject

    def shown(self, subject: str) -> str:
        """Return the subject with the other name of its device: `GPU3 0000:61:00.0`."""
        device = self.device(subject)
        if device is None:
            return subject
        name = device.name if subject == device.address else subject
        return f"{name} {device.address}"


def of_host(facts: HostFacts) -> Iterator[Device]:
    """Yield the GPUs, RDMA cards, network links and NVMe drives of a host. Names come from the host and are made safe."""
    uuids, serials = _each(facts, "gpu.uuid"), _each(facts, "gpu.serial")
    bdfs = _each(facts, "gpu.bdf")
    for gpu, address in (*bdfs.items(), *_lost(facts, bdfs)):
        if ADDRESS.fullmatch(address):
            yield Device(gpu, address, uuids.get(gpu, ""), serials.get(gpu, ""), kind="gpu")
    ports = list(_records(facts, "rdma.ports"))
    for port, about in ports:
        yield Device(port.partition("/")[0], about["bdf"], netdev=about.get("netdev", ""), kind="nic")
    of_ports = {about.get("netdev") for _, about in ports}
    for kind, fact in (("nic", "net.links"), ("drive", "block.nvme")):
        for name, about in _records(facts, fact):
            if name not in of_ports:
                yield Device(name, about["bdf"], kind=kind)


def _lost(facts: HostFacts, bdfs: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the one GPU that does not say its address, with the one address of the driver's GPUs that no other has."""
    access, bus, devices = (facts.facts.get(name) for name in ("gpu.access", "pci.gpus", "pci.devices"))
    silent = [plain_text.plain(gpu) for gpu in access.of if gpu not in bdfs] if isinstance(access, Each) else []
    on_bus = bus.value if isinstance(bus, Value) and isinstance(bus.value, list) else []
    about = devices.value if isinstance(devices, Value) and isinstance(devices.value, dict) else {}
    free = [str(bdf) for bdf in on_bus if bdf not in bdfs.values() and _of_driver(about.get(bdf))]
    return [(silent[0], free[0])] if len(silent) == len(free) == 1 else []


def _of_driver(device: Any) -> bool:
    """Return whether NVIDIA's driver has the GPU, or may have it."""
    return not isinstance(device, dict) or device.get("driver") in ("nvidia", None)


def named(findings: Iterable[Finding], facts: HostFacts) -> tuple[Device, ...]:
    """Return the devices of the host that these findings name."""
    subjects = {subject for found in findings for subject in found.subjects}
    every = tuple(of_host(facts)) if subjects else ()
    names = Names(every)
    keys = {device.address for subject in subjects if (device := names.device(subject))}
    return tuple(device for device in every if device.address in keys)


def folded(seen: Mapping[str, str], devices: Iterable[Device], each: bool = False) -> str:
    """Return subjects with what was seen, each device by its index and address: `GPU3 0000:61:00.0: Xid 48`.

    Of more than FEW devices with one value, only those of a fault to repair (`each`) have both: GPU0-7 is shorter.
    """
    names, alike = Names(devices), Counter(seen.values())
    short = {subject for subject, text in seen.items() if alike[text] > FEW and not each}
    shown = {subject if subject in short else names.shown(subject): text for subject, text in seen.items()}
    return plain_text.folded(shown if len(shown) == len(seen) else seen)  # nothing lost if one device has two subjects


def line(found: Finding, devices: Iterable[Device] = ()) -> str:
    """Return the line of one finding: the check, its devices, and what was observed."""
    return f"{found.check}: {folded(found.subjects, devices, found.repair) if found.subjects else found.observed}"


def _each(facts: HostFacts, name: str) -> Mapping[str, str]:
    fact = facts.facts.get(name)
    of = fact.of if isinstance(fact, Each) else {}
    return {plain_text.plain(gpu): plain_text.plain(one.value) for gpu, one in of.items() if isinstance(one, Value)}


def _records(facts: HostFacts, name: str) -> Iterator[tuple[str, dict[str, str]]]:
    fact = facts.facts.get(name)
    records: Any = fact.value if isinstance(fact, Value) else None
    for device, about in records.items() if isinstance(records, dict) else ():
        if isinstance(about, dict) and ADDRESS.fullmatch(str(about.get("bdf"))):
            texts = {key: plain_text.plain(each) for key, each in about.items() if isinstance(each, str)}
            yield plain_text.plain(device), texts

"""The paths of NCCL that exist on a host: a setting that switches off another one costs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from nodetune.api import Absent, Each, FactsView, Value
from nodetune.checks.nccl._effects import Path, has_efa
from nodetune.checks.shared.gpu_cards import FOR_DESKS, GRACE, WITHOUT_GPUDIRECT, readable_names
from nodetune.checks.shared.gpu_peers import RACKS
from nodetune.checks.shared.nccl_table import only, release
from nodetune.checks.shared.pci_devices import efa_adapters
from nodetune.checks.shared.rdma_ports import PEERMEM, active, for_gpus, without_iwarp

NEEDS = (
    "nccl.libraries",
    "nccl.plugins",
    "rdma.ports",
    "rdma.devices",
    "gpu.architecture",
    "gpu.bdf",
    "gpu.count",
    "gpu.fabric",
    "gpu.mig_mode",
    "gpu.names",
    "gpu.nvlink_remote",
    "gpu.nvlink_state",
    "gpu.p2p",
    "pci.devices",
    "host.virtual",
    "cpu.vendor",
    "modules.loaded",
    "kernel.nvidia_flavour",
)
HOPPER = re.compile(r"\b(G?H\d{2,3}|G?B\d{3})\b")
OLDER = ("kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada")
BOARDS_OF_EIGHT = re.compile(r"SXM[34]\b|\b(H100|H200|H800|H20|B[23]00)\b")
"""GPUs that are on a board with NVSwitches where a host has eight or more, unless the name has a word of WITHOUT_SWITCHES."""
WITHOUT_SWITCHES = re.compile(r"\b(NVL|PCIe|RTX|GB10)\b")
CUBE_MESH = re.compile(r"\b[PV]100-SXM2\b")
OF_VERBS = ("InfiniBand", "Ethernet")
Pair = frozenset[str]
PATHS = (
    *("rdma", "infiniband", "guest_rdma", "efa", "net", "gdr", "dmabuf", "flush"),
    *("gpus", "p2p", "one_process", "shm", "nvb", "pxn", "nvls", "rack"),
)


def paths(facts: FactsView) -> dict[str, Path]:
    """Return for each of PATHS whether the host has it."""
    host = _Host(facts)
    return {name: getattr(host, name)() for name in PATHS}


def _all(*parts: Path) -> Path:
    """Return whether all exist: False if one does not, else what an unknown one takes."""
    return False if False in parts else next((part for part in parts if part is not True), True)


def _any(*parts: Path) -> Path:
    return True if True in parts else next((part for part in parts if part), False)


class _Host:
    def __init__(self, facts: FactsView) -> None:
        self._facts = facts
        self._names = readable_names(facts)
        self._version = only(facts.readable("nccl.libraries", []))
        self._mig = {gpu for gpu, mode in facts.readable("gpu.mig_mode", {}).items() if mode == "enabled"}
        self._pairs = {
            frozenset(pair.split("-")): status["nvlink"] == "ok"
            for pair, status in facts.readable("gpu.p2p", {}).items()
        }
        self._remotes = {kind for each in facts.readable("gpu.nvlink_remote", {}).values() for kind in each}

    # -- networks --------------------------------------------------------------------------------------------------------

    def _ports(self) -> dict[str, dict[str, Any]]:
        ports = without_iwarp(self._facts.readable("rdma.ports", {}), self._facts.readable("rdma.devices", {}))
        verbs = {name: port for name, port in ports.items() if port["link_layer"] in OF_VERBS}
        return active(verbs, "InfiniBand") or for_gpus(verbs)

    def rdma(self) -> Path:
        """Return whether NCCL can use an RDMA port: slow Ethernet carries TCP, and NCCL reaches EFA by its plugin alone."""
        unread = self._facts.readable("rdma.ports") is None and not isinstance(self._facts.fact("rdma.ports"), Absent)
        return bool(self._ports()) or (unread and "RDMA ports")

    def infiniband(self) -> Path:
        return any(port["link_layer"] == "InfiniBand" for port in self._ports().values())

    def efa(self) -> Path:
        devices = self._facts.readable("pci.devices")
        return has_efa(self._facts.readable("nccl.plugins", [])) and (devices is None or bool(efa_adapters(devices)))

    def net(self) -> Path:
        return _any(self.rdma(), self.efa())

    def guest_rdma(self) -> Path:
        return _all(self.rdma(), self._facts.readable("host.virtual") is True or "a virtual machine")

    def gdr(self) -> Path:
        return _any(self._gpudirect(), self.efa())

    def _gpudirect(self) -> Path:
        """Return whether GPUDirect RDMA is possible: by default NCCL uses it below one PCIe switch, or over NVLink-C2C."""
        able = not self._names or any(not WITHOUT_GPUDIRECT.search(name) for name in self._names)
        near = self._facts.readable("host.virtual") is not False or any(map(GRACE.search, self._names)) or self._near()
        return _all(self.rdma(), able, near)

    def _near(self) -> bool:
        gpus, ports = self._above_gpus(), self._above(port["bdf"] for port in self._ports().values())
        return not gpus or not ports or any(_one_switch(gpu, port) for gpu in gpus for port in ports)

    def dmabuf(self) -> Path:
        loaded, flavour = self._facts.readable("modules.loaded"), self._facts.readable("kernel.nvidia_flavour")
        if loaded is None or flavour is None:
            return _all(self._gpudirect(), "the open kernel modules and no nvidia_peermem")
        return _all(self._gpudirect(), flavour == "open" and not PEERMEM & set(loaded))

    def flush(self) -> Path:
        hopper = self._hopper()
        return _all(self._gpudirect(), not hopper if isinstance(hopper, bool) else "GPUs before Hopper")

    # -- between the GPUs of the host --------------------------------------------------------------------------------------

    def _count(self) -> int | None:
        """Return the GPUs that can have peers: those in MIG mode have none."""
        count = len(self._names) or self._facts.readable("gpu.count")
        return count if count is None else count - len(self._mig)

    def gpus(self) -> Path:
        count = self._count()
        return "several GPUs" if count is None else count > 1

    def _active(self) -> bool | None:
        """Return whether a GPU has an active NVLink, None if that could not be read."""
        fact = self._facts.fact("gpu.nvlink_state")
        states = list(fact.of.values()) if isinstance(fact, Each) else [fact]
        if any(isinstance(each, (Value, Absent)) for each in states):
            return any(each.value["active"] for each in states if isinstance(each, Value))
        return None

    def _linked(self) -> bool:
        """Return whether a pair of GPUs is linked by NVLink for sure."""
        if self._pairs:
            return any(self._pairs.values()) and self._active() is not False
        return self._switched() is True if self._active() is None else bool(self._active())

    def _nvlink(self) -> Path:
        count = self._count()
        return self._linked() and (count is None or count > 1)

    def p2p(self) -> Path:
        return _any(self._nvlink(), self._pcie(), self.rack() is True)

    def one_process(self) -> Path:
        return _all(self.p2p(), "a program that uses several GPUs in one process")

    def _pcie(self) -> Path:
        """Return whether GPUs reach each other over PCIe for sure: data-centre cards, where no hypervisor is between them.

        By default NCCL does so below one PCIe switch.
        """
        cards = [name for name in self._names if not FOR_DESKS.search(name)]
        if len(cards) < 2 or (self._count() or 0) < 2 or self._facts.readable("host.virtual") is not False:
            return False
        above = self._above_gpus()
        near = any(_one_switch(*pair) for pair in combinations(above, 2)) if above else "GPUs below one PCIe switch"
        return _any(near, self._anywhere())

    def _anywhere(self) -> Path:
        """Return whether NCCL uses peers on other root ports: on AMD all before 2.23, since then two (src/graph/paths.cc)."""
        if self._facts.readable("cpu.vendor") != "AuthenticAMD":
            return False
        if self._count() == 2:
            return True
        return release(self._version) < (2, 23) if self._version else "NCCL before 2.23"

    def _above_gpus(self) -> list[list[str]]:
        return self._above(self._facts.readable("gpu.bdf", {}).values())

    def _above(self, bdfs: Iterable[str | None]) -> list[list[str]]:
        """Return the bridges above each device, from the root port down."""
        devices = self._facts.readable("pci.devices", {})
        return [devices[bdf]["parents"] for bdf in bdfs if bdf in devices]

    def shm(self) -> Path:
        """Return whether GPUs that cannot reach each other, also over a third, share memory of the host."""
        apart = [pair for pair, linked in self._pairs.items() if not linked and not self._by_a_third(pair)]
        if self._linked() and (self._switched() is True or (self._pairs and not apart)):
            return False
        above = self._above_gpus()
        one_switch = all(_one_switch(*pair) for pair in combinations(above, 2))
        if self._pcie() is True and (one_switch or self._anywhere() is True):
            return False
        sure = (self._active() is False or bool(apart)) and not isinstance(self._pcie(), str)
        return _all(self.gpus(), sure or "GPUs that cannot reach each other")

    def nvb(self) -> Path:
        """Return whether two GPUs without a link between them both have one to a third."""
        if self._pairs:
            return self._linked() and any(self._by_a_third(pair) for pair, linked in self._pairs.items() if not linked)
        able = self._active() is not False and self._switched() is not True
        return able and len([*filter(CUBE_MESH.search, self._names)]) > 4 and "GPUs that are not all linked"

    def _by_a_third(self, pair: Pair) -> bool:
        one, other = pair
        partners = (each - {one} for each, linked in self._pairs.items() if linked and one in each)
        return any(self._pairs.get(partner | {other}) for partner in partners)

    def pxn(self) -> Path:
        """Return whether GPUs may send through the adapter of another one, which takes GPUDirect RDMA there."""
        return _all(self._nvlink(), self.gdr())

    # -- through the NVSwitches ----------------------------------------------------------------------------------------------

    def _switched(self) -> Path:
        """Return whether the NVLinks lead to switches. A guest sees no switch, yet it sees where the links end."""
        if self._remotes & {"switch", "gpu"}:
            return "switch" in self._remotes
        never = any(map(WITHOUT_SWITCHES.search, self._names)) or self._active() is False
        board_of_eight = len([*filter(BOARDS_OF_EIGHT.search, self._names)]) > 7
        return self._fabric_or_bus() or (not never and (board_of_eight or "NVSwitches"))

    def _fabric_or_bus(self) -> bool:
        devices = self._facts.readable("pci.devices", {}).values()
        on_bus = any(each["vendor"] == "10de" and each["class"] == "0680" for each in devices)
        fabric = self._facts.readable("gpu.fabric", {}).values()
        return on_bus or any(each["state"] == "completed" for each in fabric)

    def _hopper(self) -> Path:
        kinds = self._facts.readable("gpu.architecture", {}).values()
        if kinds or self._names:
            return any(kind not in OLDER for kind in kinds) if kinds else any(map(HOPPER.search, self._names))
        return "GPUs of Hopper or newer"

    def rack(self) -> Path:
        """Return whether the NVLinks go on to other hosts."""
        grace = any(map(GRACE.search, self._names)) and self._switched() is True
        named = grace or any(map(RACKS.search, self._names))
        return _all(named, self._count() != 0, self._switched())

    def nvls(self) -> Path:
        enough = True if self.rack() is True else self._enough_for_nvls()
        return _all(self._hopper(), enough, self._switched())

    def _enough_for_nvls(self) -> Path:
        """Return whether the GPUs are more than two, or two with 2.17 or from 2.28.7 on (src/transport/nvls.cc)."""
        count = self._count()
        if count is None or count > 2:
            return "more than two GPUs" if count is None else True
        if self._version and count == 2:
            return not (2, 18) <= release(self._version) < (2, 28, 7)
        return count == 2 and "NCCL 2.28.7 or newer"


def _one_switch(one: list[str], other: list[str]) -> bool:
    """Return whether two devices are below one PCIe switch: a root port and the upper port of a switch above both."""
    return len(one) > 2 and one[:2] == other[:2]

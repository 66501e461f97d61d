"""A synthetic fleet, and differences planted in it.

The hosts derive from the fact files of real and described machines, with what differs between healthy hosts:
temperatures, load, counters, uptimes, serial numbers, addresses, free memory, process numbers, facts that could not be read.
"""

import contextlib
import copy
import random
import tempfile
import uuid
from pathlib import Path

from nodetune.api.model import Each, HostFacts, Unread, Value
from nodetune.facts import document

ROOT = Path(__file__).resolve().parents[2]

MACHINES = (
    (0.45, ROOT / "tests/data/synthetic/hgx-h200-tuned.json"),
    (0.20, ROOT / "tests/data/synthetic/pcie-8xl40s.json"),
    (0.15, ROOT / "tests/data/synthetic/grace-gb200.json"),
    (0.15, ROOT / "nodetune/facts/recorded/h200-x4.json"),
    (0.05, ROOT / "tests/data/synthetic/workstation-4x4090.json"),
)
UNREAD = 0.01
"""The share of hosts on which a family of facts could not be read."""


def machines():
    """(share, facts) of each kind of host, completed by what the described machines lack."""
    found = []
    for share, path in MACHINES:
        base = document.load(path)
        facts = dict(base.facts)
        facts["host.dmi.bios_version"] = Value("2.4b")
        facts["nccl.libraries"] = Value([{"path": "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "version": "2.28.3"}])
        found.append((share, HostFacts(base.host, facts, base.about)))
    return found


class Noise:
    """Makes hosts that differ as healthy ones do."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def host(self, base, name):
        facts = dict(base.facts)
        self._identity(facts)
        self._load(facts)
        self._counters(facts)
        self._usage(facts)
        if self.random.random() < UNREAD:
            family = self.random.choice(["gpu", "pci", "rdma", "sysctl", "block", "services", "cpu", "host.dmi"])
            why = Unread("permission denied: needs root (--become)")
            facts.update({each: why for each in facts if each.startswith(family)})
        return HostFacts(name, facts, base.about)

    def move(self, facts):
        """Change what changes from look to look: load and counters."""
        self._load(facts)
        self._counters(facts)

    def _each(self, facts, name, make):
        """Every device's value anew; what is absent stays so."""
        fact = facts.get(name)
        if isinstance(fact, Each):
            facts[name] = Each(
                {
                    device: Value(make(device, one.value)) if isinstance(one, Value) else one
                    for device, one in fact.of.items()
                }
            )

    def _records(self, facts, name, make):
        fact = facts.get(name)
        if isinstance(fact, Value) and isinstance(fact.value, dict):
            facts[name] = Value({device: make(device, dict(one)) for device, one in fact.value.items()})

    def _hex(self, digits):
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"

    def _identity(self, facts):
        for name in ("gpu.serial", "gpu.uuid"):
            self._each(facts, name, lambda *_: self._hex(16))
        for name in ("host.boot_id", "host.hostname"):
            facts[name] = Value(self._hex(16))
        arguments = facts.get("cmdline.running")
        if isinstance(arguments, Value):
            facts["cmdline.running"] = Value(
                {**arguments.value, "root": f"UUID={uuid.UUID(self._hex(32))}", "BOOT_IMAGE": "/boot/vmlinuz"}
            )

    def _load(self, facts):
        """Idle, busy, or hot from a job that has just ended; a warm or cool rack; GPUs at the back are warmer."""
        state = self.random.choices(["idle", "busy", "ended"], [0.4, 0.55, 0.05])[0]
        rack = self.random.gauss(0, 2)
        limits = facts.get("gpu.power_management_limit")
        share = {"idle": 0.17, "busy": self.random.uniform(0.6, 0.98), "ended": 0.2}[state]
        degrees = {"idle": 32, "busy": 45 + 22 * share, "ended": self.random.uniform(45, 70)}[state]

        def draw(gpu, before):
            limit = limits.of[gpu].value if isinstance(limits, Each) else before
            return int(limit * min(1.0, max(0.05, self.random.gauss(share, 0.02))))

        def heat(gpu, _):
            return round(self.random.gauss(degrees + rack + 3 * (int(gpu[3:]) % 2), 1.6))

        self._each(facts, "gpu.power_usage", draw)
        self._each(facts, "gpu.temperature", heat)
        self._each(facts, "gpu.memory_temperature", lambda gpu, _: heat(gpu, 0) + 4)
        clock = {"idle": 345, "busy": 1755, "ended": 1980}[state]
        self._each(facts, "gpu.clock_info.sm", lambda *_: clock + 15 * self.random.randrange(-2, 3))
        self._each(facts, "gpu.memory_used", lambda *_: self.random.randrange(1 << 37))

    def _poisson(self, mean):
        """About a Poisson distribution, with now and then ten times as much."""
        burst = 10 if self.random.random() < 0.01 else 1
        return max(0, round(self.random.gauss(mean * burst, (mean * burst) ** 0.5)))

    def _counters(self, facts):
        days = min(400.0, self.random.expovariate(1 / 40))
        facts["host.uptime_s"] = Value(round(days * 86_400))
        long = max(days, 1.0)
        self._each(facts, "gpu.pcie_replay_counter", lambda *_: self._poisson(0.3 * long))
        self._each(facts, "gpu.ecc_corrected_volatile", lambda *_: self._poisson(0.05 * long))
        self._each(facts, "net.carrier_changes", lambda *_: 2 + 2 * self._poisson(0.02 * long))
        self._each(
            facts,
            "rdma.counters",
            lambda _, old: {
                **old,
                "port_rcv_packets": self.random.randrange(1 << 50),
                "symbol_error": self._poisson(0.5 * long),
                "link_downed": self._poisson(0.02 * long),
                "port_xmit_discards": self.random.randrange(1 << 20),
            },
        )
        self._each(facts, "pci.aer", lambda _, old: {**old, "correctable": self._counted(BadTLP=0.02 * long)})
        self._each(facts, "memory.edac.corrected", lambda *_: self._poisson(0.01 * long))
        self._each(
            facts, "block.smart", lambda _, old: {**old, "used_percent": self.random.choice([0, 1, 2, 3, 5, 8, 12])}
        )
        sent = self.random.randrange(1 << 36)
        again = int(sent * self.random.lognormvariate(-7.5, 0.6))
        facts["tcp.segments"] = Value({"sent": sent, "retransmitted": again, "accepted": self._poisson(4000)})

    def _counted(self, **means):
        """Like the probe: errors that happened."""
        counts = {name: self._poisson(mean) for name, mean in means.items()}
        return {name: count for name, count in counts.items() if count}

    def _usage(self, facts):
        total = facts["memory.total_kb"].value
        facts["memory.total_kb"] = Value(
            total - self.random.randrange(total // 2000)
        )  # firmware keeps a little more or less
        facts["memory.free_kb"] = Value(self.random.randrange(total))
        self._records(facts, "numa.nodes", lambda _, node: {**node, "free_kb": self.random.randrange(total)})
        for name in [each for each in facts if each.startswith("services.")]:
            unit = facts[name]
            if isinstance(unit, Value) and isinstance(unit.value, dict) and unit.value.get("pid"):
                facts[name] = Value({**unit.value, "pid": self.random.randrange(1000, 60_000)})


def _value(name, wanted):
    """A planter: the fact becomes this, or what this function makes of it."""

    def plant(facts):
        fact = facts.get(name)
        value = wanted(fact.value) if callable(wanted) and isinstance(fact, Value) else wanted
        if not isinstance(fact, Value) or fact.value == value:
            return False
        facts[name] = Value(value)
        return True

    return plant


def _foreign_clique(facts):
    """A GPU of a rack with one NVLink fabric joins another clique; other hosts have no such fabric."""
    fabric = facts.get("gpu.fabric")
    fabrics = {one.value["cluster_uuid"] for one in getattr(fabric, "of", {}).values() if isinstance(one, Value)}
    return any(each.strip("0-") for each in fabrics) and _device("gpu.fabric", lambda one: {**one, "clique_id": 4})(
        facts
    )


def _device(name, change, number=-1):
    """A planter: one device's value is changed."""

    def plant(facts):
        fact = facts.get(name)
        devices = [each for each, one in fact.of.items() if isinstance(one, Value)] if isinstance(fact, Each) else []
        if not devices:
            return False
        device = devices[number]
        facts[name] = Each({**fact.of, device: Value(change(fact.of[device].value))})
        return True

    return plant


def _record(name, change, wanted=lambda _: True):
    """A planter: one record of a mapping is changed (None: taken away)."""

    def plant(facts):
        fact = facts.get(name)
        if not isinstance(fact, Value):
            return False
        records = copy.deepcopy(fact.value)
        device = next((each for each, one in records.items() if wanted(one)), None)
        if device is None:
            return False
        changed = change(records.pop(device))
        facts[name] = Value(records if changed is None else {**records, device: changed})
        return True

    return plant


def _is(prefix):
    return lambda one: str(one.get("class", "")).startswith(prefix)


def _capped(facts):
    """Halve the enforced limits, but those of GPUs that share power with their CPU."""
    limits, names = facts.get("gpu.enforced_power_limit"), facts.get("gpu.names")
    known = isinstance(limits, Each) and all(isinstance(one, Value) for one in limits.of.values())
    if not known or not isinstance(names, Each) or "GB200" in str(names):
        return False
    facts["gpu.enforced_power_limit"] = Each({gpu: Value(one.value // 2) for gpu, one in limits.of.items()})
    return True


def _hot(facts):
    limits = facts.get("gpu.power_management_limit")
    gpus = [each for each, one in limits.of.items() if isinstance(one, Value)] if isinstance(limits, Each) else []
    if not gpus:
        return False
    facts["gpu.power_usage"] = Each({each: Value(int(limits.of[each].value * 0.9)) for each in gpus})
    facts["gpu.temperature"] = Each({each: Value(95) for each in gpus})
    return True


PLANTS = {
    "fleet-driver-differs": _value("gpu.driver_version", "570.86.15"),
    "fleet-driver-modules-differ": _value("kernel.nvidia_flavour", "proprietary"),
    "fleet-cuda-differs": _value("gpu.cuda_driver_version", "12.8"),
    "fleet-gpu-power-capped": _capped,
    "fleet-vbios-differs": _device("gpu.vbios_version", lambda _: "96.00.99.00.01"),
    "fleet-inforom-differs": _device("gpu.inforom_image_version", lambda _: "G520.0200.00.01"),
    "fleet-fabric-manager-differs": _value("services.fabricmanager_version", "570.86.15"),
    "fleet-kernel-differs": _value("host.kernel", "5.15.0-97-generic"),
    "fleet-os-differs": _value("host.os", lambda system: {**system, "name": "Ubuntu 20.04.6 LTS"}),
    "fleet-bios-differs": _value("host.dmi.bios_version", "2.1"),
    "fleet-microcode-differs": _device("cpu.microcode", lambda _: "0x2b000461"),
    "fleet-rdma-firmware-differs": _record("rdma.devices", lambda one: {**one, "firmware": "28.39.1002"}),
    "fleet-ethernet-firmware-differs": _device("net.driver_info", lambda one: {**one, "firmware": "22.31.1014 (X)"}, 0),
    "fleet-nvme-firmware-differs": _record("block.nvme", lambda one: {**one, "firmware": "GDC5902Q"}),
    "fleet-nccl-differs": _value(
        "nccl.libraries", [{"path": "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "version": "2.21.5"}]
    ),
    "fleet-nccl-settings-differ": _value("nccl.settings", [{"name": "NCCL_ALGO", "value": "Ring"}]),
    "fleet-sysctl-differs": _value("sysctl.kernel.numa_balancing", 1),
    "fleet-kernel-arguments-differ": _value("cmdline.running", lambda arguments: {**arguments, "isolcpus": "8-15"}),
    "fleet-cpu-settings-differ": _device("cpu.governor", lambda _: "ondemand"),
    "fleet-memory-settings-differ": _value("memory.thp.enabled", "never"),
    "fleet-gpu-settings-differ": _device("gpu.power_management_limit", lambda limit: limit - 150_000),
    "fleet-mig-differs": _device("gpu.mig_mode", lambda _: "enabled"),
    "fleet-services-differ": _value("services.irqbalance", lambda unit: {**unit, "active": "failed"}),
    "fleet-limits-differ": _device("limits.memlock", lambda one: {**one, "soft": 65_536}),
    "fleet-gpu-count-differs": _value("pci.gpus", lambda gpus: gpus[:-1]),
    "fleet-gpu-pcie-differs": _device("gpu.curr_pcie_link_width", lambda width: width // 2),
    "fleet-nvlink-differs": _device("gpu.nvlink_state", lambda one: {"active": one["active"][:-1], "inactive": [17]}),
    "fleet-nvlink-speed-differs": _device("gpu.nvlink_speed", lambda _: {"20000": 18}),
    "fleet-nvlink-clique-differs": _foreign_clique,
    "fleet-numa-differs": _record("pci.devices", lambda one: {**one, "numa_node": 3}, _is("03")),
    "fleet-pcie-link-differs": _record("pci.devices", lambda one: {**one, "link_width": 1}, _is("0108")),
    "fleet-cpu-differs": _value("cpu.count", 62),
    "fleet-rdma-ports-differ": _record("rdma.ports", lambda _: None),
    "fleet-mtu-differs": _record(
        "net.links", lambda one: {**one, "mtu": 1400}, lambda one: one["speed_mbps"] == 200_000
    ),
    "fleet-rdma-mtu-differs": _device("rdma.active_mtu", lambda one: {**one, "bytes": 1024}),
    "fleet-drive-count-differs": _record("block.nvme", lambda _: None),
    "fleet-memory-size-differs": _value("memory.total_kb", lambda total: total * 15 // 16),
    "fleet-memory-modules-differ": _value(
        "memory.modules",
        lambda modules: [{**one, "size_mb": one["size_mb"] * bool(at)} for at, one in enumerate(modules)],
    ),
    "fleet-gpu-hot": _device("gpu.temperature", lambda degrees: degrees + 30),
    "fleet-host-hot": _hot,
    "fleet-pcie-replays": _device("gpu.pcie_replay_counter", lambda _: 5_000_000),
    "fleet-gpu-memory-errors": _device("gpu.ecc_corrected_volatile", lambda _: 90_000),
    "fleet-rdma-errors": _device("rdma.counters", lambda one: {**one, "symbol_error": 9_000_000}),
    "fleet-pcie-errors": _device("pci.aer", lambda one: {**one, "correctable": {"BadTLP": 9_000_000}}),
    "fleet-memory-errors": _device("memory.edac.corrected", lambda _: 900_000),
    "fleet-tcp-retransmits": _value("tcp.segments", {"sent": 1 << 30, "retransmitted": 1 << 25, "accepted": 1}),
    "fleet-link-flaps": _device("net.carrier_changes", lambda _: 90_000),
    "fleet-nvme-wear": _device("block.smart", lambda one: {**one, "used_percent": 88}),
}
"""Comparison → what makes a healthy host fail it, and nothing else; False where that kind of host has no such thing."""


def hosts(count, seed=1, each=2):
    """Yields (facts, the comparison that was planted on this host or nothing). `each`: how often every fault is planted."""
    noise, kinds = Noise(seed), machines()
    left = dict.fromkeys(PLANTS, each)
    for number in range(count):
        base = noise.random.choices([facts for _, facts in kinds], [share for share, _ in kinds])[0]
        host = noise.host(base, f"gpu{number:05}")
        planted = _plant(host.facts, left) if number % 3 == 1 and not _unread(host) else ""
        yield host, planted


def _unread(host):
    return any(isinstance(fact, Unread) and "root" in fact.reason for fact in host.facts.values())


def _plant(facts, left):
    for name in left:
        if left[name] and PLANTS[name](facts):
            left[name] -= 1
            return name
    return ""


@contextlib.contextmanager
def saved(count):
    """A folder with the fact files of so many healthy hosts."""
    with tempfile.TemporaryDirectory() as made:
        for host, _ in hosts(count, 1, 0):
            (Path(made) / f"{host.host}.json").write_text(document.dump(host))
        yield Path(made)

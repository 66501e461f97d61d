"""CPU frequency, interrupts and GPU settings on a machine: done, kept over a reboot by their units, and taken back.

The changes are built from the machine's own facts. NVML is answered by the stand-in, which forgets what drivers forget.
"""

import base64
import importlib.util
import json
from pathlib import Path

import pytest

from nodetune import bundle, factfile, fixes
from nodetune.fixes.irq_affinity import OPTION
from nodetune.model import Fix, Step
from nodetune.remedies import cpufreq, gpu, irq_affinity
from nodetune.transport import frame
from tests.fleet.place import until

HOST_CODE = Path(__file__).parents[2] / "playbooks" / "module_utils" / "nodetune_host"
FOLDER = "/root/nodetune-test"
CARRY_OUT = f"""
import json, sys
sys.path.insert(0, "{FOLDER}")
from nodetune_host import core
from nodetune_host.journal import Journal
order, result = json.load(sys.stdin), core.Result()
home = "{FOLDER}/state"
hands = core.Hands(Journal(order["run"], home))
for group in order.get("groups", []):
    core.do(group["changes"], hands, result, group["group"], group["checks"])
if "of" in order:
    core.revert(Journal(order["of"], home).entries(), hands, result)
print(json.dumps(result.data()))
"""
WITNESS = f"""
import json, sys
sys.path.insert(0, "{FOLDER}")
import pynvml as n
n.nvmlInit()
gpus = [n.nvmlDeviceGetHandleByIndex(at) for at in range(8)]
print(json.dumps({{
    "persistence": [n.nvmlDeviceGetPersistenceMode(each) for each in gpus],
    "compute": [n.nvmlDeviceGetComputeMode(each) for each in gpus],
    "power": [n.nvmlDeviceGetPowerManagementLimit(each) for each in gpus],
    "ecc": [n.nvmlDeviceGetEccMode(each) for each in gpus],
    "mig": [n.nvmlDeviceGetMigMode(each)[0] for each in gpus],
    "mig_names": [n.nvmlDeviceGetName(n.nvmlDeviceGetMigDeviceHandleByIndex(gpus[7], at)) for at in range(7)]
    if n.nvmlDeviceGetMigMode(gpus[7])[0] else [],
}}))
"""
NEAR = {"0000:22:00.0": set("0123"), "0000:82:00.0": set("4567")}
"""The cards of the two NUMA nodes, and the CPUs there."""


def step(remedy, value, subjects=()):
    fix = Fix(remedy.kind, remedy.target, value, remedy.disruption, remedy.file, subjects)
    return Step("gpu", f"{remedy.target}-wrong", fix, "", "")


STEPS = (
    step(cpufreq("governor"), "performance"),
    step(irq_affinity(), "local"),
    step(gpu("persistence_mode"), "enabled", ("GPU0",)),
    step(gpu("compute_mode"), "exclusive_process", ("GPU1",)),
    step(gpu("power_limit"), 500_000, ("GPU2",)),
    step(gpu("ecc_mode", "idle GPU"), "disabled", ("GPU3",)),
    step(gpu("mig_devices", "idle GPU"), {"1g.18gb": 7}, ("GPU7",)),
)


class Host:
    def __init__(self, machine):
        self.machine = machine
        machine.ssh(f"rm -rf {FOLDER} && mkdir {FOLDER}")
        machine.put(HOST_CODE, f"{FOLDER}/nodetune_host")
        machine.put(Path(importlib.util.find_spec("pynvml").origin), f"{FOLDER}/pynvml.py")
        machine.write(f"{FOLDER}/carry_out.py", CARRY_OUT)
        machine.write(f"{FOLDER}/witness.py", WITNESS)

    def facts(self):
        names = fixes.needs({each.fix.kind for each in STEPS})
        script, nonce = bundle.script(bundle.families(names), 60)
        done = self.machine.ssh("python3 -I -S - | base64 -w0", input=script.decode())
        return factfile.from_data(frame.answer(base64.b64decode(done.stdout), nonce), "gpu")

    def order(self, **order):
        return json.loads(self.machine.ssh(f"python3 -B {FOLDER}/carry_out.py", input=json.dumps(order)).stdout)

    def apply(self, run):
        groups, unbuilt = fixes.groups(STEPS, self.facts())
        assert unbuilt == []
        return self.order(run=run, groups=[group.data() for group in groups])

    def gpus(self):
        return json.loads(self.machine.ssh(f"python3 -B {FOLDER}/witness.py").stdout)

    def says(self, command):
        return self.machine.ssh(command, check=False).stdout.strip()

    def governors(self):
        return set(self.says("cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor").split())

    def interrupts(self):
        """{card: where each of its interrupts may go}."""
        told = "cd /sys/bus/pci/devices/{}/msi_irqs && for i in *; do cat /proc/irq/$i/smp_affinity_list; done"
        return {card: self.says(told.format(card)).split() for card in NEAR}

    def files(self):
        """All that the run may write, with what is in it."""
        folders = "/etc/nodetune /usr/local/lib/nodetune /etc/systemd/system /etc/default/irqbalance"
        return self.says(f"find {folders} -type f -exec sha256sum {{}} + -o -type l -print | sort")

    def misplaced(self):
        found = self.interrupts()
        return [(card, cpus) for card, near in NEAR.items() for cpus in found[card] if cpus not in near]

    def units(self):
        return self.says("systemctl is-active nodetune-cpu nodetune-irq nodetune-gpu nvidia-persistenced").split()


@pytest.fixture(scope="module")
def host(fleet):
    (machine,) = fleet(1)
    yield Host(machine)
    fleet.stop(machine)


def assert_tuned(host, ecc):
    found = host.gpus()
    assert host.governors() == {"performance"}
    assert host.misplaced() == []
    assert all(len(set(places)) == 4 for places in host.interrupts().values()), "spread over the node's CPUs"
    assert found["persistence"] == [1] * 8
    assert found["compute"] == [0, 3, 0, 0, 0, 0, 0, 0]
    assert found["power"][2] == 500_000
    assert found["mig_names"] == ["NVIDIA H200 MIG 1g.18gb"] * 7
    assert found["ecc"][3] == ecc


def test_it_is_done_once_kept_over_a_reboot_and_taken_back(host):
    before = {"files": host.files(), "gpus": host.gpus(), "governors": host.governors()}
    assert before["governors"] == {"schedutil"} and before["gpus"]["persistence"] == [0] * 8

    first = host.apply("first")
    assert first["problems"] == []
    assert_tuned(host, ecc=[1, 0])
    again = host.apply("again")
    assert (again["changed"], again["problems"], again["diff"]) == (False, [], [])
    _assert_irqbalance_leaves_them_alone(host)

    host.machine.reboot()
    until("the units have run", lambda: host.units() == ["active"] * 4, 300)
    until("interrupts of cards that came up later are in place", lambda: host.misplaced() == [], 120)
    assert_tuned(host, ecc=[0, 0])
    after = host.apply("after")
    assert (after["changed"], after["problems"]) == (False, [])

    back = host.order(run="back", of="first")
    assert (back["problems"], back["refused"]) == ([], [])
    found = host.gpus()
    assert host.files() == before["files"]
    assert host.governors() == {"schedutil"}
    assert [found[key] for key in ("persistence", "compute", "power", "mig")] == [
        before["gpus"][key] for key in ("persistence", "compute", "power", "mig")
    ]

    host.machine.reboot()
    assert host.gpus() == before["gpus"]
    assert host.governors() == {"schedutil"}
    assert host.units() == ["inactive"] * 4


def _assert_irqbalance_leaves_them_alone(host):
    """The daemon has its policy, and what it would do with it in one round moves none of these interrupts."""
    assert OPTION in host.says("tr '\\0' ' ' < /proc/$(pidof irqbalance)/cmdline")
    cards = host.says("; ".join(f"ls /sys/bus/pci/devices/{card}/msi_irqs" for card in NEAR)).split()
    told = host.says(f"irqbalance --oneshot --debug {OPTION} 2>&1")
    assert not [irq for irq in cards if f"IRQ {irq}: Override ban to true" not in told]
    assert host.misplaced() == []

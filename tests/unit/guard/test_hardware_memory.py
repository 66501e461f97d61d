"""What the guard remembers of a node's hardware: a node that lost a GPU stays out, and no other node is drained for it."""

import json
import os
import shutil

import pytest

from nodetune.guard.deploy import node_changes
from tests.unit.guard.faulty_place import in_namespace

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd runs prologs as root")
DEVICE = {"vendor": "0x10de", "device": "0x2335", "class": "0x030200"}
ADAPTER = {"vendor": "0x15b3", "device": "0x1021", "class": "0x020700"}
PASS = "nodetune: pass"
LOST = "nodetune: hardware-missing: 7 of 8 GPUs; job 7 does not run on n01; next: nodetune explain hardware-missing\n"
FIRST = "hardware-missing: guard.hardware: no guard remembers the hardware of this machine: from now on it is 8 GPUs"


class Bare:
    """The node on a machine that is no virtual one, with a bus of its own."""

    def __init__(self, node, virtual=False):
        self.node, self.bus, self.drivers = node, node.folder / "bus", node.folder / "drivers"
        self.bus.mkdir()
        for driver in ("nvidia", "vfio-pci", "mlx5_core"):
            (self.drivers / driver).mkdir(parents=True)
        (node.folder / "cpuinfo").write_text(f"flags\t\t: fpu{' hypervisor' if virtual else ''}\n")
        self.gpus(8)

    def gpus(self, count, driver="nvidia"):
        shutil.rmtree(self.bus)
        self.bus.mkdir()
        for number in range(count):
            self.plug(f"0000:{6 + number:02x}:00.0", DEVICE, driver)
        self.node.control(*(f"bdf@{number}=0000:{6 + number:02x}:00.0" for number in range(count)), f"count={count}")

    def plug(self, bdf, device, driver):
        folder = self.bus / bdf
        folder.mkdir()
        for name, content in device.items():
            (folder / name).write_text(f"{content}\n")
        if driver:
            (folder / "driver").symlink_to(self.drivers / driver)

    def call(self, program="prolog", *more, **options):
        there = f"mount --bind {self.bus} /sys/bus/pci/devices; mount --bind {self.node.folder}/cpuinfo /proc/cpuinfo"
        return self.node.call(program, before=in_namespace(there, *more), **options)

    def reboot(self):
        """As /run is after one."""
        shutil.rmtree(self.node.run_folder)

    @property
    def memory(self):
        file = self.node.kept / "hardware.json"
        return json.loads(file.read_text()) if file.exists() else None


@pytest.fixture
def bare_metal(node):
    node.write_policy(reuse_seconds=0, seconds={"total": 40, "step": 20, "stuck": 20}, mode="enforce")
    node.write_entry(seconds=60)
    return Bare(node)


def test_a_gpu_that_is_gone_after_a_reboot_holds_jobs(bare_metal):
    assert bare_metal.call().said.startswith(PASS)
    assert bare_metal.memory["gpus"] == 8
    bare_metal.reboot()
    bare_metal.gpus(7)
    assert bare_metal.call() == (1, LOST)
    assert bare_metal.node.record()["checks"] == ["hardware-missing"]
    assert "nodetune: hardware-missing: 7 of 8 GPUs; the node stays" in bare_metal.call("health").said
    bare_metal.gpus(8)
    assert bare_metal.call().said.startswith(PASS), "an exchanged GPU: its number counts"


def test_a_waiver_and_a_memory_that_was_removed_accept_a_smaller_node(bare_metal):
    bare_metal.call()
    bare_metal.gpus(7)
    waiver = {"id": "hardware-missing", "reason": "r", "owner": "o", "until": "9999-01-01"}
    seconds = {"total": 40, "step": 20, "stuck": 20}
    bare_metal.node.write_policy(
        lambda data: data["waivers"].append(waiver), mode="enforce", reuse_seconds=0, seconds=seconds
    )
    assert bare_metal.call().said.startswith(PASS)
    bare_metal.node.write_policy(mode="enforce", reuse_seconds=0, seconds=seconds)
    assert bare_metal.call().code == 1
    (bare_metal.node.kept / "hardware.json").unlink()
    assert "from now on it is 7 GPUs" in bare_metal.call().said
    assert bare_metal.call().said.startswith(PASS)


def first_install(place):
    (place.node.kept / "hardware.json").unlink()
    return FIRST


def another_machine(place):
    place.node.remember(gpus=16, machine="of another mainboard")
    return "the guard remembers another machine: from now on it is 8 GPUs"


def damaged(content):
    def change(place):
        (place.node.kept / "hardware.json").write_text(content)
        return "hardware.json: unexpected content"

    return change


def a_disk_that_is_full_or_gone(place):
    shutil.rmtree(place.node.kept)
    place.node.kept.write_text("no folder")
    return "hardware-missing: guard.hardware: "


def adapter_gone(place):
    place.node.remember(gpus=8, adapters=1)
    return "0 of 1 network adapters: an adapter may be in a reset"


def never_complete(place):
    place.node.remember(gpus=7)
    place.gpus(7)
    place.node.write_policy(lambda data: data.update(gpus=8), mode="enforce", reuse_seconds=0)
    return "7 of 8 GPUs: policy, label or machine type promise them, and none was ever seen"


NOT_JUDGED = {
    "the first run": first_install,
    "the disk of another machine": another_machine,
    "a damaged memory": damaged("{"),
    "a memory of something else": damaged('{"machine": "x", "gpus": true, "adapters": 1}'),
    "an empty memory": damaged(""),
    "no room for a memory": a_disk_that_is_full_or_gone,
    "an adapter in a reset": adapter_gone,
    "a node that never had what is promised": never_complete,
}


@pytest.mark.parametrize("case", NOT_JUDGED)
def test_what_may_have_another_reason_is_inconclusive_and_drains_nothing(bare_metal, case):
    reason = NOT_JUDGED[case](bare_metal)
    ended = bare_metal.call()
    assert ended.code == 0
    assert ended.said.startswith("nodetune: inconclusive: ")
    assert reason in ended.said
    assert bare_metal.node.inconclusive() == 1


def test_a_memory_on_a_read_only_disk_is_inconclusive(bare_metal):
    (bare_metal.node.kept / "hardware.json").unlink()
    kept = bare_metal.node.kept
    ended = bare_metal.call("prolog", f"mount --bind {kept} {kept}; mount -o remount,bind,ro {kept}")
    assert ended.code == 0
    assert "read-only file system" in ended.said


def test_a_virtual_machine_may_be_given_fewer(node):
    node.write_policy(reuse_seconds=0, seconds={"total": 40, "step": 20, "stuck": 20}, mode="enforce")
    node.write_entry(seconds=60)
    machine = Bare(node, virtual=True)
    node.remember(gpus=8)
    machine.gpus(4)
    ended = machine.call()
    assert (ended.code, "4 of 8 GPUs: a virtual machine may be given fewer" in ended.said) == (0, True)


def passed_through(place):
    place.gpus(8, driver="vfio-pci")
    place.node.control("count=0")


def without_driver(place):
    place.gpus(8, driver=None)
    place.node.control("driver_not_loaded=1")


def with_virtual_functions(place):
    """A vGPU host: they come and go, and are no GPUs of the bus."""
    for number in range(4):
        place.plug(f"0000:06:01.{number}", DEVICE, "nvidia")
        (place.bus / f"0000:06:01.{number}" / "physfn").mkdir()


def hidden(place):
    """From this process, by a device cgroup or in a container: NVML counts fewer."""
    place.node.control("count=2", *(f"bdf@{number}=0000:{6 + number:02x}:00.0" for number in range(2)))


def half_an_adapter(place):
    """Which of its functions a card shows is a setting of its firmware."""
    place.node.remember(gpus=8, adapters=1)
    place.plug("0000:41:00.1", ADAPTER, "mlx5_core")


@pytest.mark.parametrize("case", [passed_through, without_driver, with_virtual_functions, hidden, half_an_adapter])
def test_gpus_that_are_on_the_bus_are_there_whoever_has_them(bare_metal, case):
    bare_metal.call()
    case(bare_metal)
    assert "hardware-missing" not in bare_metal.call().said
    assert bare_metal.memory["gpus"] == 8, "virtual functions are not remembered"


def test_a_job_without_gpus_is_not_judged_by_them(bare_metal):
    bare_metal.call()
    bare_metal.gpus(7)
    assert bare_metal.call(gpus=None).code == 0


def test_a_node_without_gpus_passes_and_a_later_card_is_remembered(bare_metal):
    bare_metal.gpus(0)
    assert bare_metal.call("health").said == "nodetune: pass\n"
    bare_metal.gpus(8)
    assert bare_metal.call("health").said == "nodetune: pass\n"
    assert bare_metal.memory["gpus"] == 8


def test_an_uninstall_removes_the_memory():
    removed = [change["path"] for group in node_changes.remove([], None) for change in group["changes"]]
    assert "/var/lib/nodetune/guard/hardware.json" in removed

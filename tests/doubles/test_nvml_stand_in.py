"""The substitute libnvidia-ml.so.1 (tests/machines/nvml) through the real pynvml, each time in a process of its own."""

import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodetune import checks
from nodetune.audit import evaluate
from nodetune.onhost import protocol
from nodetune.remote import payload
from tests.support import fake_pynvml, nvml_substitute

SOURCE = Path(__file__).parents[1] / "machines" / "nvml"
FURTHER = SOURCE / "further.json"
LATEST = 60.0
"""Seconds after which what a test waits for counts as not coming."""

pytestmark = [
    pytest.mark.skipif(bool(nvml_substitute.compiler_missing()), reason=nvml_substitute.compiler_missing()),
    pytest.mark.skipif(os.geteuid() != 0, reason="NVML lets only root set anything, and so does the stand-in"),
]

PRELUDE = """
import ctypes, json, os, signal, sys
import pynvml as n

def tried(function, *arguments):
    try:
        return function(*arguments)
    except n.NVMLError as problem:
        return {"error": problem.value}

def give(value):
    print(json.dumps(value))

def first_name(code):
    return n.NVMLError(code).__class__.__name__
"""
OPEN = "n.nvmlInit()\ngpus = [n.nvmlDeviceGetHandleByIndex(at) for at in range(n.nvmlDeviceGetCount())]\n"
NO_PERMISSION, NOT_SUPPORTED, INVALID_ARGUMENT, NOT_FOUND, DRIVER_NOT_LOADED = 4, 3, 2, 6, 9
GPU_IS_LOST, VERSION_MISMATCH, IN_USE, INSUFFICIENT_RESOURCES = 15, 18, 19, 23


@pytest.fixture(scope="session")
def built():
    return nvml_substitute.library()


class Node:
    """A machine: the library with state of its own."""

    def __init__(self, built, folder):
        self.built, self.running, self.kept = built, folder / "run", folder / "lib"
        self.running.mkdir()
        self.env = {
            **os.environ,
            "LD_LIBRARY_PATH": str(built),
            "NODETUNE_NVML_RUN": str(self.running),
            "NODETUNE_NVML_LIB": str(self.kept),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(self, code, begin=OPEN):
        command = [sys.executable, "-c", PRELUDE + begin + code]
        return subprocess.Popen(
            command, env=self.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def ask(self, code, begin=OPEN):
        """What `give(…)` in the code gave, in a process of its own."""
        with self.start(code, begin) as child:
            said, problems = child.communicate(timeout=LATEST)
        assert child.returncode == 0, problems
        return json.loads(said) if said else None

    def value(self, expression):
        return self.ask(f"give({expression})")

    def control(self, *lines):
        (self.running / "control").write_text("\n".join(lines) + "\n")

    def reboot(self):
        shutil.rmtree(self.running)
        self.running.mkdir()

    def keep_loaded(self):
        """Persistence mode, without which every setting goes with the process that made it."""
        self.ask("[n.nvmlDeviceSetPersistenceMode(gpu, 1) for gpu in gpus]")

    def daemon(self, *options):
        return subprocess.run(
            [self.built / "nvidia-persistenced", *options], env=self.env, capture_output=True, text=True, timeout=LATEST
        )

    def daemon_pid(self):
        return int((self.running / "nvidia-persistenced" / "nvidia-persistenced.pid").read_text())


@pytest.fixture
def node(built, tmp_path):
    made = Node(built, tmp_path)
    yield made
    for left in made.running.glob("nvidia-persistenced/*.pid"):
        os.kill(int(left.read_text()), signal.SIGKILL)


def until(condition):
    deadline = time.monotonic() + LATEST
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# What was recorded


def test_pynvml_sees_eight_h200s(node):
    assert node.value("[n.nvmlDeviceGetName(gpu) for gpu in gpus]") == ["NVIDIA H200"] * 8
    assert node.value("n.nvmlSystemGetDriverVersion()") == "580.159.04"


COMPARE = """
sys.path.insert(0, SOURCE)
import generate
recordings = [json.loads(path.read_text()) for path in generate.RECORDINGS]
agreed, differ = 0, []

def compare(what, recorded, function, *arguments):
    global agreed
    got = tried(function, *arguments)
    got = got if isinstance(got, dict) else {"answer": generate.plain(got)}
    same = generate.within(recorded.get("answer"), got.get("answer")) and recorded.get("error") == got.get("error")
    agreed += same
    if not same:
        differ.append([what, recorded, got])

for gpu, device in enumerate(generate.recorded_devices(recordings)):
    for key, recorded in device.items():
        if key.startswith("nvml"):
            name, _, rest = key.partition("(")
            numbers = [int(one) for one in rest.rstrip(")").split(",") if one]
            compare(key + " GPU" + str(gpu), recorded, getattr(n, name), gpus[gpu], *numbers)
    for other, kinds in device["p2p"].items():
        for kind, status in kinds.items():
            compare("p2p", {"answer": status}, n.nvmlDeviceGetP2PStatus, gpus[gpu], gpus[int(other)], int(kind))
    for other, common in device["topology"].items():
        compare("topology", {"answer": common}, n.nvmlDeviceGetTopologyCommonAncestor, gpus[gpu], gpus[int(other)])
    for number, value in device["fields"].items():
        field = lambda: n.nvmlDeviceGetFieldValues(gpus[gpu], [(int(number), 0)])[0].value.ullVal
        compare("field " + number, {"answer": value}, field)
for recording in recordings:
    for name, answer in recording["system"].items():
        compare(name, {"answer": answer}, getattr(n, name))
give([agreed, differ])
"""


def test_every_recorded_call_gives_the_recorded_answer(node):
    node.keep_loaded()  # the recorded node had its persistence mode on, a machine that has just booted has not
    agreed, differ = node.ask(f"SOURCE = {str(SOURCE)!r}\n" + COMPARE)
    assert differ == []
    assert agreed > 2000


def facts_of_the_recording(names, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml.module(fake_pynvml.Replay()))
    collector = importlib.import_module("nodetune.probe.gpu")
    return {f"gpu.{name}": fact for name, fact in collector.collect(names, lambda text: None)}


def probe(node, names, seconds=LATEST):
    script, nonce = payload.script({"gpu": names}, seconds)
    done = subprocess.run([sys.executable, "-I", "-S", "-"], input=script, capture_output=True, env=node.env)
    return json.loads(protocol.Decoder(nonce).feed(done.stdout)[0])


def gpu_names():
    return payload.families(evaluate.required_facts(checks.load_all()))["gpu"]


def test_the_piped_probe_sees_the_facts_of_the_recording(node, monkeypatch):
    node.keep_loaded()
    names = gpu_names()
    seen, recorded = probe(node, names), facts_of_the_recording(names, monkeypatch)
    assert seen["failed"] == {}
    asked = (set(seen["facts"]) & set(recorded)) - {"gpu.cores"}  # the recording is older; further.json has them
    assert len(asked) > 50
    assert {name: seen["facts"][name] for name in asked} == {name: recorded[name] for name in asked}


def test_the_part_of_pynvml_reads_what_the_whole_reads(node, monkeypatch):
    node.keep_loaded()
    part = probe(node, gpu_names())
    monkeypatch.setattr(payload, "pynvml_for", lambda _: payload.pynvml_source())
    monkeypatch.setattr(payload, "_packed", payload._packed.__wrapped__)
    payload.probing.cache_clear()
    whole = probe(node, gpu_names())
    payload.probing.cache_clear()
    assert part["facts"] == whole["facts"]
    assert len(part["facts"]) > 50


def test_functions_that_the_recorded_driver_lacks_are_not_found(node):
    assert node.value("tried(n.nvmlDeviceGetBBXTimeData_v1, gpus[0])") == {"error": 13}


def test_what_was_not_recorded_is_not_supported(node):
    assert node.value("tried(n.nvmlDeviceGetFanControlPolicy_v2, gpus[0], 0)") == {"error": NOT_SUPPORTED}


def test_unknown_numbers_and_gpus_are_refused(node):
    assert node.value("tried(n.nvmlDeviceGetHandleByIndex, 8)") == {"error": INVALID_ARGUMENT}
    assert node.value("tried(n.nvmlDeviceGetTemperature, gpus[0], 9)") == {"error": INVALID_ARGUMENT}


def test_a_gpu_is_found_by_each_of_its_names(node):
    found = node.value(
        "[n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(gpus[3]))),"
        " n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleBySerial(n.nvmlDeviceGetSerial(gpus[4]))),"
        " n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId('0000:00:0b.0'))]"
    )
    assert found == [3, 4, 5]


def test_a_machine_may_have_fewer_gpus_and_elsewhere(node):
    node.control("count=2", "bdf@1=0001:a1:00.0")
    assert node.value("len(gpus)") == 2
    assert node.value("n.nvmlDeviceGetPciInfo(gpus[1]).busId") == "00000001:A1:00.0"
    assert node.value("n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId('0001:a1:00.0'))") == 1


# What is set

SETTINGS = {
    "persistence mode": ("n.nvmlDeviceSetPersistenceMode({}, 1)", "n.nvmlDeviceGetPersistenceMode({})", 1),
    "accounting mode": ("n.nvmlDeviceSetAccountingMode({}, 1)", "n.nvmlDeviceGetAccountingMode({})", 1),
    "compute mode": ("n.nvmlDeviceSetComputeMode({}, 3)", "n.nvmlDeviceGetComputeMode({})", 3),
    "power limit": (
        "n.nvmlDeviceSetPowerManagementLimit({}, 500000)",
        "n.nvmlDeviceGetPowerManagementLimit({})",
        500000,
    ),
    "power limit by its newer call": (
        "n.nvmlDeviceSetPowerManagementLimit_v2({}, 0, 400000)",
        "n.nvmlDeviceGetEnforcedPowerLimit({})",
        400000,
    ),
    "SM clocks": ("n.nvmlDeviceSetGpuLockedClocks({}, 1500, 1800)", "n.nvmlDeviceGetClockInfo({}, 1)", 1500),
    "memory clocks": ("n.nvmlDeviceSetMemoryLockedClocks({}, 2201, 2201)", "n.nvmlDeviceGetClockInfo({}, 2)", 2201),
    "applications clocks": (
        "n.nvmlDeviceSetApplicationsClocks({}, 3201, 1500)",
        "n.nvmlDeviceGetApplicationsClock({}, 1)",
        1500,
    ),
    "MIG mode": ("n.nvmlDeviceSetMigMode({}, 1)", "n.nvmlDeviceGetMigMode({})[0]", 1),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_is_seen_by_other_processes_until_reboot(node, setting):
    change, read, wanted = SETTINGS[setting]
    before = node.value(read.format("gpus[2]"))
    node.keep_loaded() if setting != "persistence mode" else None
    node.ask(change.format("gpus[2]"))
    assert node.value(read.format("gpus[2]")) == wanted != before
    if setting != "persistence mode":
        assert node.value(read.format("gpus[3]")) == before
    node.reboot()
    assert node.value(read.format("gpus[2]")) == before


def test_without_persistence_mode_the_last_client_resets_it(node):
    set_limit, limit = (
        "n.nvmlDeviceSetPowerManagementLimit(gpus[0], 500000)",
        "n.nvmlDeviceGetPowerManagementLimit(gpus[0])",
    )
    assert node.ask(f"{set_limit}\ngive({limit})") == 500000
    assert node.value(limit) == 700000
    with node.start("print('there', flush=True)\nsys.stdin.read()") as other:
        other.stdout.readline()
        node.ask(set_limit)
        assert node.value(limit) == 500000
        other.kill()
    assert node.value(limit) == 700000


def test_settings_can_be_told_to_outlive_their_clients(node):
    node.control("keep_without_clients=1")
    node.ask("n.nvmlDeviceSetPowerManagementLimit(gpus[0], 500000)")
    assert node.value("n.nvmlDeviceGetPowerManagementLimit(gpus[0])") == 500000


def test_ecc_is_pending_until_the_reboot_and_kept(node):
    node.ask("n.nvmlDeviceSetEccMode(gpus[0], 0)")
    assert node.value("n.nvmlDeviceGetEccMode(gpus[0])") == [1, 0]
    for _ in range(2):
        node.reboot()
        assert node.value("n.nvmlDeviceGetEccMode(gpus[0])") == [0, 0]
    assert node.value("n.nvmlDeviceGetEccMode(gpus[1])") == [1, 1]


def test_a_reset_makes_ecc_current_and_loses_what_was_set(node):
    node.keep_loaded()
    node.ask("n.nvmlDeviceSetEccMode(gpus[0], 0)\nn.nvmlDeviceSetComputeMode(gpus[0], 2)")
    (node.running / "gpu0" / "reset").write_text("1")
    assert node.value("[n.nvmlDeviceGetEccMode(gpus[0]), n.nvmlDeviceGetComputeMode(gpus[0])]") == [[0, 0], 0]
    assert not (node.running / "gpu0" / "reset").exists()


@pytest.mark.parametrize(
    "change",
    [
        "n.nvmlDeviceSetPowerManagementLimit, gpus[0], 199999",
        "n.nvmlDeviceSetPowerManagementLimit, gpus[0], 700001",
        "n.nvmlDeviceSetComputeMode, gpus[0], 7",
        "n.nvmlDeviceSetGpuLockedClocks, gpus[0], 1800, 1500",
        "n.nvmlDeviceSetGpuLockedClocks, gpus[0], 3000, 4000",
        "n.nvmlDeviceSetApplicationsClocks, gpus[0], 3201, 1501",
        "n.nvmlDeviceSetPersistenceMode, gpus[0], 2",
    ],
)
def test_values_outside_what_the_gpu_can_do_are_refused(node, change):
    assert node.value(f"tried({change})") == {"error": INVALID_ARGUMENT}


def test_the_clock_stays_within_what_is_locked_and_falls_back(node):
    node.keep_loaded()
    clock = "n.nvmlDeviceGetClockInfo(gpus[0], 1)"
    assert node.value(clock) == 345
    node.ask("n.nvmlDeviceSetGpuLockedClocks(gpus[0], 345, 1200)")
    busy(node, 0, os.getpid())
    assert node.value(f"[{clock}, n.nvmlDeviceGetCurrentClocksEventReasons(gpus[0])]") == [1200, 2]
    node.ask("n.nvmlDeviceResetGpuLockedClocks(gpus[0])")
    assert node.value(f"[{clock}, n.nvmlDeviceGetCurrentClocksEventReasons(gpus[0])]") == [1980, 0]


def busy(node, gpu, pid, memory=1 << 30):
    folder = node.running / f"gpu{gpu}" / "processes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(pid)).write_text(f"{memory}\n")


def test_a_process_on_a_gpu_vanishes_when_it_ends(node):
    work = subprocess.Popen(["sleep", "1000"])
    busy(node, 1, work.pid)
    seen = "[[each.pid, each.usedGpuMemory] for each in n.nvmlDeviceGetComputeRunningProcesses(gpus[1])]"
    used = "n.nvmlDeviceGetMemoryInfo(gpus[1]).used - n.nvmlDeviceGetMemoryInfo(gpus[0]).used"
    assert node.value(f"[{seen}, {used}]") == [[[work.pid, 1 << 30]], 1 << 30]
    work.kill()
    work.wait()
    assert node.value(f"[{seen}, {used}]") == [[], 0]


def test_two_processes_that_set_at_once_lose_nothing(node):
    node.keep_loaded()
    ready = "print('ready', flush=True)\nsys.stdin.readline()\n"
    create = (
        "made = []\n"
        "for _ in range(9):\n"
        "    got = tried(n.nvmlDeviceCreateGpuInstance, gpus[0], 19)\n"
        "    if not isinstance(got, dict): made.append(n.nvmlGpuInstanceGetInfo(got).id)\n"
        "give(made)"
    )
    node.ask("n.nvmlDeviceSetMigMode(gpus[0], 1)")
    with node.start(ready + create) as one, node.start(ready + create) as other:
        for child in (one, other):
            child.stdout.readline()
        for child in (one, other):
            child.stdin.write("go\n")
            child.stdin.flush()
        made = [json.loads(child.communicate(timeout=LATEST)[0]) for child in (one, other)]
    assert sorted(made[0] + made[1]) == list(range(7, 14))


def test_a_full_or_read_only_disk_is_an_error_and_not_a_setting(node):
    (node.running / "gpu0").write_text("not a folder")
    assert node.value("tried(n.nvmlDeviceSetComputeMode, gpus[0], 3)") == {"error": 999}


# MIG

CREATE = """
n.nvmlDeviceSetMigMode(gpus[0], 1)
for profile in PROFILES:
    instance = n.nvmlDeviceCreateGpuInstance(gpus[0], profile)
    shape = n.nvmlGpuInstanceGetInfo(instance)
    slices = {19: 0, 20: 0, 15: 0, 14: 1, 9: 2, 5: 3, 0: 4}[profile]
    n.nvmlGpuInstanceCreateComputeInstance(instance, slices)
"""
DEVICES = """
devices = []
for index in range(n.nvmlDeviceGetMaxMigDeviceCount(gpus[0])):
    device = tried(n.nvmlDeviceGetMigDeviceHandleByIndex, gpus[0], index)
    if not isinstance(device, dict):
        devices.append(device)
"""


def layout(node, *profiles):
    node.keep_loaded()
    node.ask(f"PROFILES = {list(profiles)}\n" + CREATE)


def test_mig_devices_are_those_that_were_created(node):
    layout(node, 9, 14, 19, 19)
    names = node.ask(DEVICES + "give([n.nvmlDeviceGetName(device) for device in devices])")
    assert sorted(names) == ["NVIDIA H200 MIG 1g.18gb"] * 2 + ["NVIDIA H200 MIG 2g.35gb", "NVIDIA H200 MIG 3g.71gb"]
    sizes = node.ask(DEVICES + "give([n.nvmlDeviceGetAttributes_v2(device).multiprocessorCount for device in devices])")
    assert sorted(sizes) == [16, 16, 32, 60]


def test_the_probe_counts_mig_devices_by_profile(node):
    layout(node, *[19] * 7)
    assert probe(node, ["mig_devices"])["facts"]["gpu.mig_devices"]["each"]["GPU0"] == {"value": {"1g.18gb": 7}}


def test_a_mig_device_leads_back_to_its_gpu_and_instances(node):
    layout(node, 9)
    code = (
        DEVICES
        + """
one = devices[0]
instance = n.nvmlDeviceGetGpuInstanceById(gpus[0], n.nvmlDeviceGetGpuInstanceId(one))
info = n.nvmlGpuInstanceGetInfo(instance)
count = ctypes.c_uint(7)
inside = (n.c_nvmlComputeInstance_t * 7)()
n.nvmlGpuInstanceGetComputeInstances(instance, 2, inside, ctypes.byref(count))
same = n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(one))
give({
    "gpu": n.nvmlDeviceGetIndex(n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(one)),
    "placement": [info.placement.start, info.placement.size, info.profileId],
    "compute": [count.value, n.nvmlComputeInstanceGetInfo(inside[0]).profileId, n.nvmlDeviceGetComputeInstanceId(one)],
    "by uuid": n.nvmlDeviceGetName(same),
    "is": [n.nvmlDeviceIsMigDeviceHandle(one).value, n.nvmlDeviceIsMigDeviceHandle(gpus[0]).value],
    "memory": n.nvmlDeviceGetMemoryInfo(one).total,
})
"""
    )
    assert node.ask(code) == {
        "gpu": 0,
        "placement": [4, 4, 9],
        "compute": [1, 2, 0],
        "by uuid": "NVIDIA H200 MIG 3g.71gb",
        "is": [1, 0],
        "memory": 71424 << 20,
    }


def test_profiles_and_placements_are_those_of_an_h200(node):
    expected = {
        each["profile"]: [each["name"], each["id"], each["multiprocessorCount"], each["placements"]]
        for each in json.loads(FURTHER.read_text())["mig_profiles"]
    }
    code = """
found = {}
for profile in range(n.NVML_GPU_INSTANCE_PROFILE_COUNT):
    info = tried(n.nvmlDeviceGetGpuInstanceProfileInfo, gpus[0], profile)
    if isinstance(info, dict):
        assert info == {"error": 3}
        continue
    count = ctypes.c_uint(8)
    places = (n.c_nvmlGpuInstancePlacement_t * 8)()
    n.nvmlDeviceGetGpuInstancePossiblePlacements(gpus[0], info.id, places, ctypes.byref(count))
    placed = [[place.start, place.size] for place in places[:count.value]]
    found[profile] = [info.name.decode() if isinstance(info.name, bytes) else info.name, info.id,
                      info.multiprocessorCount, placed]
give(found)
"""
    assert {int(profile): found for profile, found in node.ask(code).items()} == expected


def test_mig_instances_need_the_mode_and_room(node):
    assert node.value("tried(n.nvmlDeviceCreateGpuInstance, gpus[0], 19)") == {"error": NOT_SUPPORTED}
    layout(node, 9, 9)
    assert node.value("tried(n.nvmlDeviceCreateGpuInstance, gpus[0], 19)") == {"error": INSUFFICIENT_RESOURCES}
    assert node.value("n.nvmlDeviceGetGpuInstanceRemainingCapacity(gpus[0], 19)") == 0


@pytest.mark.parametrize(
    ("asked", "numbered"),
    [
        ([19, 14, 5], [13, 5, 1]),
        ([9, 9], [2, 1]),
        ([9, 19, 14, 19], [2, 7, 4, 8]),
        ([14, 19, 19, 19, 19, 19], [5, 13, 7, 8, 9, 10]),
        ([19, 19, 14, 9], [13, 11, 3, {"error": INSUFFICIENT_RESOURCES}]),
    ],
)
def test_mig_instances_are_placed_as_in_the_user_guide(node, asked, numbered):
    code = (
        "n.nvmlDeviceSetMigMode(gpus[0], 1)\n"
        f"made = [tried(n.nvmlDeviceCreateGpuInstance, gpus[0], profile) for profile in {asked}]\n"
        "give([one if isinstance(one, dict) else n.nvmlGpuInstanceGetInfo(one).id for one in made])"
    )
    assert node.ask(code) == numbered


def test_an_instance_is_placed_where_it_is_told(node):
    node.keep_loaded()
    code = """
n.nvmlDeviceSetMigMode(gpus[0], 1)
place = n.c_nvmlGpuInstancePlacement_t(4, 4)
made = n.nvmlDeviceCreateGpuInstanceWithPlacement(gpus[0], 9, ctypes.byref(place))
wrong = n.c_nvmlGpuInstancePlacement_t(1, 4)
give([n.nvmlGpuInstanceGetInfo(made).id, n.nvmlGpuInstanceGetInfo(made).placement.start,
      tried(n.nvmlDeviceCreateGpuInstanceWithPlacement, gpus[0], 9, ctypes.byref(place)),
      tried(n.nvmlDeviceCreateGpuInstanceWithPlacement, gpus[0], 9, ctypes.byref(wrong))])
"""
    assert node.ask(code) == [2, 4, {"error": INSUFFICIENT_RESOURCES}, {"error": INVALID_ARGUMENT}]


def test_instances_are_destroyed_from_the_inside_out(node):
    layout(node, 9)
    code = """
instance = n.nvmlDeviceGetGpuInstanceById(gpus[0], 2)
inside = n.nvmlGpuInstanceGetComputeInstanceById(instance, 0)
first = tried(n.nvmlGpuInstanceDestroy, instance)
n.nvmlComputeInstanceDestroy(inside)
n.nvmlGpuInstanceDestroy(instance)
give([first, tried(n.nvmlDeviceGetGpuInstanceById, gpus[0], 2), n.nvmlDeviceSetMigMode(gpus[0], 0),
      n.nvmlDeviceGetMigMode(gpus[0])])
"""
    assert node.ask(code) == [{"error": IN_USE}, {"error": NOT_FOUND}, 0, [0, 0]]


def test_smaller_compute_instances_share_a_gpu_instance(node):
    layout(node)
    code = (
        """
instance = n.nvmlDeviceCreateGpuInstance(gpus[0], 9)
info = n.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, 0, 0)
made = [n.nvmlGpuInstanceCreateComputeInstance(instance, 0) for _ in range(3)]
more = tried(n.nvmlGpuInstanceCreateComputeInstance, instance, 0)
"""
        + DEVICES
        + "give([info.instanceCount, more, [n.nvmlDeviceGetName(device) for device in devices]])"
    )
    assert node.ask(code) == [3, {"error": INSUFFICIENT_RESOURCES}, ["NVIDIA H200 MIG 1c.3g.71gb"] * 3]


def test_mig_is_lost_at_reboot_mode_and_all(node):
    layout(node, 9, 9)
    node.reboot()
    assert node.ask(DEVICES + "give([n.nvmlDeviceGetMigMode(gpus[0]), len(devices)])") == [[0, 0], 0]


def test_mig_mode_stays_pending_while_the_gpu_is_in_use(node):
    busy(node, 0, os.getpid())
    assert node.value("[n.nvmlDeviceSetMigMode(gpus[0], 1), n.nvmlDeviceGetMigMode(gpus[0])]") == [IN_USE, [0, 1]]


# Misbehaviour


@pytest.mark.parametrize(
    ("line", "call", "error"),
    [
        ("lost@2=1", "n.nvmlDeviceGetTemperature, gpus[2], 0", GPU_IS_LOST),
        ("lost=1", "n.nvmlDeviceSetComputeMode, gpus[5], 0", GPU_IS_LOST),
        ("not_supported=nvmlDeviceGetPowerUsage", "n.nvmlDeviceGetPowerUsage, gpus[0]", NOT_SUPPORTED),
        ("not_supported@1=nvmlDeviceGetPciInfo", "n.nvmlDeviceGetPciInfo, gpus[1]", NOT_SUPPORTED),
        ("no_permission=1", "n.nvmlDeviceSetPersistenceMode, gpus[0], 1", NO_PERMISSION),
        ("no_permission=1", "n.nvmlDeviceSetMigMode, gpus[0], 1", NO_PERMISSION),
        ("busy=1", "n.nvmlDeviceSetEccMode, gpus[0], 0", IN_USE),
    ],
)
def test_a_gpu_that_misbehaves_gives_its_error(node, line, call, error):
    with node.start(f"print('there', flush=True)\nsys.stdin.readline()\ngive(tried({call}))") as child:
        child.stdout.readline()
        node.control(line)
        said, _ = child.communicate("go\n", timeout=LATEST)
    assert json.loads(said) == {"error": error}


def test_only_the_named_gpu_misbehaves(node):
    node.control("lost@2=1")
    code = "n.nvmlInit()\ngive([tried(n.nvmlDeviceGetHandleByIndex, at) for at in (2,)]"
    assert node.ask(code + " + [n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByIndex(3))])", begin="") == [
        {"error": GPU_IS_LOST},
        3,
    ]


@pytest.mark.parametrize(
    ("line", "error"), [("version_mismatch=1", VERSION_MISMATCH), ("driver_not_loaded=1", DRIVER_NOT_LOADED)]
)
def test_init_can_fail(node, line, error):
    node.control(line)
    assert node.ask("give(tried(n.nvmlInit))", begin="") == {"error": error}


def test_nobody_but_root_may_set(node):
    code = (
        "os.seteuid(65534)\ngive([tried(n.nvmlDeviceSetComputeMode, gpus[0], 0), n.nvmlDeviceGetComputeMode(gpus[0])])"
    )
    assert node.ask(code) == [{"error": NO_PERMISSION}, 0]


def test_a_call_can_take_its_time(node):
    node.control("hang=nvmlDeviceGetTemperature:0.05")
    assert node.value("n.nvmlDeviceGetTemperature(gpus[0], 0)") == 35


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetEccMode"])
def test_a_call_that_hangs_is_deaf_to_everything_but_sigkill(node, function):
    node.control(f"hang={function}:forever")
    with node.start("n.nvmlDeviceGetEccMode(gpus[0])") as child:
        until(lambda: signal.SIGTERM in signals(child.pid, "SigBlk"))
        child.send_signal(signal.SIGTERM)
        until(lambda: signal.SIGTERM in signals(child.pid, "ShdPnd"))
        assert child.poll() is None
        child.kill()
    assert child.returncode == -signal.SIGKILL


def signals(pid, kind):
    """A process's set of signals (SigBlk: blocked, ShdPnd: waiting) from /proc."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(kind))
    mask = int(line.split()[1], 16)
    return {number for number in range(1, 65) if mask >> number - 1 & 1}


def test_a_hang_on_one_gpu_leaves_the_others_to_everybody(node):
    node.control("hang@1=nvmlDeviceGetEccMode:forever")
    with node.start("n.nvmlDeviceGetEccMode(gpus[1])") as child:
        until(lambda: signal.SIGTERM in signals(child.pid, "SigBlk"))
        node.ask("n.nvmlDeviceSetComputeMode(gpus[0], 3)")
        assert node.value("n.nvmlDeviceGetComputeMode(gpus[0])") == 3
        child.kill()


def test_the_probe_names_the_call_that_hangs(node):
    node.control("hang@1=nvmlDeviceGetPowerUsage:forever")
    facts = probe(node, gpu_names(), 5.0)
    assert "nvmlDeviceGetPowerUsage GPU1" in json.dumps(facts["failed"])
    assert facts["facts"]["gpu.count"] == {"value": 8}


# The persistence daemon


def test_persistenced_keeps_persistence_mode_on_while_alive(node):
    mode = "[n.nvmlDeviceGetPersistenceMode(gpu) for gpu in gpus]"
    assert node.daemon("--persistence-mode", "--user", "nobody").returncode == 0
    assert node.value(mode) == [1] * 8
    assert "already" in node.daemon().stderr or "another one" in node.daemon().stderr
    node.ask("n.nvmlDeviceSetPowerManagementLimit(gpus[0], 500000)")
    assert node.value("n.nvmlDeviceGetPowerManagementLimit(gpus[0])") == 500000
    end(node, signal.SIGKILL)
    assert node.value(mode) == [0] * 8
    assert node.value("n.nvmlDeviceGetPowerManagementLimit(gpus[0])") == 700000


def test_the_daemon_with_the_mode_off_switches_it_off(node):
    node.keep_loaded()
    assert node.daemon("--no-persistence-mode").returncode == 0
    assert node.value("n.nvmlDeviceGetPersistenceMode(gpus[0])") == 0
    end(node, signal.SIGTERM)
    assert not (node.running / "nvidia-persistenced" / "nvidia-persistenced.pid").exists()


def test_the_daemon_says_why_it_does_not_start(node):
    node.control("driver_not_loaded=1")
    done = node.daemon("--persistence-mode")
    assert (done.returncode, done.stderr) == (1, "nvidia-persistenced: no GPUs: Driver Not Loaded\n")


def end(node, how):
    pid = node.daemon_pid()
    os.kill(pid, how)
    until(lambda: not alive(pid))
    if how == signal.SIGKILL:
        shutil.rmtree(node.running / "nvidia-persistenced")  # as the unit does when its service is gone


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_installing_puts_everything_where_a_package_would(node, tmp_path):
    root = tmp_path / "root"
    libraries = root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    libraries.mkdir(parents=True)
    (root / "etc").mkdir()
    for _ in range(2):
        done = subprocess.run(["sh", SOURCE / "install.sh", node.built, root], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    node.env["LD_LIBRARY_PATH"] = str(libraries)
    assert node.value("len(gpus)") == 8
    assert (root / "etc" / "passwd").read_text().count("nvidia-persistenced:") == 1
    assert "--no-persistence-mode" in (root / "usr/lib/systemd/system/nvidia-persistenced.service").read_text()

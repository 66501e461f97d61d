"""NVML as the recording of a real node tells it, and what becomes of its errors."""

import resource
import shutil
import subprocess
import sys
import types

import pynvml
import pytest

from nodetune.probe import gpu_facts, gpu_power, nvlink
from tests.support import fake_pynvml

NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND = 3, 4, 9, 12
FUNCTION_NOT_FOUND, GPU_IS_LOST, VERSION_MISMATCH, UNKNOWN = 13, 15, 18, 999
EIGHT = [f"GPU{index}" for index in range(8)]


@pytest.fixture
def nvml(monkeypatch, tree, collect):
    """nvml(answers, errors) → facts of the recorded node with these answers and errors put in."""
    tree({"/proc/": None})

    def run(answers=None, errors=None, names=(), count=None):
        run.replay = fake_pynvml.Replay(answers=answers, errors=errors, count=count)
        monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml.module(run.replay))
        return collect("gpu", names)

    return run


def values(fact):
    return {subject: one.get("value") for subject, one in fact["each"].items()}


def same(value):
    return dict.fromkeys(EIGHT, value)


def test_a_healthy_node_reads_as_nvidia_smi_shows_it(nvml):
    facts = nvml()
    assert facts["gpu.count"] == {"value": 8}
    assert facts["gpu.driver_version"] == {"value": "580.159.04"}
    assert facts["gpu.cuda_driver_version"] == {"value": "13.0"}
    assert values(facts["gpu.names"]) == same("NVIDIA H200")
    assert values(facts["gpu.architecture"]) == same("hopper")
    assert values(facts["gpu.persistence_mode"]) == same("enabled")
    assert values(facts["gpu.pci_device_id"]) == same("2335")
    assert values(facts["gpu.memory_total"]) == same(143771 << 20)
    assert values(facts["gpu.clocks_event_reasons"]) == same(["idle"])
    assert values(facts["gpu.recovery_action"]) == same("none")
    assert values(facts["gpu.access"]) == same("ok")
    assert facts["gpu.bdf"]["each"]["GPU4"] == {"value": "0000:00:0a.0"}


VGPU, LICENCES = 2, "nvmlDeviceGetGridLicensableFeatures_v4"


def licences(*states):
    """NVML's own structure with one feature for each state."""
    told = pynvml.c_nvmlGridLicensableFeatures_v4_t(isGridLicenseSupported=1, licensableFeaturesCount=len(states))
    for feature, state in zip(told.gridLicensableFeatures, states, strict=False):
        feature.featureState, feature.featureEnabled, feature.productName = state, 1, b"NVIDIA Virtual Compute Server"
    return told


@pytest.mark.parametrize(("states", "licensed"), [((0,), False), ((1,), True), ((0, 1), True), ((), False)])
def test_a_vgpu_tells_whether_it_has_its_licence(nvml, states, licensed):
    facts = nvml({"nvmlDeviceGetVirtualizationMode": VGPU, LICENCES: licences(*states)}, count=1)
    product = "NVIDIA Virtual Compute Server" if states else ""
    assert values(facts["gpu.vgpu_license"]) == {"GPU0": {"licensed": licensed, "product": product}}


def test_only_a_vgpu_is_asked_for_its_licence(nvml):
    facts = nvml(count=1)
    assert "absent" in facts["gpu.vgpu_license"]["each"]["GPU0"]
    assert not [call for call in nvml.replay.calls if call.startswith(LICENCES)]
    unneeded = nvml(
        {"nvmlDeviceGetVirtualizationMode": VGPU, LICENCES: pynvml.c_nvmlGridLicensableFeatures_v4_t()}, count=1
    )
    assert "absent" in unneeded["gpu.vgpu_license"]["each"]["GPU0"]


def test_wanted_zeros_are_values(nvml):
    facts = nvml()
    assert values(facts["gpu.ecc_uncorrected_volatile"]) == same(0)
    assert values(facts["gpu.sram_threshold_exceeded"]) == same(False)
    assert values(facts["gpu.mig_devices"]) == same({})
    assert values(facts["gpu.nvlink_errors"]) == same({"crc": {}, "recovery": {}, "replay": {}})
    assert values(facts["gpu.compute_running_processes"]) == same([])


def test_what_this_gpu_does_not_have_is_absent(nvml):
    facts = nvml()
    for name in ("numa_node_id", "retired_pages_pending", "fan_speed"):
        told = facts[f"gpu.{name}"]["each"].values()
        assert told, name
        assert all("absent" in one for one in told), name


def test_the_counters_of_a_link_are_asked_in_one_row(nvml, monkeypatch):
    asked = []
    monkeypatch.setattr(fake_pynvml, "_fields", lambda _replay, _handle, wanted: asked.append(wanted) or [])
    nvml(names=("gpu.nvlink_errors",), count=1)
    links = [link for wanted in asked for field, link in wanted if field in nvlink.NVLINK_BY_SCOPE.values()]
    assert links == sorted(links)
    assert len(links) == 4 * 18


def test_nvlink_is_told_per_link_and_the_fabric_with_its_health(nvml):
    facts = nvml(answers={"fabric GPU1": {"healthMask": 0b01_10_01, "healthSummary": 2}})
    assert values(facts["gpu.nvlink_state"])["GPU0"] == {"active": list(range(18)), "inactive": []}
    assert values(facts["gpu.nvlink_version"]) == same("4.0")
    assert values(facts["gpu.nvlink_remote"]) == same({"switch": 18})
    assert values(facts["gpu.nvlink_speed"]) == same({"26562": 18})
    fabric = values(facts["gpu.fabric"])
    assert fabric["GPU0"]["state"] == "completed"
    assert fabric["GPU0"]["health"] == {}
    assert fabric["GPU1"]["health"] == {"degraded_bandwidth": "yes", "route_recovery": "no", "route_unhealthy": "yes"}
    assert fabric["GPU1"]["summary"] == "unhealthy"


def test_a_down_link_and_its_errors_are_named(nvml):
    facts = nvml(answers={"nvmlDeviceGetNvLinkState(7) GPU2": 0, "field 161 GPU2": 5})
    assert values(facts["gpu.nvlink_state"])["GPU2"]["inactive"] == [7]
    assert values(facts["gpu.nvlink_errors"])["GPU2"]["replay"]["3"] == 5
    assert "7" not in values(facts["gpu.nvlink_errors"])["GPU2"]["replay"]


def test_older_gpus_have_a_field_for_each_link(nvml):
    answers = {"nvmlDeviceGetArchitecture": 7, "field 105": 3, **{f"field {32 + link}": 0 for link in range(6)}}
    facts = nvml(answers=answers, count=1)
    assert values(facts["gpu.nvlink_errors"])["GPU0"] == {"crc_data": {"9": 3}, "crc_flit": {}}


def test_peers_are_only_read_when_asked_for(nvml):
    assert "gpu.p2p" not in nvml()
    facts = nvml(names=["p2p"])
    assert facts["gpu.p2p"]["each"]["GPU0-GPU7"]["value"] == {"nvlink": "ok"}
    assert len(facts["gpu.p2p"]["each"]) == 28


def test_no_library_means_that_the_host_has_no_nvml(nvml):
    facts = nvml(errors={"nvmlInit": LIBRARY_NOT_FOUND})
    assert "absent" in facts["gpu.nvml"]
    assert "absent" in facts["gpu.count"]


def test_a_version_mismatch_is_unread_with_a_status(nvml):
    facts = nvml(errors={"nvmlInit": VERSION_MISMATCH})
    assert "different versions" in facts["gpu.nvml"]["unread"]
    assert "different versions" in facts["gpu.count"]["unread"]
    assert "different versions" in facts["gpu.nvml_status"]["value"]
    assert facts["gpu.library_version"] == {"value": "13.580.159.04"}


def test_an_unloaded_driver_is_a_fault_only_where_there_is_a_gpu(nvml, tree):
    assert "absent" in nvml(errors={"nvmlInit": DRIVER_NOT_LOADED})["gpu.nvml_status"]
    device = "/sys/bus/pci/devices/0000:01:00.0"
    tree({f"{device}/vendor": "0x10de\n", f"{device}/class": "0x030200\n"})
    assert nvml(errors={"nvmlInit": DRIVER_NOT_LOADED})["gpu.nvml_status"] == {
        "value": "the NVIDIA driver is not loaded"
    }


@pytest.mark.parametrize("code", [10, 17, 20, 23, UNKNOWN])
def test_an_error_that_the_asking_process_may_cause_blames_none(nvml, code):
    assert "unread" in nvml(errors={"nvmlInit": code})["gpu.nvml_status"]


@pytest.fixture
def few_files():
    """This process may open 250 files: fewer than NVML is given, and enough for what a worker of pytest has open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (250, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_nvml_is_not_asked_where_it_has_no_room(nvml, few_files):
    """Without files to open, the NVML of an H200 counts no GPU, and says nothing of an error."""
    facts = nvml()
    assert facts["gpu.count"] == {"unread": "NVML was not asked: this process may open only 250 files"}
    assert "unread" in facts["gpu.nvml_status"]


def test_a_lost_gpu_costs_only_itself_and_is_not_asked_again(nvml):
    facts = nvml(errors={"nvmlDeviceGetEccMode GPU3": GPU_IS_LOST})
    assert "GPU is lost" in facts["gpu.ecc_mode"]["each"]["GPU3"]["unread"]
    assert facts["gpu.ecc_mode"]["each"]["GPU4"] == {"value": "enabled"}
    assert "unread" in facts["gpu.recovery_action"]["each"]["GPU3"]
    assert facts["gpu.access"]["each"]["GPU3"] == {"value": "GPU is lost"}
    asked = [call for call in nvml.replay.calls if call.endswith(" GPU3")]
    assert asked[-1] == "nvmlDeviceGetEccMode GPU3"


def test_a_gpu_without_a_handle_is_a_fault_where_only_it_can_be(nvml):
    errors = {"GPU0": GPU_IS_LOST, "GPU1": UNKNOWN, "GPU2": NO_PERMISSION}
    facts = nvml(errors={f"nvmlDeviceGetHandleByIndex {gpu}": code for gpu, code in errors.items()})
    assert facts["gpu.access"]["each"]["GPU0"] == {"value": "NVML: GPU is lost"}
    assert "Unknown Error" in facts["gpu.access"]["each"]["GPU1"]["unread"]
    assert "unread" in facts["gpu.access"]["each"]["GPU2"]
    assert "unread" in facts["gpu.names"]["each"]["GPU1"]
    assert list(facts["gpu.names"]["each"]) == EIGHT


def test_errors_of_a_reading_are_absent_or_unread_by_kind(nvml):
    facts = nvml(
        errors={
            "nvmlDeviceGetMigMode": NOT_SUPPORTED,
            "nvmlDeviceGetAddressingMode": FUNCTION_NOT_FOUND,
            "nvmlDeviceGetPowerManagementLimit": NO_PERMISSION,
            "nvmlDeviceGetMemoryInfo GPU5": UNKNOWN,
            "field 230": UNKNOWN,
        }
    )
    assert "absent" in facts["gpu.mig_mode"]["each"]["GPU0"]
    assert "absent" in facts["gpu.mig_devices"]["each"]["GPU0"]
    assert "absent" in facts["gpu.addressing_mode"]["each"]["GPU0"]
    assert "needs root" in facts["gpu.power_management_limit"]["each"]["GPU0"]["unread"]
    assert "Unknown Error" in facts["gpu.memory_total"]["each"]["GPU5"]["unread"]
    assert facts["gpu.memory_total"]["each"]["GPU6"] == {"value": 143771 << 20}
    assert "Unknown Error" in facts["gpu.recovery_action"]["each"]["GPU0"]["unread"]


def rates(percent):
    return {"gpu": percent, "memory": 0}


def test_load_without_a_program_is_looked_at_twice(nvml, monkeypatch):
    pauses, answers = [], {f"nvmlDeviceGetUtilizationRates GPU{index}": rates(100) for index in (1, 2, 3)}
    answers["nvmlDeviceGetUtilizationRates"] = rates(3)
    answers["nvmlDeviceGetComputeRunningProcesses GPU2"] = [types.SimpleNamespace(pid=7, usedGpuMemory=1)]

    def pause(seconds):
        pauses.append(seconds)
        answers["nvmlDeviceGetUtilizationRates GPU3"] = rates(0)

    monkeypatch.setattr(gpu_facts.time, "sleep", pause)
    loads = nvml(answers, names=["load_without_program"], count=5)["gpu.load_without_program"]
    assert values(loads) == {"GPU0": 3, "GPU1": 100, "GPU2": 0, "GPU3": 0, "GPU4": 3}
    assert pauses == [gpu_facts.BETWEEN_LOOKS]


def test_idle_gpus_cost_no_second_look(nvml, monkeypatch):
    pauses = []
    monkeypatch.setattr(gpu_facts.time, "sleep", pauses.append)
    found = nvml({"nvmlDeviceGetUtilizationRates": rates(3)}, names=["load_without_program"])
    assert values(found["gpu.load_without_program"]) == same(3)
    assert pauses == []


def test_memory_without_a_program_is_the_lower_of_two_looks(nvml, monkeypatch):
    answers = {f"nvmlDeviceGetMemoryInfo GPU{index}": {"total": 80 << 30, "used": 50 << 30} for index in (1, 2, 3)}
    answers["nvmlDeviceGetMemoryInfo"] = {"total": 80 << 30, "used": 600 << 20}
    answers["nvmlDeviceGetComputeRunningProcesses GPU2"] = [types.SimpleNamespace(pid=7, usedGpuMemory=1)]

    def a_job_ends(_seconds):
        answers["nvmlDeviceGetMemoryInfo GPU3"] = {"total": 80 << 30, "used": 600 << 20}

    monkeypatch.setattr(gpu_facts.time, "sleep", a_job_ends)
    held = nvml(answers, names=["memory_without_program"], count=4)["gpu.memory_without_program"]
    assert values(held) == {"GPU0": 600 << 20, "GPU1": 50 << 30, "GPU2": 0, "GPU3": 600 << 20}


def test_mig_devices_are_counted_by_profile(nvml):
    facts = nvml(
        count=1,
        answers={
            "nvmlDeviceGetMigMode": [1, 1],
            "nvmlDeviceGetMaxMigDeviceCount": 7,
            "nvmlDeviceGetMigDeviceHandleByIndex(0)": "NVIDIA H200 MIG 3g.71gb",
            "nvmlDeviceGetMigDeviceHandleByIndex(2)": "NVIDIA H200 MIG 1g.18gb",
            "nvmlDeviceGetMigDeviceHandleByIndex(5)": "NVIDIA H200 MIG 1g.18gb",
        },
    )
    assert values(facts["gpu.mig_mode"]) == {"GPU0": "enabled"}
    assert values(facts["gpu.mig_devices"]) == {"GPU0": {"3g.71gb": 1, "1g.18gb": 2}}


def test_a_process_is_told_with_its_name_and_owner(nvml, tree):
    tree({"/proc/4711/status": "Name:\tpython\nUid:\t1000\t1000\t1000\t1000\n", "/proc/4711/comm": "python\n"})
    running = [fake_pynvml._structure({"pid": pid, "usedGpuMemory": 1 << 30}) for pid in (4711, 4712)]
    facts = nvml(count=1, answers={"nvmlDeviceGetComputeRunningProcesses": running})
    assert values(facts["gpu.compute_running_processes"])["GPU0"] == [
        {"pid": 4711, "used_memory": 1 << 30, "name": "python", "uid": 1000},
        {"pid": 4712, "used_memory": 1 << 30, "name": None, "uid": None},
    ]


def test_nvml_is_always_shut_down_and_nothing_is_set(nvml):
    nvml(errors={"nvmlDeviceGetCount": UNKNOWN})
    assert nvml.replay.calls[-1] == "nvmlShutdown"
    nvml()
    assert nvml.replay.calls[-1] == "nvmlShutdown"
    assert not [call for call in nvml.replay.calls if "Set" in call or "Reset" in call]


def test_a_call_is_named_before_it_is_made(monkeypatch, tree):
    from nodetune.probe import gpu

    tree({"/proc/": None})
    steps = []
    replay = fake_pynvml.Replay(count=2, errors={"nvmlDeviceGetEccMode GPU1": GPU_IS_LOST})
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml.module(replay))
    list(gpu.collect([], steps.append))
    assert replay.calls
    assert set(replay.calls) <= set(steps)


def test_what_proc_tells_is_there_without_nvml(nvml, tree):
    tree(
        {
            "/proc/driver/nvidia/params": "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n",
            "/proc/driver/nvidia/gpus/0000:00:06.0/information": "Model: \t NVIDIA H200\nDevice Minor: \t 0\nGPU Excluded:\t Yes\n",
        }
    )
    facts = nvml(errors={"nvmlInit": LIBRARY_NOT_FOUND})
    assert facts["gpu.profiling_admin_only"] == {"value": True}
    assert facts["gpu.excluded"] == {"value": ["0000:00:06.0"]}


def test_a_gpu_that_the_driver_has_and_we_may_open_is_not_hidden(nvml, tree):
    tree(
        {
            "/proc/driver/nvidia/gpus/0000:00:06.0/information": "Device Minor: \t 0\n",
            "/proc/driver/nvidia/gpus/0000:99:00.0/information": "Device Minor: \t 9\n",
            "/dev/nvidia9": "",
        }
    )
    assert nvml()["gpu.hidden"] == {"value": []}


def test_a_gpu_that_we_may_not_open_is_hidden(nvml, tree, monkeypatch):
    from nodetune.probe import gpu

    tree({"/proc/driver/nvidia/gpus/0000:99:00.0/information": "Device Minor: \t 9\n"})
    really = gpu.os.open

    def refused(path, *rest):
        if str(path).endswith("/dev/nvidia9"):
            raise PermissionError(1, "Operation not permitted")
        return really(path, *rest)

    monkeypatch.setattr(gpu.os, "open", refused)
    assert nvml()["gpu.hidden"] == {"value": ["0000:99:00.0"]}


def test_the_library_of_a_driver_container_is_found(tmp_path):
    """In a fresh process: a loaded library stays loaded."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    library = tmp_path / "run/nvidia/driver/usr/lib64/libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    source = tmp_path / "nvml.c"
    source.write_text("int nvmlInitWithFlags(unsigned flags) { return 9; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", library, source], check=True)
    code = f"""
from nodetune.probe import nvml, read
read.ROOT = {str(tmp_path)!r}
library = nvml.load()
try:
    library.nvmlInit()
except library.NVMLError as problem:
    print(problem.value)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "9\n", "the driver is not loaded, says the library that was found"


def test_locks_since_the_boot_are_told_without_released_ones(nvml, tree):
    assert nvml(names=["locks"])["gpu.locks"] == {"absent": "not present on this host"}
    tree({"/run/nodetune/gpu-locks.json": '{"GPU-a": {"locked_clocks": [345, 1500], "locked_memory_clocks": "none"}}'})
    assert nvml(names=["locks"])["gpu.locks"] == {"value": {"GPU-a": {"locked_clocks": [345, 1500]}}}
    for torn in ("[]", '{"GPU-a": 1}', "{"):
        tree({"/run/nodetune/gpu-locks.json": torn})
        assert "unread" in nvml(names=["locks"])["gpu.locks"], torn


def test_time_held_back_is_in_seconds_by_cause(nvml):
    power, brake = {"field 74": 3_600_500_000_000, "field 79": 0}, {"field 271": 90_000_000_000}
    facts = nvml(power | brake, count=1)
    assert values(facts["gpu.violations"]) == {"GPU0": {"power": 3600, "reliability": 0, "power_brake": 90}}


@pytest.mark.parametrize(
    ("driver", "brake"),
    [
        ("570.86.15", None),
        ("575.57.08", 253),
        ("580.65.06", 253),
        ("580.76.05", None),
        ("580.82.07", 271),
        ("610.43.02", 271),
    ],
)
def test_each_driver_numbers_the_power_brake_its_own_way(nvml, driver, brake):
    fields = {f"field {number}": number * 10**9 for number in (74, 253, 271)}
    found = values(nvml({**fields, "nvmlSystemGetDriverVersion": driver}, count=1)["gpu.violations"])["GPU0"]
    assert found == {"power": 74, **({"power_brake": brake} if brake else {})}


def test_a_gpu_without_such_counters_has_none(nvml):
    assert "absent" in nvml(count=1)["gpu.violations"]["each"]["GPU0"]


def test_each_fan_has_its_policy(nvml):
    answers = {
        "nvmlDeviceGetNumFans": 2,
        "nvmlDeviceGetFanControlPolicy_v2(0)": 0,
        "nvmlDeviceGetFanControlPolicy_v2(1)": 1,
    }
    assert values(nvml(answers, count=1)["gpu.fan_policy"]) == {"GPU0": ["automatic", "manual"]}
    assert nvml(count=1)["gpu.fan_policy"]["each"] == {"GPU0": {"absent": "no fan of its own"}}


def test_power_profiles_in_force_are_named_in_order(nvml):
    answers = {"power profiles GPU0": [7, 1], "power profiles GPU1": [], "power profiles GPU2": [200]}
    assert values(nvml(answers, count=3)["gpu.power_profiles"]) == {
        "GPU0": ["max-q", "llm-training"],
        "GPU1": [],
        "GPU2": ["profile-200"],
    }
    assert "absent" in nvml(count=1)["gpu.power_profiles"]["each"]["GPU0"], "Hopper has none"


def test_power_profiles_have_the_numbers_of_nvml():
    library = {
        name.removeprefix("NVML_POWER_PROFILE_"): number
        for name, number in vars(pynvml).items()
        if "_POWER_PROFILE_" in name
    }
    assert {name: library[name.upper().replace("-", "_")] for name in gpu_power.PROFILES} == {
        name: number for number, name in enumerate(gpu_power.PROFILES)
    }

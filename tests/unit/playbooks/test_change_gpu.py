"""The resource of GPU settings over the substitute NVML (tests/machines/nvml), each step in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import nvml_substitute

HOST_CODE = Path(__file__).parents[3] / "playbooks" / "module_utils"

pytestmark = [
    pytest.mark.slow,  # each step is a process
    pytest.mark.skipif(bool(nvml_substitute.compiler_missing()), reason=nvml_substitute.compiler_missing()),
    pytest.mark.skipif(os.geteuid() != 0, reason="NVML lets only root set anything, and so does the stand-in"),
]

HEAD = """
import json, sys
from nodetune_host import clocks, core
from nodetune_host.executor import Executor
from nodetune_host.journal import Journal
from nodetune_host.resources import gpu
order = json.load(sys.stdin)
home = order["home"]
clocks.LOCKS = home + "/run/gpu-locks.json"
"""
CARRY_OUT = """
result = core.Result()
executor = Executor(Journal(order["run"], home))
if "of" in order:
    core.revert(Journal(order["of"], home).entries(), executor, result)
else:
    core.do(order["changes"], executor, result)
print(json.dumps(result.data()))
"""
READ = "print(json.dumps(gpu.read(order['change'])))"
BOOT = "sys.exit(gpu.main(order['file']))"


class Node:
    """A host with the substitute's GPUs in a state of their own."""

    def __init__(self, library, folder):
        self.folder, self.running = folder, folder / "nvml-run"
        self.running.mkdir(parents=True)
        self.env = {
            **os.environ,
            "LD_LIBRARY_PATH": str(library),
            "PYTHONPATH": str(HOST_CODE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NODETUNE_NVML_RUN": str(self.running),
            "NODETUNE_NVML_LIB": str(folder / "nvml-lib"),
        }

    def python(self, code, **order):
        command = [sys.executable, "-c", HEAD + code]
        text = json.dumps({"home": str(self.folder), **order})
        return subprocess.run(command, input=text, env=self.env, capture_output=True, text=True)

    def result(self, code, **order):
        done = self.python(code, **order)
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)

    def do(self, *wishes, run="run", gpus=(0,)):
        changes = [{"change": "gpu", "setting": name, "gpus": list(gpus), "value": value} for name, value in wishes]
        return self.result(CARRY_OUT, run=run, changes=changes)

    def back(self, run="run"):
        return self.result(CARRY_OUT, run=f"{run}-back", of=run)

    def value(self, setting, gpu=0):
        change = {"change": "gpu", "setting": setting, "gpus": [gpu], "value": None}
        return self.result(READ, change=change)[str(gpu)]["value"]

    def devices(self, gpu=0):
        instances = self.value("mig_devices", gpu)["instances"]
        names = [name for instance in instances for name in instance["compute"]]
        return {name: names.count(name) for name in names}

    def control(self, *lines):
        (self.running / "control").write_text("".join(f"{line}\n" for line in lines))

    def forget_locks(self):
        (self.folder / "run/gpu-locks.json").unlink(missing_ok=True)

    def work(self, gpu=0):
        """A program computes there."""
        folder = self.running / f"gpu{gpu}" / "processes"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(os.getpid())).write_text("1000000")

    def boot(self, **settings):
        file = self.folder / "gpu.conf"
        file.write_text(f"# by hand\n# settings: {json.dumps(settings)}\n")
        return self.python(BOOT, file=str(file))


@pytest.fixture
def node(library, tmp_path):
    """A host whose driver keeps settings: persistence mode is on."""
    made = Node(library, tmp_path)
    assert not made.do(("persistence_mode", "enabled"), run="before", gpus=range(8))["problems"]
    return made


@pytest.mark.parametrize(
    ("setting", "value", "kept"),
    [
        ("compute_mode", "exclusive_process", "exclusive_process"),
        ("accounting_mode", "enabled", "enabled"),
        ("ecc_mode", "disabled", "disabled"),
        ("power_limit", 500_000, 500_000),
        ("locked_clocks", [345, 1005], [345, 1005]),
        ("mig_mode", "enabled", {"mode": "enabled", "instances": []}),
    ],
)
def test_a_setting_is_done_kept_and_undone(node, setting, value, kept):
    before = node.value(setting)
    first = node.do((setting, value))
    assert first["problems"] == [] and first["changed"]
    assert node.value(setting) == kept != before
    again = node.do((setting, value), run="again")
    assert not again["changed"] and again["diff"] == []
    assert node.back()["problems"] == []
    assert node.value(setting) == before


def test_other_gpus_are_left_alone(node):
    node.do(("compute_mode", "prohibited"), gpus=(2, 5))
    modes = [node.value("compute_mode", gpu) for gpu in range(8)]
    assert [gpu for gpu, mode in enumerate(modes) if mode == "prohibited"] == [2, 5]


def test_without_persistence_mode_a_lost_setting_is_reported(library, tmp_path):
    result = Node(library, tmp_path).do(("compute_mode", "prohibited"))
    assert 'but read back GPU0 compute_mode: "default"' in result["problems"][0]["message"]


def test_defaults_and_maxima_are_asked_of_the_gpu(node):
    node.do(("power_limit", 400_000))
    assert node.do(("power_limit", "default"), ("applications_clocks", "max"), run="next")["problems"] == []
    assert node.value("power_limit") == 700_000
    assert node.value("applications_clocks") == [3201, 1980]


def test_a_power_limit_out_of_range_is_refused_in_one_line(node):
    message = node.do(("power_limit", 5_000_000))["problems"][0]["message"]
    assert message == "GPU0: a power limit of 5000000 mW is not between 200000 and 700000"


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("locked_clocks", [1501, 1501], "GPU0: it has no SM clock of 1501 MHz: use 1500 or 1515, of 345 to 1980"),
        ("locked_clocks", [345, 2000], "GPU0: it has no SM clock of 2000 MHz: use 1980, of 345 to 1980"),
        ("locked_clocks", [1500, 345], "GPU0: clocks from 1500 to 345 MHz: write the lower clock first"),
        ("locked_memory_clocks", [2200, 2200], "GPU0: it has no memory clock of 2200 MHz: use 2201, of 2201 to 3201"),
    ],
)
def test_a_clock_that_the_gpu_lacks_is_refused_in_one_line(node, setting, value, why):
    before = node.value(setting)
    result = node.do((setting, value))
    assert result["problems"][0]["message"].startswith(why) and not result["changed"]
    assert node.value(setting) == before


def test_1500_mhz_outlast_a_reboot_and_a_rollback_releases_them(node):
    wish = {"persistence_mode": {"0": "enabled"}, "locked_clocks": {"0": [1500, 1500]}, "power_limit": {"0": 600_000}}
    assert node.do(("locked_clocks", [1500, 1500]), ("power_limit", 600_000))["problems"] == []
    node.work()
    clock = "import pynvml; pynvml.nvmlInit(); gpu0 = pynvml.nvmlDeviceGetHandleByIndex(0); "
    clock += (
        "print(json.dumps([pynvml.nvmlDeviceGetClockInfo(gpu0, 1), pynvml.nvmlDeviceGetPowerManagementLimit(gpu0)]))"
    )
    assert node.result(clock) == [1500, 600_000]
    shutil.rmtree(node.running)
    node.running.mkdir()
    node.forget_locks()
    node.work()
    assert node.result(clock) == [1980, 700_000], "the reboot took them"
    assert node.boot(**wish).returncode == 0
    assert node.result(clock) == [1500, 600_000]
    assert node.back()["problems"] == []
    assert node.result(clock) == [1980, 700_000]


def test_a_lock_that_others_set_is_seen_released_and_put_back(node):
    node.do(("locked_clocks", [345, 1005]))
    node.forget_locks()  # as if nvidia-smi had set it
    node.work()
    result = node.do(("locked_clocks", "none"), run="release")
    assert result["changed"] and result["problems"] == []
    assert node.value("locked_clocks") == "none"
    assert node.back("release")["problems"] == []
    assert node.value("locked_clocks")[1] == 1005


def test_a_lock_that_an_idle_gpu_hides_is_released_too(node):
    node.do(("locked_clocks", [345, 1005]))
    node.forget_locks()
    assert node.value("locked_clocks") == "unknown"
    assert node.do(("locked_clocks", "none"), run="release")["problems"] == []
    assert not node.do(("locked_clocks", "none"), run="again")["changed"]
    node.work()
    assert node.value("locked_clocks") == "none"


def test_a_mig_layout_is_made_changed_and_undone(node):
    assert node.do(("mig_devices", {"1g.18gb": 7}))["problems"] == []
    assert node.devices() == {"1g.18gb": 7}
    mixed = {"1g.18gb": 2, "3g.71gb": 1, "1g.35gb": 1}
    assert node.do(("mig_devices", mixed), run="mixed")["problems"] == []
    assert node.devices() == mixed
    places = {(each["profile"], each["start"]) for each in node.value("mig_devices")["instances"]}
    assert node.back("mixed")["problems"] == []
    assert node.devices() == {"1g.18gb": 7}
    assert node.back()["problems"] == []
    assert node.value("mig_mode") == {"mode": "disabled", "instances": []}
    assert ("3g.71gb", 0) in places


def test_parts_of_a_gpu_instance_share_it(node):
    assert node.do(("mig_devices", {"1c.3g.71gb": 5}))["problems"] == []
    assert [len(each["compute"]) for each in node.value("mig_devices")["instances"]] == [3, 2]


def test_the_same_layout_in_other_places_is_not_made_again(node):
    node.do(("mig_devices", {"1g.18gb": 1, "2g.35gb": 1}))
    assert not node.do(("mig_devices", [["2g.35gb", 1], ["1g.18gb", 1]]), run="again")["changed"]


def test_a_layout_that_does_not_fit_takes_nothing_down(node):
    node.do(("mig_devices", {"1g.18gb": 3}))
    result = node.do(("mig_devices", {"7g.141gb": 1, "1g.18gb": 1}), run="too-much")
    assert (
        "GPU0: 1g.18gb, 7g.141gb do not fit on it together" in result["problems"][0]["message"]
        and not result["changed"]
    )
    assert node.devices() == {"1g.18gb": 3}


@pytest.mark.parametrize("layout", [{"9g.18gb": 1}, {"nonsense": 1}, {"1g.18gb": -1}, {"1g.18gb": "2"}])
def test_a_layout_that_there_is_not_is_refused_in_one_line(node, layout):
    message = node.do(("mig_devices", layout))["problems"][0]["message"]
    assert "\n" not in message and "fault in nodetune" not in message


def test_a_layout_that_fails_half_way_is_put_back(node):
    node.do(("mig_devices", {"3g.71gb": 1, "1g.18gb": 2}))
    before = node.value("mig_devices")
    message = node.do(("mig_devices", {"1c.1g.18gb": 1, "2g.35gb": 1}), run="half")["problems"][0]["message"]
    assert "has no part 1c.1g.18gb" in message and message.endswith("the previous layout was restored")
    assert node.value("mig_devices") == before


def test_a_busy_gpu_keeps_its_layout(node):
    node.do(("mig_devices", {"1g.18gb": 2}))
    node.control("busy=1")
    message = node.do(("mig_devices", {"7g.141gb": 1}), run="busy")["problems"][0]["message"]
    assert "In use" in message and message.endswith("the previous layout was restored")
    assert node.devices() == {"1g.18gb": 2}


def test_mig_mode_goes_off_with_its_instances_and_both_come_back(node):
    node.do(("mig_devices", {"1g.18gb": 2}))
    assert node.do(("mig_mode", "disabled"), run="off")["problems"] == []
    assert node.value("mig_mode") == {"mode": "disabled", "instances": []}
    node.back("off")
    assert node.devices() == {"1g.18gb": 2}


def test_a_lost_gpu_costs_only_itself_and_is_named(node):
    node.control("lost@1=1")
    result = node.boot(compute_mode={"0": "prohibited", "1": "prohibited", "2": "prohibited"})
    assert result.returncode == 1
    assert "GPU1: nvmlDeviceGetUUID" in result.stderr or "GPU1: nvmlDeviceGetHandleByIndex" in result.stderr
    assert [node.value("compute_mode", gpu) for gpu in (0, 2)] == ["prohibited", "prohibited"]


def test_a_hanging_driver_is_given_up_and_its_call_named(node):
    node.control("hang=nvmlDeviceSetComputeMode:forever")
    code = CARRY_OUT.replace(
        "result = ", "from nodetune_host import nvml\nnvml.CALL_SECONDS = nvml.GPU_SECONDS = 1\nresult = ", 1
    )
    changes = [{"change": "gpu", "setting": "compute_mode", "gpus": [0], "value": "prohibited"}]
    message = node.result(code, run="run", changes=changes)["problems"][0]["message"]
    assert "did not answer within 2 s (at GPU0: nvmlDeviceSetComputeMode)" in message


@pytest.mark.parametrize(
    ("told", "said"),
    [("driver_not_loaded=1", "driver is not loaded"), ("version_mismatch=1", "are of different versions")],
)
def test_a_driver_that_does_not_work_is_one_line(node, told, said):
    node.control(told)
    assert said in node.do(("compute_mode", "prohibited"))["problems"][0]["message"]


def test_what_a_gpu_does_not_have_is_one_line(node):
    node.control("not_supported=nvmlDeviceGetApplicationsClock")
    message = node.do(("applications_clocks", "max"))["problems"][0]["message"]
    assert message == "GPU0: nvmlDeviceGetApplicationsClock: Not Supported"


def test_at_boot_everything_comes_back(node):
    settings = {
        "locked_clocks": {"0": [345, 1005], "1": "none"},
        "mig_devices": {"3": [["1g.18gb", 7]]},
        "mig_mode": {"3": "enabled"},
        "persistence_mode": {str(gpu): "enabled" for gpu in range(8)},
        "power_limit": {"0": 600_000},
    }
    shutil.rmtree(node.running)
    node.running.mkdir()
    node.forget_locks()
    assert node.value("persistence_mode") == "disabled"
    result = node.boot(**settings)
    assert (result.returncode, result.stderr) == (0, "")
    assert {node.value("persistence_mode", gpu) for gpu in range(8)} == {"enabled"}
    assert node.value("locked_clocks") == [345, 1005]
    assert node.value("power_limit") == 600_000
    assert node.devices(3) == {"1g.18gb": 7}
    assert node.boot(**settings).stdout == "", "a second time there is nothing to set"


@pytest.mark.parametrize("text", ["# settings: {", "# settings: []"])
def test_a_torn_settings_file_is_one_line_at_boot(node, text):
    (node.folder / "gpu.conf").write_text(text)
    result = node.python(BOOT, file=str(node.folder / "gpu.conf"))
    assert result.returncode == 1
    assert result.stderr.startswith("nodetune: ") and result.stderr.count("\n") == 1

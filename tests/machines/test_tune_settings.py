"""What `nodetune tune gpu` leaves on a machine: its proposal as any fix, and nothing of a trial whose power was cut."""

import contextlib
import importlib.util
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

import nodetune
from tests.machines.place import until
from tests.machines.test_apply import Controller

THERE = "/root/trial"
WISHED = {"NVIDIA H200": "1500MHz"}
PROPOSAL = {"checks": {"gpu-sm-clock-unwanted": {"accept": {"by_model": WISHED}, "set": WISHED}}}
"""As tests/unit/tune/test_gpu_bench.py shows that a ladder proposes it."""

GPUS = """
import json, os, signal, sys, time
sys.path.insert(0, "/root/trial")
import pynvml as nvml
nvml.nvmlInit()
found = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(8)]
def state():
    return [[nvml.nvmlDeviceGetPowerManagementLimit(each) // 1000, nvml.nvmlDeviceGetClockInfo(each, 1)] for each in found]
"""
HOLD = """
from nodetune.measurements.cuda import gpus
from nodetune.measurements.host import gpu_settings, temporary_settings
seen = [gpus.Seen("GPU%d" % number, nvml, handle) for number, handle in enumerate(found)]
wish = {"power_limit": 500000, "locked_clocks": [1005, 1005]}
with temporary_settings.held(gpu_settings.of_gpus(wish, seen)):
    print(json.dumps([os.getpid(), state()]), flush=True)
    time.sleep(float(sys.argv[1]))
"""
PROPOSED, TRIED, FREE = [[700, 1500]] * 8, [[500, 1005]] * 8, [[700, 1980]] * 8
BUSY = """
for gpu in 0 1 2 3 4 5 6 7; do
    mkdir -p /run/nodetune-nvml/gpu$gpu/processes && echo 1000 > /run/nodetune-nvml/gpu$gpu/processes/1
done
"""
"""Every GPU has work of process 1: only then do its clocks show."""


class Story(Controller):
    def hosts(self):
        site = self.folder / "tuning-gpu.site.yml"
        site.write_text(yaml.safe_dump(PROPOSAL))
        return "-i", str(self.inventory), "--site", str(site), "--timeout", "240", "-s", *PROPOSAL["checks"]


@pytest.fixture(scope="module")
def machine(fleet):
    made = fleet(1)[0]
    made.ssh(f"mkdir -p {THERE}/nodetune /var/lib/nodetune-nvml")
    made.write("/var/lib/nodetune-nvml/control", "keep_without_clients=1\n")
    for name in ("__init__.py", "onhost", "measurements"):
        made.put(Path(nodetune.__file__).with_name(name), f"{THERE}/nodetune/{name}")
    made.put(Path(importlib.util.find_spec("pynvml").origin), f"{THERE}/pynvml.py")
    made.ssh("sync")  # the power goes
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def controller(machine, tmp_path_factory):
    return Story(tmp_path_factory.mktemp("controller"), machine)


def clocks(machine):
    """Return the power limit in watts and the SM clock in MHz of each GPU under load."""
    told = machine.ssh(f"{BUSY}{python('print(json.dumps(state()))')}").stdout
    return yaml.safe_load(told)


def python(code, *words):
    return shlex.join(["python3", "-B", "-c", GPUS + code, *map(str, words)])


@contextlib.contextmanager
def trial(machine, seconds):
    """Hold what a trial holds; yield the number of its process there. At the end, that process is gone."""
    words = ["ssh", *machine.ssh_options(), f"root@{machine.address}", "--", f"{BUSY}{python(HOLD, seconds)}"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        there, state = yaml.safe_load(process.stdout.readline())
        assert state == TRIED
        yield there


@pytest.fixture(scope="module")
def applied(controller, machine):
    assert clocks(machine) == FREE
    run = controller.apply("--yes")["run"]
    assert clocks(machine) == PROPOSED
    return run


def assert_compliant(controller):
    (host,) = controller("audit", *controller.hosts())["hosts"]
    assert {each["check"]: each["status"] for each in host["findings"]} == {"gpu-sm-clock-unwanted": "pass"}


def test_after_a_trial_the_gpus_have_what_the_site_wants(controller, machine, applied):
    with trial(machine, 1):
        pass
    assert clocks(machine) == PROPOSED
    assert_compliant(controller)


def test_a_killed_trial_gives_back_what_the_site_wants(controller, machine, applied):
    with trial(machine, 600) as there:
        machine.ssh(f"kill -KILL {there}")
    until("the helper has restored the settings", lambda: clocks(machine) == PROPOSED, 120)
    assert machine.ssh("ls /run/nodetune/trial.json", check=False).stdout == ""


def test_a_power_cut_within_a_trial_leaves_what_the_site_wants(controller, machine, applied):
    with trial(machine, 600):
        machine.power_cut()
    machine.power_on()
    machine.ssh("timeout 600 systemctl is-system-running --wait", check=False, timeout=660)
    assert clocks(machine) == PROPOSED
    assert machine.ssh("ls /run/nodetune/trial.json", check=False).stdout == ""
    assert_compliant(controller)
    with trial(machine, 1):
        pass


def test_the_proposal_is_rolled_back_like_any_fix(controller, machine, applied):
    controller("rollback", applied, "--yes", "--timeout", "240")
    assert clocks(machine) == FREE
    assert machine.ssh("ls /etc/systemd/system/nodetune-gpu.service", check=False).stdout == ""

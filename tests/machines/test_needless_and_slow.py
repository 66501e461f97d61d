"""Needless services and timers, slow mounts, swap and settings of GPUs: applied, kept over a reboot, rolled back."""

import importlib.util
import json
from types import SimpleNamespace

import pytest

from tests.machines import witness
from tests.machines.test_apply import Controller

THERE = "/root/witness"
UNIT = "[Unit]\nDescription=played\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
JOB = "[Unit]\nDescription=played\n[Service]\nType=oneshot\nExecStart=/bin/true\n"
TIMER = "[Unit]\nDescription=played\n[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n"
UNITS = {
    "ModemManager.service": UNIT,
    "cups.service": UNIT,
    "man-db.service": JOB,
    "man-db.timer": TIMER,
    "plocate-updatedb.service": JOB,
    "plocate-updatedb.timer": TIMER,
}
STAY, NEEDLESS = ("cups.service", "man-db.timer"), ("ModemManager.service", "plocate-updatedb.timer")
SITE = """
checks:
  background-services-running: {accept: {one_of: [cups]}, set: masked}
  background-timers-active: {accept: {one_of: [man-db.timer]}, set: masked}
  gpu-memory-clock-unwanted: {accept: {by_model: {NVIDIA H200: 2201MHz}}, set: {NVIDIA H200: 2201MHz}}
"""
CHECKS = (
    "background-services-running",
    "background-timers-active",
    "data-written-synchronously",
    "gpu-memory-clock-unwanted",
    "gpu-power-limit-unequal",
    "overcommit-strict",
    "persistenced-not-running",
    "swap-on",
    "write-barriers-off",
)
PLANT = f"""
sed -i 's|^\\(UUID=.* /data ext4\\) [^ ]*|\\1 sync,nobarrier,nofail|' /etc/fstab
mount -o remount,sync,nobarrier /data
systemctl -q disable --now nvidia-persistenced
systemctl daemon-reload
systemctl -q enable --now {" ".join((*STAY, *NEEDLESS))}
echo 'vm.overcommit_memory = 2' > /etc/sysctl.d/99-site.conf
sysctl -q vm.overcommit_ratio=100 vm.overcommit_memory=2
mkdir -p /var/lib/nodetune-nvml
echo keep_without_clients=1 > /var/lib/nodetune-nvml/control
"""
LIMITS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import pynvml as nvml
nvml.nvmlInit()
gpus = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(8)]
for watts in sys.argv[2:]:
    nvml.nvmlDeviceSetPowerManagementLimit(gpus[3], 1000 * int(watts))
print(json.dumps([[nvml.nvmlDeviceGetPowerManagementLimit(gpu) // 1000 for gpu in gpus],
                  [nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM) for gpu in gpus]]))
"""


class Story(Controller):
    def hosts(self):
        site = self.folder / "site.yml"
        site.write_text(SITE)
        selected = (word for check in CHECKS for word in ("--select", check))
        return "-i", str(self.inventory), "--site", str(site), "--timeout", "240", *selected


@pytest.fixture(scope="module")
def machine(fleet):
    made = fleet(1)[0]
    made.ssh(f"mkdir -p {THERE}")
    made.put(importlib.util.find_spec("pynvml").origin, f"{THERE}/pynvml.py")
    for name, text in UNITS.items():
        made.write(f"/usr/lib/systemd/system/{name}", text)
    made.ssh(f"set -e\n{PLANT}", timeout=600)
    gpus(made, "500")
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def nodetune(machine, tmp_path_factory):
    return Story(tmp_path_factory.mktemp("controller"), machine)


def gpus(machine, *watts):
    """Return the power limits in watts and the memory clocks in MHz of the eight GPUs."""
    return json.loads(machine.ssh(f"python3 -B - {THERE} {' '.join(watts)}", input=LIMITS).stdout)


def units(machine):
    """Unit → what systemctl says of now and of the next boot."""
    names = (*STAY, *NEEDLESS, "nvidia-persistenced.service")
    told = machine.ssh(f"systemctl is-active {' '.join(names)}; systemctl is-enabled {' '.join(names)}", check=False)
    words = told.stdout.split()
    return dict(zip(names, zip(words[: len(names)], words[len(names) :], strict=True), strict=True))


def snapshot(machine):
    options = machine.ssh("findmnt -no OPTIONS /data").stdout.strip().split(",")
    return SimpleNamespace(
        files=witness.files(machine),
        units=units(machine),
        gpus=gpus(machine),
        slow={"sync", "nobarrier"} & set(options),
        swap=machine.ssh("swapon --noheadings --show=NAME").stdout.split(),
        overcommit=machine.ssh("cat /proc/sys/vm/overcommit_memory").stdout.strip(),
    )


@pytest.fixture(scope="module")
def before(machine):
    return snapshot(machine)


@pytest.fixture(scope="module")
def applied(nodetune, before):
    return nodetune.apply("--reboot", "--yes")


@pytest.fixture(scope="module")
def after(machine, applied):
    """The machine after one more boot."""
    machine.reboot()
    return snapshot(machine)


@pytest.fixture(scope="module")
def rolled_back(nodetune, machine, applied, after):
    nodetune("rollback", applied["run"], "--yes", "--timeout", "240")
    return snapshot(machine)


def test_everything_was_wrong(before):
    assert before.slow == {"sync", "nobarrier"}
    assert before.swap == ["/dev/vdb"]
    assert before.overcommit == "2"
    assert before.gpus == [[700] * 3 + [500] + [700] * 4, [3201] * 8]
    assert {before.units[each] for each in (*STAY, *NEEDLESS)} == {("active", "enabled")}


def test_each_check_is_fixed(applied):
    outcomes = {step["check"]: (step["outcome"], step["reason"]) for step in applied["steps"]}
    assert outcomes == dict.fromkeys(CHECKS, ("fixed", ""))


def test_the_host_is_as_wanted_after_a_further_boot(after):
    assert (after.slow, after.swap, after.overcommit) == (set(), [], "0")
    assert after.gpus == [[700] * 8, [2201] * 8]
    assert after.units["nvidia-persistenced.service"] == ("active", "enabled")


def test_needless_units_are_masked_and_those_of_the_site_run_on(after):
    assert {after.units[each] for each in NEEDLESS} == {("inactive", "masked")}
    assert {after.units[each] for each in STAY} == {("active", "enabled")}


def test_nothing_is_left_to_fix(nodetune, after):
    (host,) = nodetune("audit", *nodetune.hosts())["hosts"]
    assert {each["check"]: each["status"] for each in host["findings"]} == dict.fromkeys(CHECKS, "pass")


def test_a_rollback_restores_every_file_and_what_runs(before, rolled_back):
    assert witness.changed(before.files, rolled_back.files) == {}
    assert {**vars(rolled_back), "files": ""} == {**vars(before), "files": ""}

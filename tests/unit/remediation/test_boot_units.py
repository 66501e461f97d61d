"""The units that set things at boot, and the udev rules that start them with their driver, as systemd reads them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from nodetune.api.model import Absent, HostFacts, Value
from nodetune.api.remedies import cpufreq, gpu, irq_affinity
from tests.support.fixing import built, files, finding_of

UNITS, RULES = "/etc/systemd/system/", "/etc/udev/rules.d/"
OLD = Path(__file__).parents[2] / "data" / "from-0.1" / "own"


def written(remedy, value, subjects=()):
    """The files that a fix writes on a plain host."""
    names = ("tuned", "ondemand", "cpufrequtils", "loadcpufreq", "cpupower", "power-profiles-daemon", "irqbalance")
    facts = {f"services.{name}": Absent("not installed") for name in (*names, "nvidia-persistenced", "tuned_profile")}
    facts |= {"gpu.uuid": Absent(), "irq.irqbalance": Absent(), "irq.static_affinity": Value([])}
    host = HostFacts("gpu01", {"host.os": Value({"id": "debian"}), "own.files": Value({}), **facts})
    return files(built(host, finding_of(remedy, value, subjects)))


FIXES = {
    "cpu": (cpufreq("governor"), "performance"),
    "gpu": (gpu("compute_mode"), "default", ("GPU0",)),
    "irq": (irq_affinity(), "local"),
}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
@pytest.mark.parametrize("name", FIXES)
def test_systemd_finds_nothing_wrong_with_a_boot_unit(tmp_path, name):
    unit = tmp_path / f"nodetune-{name}.service"
    unit.write_text(written(*FIXES[name])[f"{UNITS}{unit.name}"])
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (done.returncode, "nodetune" in done.stderr) == (0, False), done.stderr


UDEV = """
mount -t tmpfs none /run && mount --bind "$1/rules" /usr/lib/udev/rules.d && mount --bind "$1/module" /sys/module &&
SYSTEMD_DEVICE_VERIFY_SYSFS=0 udevadm test --action=add "/sys/module/$2"
"""


def started_by_udev(folder, rules, module):
    """The units that udev wants when the kernel tells of a module, by udev itself with these rules alone."""
    (folder / "rules").mkdir()
    (folder / "rules/99.rules").write_text(rules)
    (folder / "module" / module).mkdir(parents=True)
    (folder / "module" / module / "uevent").write_text("\n")
    alone = ["unshare", "--map-root-user", "--mount"]
    if not shutil.which("udevadm") or subprocess.run([*alone, "mount", "-t", "tmpfs", "none", "/run"]).returncode:
        pytest.skip("needs udev and the right to make a mount namespace")
    done = subprocess.run([*alone, "sh", "-c", UDEV, "sh", folder, module], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert ("TAGS=:systemd:" in lines) == any(line.startswith("SYSTEMD_WANTS=") for line in lines)
    return next((line.partition("=")[2] for line in lines if line.startswith("SYSTEMD_WANTS=")), "")


@pytest.mark.parametrize(
    ("name", "module", "wanted"),
    [
        ("cpu", "acpi_cpufreq", "nodetune-cpu.service"),
        ("cpu", "cppc_cpufreq", "nodetune-cpu.service"),
        ("cpu", "amd_pstate", "nodetune-cpu.service"),
        ("cpu", "e1000", ""),
        ("gpu", "nvidia", "nodetune-gpu.service"),
        ("gpu", "nvidia_uvm", ""),
    ],
)
def test_udev_starts_a_boot_unit_when_its_driver_comes(tmp_path, name, module, wanted):
    rules = written(*FIXES[name])[f"{RULES}99-zz-nodetune-{name}.rules"]
    assert started_by_udev(tmp_path, rules, module) == wanted


def test_a_boot_unit_that_failed_may_start_with_each_driver():
    for name in ("cpu", "gpu"):
        assert "\nStartLimitIntervalSec=0\n" in written(*FIXES[name])[f"{UNITS}nodetune-{name}.service"]


def test_files_of_0_1_are_replaced_where_they_are():
    now = {path for each in FIXES.values() for path in written(*each)}
    old = {str(path).removeprefix(str(OLD)) for path in OLD.rglob("nodetune-*.service")}
    assert len(old) == 2
    assert old <= now

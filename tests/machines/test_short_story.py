"""Boot, apply, reboot, rollback, in minutes: always runs, also where every other file is proven (suite.py).

At each boot the driver of CPU frequencies comes late, as it does on a busy host.
"""

from types import SimpleNamespace

import pytest
import yaml

from tests.machines.faults import SEVERAL, Site

CHECKS = (*SEVERAL, "governor-not-performance", "site-watchdog-on")
WATCHDOG = {"id": "site-watchdog-on", "kernel_arg": "nmi_watchdog", "accept": "0", "set": "0"}
INSTALL = "install acpi_cpufreq flock /run/late-driver /root/late-driver; modprobe --ignore-install acpi_cpufreq\n"
LATE_DRIVER = """\
#!/bin/sh
# Waits until nodetune-cpu.service waits for the driver, or has failed without it.
exec timeout 120 sh -c 'until pgrep -f "[u]devadm settle" || systemctl -q is-failed nodetune-cpu; do sleep 1; done'
"""
GOVERNORS = "cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"


@pytest.fixture(scope="module")
def site(fleet, tmp_path_factory):
    (machine,) = fleet(1)
    machine.write("/root/late-driver", LATE_DRIVER, mode="755")
    machine.write("/etc/modprobe.d/late-driver.conf", INSTALL)
    yield Site(machine, tmp_path_factory.mktemp("site"))
    fleet.stop(machine)


def snapshot(site):
    return SimpleNamespace(files=site.files(), values=site.values(), governors=site.says(GOVERNORS).split())


@pytest.fixture(scope="module")
def before(site):
    return snapshot(site)


@pytest.fixture(scope="module")
def applied(site, before):
    """An apply with its reboot."""
    file = site.folder / "site.yml"
    file.write_text(yaml.safe_dump({"add": [WATCHDOG]}))
    chosen = [word for check in CHECKS for word in ("-s", check)]
    answer = site.nodetune("apply", *chosen, "--site", str(file), "--max-disruption", "reboot", "--reboot")
    return SimpleNamespace(answer=answer, after=snapshot(site))


@pytest.fixture(scope="module")
def rolled_back(site, applied):
    return SimpleNamespace(answer=site.roll_back(applied.answer.run), after=snapshot(site))


def test_an_apply_with_reboot_fixes_every_finding(applied):
    assert applied.answer.code == 0, applied.answer
    assert applied.answer.outcomes == dict.fromkeys(CHECKS, "fixed"), applied.answer


def test_settings_hold_after_the_reboot(site, before, applied):
    assert applied.after.values != before.values
    assert "nmi_watchdog=0" in site.machine.read("/proc/cmdline").split()


def test_the_governor_is_set_at_boot_where_its_driver_is_late(site, before, applied):
    assert set(before.governors) == {"schedutil"}
    assert applied.after.governors == ["performance"] * 8
    assert site.says("systemctl --failed --no-legend --plain") == ""


def test_a_rollback_restores_files_and_values(site, before, rolled_back):
    assert rolled_back.answer.code == 0, rolled_back.answer
    assert rolled_back.after == before
    assert site.left_behind() == ""

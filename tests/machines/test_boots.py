"""Boots, as many as NODETUNE_BOOTS says: CPU settings hold however busy the boot, and however late the driver comes."""

import os

import pytest

from tests.machines.faults import Site

BOOTS = int(os.environ.get("NODETUNE_BOOTS", "2"))
GOVERNORS = "sort -u /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
END_OF_BOOT = "timeout 600 systemctl is-system-running --wait"
BUSY = """\
[Unit]
DefaultDependencies=no

[Service]
ExecStart=/bin/sh -c 'for each in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do while :; do :; done & done; wait'
RuntimeMaxSec=120

[Install]
WantedBy=sysinit.target
"""
LATE = """\
[Unit]
After=nodetune-cpu.service

[Service]
Type=oneshot
ExecStart=/usr/bin/env modprobe acpi_cpufreq

[Install]
WantedBy=multi-user.target
"""


@pytest.fixture(scope="module")
def site(fleet, tmp_path_factory):
    """A machine whose governor an apply has set."""
    (machine,) = fleet(1)
    made = Site(machine, tmp_path_factory.mktemp("site"))
    answer = made.apply(("governor-not-performance",))
    assert answer.code == 0, answer
    yield made
    fleet.stop(machine)


def boot_with(site, name, unit):
    site.machine.write(f"/etc/systemd/system/{name}.service", unit)
    site.machine.ssh(f"systemctl enable {name}.service")


def test_the_governor_holds_after_each_busy_boot(site):
    boot_with(site, "busy", BUSY)
    for number in range(BOOTS):
        site.machine.reboot()
        site.machine.ssh(END_OF_BOOT, check=False, timeout=660)
        assert site.says(GOVERNORS) == "performance", f"boot {number + 1} of {BOOTS}"
        assert site.says("systemctl is-failed nodetune-cpu.service") == "active"
    site.machine.ssh("systemctl disable busy.service")


def test_a_driver_after_the_unit_gave_up_starts_it_again(site):
    site.machine.write("/etc/modprobe.d/late.conf", "blacklist acpi_cpufreq\n")
    boot_with(site, "late", LATE)
    site.machine.reboot()
    site.machine.ssh(END_OF_BOOT, check=False, timeout=660)
    site.machine.ssh("timeout 120 sh -c 'until systemctl -q is-active nodetune-cpu.service; do sleep 1; done'")
    assert site.says(GOVERNORS) == "performance"
    assert "not on this host" in site.says("journalctl -b -u nodetune-cpu.service -o cat")

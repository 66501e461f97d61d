"""tuned on one machine sets other values than the checks want: its profile is included by nodetune's, and comes back."""

import pytest

from tests.machines.test_apply import Controller

SITE = """[main]
include=throughput-performance
[cpu]
governor=schedutil
[vm]
transparent_hugepages=never
[sysctl]
vm.swappiness=60
"""
OURS = "/etc/tuned/nodetune/tuned.conf"
CHECKS = ("governor-not-performance", "swappiness-high", "thp-unsuitable")
STATE = (
    "cat /etc/tuned/active_profile /etc/tuned/profile_mode /proc/sys/vm/swappiness; "
    "grep -o '\\[.*\\]' /sys/kernel/mm/transparent_hugepage/enabled; "
    "cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor | sort -u"
)
START = (
    "sed -i s/^reapply_sysctl.*/reapply_sysctl=0/ /etc/tuned/tuned-main.conf; "
    "systemctl unmask tuned; systemctl enable --now tuned; tuned-adm profile site"
)


class Story(Controller):
    def hosts(self):
        selected = (word for check in CHECKS for word in ("--select", check))
        return "-i", str(self.inventory), "--timeout", "240", *selected


@pytest.fixture(scope="module")
def machine(fleet):
    made = fleet(1)[0]
    made.write("/etc/tuned/site/tuned.conf", SITE)
    made.ssh(START, timeout=300)
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def nodetune(machine, tmp_path_factory):
    return Story(tmp_path_factory.mktemp("controller"), machine)


def state(machine):
    """Return the active profile and its mode, swappiness, huge pages and the governors, once tuned has set them."""
    machine.ssh("timeout 240 sh -c 'until tuned-adm active | grep -q ^Current; do sleep 1; done'", timeout=300)
    return machine.ssh(STATE).stdout.split()


@pytest.fixture(scope="module")
def before(machine):
    assert state(machine) == ["site", "manual", "60", "[never]", "schedutil"]
    return machine.ssh("find /etc/tuned -type f | sort | xargs sha256sum").stdout


@pytest.fixture(scope="module")
def applied(nodetune, before):
    return nodetune.apply("--yes")


def failing(nodetune):
    told = nodetune("audit", *nodetune.hosts(), "--fail-on", "never")
    return {each["check"] for each in told["hosts"][0]["findings"] if each["status"] == "fail"}


def test_the_profile_of_ours_holds_after_a_reboot(nodetune, machine, applied):
    wanted = ["nodetune", "manual", "30", "[madvise]", "performance"]
    assert state(machine) == wanted
    machine.reboot()
    assert state(machine) == wanted
    assert "include=site" in machine.read(OURS)
    assert failing(nodetune) == set()


def test_a_rollback_makes_the_former_profile_active(nodetune, machine, before, applied):
    nodetune("rollback", applied["run"], "--yes", "--timeout", "240")
    assert state(machine) == ["site", "manual", "60", "[never]", "schedutil"]
    assert machine.ssh("find /etc/tuned -type f | sort | xargs sha256sum").stdout == before
    assert failing(nodetune) == set(CHECKS)

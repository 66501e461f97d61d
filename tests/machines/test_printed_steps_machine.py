"""The commands in the manual steps of checks, run from their text on a machine with the fault: the next audit agrees.

tests/data/printed_steps.yml lists all of them; tests/unit/checks/test_printed_steps.py runs what a private root can have.
"""

import json
import re
import subprocess
from types import SimpleNamespace

import pytest

from nodetune import checks
from tests.machines.faults import NODETUNE

SERVICE = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
TIMER = "/usr/lib/systemd/system/e2scrub_all"  # in /etc, nothing could be masked
PLANT = """
systemctl unmask e2scrub_all.timer
systemctl daemon-reload
systemctl enable --now chrony ntp cups
systemctl enable --now e2scrub_all.timer
systemctl unmask tuned; systemctl enable --now tuned; tuned-adm profile balanced
systemctl set-property docker.service TasksMax=100; systemctl start docker
systemctl set-property system.slice AllowedCPUs=0-3
echo off > /sys/devices/system/cpu/smt/control
echo NCCL_DEBUG=WARN > /etc/nccl.conf; chmod 666 /etc/nccl.conf
"""
STEPS = {
    "several-time-services": (r"systemctl disable --now NAME", {"NAME": "ntp"}),
    "background-services-running": (r"systemctl disable --now NAME", {"NAME": "cups"}),
    "background-timers-active": (r"systemctl mask --now NAME", {"NAME": "e2scrub_all.timer"}),
    "tuned-profile-unsuitable": (r"tuned-adm profile hpc-compute", {}),
    "tasks-max-low": (
        r"echo kernel.threads-max=\d+ > \S+ && sysctl -p [\w/.-]+\w|systemctl set-property NAME.service TasksMax=infinity",
        {"NAME": "docker"},
    ),
    "smt-unexpected": (r"echo on > \S+", {}),
    "job-cpus-confined": (
        r"systemctl set-property system.slice AllowedCPUs=(?= )|systemctl set-property --runtime \S+ \S+ \S+\)",
        {},
    ),
    "nccl-conf-file-unsafe": (r"chown root:root FILE && chmod \d+ FILE", {"FILE": "/etc/nccl.conf"}),
}
"""Check → what its steps print to paste, and what stands there for a word in capitals."""

TAKEN = {
    "input-queue-drops": (
        r"sysctl -w net.core.netdev_max_backlog=\d+",
        "sysctl -n net.core.netdev_max_backlog",
        "16384",
    ),
    "neighbour-table-overflowed": (
        r"sysctl -w (?:\S+gc_thresh\d=\d+,? ?)+(?=, and)",
        "sysctl -n net.ipv4.neigh.default.gc_thresh3 net.ipv4.neigh.default.gc_thresh1",
        "16384\n4096",
    ),
    "receive-overruns": (r"ethtool -G LINK rx MAXIMUM", "ethtool -g ens11 | awk '/^RX:/ {print $2}' | tail -1", "4096"),
}
"""Check → what its steps print, and what the kernel says then: its counters only go back to 0 at the next boot."""

WORDS = {"LINK": "ens11", "MAXIMUM": "4096"}


def printed(check, pattern, words):
    found = [each[0] for each in re.finditer(pattern, checks.load(check).remedy.steps)]
    assert found, f"the steps of {check} print no such thing"
    text = "\n".join(found)
    for word, real in words.items():
        text = text.replace(word, real)
    return text


def failing(site):
    words = [word for check in STEPS for word in ("-s", check)]
    command = [NODETUNE, "audit", *words, "-i", str(site.inventory), "-b", "--timeout", "240", "--format", "json"]
    done = subprocess.run(command, env=site.environment, capture_output=True, text=True, timeout=900)
    (host,) = json.loads(done.stdout)["hosts"]
    found = {each["check"]: each for each in host["findings"] if each["check"] in STEPS}
    return {check for check, each in found.items() if each["status"] == "fail"}, found


@pytest.fixture(scope="module")
def pasted(site):
    """The machine with all faults at once, and then with all that is printed about them."""
    for name in ("chrony", "ntp", "cups"):
        site.machine.write(f"/etc/systemd/system/{name}.service", SERVICE)
    site.machine.write(f"{TIMER}.timer", "[Timer]\nOnCalendar=yearly\n[Install]\nWantedBy=timers.target\n")
    site.machine.write(f"{TIMER}.service", "[Service]\nType=oneshot\nExecStart=/bin/true\n")
    site.machine.ssh(PLANT, timeout=600)
    made = SimpleNamespace(before=failing(site), said={})
    for check, (pattern, words) in STEPS.items():
        made.said[check] = site.machine.ssh(printed(check, pattern, words), check=False, timeout=600)
    made.after = failing(site)
    return made


@pytest.mark.parametrize("check", STEPS)
def test_the_next_audit_agrees_with_what_was_printed(pasted, check):
    failed, found = pasted.before
    assert check in failed, json.dumps(found.get(check))
    assert pasted.said[check].returncode == 0, pasted.said[check]
    failed, found = pasted.after
    assert check not in failed, json.dumps(found.get(check))


@pytest.mark.parametrize("check", TAKEN)
def test_the_kernel_agrees_with_what_was_printed(site, check):
    pattern, asked, wanted = TAKEN[check]
    site.machine.ssh(printed(check, pattern, WORDS))
    assert site.says(asked) == wanted

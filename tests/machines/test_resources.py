"""Each kind of change on a machine with systemd, kernel modules, swap and network cards: done, witnessed, undone.

The code that does it runs on the machine as it would under Ansible, without Ansible: that is tested elsewhere.
"""

import itertools
import json
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.machines.place import until

HOST_CODE = Path(__file__).parents[2] / "playbooks" / "module_utils" / "nodetune_host"
FOLDER = "/root/resources"
DRIVER = f"""
import json, sys
sys.path.insert(0, "{FOLDER}")
from nodetune_host import core
from nodetune_host.executor import Executor
from nodetune_host.journal import Journal
from nodetune_host.problem import ChangeError
from nodetune_host.resources import link
order, result = json.load(sys.stdin), core.Result()
home = "{FOLDER}/state"
executor = Executor(Journal(order["run"], home))
if "changes" in order:
    core.do(order["changes"], executor, result, "test")
if "of" in order:
    core.revert(Journal(order["of"], home).entries(), executor, result)
answer = result.data()
if "confirm" in order:
    try:
        answer["confirmed"] = link.confirm(order["run"], home)
    except ChangeError as problem:
        answer["lost"] = str(problem)
print(json.dumps(answer))
"""
NUMBERS = itertools.count(1)


class Host:
    """The machine with the code on it."""

    def __init__(self, machine):
        self.machine = machine
        self.run = ""
        machine.ssh(f"rm -rf {FOLDER} && mkdir {FOLDER}")
        with tempfile.TemporaryDirectory() as folder:
            whole = shutil.copytree(HOST_CODE, Path(folder) / "nodetune_host")  # scp does not follow links
            machine.put(whole, f"{FOLDER}/nodetune_host")
        machine.write(f"{FOLDER}/driver.py", DRIVER)

    def order(self, **order):
        return json.loads(self.machine.ssh(f"python3 {FOLDER}/driver.py", input=json.dumps(order)).stdout)

    def do(self, *changes):
        """Does the changes as a new run, which `revert` and `confirm` are then about."""
        self.run = f"r{next(NUMBERS)}"
        return self.order(run=self.run, changes=changes)

    def revert(self):
        return self.order(run=f"{self.run}-back", of=self.run)

    def confirm(self, run=None):
        return self.order(run=run or self.run, confirm=True)

    def says(self, command):
        return self.machine.ssh(command, check=False).stdout.strip()


@pytest.fixture(scope="module")
def host(machine):
    return Host(machine)


def assert_done_once_and_taken_back(host, witness, after, *changes):
    """Does, asks the witness, does again, undoes, asks the witness again."""
    before = host.says(witness)
    first = host.do(*changes)
    assert first["problems"] == []
    assert host.says(witness) == after != before
    run = host.run
    again = host.do(*changes)
    assert (again["changed"], again["problems"]) == (False, [])
    host.run = run
    back = host.revert()
    assert (back["problems"], back["refused"]) == ([], [])
    assert host.says(witness) == before


def unit(name, enabled=None, active=None):
    return {"change": "unit", "unit": name, "enabled": enabled, "active": active}


IRQBALANCE = "systemctl is-enabled irqbalance; systemctl is-active irqbalance"


def test_a_service_is_switched_off_and_on_again(host):
    change = unit("irqbalance.service", "disabled", "stopped")
    assert_done_once_and_taken_back(host, IRQBALANCE, "disabled\ninactive", change)


def test_a_mask_until_the_next_boot_is_restored_as_such(host):
    lines = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
    host.machine.write("/usr/lib/systemd/system/veiled.service", lines)
    host.machine.ssh("systemctl mask --runtime veiled")
    witness = "systemctl is-enabled veiled; systemctl is-active veiled"
    assert_done_once_and_taken_back(host, witness, "enabled\nactive", unit("veiled.service", "enabled", "started"))
    assert host.says(witness) == "masked-runtime\ninactive"
    host.machine.ssh("systemctl unmask --runtime veiled; rm /usr/lib/systemd/system/veiled.service")


def own_service(name, *lines):
    content = "\n".join(["[Service]", *lines, "[Install]", "WantedBy=multi-user.target", ""])
    return {"change": "file", "path": f"/etc/systemd/system/{name}.service", "content": content, "mode": "0644"}


RELOAD = {"change": "run", "run": "daemon-reload"}


def test_a_unit_of_the_same_run_starts_and_leaves_nothing_behind(host):
    assert_done_once_and_taken_back(
        host,
        "systemctl is-enabled own; systemctl is-active own; ls /etc/systemd/system/multi-user.target.wants/own.service",
        "enabled\nactive\n/etc/systemd/system/multi-user.target.wants/own.service",
        own_service("own", "Type=oneshot", "RemainAfterExit=yes", "ExecStart=/bin/true"),
        RELOAD,
        unit("own.service", "enabled", "started"),
    )


def test_services_that_do_not_start_are_problems_with_their_log(host):
    fails = "ExecStart=/bin/sh -c 'echo there is no such card >&2; exit 3'"
    result = host.do(
        own_service("ends", "Type=simple", fails),
        own_service("fails", "Type=oneshot", fails),
        RELOAD,
        unit("ends.service", "enabled", "started"),
        unit("fails.service", active="started"),
    )
    assert [each["message"] for each in result["problems"]] == [
        "ends.service: it started and ended at once: there is no such card",
        "fails.service: it does not start: there is no such card",
    ]
    assert host.revert()["refused"] == []
    assert host.says("ls /etc/systemd/system/ends.service /etc/systemd/system/*.wants/ends.service") == ""
    host.machine.ssh("systemctl reset-failed")  # systemd remembers them beyond their files


def test_a_unit_not_installed_is_off_and_cannot_be_enabled(host):
    assert host.do(unit("nvidia-nothing.service", "disabled", "stopped"))["done"][0]["changed"] is False
    result = host.do(unit("nvidia-nothing.service", "enabled"))
    assert result["problems"][0]["message"] == "nvidia-nothing.service: the unit does not exist: install its package"


def test_a_static_unit_cannot_be_disabled_and_the_problem_helps(host):
    result = host.do(unit("systemd-tmpfiles-clean.service", "disabled"))
    assert result["problems"][0]["message"].endswith("it is static and cannot be disabled: mask it instead")


def test_swap_goes_off_for_good_and_comes_back(host):
    swap_unit = host.says("systemctl list-units --type swap --plain --no-legend | head -1 | cut -d' ' -f1")
    assert swap_unit.endswith(".swap")
    fstab = host.machine.read("/etc/fstab")
    assert_done_once_and_taken_back(
        host,
        f"swapon --show=TYPE,PRIO --noheadings; grep -c '^[^#].*swap' /etc/fstab; systemctl is-enabled '{swap_unit}'",
        "0\nmasked",
        {"change": "edit", "path": "/etc/fstab", "how": "fstab_no_swap", "with": {}},
        unit(swap_unit, "masked"),
        {"change": "swap", "active": False},
        RELOAD,
    )
    assert host.machine.read("/etc/fstab") == fstab


def test_a_mount_option_is_set_now_and_in_fstab_and_taken_back(host):
    fstab = host.machine.read("/etc/fstab")
    assert_done_once_and_taken_back(
        host,
        "findmnt -n -o OPTIONS /data; findmnt --fstab -n -o OPTIONS /data",
        "rw,noatime\ndefaults,nofail,noatime",
        {"change": "edit", "path": "/etc/fstab", "how": "fstab_option",
         "with": {"mount_point": "/data", "option": "noatime"}},
        {"change": "mount", "mount_point": "/data", "option": "noatime"},
    )  # fmt: skip
    assert host.machine.read("/etc/fstab") == fstab


def test_discard_goes_from_a_real_disk_and_comes_back(host):
    host.machine.ssh("mount -o remount,discard /data")
    change = {"change": "mount", "mount_point": "/data", "option": "nodiscard"}
    assert_done_once_and_taken_back(host, "findmnt -n -o OPTIONS /data", "rw,relatime", change)
    host.machine.ssh("mount -o remount,nodiscard /data")


def module(name, loaded=True):
    return {"change": "module", "name": name, "loaded": loaded}


def test_a_module_is_loaded_and_taken_out_again(host):
    assert_done_once_and_taken_back(host, "lsmod | grep -c '^tcp_bbr '", "1", module("tcp-bbr"))


def test_taking_a_module_out_leaves_what_it_needed(host):
    host.machine.ssh("modprobe nf_defrag_ipv4")
    assert_done_once_and_taken_back(
        host, "lsmod | grep -c -e '^nf_conntrack ' -e '^nf_defrag_ipv4 '", "2", module("nf_conntrack")
    )
    host.machine.ssh("modprobe -r nf_defrag_ipv4", check=False)


def test_a_module_that_the_blacklist_holds_back_is_a_problem(host):
    host.machine.write("/etc/modprobe.d/test.conf", "blacklist tcp_vegas\n")
    problem = host.do(module("tcp_vegas"))["problems"][0]["message"]
    assert problem.startswith("tcp_vegas: blacklisted in a file that ")
    assert host.says("lsmod | grep -c '^tcp_vegas '") == "0"
    host.machine.ssh("rm /etc/modprobe.d/test.conf")


def test_a_module_that_the_kernel_does_not_have_is_a_problem(host):
    assert "nosuchmodule not found" in host.do(module("nosuchmodule"))["problems"][0]["message"]


def test_a_module_in_use_stays_and_says_so(host):
    assert "in use" in host.do(module("ext4", loaded=False))["problems"][0]["message"]


def link(name, setting, value, seconds=600):
    return {"change": "link", "link": name, "setting": setting, "value": value, "confirm_seconds": seconds}


MTU = "cat /sys/class/net/ens10/mtu"
TIMERS = "systemctl list-units --all --plain --no-legend 'nodetune-link-*'"
RINGS = "ethtool -g ens11 | sed -n '/Current/,$p' | grep -e '^RX:' -e '^TX:' | tr -d ' \\t\\n'"


def assert_confirmed_then_back(host, witness, after, change):
    before = host.says(witness)
    result = host.do(change)
    assert (result["problems"], result["timed"]) == ([], True)
    label = f"{change['link']} {change['setting']}"
    assert host.confirm()["confirmed"] == [label]
    assert (host.says(witness), host.says(TIMERS)) == (after, "")
    run = host.run
    assert host.do(change)["changed"] is False
    host.run = run
    back = host.revert()
    assert (back["problems"], back["timed"]) == ([], True)
    assert host.confirm(f"{run}-back")["confirmed"] == [label]
    assert (host.says(witness), host.says(TIMERS)) == (before, "")


def test_an_mtu_stays_once_it_is_confirmed(host):
    assert_confirmed_then_back(host, MTU, "9000", link("ens10", "mtu", 9000))


def test_rings_grow_to_the_maximum_of_the_card_and_shrink_again(host):
    assert host.says(RINGS) == "RX:256TX:256"
    assert_confirmed_then_back(host, RINGS, "RX:4096TX:4096", link("ens11", "rings", "max"))


def test_an_unconfirmed_link_change_undoes_itself_and_reports_it(host):
    assert host.do(link("ens10", "mtu", 9000, seconds=20))["problems"] == []
    until("the MTU is back", lambda: host.says(MTU) == "1500" and host.says(TIMERS) == "")
    assert host.confirm()["lost"] == "ens10 mtu: not confirmed in time and therefore undone: apply again"
    assert host.revert()["changed"] is False


def test_an_undoing_that_nobody_confirms_is_undone_too(host):
    host.do(link("ens10", "mtu", 9000))
    host.confirm()
    assert host.revert()["changed"] is True
    assert host.says(MTU) == "1500"
    host.machine.ssh("systemctl start nodetune-link-ens10-mtu.service")  # what the timer does when its time is over
    assert host.says(MTU) == "9000"
    assert "lost" in host.confirm(f"{host.run}-back")
    host.machine.ssh("ip link set dev ens10 mtu 1500")


def test_a_link_that_still_waits_is_not_changed_a_second_time(host):
    host.do(link("ens10", "mtu", 9000))
    problem = host.do(link("ens10", "mtu", 4200))["problems"][0]["message"]
    assert "an earlier change is not confirmed yet" in problem
    assert host.says(MTU) == "9000"
    host.confirm()
    host.machine.ssh("ip link set dev ens10 mtu 1500")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (link("ens10", "mtu", 99999), "mtu greater than device maximum"),
        (link("ens11", "rings", 99999), "ethtool -G ens11"),
        (link("ens10", "adaptive-rx", True), "ens10"),
        (link("ens99", "mtu", 9000), "ens99: the link does not exist"),
    ],
)
def test_what_a_driver_refuses_is_a_problem_and_leaves_no_timer(host, change, words):
    before = host.says(MTU), host.says(RINGS)
    assert words in host.do(change)["problems"][0]["message"]
    assert (host.says(MTU), host.says(RINGS)) == before
    assert host.says(TIMERS) == ""

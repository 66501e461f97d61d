"""The whole cycle on a machine where everything is wrong: dry run, apply, reboot, proof, apply again, rollback.

One story, told once; each stage is a fixture that builds on the one before, and the tests look at what it left. What is
true of the machine is told by `witness`, which shares no code with nodetune.
"""

import importlib.util
import json
import os
import pty
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodetune import checks
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.inventory.selection import targets
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.play import PlayOptions
from tests.machines import inventory, place, witness
from tests.support.documents import valid_by_its_own_word

pytestmark = pytest.mark.story
"""Told once, by one worker; it fits along with the other tests on two cores."""

UNTUNED = Path(__file__).parent / "untuned"
NODETUNE = Path(sys.executable).with_name("nodetune")
THERE = "/root/untuned"
KINDS = {file.stem for file in (Path(play.__file__).parents[1] / "builders").glob("[a-z]*.py")}
SYSCTLS = "/etc/sysctl.d/zz-nodetune.conf"
SOMEBODYS = "kernel.panic = 10\n"
MADE_BY_TOOLS = re.compile(
    r"/boot/grub/grub\.cfg|/etc/rc\d\.d/\w+|/etc/systemd/system/([\w.-]+\.wants/[\w@.-]+|[\w\\.-]+\.swap)"
)
"""What changes next to the files of a plan: links that systemctl makes, and the menu that update-grub writes."""
LIMITS = {
    "memlock-limited": 1,
    "open-files-low": 3,
    "processes-low": 4,
    "core-dumps-unlimited": 5,
    "stack-unlimited": 7,
}
"""Check → line of the untuned machine's limits that decides it."""

NOT_OF_ONE_LINE = {
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.conf.all.arp_ignore",
    "net.ipv4.conf.all.arp_announce",
}
"""Judged now and at the next boot, or for each link, whose own value counts as well."""

NOT_THERE = {"mps", "system_cpus", "nfs_option", "lustre_param", "apt_conf", "engine_conf"}
"""Kinds that the machine has no use for: a site's wishes for MPS and the CPUs of system tasks, clients of NFS and Lustre, a
driver from packages that unattended-upgrades replaces, and Podman and CRI-O."""

OF_EMULATION = {"clocksource-slow", "tasks-hung", "nvme-timed-out", "host-out-of-memory"}
"""What may come up by itself where the host of the machines is busy: their kernel gives its clock up, or waits too long."""

OF_SUBSTITUTE = {"nvidia-uvm-files-missing"}
"""True once the fix has loaded nvidia_uvm: the substitute for a driver has no nvidia-modprobe, which a real one needs and brings."""


class Controller:
    """nodetune as a user starts it, who logs in as `op` and becomes root by a password."""

    def __init__(self, folder, machine):
        self.folder, self.machine = folder, machine
        self.inventory = inventory.write(
            folder / "inventory.yml",
            [machine],
            user="op",
            ansible_become=True,
            ansible_become_password=place.OP_PASSWORD,
        )
        self.environment = {**os.environ, "NODETUNE_RUNS": str(folder / "runs")}

    def __call__(self, command, *words, code=0):
        """Run a command; its JSON."""
        made = [str(NODETUNE), command, *words, "--format", "json"]
        done = subprocess.run(made, capture_output=True, text=True, env=self.environment, timeout=1500)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        assert "Traceback" not in done.stderr
        return valid_by_its_own_word(done.stdout)

    def apply(self, *words, code=0):
        return self("apply", *self.hosts(), "--max-disruption", "reboot", *words, code=code)

    def hosts(self):
        return "-i", str(self.inventory), "--site", str(UNTUNED / "site.yml"), "--timeout", "240"

    def record(self, run, name):
        return self.folder / "runs" / run / name


@pytest.fixture(scope="module")
def machine(fleet):
    made = fleet(1)[0]
    made.put(UNTUNED, THERE)
    made.put(Path(importlib.util.find_spec("pynvml").origin), f"{THERE}/pynvml.py")
    made.ssh(f"sh {THERE}/make.sh", timeout=900)
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def nodetune(machine, tmp_path_factory):
    return Controller(tmp_path_factory.mktemp("controller"), machine)


def snapshot(machine):
    return SimpleNamespace(
        files=witness.files(machine), running=witness.running(machine), gpus=witness.gpus(machine, THERE)
    )


@pytest.fixture(scope="module")
def before(machine):
    return snapshot(machine)


@pytest.fixture(scope="module")
def plan(nodetune, before):
    return nodetune("plan", *nodetune.hosts())


@pytest.fixture(scope="module")
def dry_run(nodetune, machine, plan):
    told = nodetune.apply("--dry-run")["hosts"]
    return SimpleNamespace(told=told, after=snapshot(machine))


@pytest.fixture(scope="module")
def applied(nodetune, machine, dry_run):
    told = nodetune.apply("--reboot", "--yes")
    return SimpleNamespace(told=told, run=told["run"], after=snapshot(machine))


@pytest.fixture(scope="module")
def seen(applied, machine, tmp_path_factory):
    """The machine after its reboot, as testinfra sees it."""
    return witness.host(machine, tmp_path_factory.mktemp("witness"))


@pytest.fixture(scope="module")
def refused(nodetune, machine, applied):
    """A rollback after somebody changed one of the files."""
    machine.ssh(f"echo '{SOMEBODYS.strip()}' >> {SYSCTLS}")
    return nodetune("rollback", applied.run, "--yes", "--timeout", "240", code=4)


@pytest.fixture(scope="module")
def rolled_back(nodetune, machine, applied, refused):
    machine.ssh(f"test -e {SYSCTLS}")
    told = nodetune("rollback", applied.run, "--yes", "--force", "--timeout", "240")
    return SimpleNamespace(told=told, after=snapshot(machine))


def diffs_by_file(text):
    """A unified diff of several files → path → the lines of each of its changes. Values that are no files are left out."""
    found = {}
    for block in re.split(r"^--- (?=.*\n\+\+\+ )", text, flags=re.MULTILINE)[1:]:
        head, _, body = block.split("\n", 2)
        if head.startswith(("/etc/", "/usr/local/")):
            found.setdefault(head.partition(" (")[0], []).append(body)
    return found


def announced_files(dry_run):
    return diffs_by_file("".join(dry_run.told[0]["diffs"]))


def recorded_files(nodetune, applied):
    return diffs_by_file(nodetune.record(applied.run, f"diffs/{nodetune.machine.name}.diff").read_text())


# --- before


def test_everything_is_wrong_in_every_way_that_nodetune_can_mend(plan):
    kinds = Counter(step["kind"] for step in plan["steps"])
    asked_for = {check.remedy.kind for check in checks.load_all()}
    assert set(kinds) == KINDS - NOT_THERE, kinds
    assert asked_for - {"manual"} == KINDS
    assert sum(kinds.values()) >= 40


def planted(place):
    """What files of the untuned machine set: name of the value → file and line."""
    return {
        re.split(r"[ =]+", line.removeprefix("w "))[0]: f"{place} line {number}"
        for number, line in enumerate((UNTUNED / f"root{place}").read_text().splitlines(), 1)
    }


def test_each_planted_fault_is_named_with_its_file_and_line(nodetune, applied):
    audited = json.loads(nodetune.record(applied.run, "before.json").read_text())["hosts"][0]["findings"]
    failing = {each["check"]: each for each in audited if each["status"] == "fail"}
    assert len(failing) >= 40
    by_target = {**planted("/etc/sysctl.d/99-site.conf"), **planted("/etc/tmpfiles.d/site.conf")}
    told = {each["fix"]["target"]: each for each in failing.values() if each["fix"]}
    named = {
        target: f"{told[target]['observed']} {told[target]['reason']}" for target in by_target.keys() & told.keys()
    }
    assert len(named) >= 20
    assert {target for target in named if f"set by {by_target[target]} " not in named[target]} <= NOT_OF_ONE_LINE
    for target in ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"):
        assert "/etc/sysctl.d/99-site.conf" in named[target]
    limits = "/etc/security/limits.d/90-site.conf line"
    for check, line in LIMITS.items():
        assert f"login sessions: {limits} {line}" in failing[check]["reason"]
    rule = "/etc/udev/rules.d/60-site-disks.rules line 1"
    for check in ("nvme-scheduler-set", "read-ahead-small"):
        assert rule in failing[check]["reason"]
    assert "swap on /dev/vdb (partition)" in failing["swap-large"]["reason"]


def test_a_dry_run_changes_nothing(before, dry_run):
    assert witness.changed(before.files, dry_run.after.files) == {}
    assert witness.changed(before.running, dry_run.after.running) == {}
    assert before.gpus == dry_run.after.gpus
    assert [(host["problems"], host["failed"]) for host in dry_run.told] == [([], "")]


# --- applied


def test_every_step_is_fixed_and_nothing_fixable_is_left(nodetune, plan, applied):
    outcomes = {step["check"]: (step["outcome"], step["reason"]) for step in applied.told["steps"]}
    assert {check: told for check, told in outcomes.items() if told != ("fixed", "")} == {}
    assert set(outcomes) == {step["check"] for step in plan["steps"]}
    assert set((UNTUNED / "fixed.txt").read_text().split()) <= set(outcomes)  # docs/project/coverage.md says so
    audited = json.loads(nodetune.record(applied.run, "after.json").read_text())
    left = [each["check"] for host in audited["hosts"] for each in host["findings"] if each["status"] == "fail"]
    assert set(left) <= {each["check"] for each in applied.told["by_hand"]} | OF_EMULATION | OF_SUBSTITUTE


def test_an_apply_writes_what_its_dry_run_said(nodetune, dry_run, applied):
    said, done = announced_files(dry_run), recorded_files(nodetune, applied)
    assert len(said) > 10
    assert said == done


def test_no_other_file_is_touched(nodetune, before, applied):
    touched = set(witness.changed(before.files, applied.after.files))
    planned = set(recorded_files(nodetune, applied))
    folders = {path for path in touched if (applied.after.files.get(path) or ["?"])[0] == "folder"}
    assert planned <= touched
    assert {path for path in touched - planned - folders if not MADE_BY_TOOLS.fullmatch(path)} == set()


def test_an_apply_tells_where_its_time_went(nodetune, applied):
    run = json.loads(nodetune.record(applied.run, "run.json").read_text())
    events = [json.loads(line) for line in nodetune.record(applied.run, "events.jsonl").read_text().splitlines()]
    assert {"Begin", "Change", "Reboot", "Audit"} <= {event["task"] for event in events}
    spent, last = Counter(), datetime.fromisoformat(run["started"])
    for event in events:
        now = datetime.fromisoformat(event["time"])
        spent[f"{event['task']} {event['item']}".strip()] += (now - last).total_seconds()
        last = now
    print("seconds:", dict(spent))


# --- the witness


def test_kernel_parameters_are_set_and_persisted(seen):
    wanted = {"kernel.numa_balancing": 0, "vm.dirty_bytes": 268435456, "net.ipv4.tcp_congestion_control": "cubic"}
    assert {name: seen.sysctl(name) for name in wanted} == wanted
    assert seen.file(SYSCTLS).contains("^net.ipv4.tcp_rmem = ")


def test_values_under_sys_are_set_and_persisted(seen):
    assert "[madvise]" in seen.file("/sys/kernel/mm/transparent_hugepage/enabled").content_string
    assert seen.file("/sys/kernel/mm/ksm/run").content_string == "0\n"
    assert seen.file("/etc/tmpfiles.d/00-nodetune.conf").contains("transparent_hugepage")


def test_kernel_arguments_are_in_force_after_the_reboot(seen):
    assert {"audit=0", "init_on_alloc=0"} <= set(seen.file("/proc/cmdline").content_string.split())
    assert seen.file("/boot/grub/grub.cfg").contains("audit=0")


def test_limits_hold_for_a_new_login_and_for_services(seen, machine):
    told = machine.ssh("ulimit -l; ulimit -Sn; ulimit -Sc; ulimit -Ss; ulimit -r", user="nosudo").stdout.split()
    assert told[0] == "unlimited" and int(told[1]) >= 131072 and told[2:] == ["0", "8192", "0"]
    assert seen.check_output("systemctl show -P LimitCORESoft containerd") == "0"
    assert seen.check_output("systemctl show -P DefaultLimitMEMLOCK") == "infinity"


def test_logind_leaves_shared_memory_alone(applied):
    assert applied.after.running["remove ipc"] == "b false"


def test_services_run_or_rest_now_and_at_boot(seen):
    daemon, server = seen.service("nvidia-persistenced"), seen.service("iperf3")
    assert (daemon.is_running, daemon.is_enabled) == (True, True)
    assert (server.is_running, server.is_enabled) == (False, False)


def test_modules_are_loaded_and_kept_out(seen):
    assert "nvidia_uvm" in seen.check_output("lsmod")
    assert "blacklist nouveau" in seen.check_output("modprobe --showconfig")
    assert seen.file("/etc/modules-load.d/nodetune-nvidia_uvm.conf").contains("^nvidia_uvm$")


def test_disk_queues_are_set_over_the_rule_that_was_there(applied):
    disks = {name: value for name, value in applied.after.running.items() if name.startswith("disk ")}
    assert {value for name, value in disks.items() if name.endswith("scheduler")} == {"[none] mq-deadline"}
    assert {value for name, value in disks.items() if name.endswith("read_ahead_kb")} == {"4096"}


def test_cpus_run_at_full_speed(seen):
    governors = seen.check_output("cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor").split()
    assert governors == ["performance"] * 8


def test_the_bad_lines_of_nccl_conf_are_gone_and_the_rest_is_there(seen):
    text = (UNTUNED / "root/etc/nccl.conf").read_text()
    bad = "NCCL_DEBUG=INFO", "NCCL_COLLECTIVE_ENABLE=1", "NCCL_GDR_FLUSH_DISABLE=1"
    kept = "".join(line for line in text.splitlines(keepends=True) if line.strip() not in bad)
    assert seen.file("/etc/nccl.conf").content_string == kept


def test_interrupts_are_spread_over_near_cpus(seen):
    where = "for i in /sys/class/net/ens10/device/msi_irqs/*; do cat /proc/irq/${i##*/}/smp_affinity_list; done"
    assert set(seen.check_output(where).split()) == set("4567")


def test_swap_is_off_now_and_at_boot(seen, applied):
    assert applied.after.running["swap"] == []
    assert not re.search(r"^[^#].*\sswap\s", seen.file("/etc/fstab").content_string, re.MULTILINE)


def test_file_systems_are_mounted_as_wanted(seen):
    assert "noatime" in seen.mount_point("/data").options
    assert re.search(r"^UUID=\S+ /data ext4 \S*noatime", seen.file("/etc/fstab").content_string, re.MULTILINE)


def test_rings_of_the_link_in_use_are_at_their_maximum(seen, applied):
    assert applied.after.running["rings"].count("256") == 2
    assert seen.file("/etc/systemd/network/00-nodetune-enp0s16.link").contains("BitsPerSecond=100G")


def test_docker_runs_with_what_it_had_and_what_was_added(seen):
    told = json.loads(seen.file("/etc/docker/daemon.json").content_string)
    assert told["log-driver"] == "journald"
    assert told["default-ulimits"]["memlock"]["Soft"] == -1
    assert seen.service("docker").is_running


def test_gpus_are_as_wanted_after_the_reboot(applied):
    gpus = applied.after.gpus
    assert gpus["persistence"] == [1] * 8
    assert gpus["compute"] == [0] * 8
    assert gpus["accounting"] == [1] * 8
    assert gpus["ecc"] == [[1, 1]] * 8
    assert gpus["mig"] == [[0, 0]] * 8
    assert gpus["graphics"] == [max(gpus["graphics"])] * 8
    assert gpus["memory"] == [max(gpus["memory"])] * 8


# --- again


def test_a_second_apply_finds_nothing_to_do(nodetune, applied):
    told = nodetune.apply("--yes")
    assert (told["run"], told["steps"]) == (None, [])


def test_a_password_given_on_a_terminal_does_as_well(nodetune, applied):
    found = inventory.write(nodetune.folder / "asked.yml", [nodetune.machine], user="op")
    words = [str(NODETUNE), "apply", "-i", str(found), "-b", "-K", "--timeout", "240", "-s", "site-*", "--dry-run"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(words[0], [*words, "--site", str(UNTUNED / "site.yml")], nodetune.environment)
    said, code = _answered(pid, terminal)
    assert os.waitstatus_to_exitcode(code) == 0, said
    assert place.OP_PASSWORD not in said


def _answered(pid, terminal):
    said, given = "", False
    while True:
        try:
            part = os.read(terminal, 4096).decode(errors="replace")
        except OSError:  # the other end of the terminal is closed
            part = ""
        if not part:
            return said, os.waitpid(pid, 0)[1]
        said += part
        if "assword" in said and not given:
            os.write(terminal, f"{place.OP_PASSWORD}\n".encode())
            given = True


AGAIN = "20260101-000000-0000"


def test_the_same_changes_once_more_change_nothing(nodetune, machine, applied):
    groups = json.loads(nodetune.record(applied.run, f"changes/{machine.name}.json").read_text())
    target = targets(str(nodetune.inventory))[0]
    given = {machine.name: {"nodetune_run": AGAIN, "nodetune_groups": groups}}
    outcome = play.play("remediate", [target], given, PlayOptions(SessionOptions(seconds=1200)))[machine.name]
    assert (outcome.state, outcome.gathered("problems")) == ("ok", []), outcome
    changed = {done["label"] for done in outcome.gathered("done") if done["changed"]}
    # huge pages make the kernel raise this one by itself, on a machine with so little memory above what is wanted
    raised = {"/proc/sys/vm/min_free_kbytes"}
    # these changes are of a time at which grub.cfg lacked the argument: the menu is written again in any case
    always = {change["run"] for group in groups for change in group["changes"] if change.get("always")}
    assert changed <= raised | always
    assert always == {"update-grub"}
    machine.ssh(
        f"rm -r /var/lib/nodetune/runs/{AGAIN}"
    )  # what the kernel raised would count as changed by this later run


# --- taken back


def test_a_rollback_leaves_alone_what_somebody_changed_since(refused):
    host = refused["hosts"][0]
    assert [each["label"] for each in host["refused"]] == [SYSCTLS]
    assert SOMEBODYS.strip() in json.dumps(host["refused"])
    assert host["problems"] == []
    assert len(host["done"]) > 30


def test_a_rollback_restores_every_file_byte_for_byte(before, rolled_back):
    assert rolled_back.told["hosts"][0]["refused"] == rolled_back.told["hosts"][0]["problems"] == []
    assert witness.changed(before.files, rolled_back.after.files) == {}


UNTIL_THE_NEXT_BOOT = re.compile(r"arguments|modules|disk \w+ read_ahead_kb")
"""What the boot of an apply put in force and no change of it did: the udev rule holds for the disk without a finding too"""


def test_a_rollback_restores_what_was_in_force(before, rolled_back):
    assert before.running
    left = witness.changed(before.running, rolled_back.after.running)
    assert [name for name in left if not UNTIL_THE_NEXT_BOOT.fullmatch(name)] == [], left


def test_a_rollback_restores_the_settings_of_gpus(before, rolled_back):
    assert rolled_back.after.gpus == before.gpus


def test_after_a_further_reboot_all_is_as_it_was(machine, before, rolled_back):
    machine.reboot()
    machine.ssh("systemctl is-system-running --wait; udevadm settle; true", timeout=600)  # logins work long before that
    assert witness.changed(before.files, witness.files(machine)) == {}
    again = witness.running(machine)
    assert not {"audit=0", "init_on_alloc=0"} & set(again.pop("arguments").split())
    # a parameter of sunrpc or rdma_ucm is there while its module is: rdma-core loads these at one boot and at another not
    left = witness.changed(before.running, again)
    assert {name for name in left if not (name.startswith("sysctl ") and None in left[name])} == {"arguments"}, left

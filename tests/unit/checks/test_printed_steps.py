"""The commands in the manual steps of checks, run from their text in a private root where that is possible."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from nodetune import checks
from nodetune.audit import evaluate, explain
from nodetune.checks import fleet_comparisons
from nodetune.facts import document
from nodetune.probe import cmdline, mounts, read

STEPS = {check.id: check.remedy.steps for check in checks.load_all() if check.remedy.steps}
GRUB = """\
set default="${saved_entry}"
menuentry 'Debian' $menuentry_id_option 'gnulinux-simple-ab' {
  linux /boot/vmlinuz-9.9.9 root=/dev/vda1
}
submenu 'Advanced' $menuentry_id_option 'gnulinux-advanced-ab' {
  menuentry 'new' $menuentry_id_option 'gnulinux-9.9.9-advanced-ab' {
    linux /boot/vmlinuz-9.9.9 root=/dev/vda1
  }
  menuentry 'new, recovery' $menuentry_id_option 'gnulinux-9.9.9-recovery-ab' {
    linux /boot/vmlinuz-9.9.9 root=/dev/vda1 single
  }
  menuentry 'old' $menuentry_id_option 'gnulinux-RUNNING-advanced-ab' {
    linux /boot/vmlinuz-RUNNING root=/dev/vda1 running
  }
}
"""


def shell(script, *more, **options):
    return subprocess.run(["bash", "-ec", script, *more], capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("flat", [False, True])
def test_the_running_kernel_is_the_next_after_the_printed_command(tmp_path, monkeypatch, flat):
    """GRUB's own tools are not here: what they were given is what they would save."""
    running = os.uname().release
    menu = GRUB.replace("RUNNING", running)
    if flat:
        menu = re.sub(r"submenu.*\n", "", menu)
    folder = tmp_path / "boot" / "grub"
    folder.mkdir(parents=True)
    (folder / "grub.cfg").write_text(menu)
    command = re.search(r"then: update-grub && (.*)", STEPS["kernel-reboot-pending"])[1]
    saves = f'grub-set-default() {{ echo "saved_entry=$1" > {folder}/grubenv; }}\n'
    done = shell(saves + command.replace("/boot/grub/", f"{folder}/"))
    assert (done.returncode, done.stderr) == (0, "")
    monkeypatch.setattr(read, "ROOT", str(tmp_path))
    found = dict(cmdline.collect(["installed"], lambda _text: None))["installed"]
    assert "running" in found["value"]["arguments"], found


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_dev_shm_keeps_its_protection_after_both_printed_ways(tmp_path):
    steps = STEPS["shm-small"]
    (tmp_path / "fstab").write_text(re.search(r"tmpfs /dev/shm \S+ \S+ 0 0", steps)[0] + "\n")
    remount = re.search(r"mount -o \S+ /dev/shm", steps)[0]
    script = f"""
        mount -t tmpfs -o nosuid,nodev,size=64k tmpfs /dev/shm
        {remount}; grep ' /dev/shm ' /proc/self/mounts | tail -1
        umount /dev/shm; mount -T {tmp_path}/fstab /dev/shm; grep ' /dev/shm ' /proc/self/mounts | tail -1"""
    done = subprocess.run(["unshare", "-m", "bash", "-ec", script], capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        options = line.split()[3].split(",")
        assert {"nosuid", "nodev"} <= set(options)
        assert "size=64k" not in options


def test_services_that_a_step_stops_are_started_again():
    for check, steps in STEPS.items():
        stops = re.findall(r"systemctl stop (\S*)", steps)
        assert len(stops) <= len(re.findall(r"systemctl (?:re)?start", steps)) or "disable" in steps, check


def test_a_node_is_drained_with_its_daemons_and_nothing_follows_a_failure():
    for check, steps in STEPS.items():
        for options in re.findall(r"kubectl drain NODE([^,;]*)", steps):
            assert "--ignore-daemonsets" in options, check
        assert not re.search(r"kubectl drain [^.&]*;", steps), check


LEDGER = yaml.safe_load((Path(__file__).parents[2] / "data" / "printed_steps.yml").read_text())
WITH_OPTION = re.compile(r"(?<![\w/.=-])([a-z][\w.-]*) --?[a-zA-Z]")
WITH_WORD = re.compile(
    r"(?<![\w/.=-])(apt|apt-get|apt-mark|chown|dcgmi|dnf|docker|echo|grub-set-default|ip|kubectl|lctl|modprobe|mount|mmchconfig|"
    r"nodetune|nvidia-ctk|nvidia-smi|nvme|rm|scontrol|systemctl|tuned-adm|umount|update-grub) [a-z/$\"]"
)


def commands(steps):
    """Return the programs that steps call with an option or a word."""
    return sorted({*WITH_OPTION.findall(steps), *WITH_WORD.findall(steps)})


def test_each_printed_command_was_run_or_has_a_reason():
    """tests/data/printed_steps.yml: a command that is new there needs a test that runs it, or the reason why none does."""
    printed = {check: found for check, steps in STEPS.items() if (found := commands(steps))}
    listed = [*LEDGER["run"].items(), *(pair for each in LEDGER["not_run"].values() for pair in each.items())]
    assert len(listed) == len(dict(listed)), "a check is listed twice"
    assert {check: found.split() for check, found in listed} == printed


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
@pytest.mark.parametrize(
    "check", ["ephemeral-ports-few", "forwarding-off-in-file", "listen-queue-overflows", "reverse-path-filter-strict"]
)
def test_a_printed_sysctl_is_taken_by_the_kernel(check):
    name, value = re.search(r"sysctl -w ([\w.-]+)='?([\d ]*\d)", STEPS[check]).groups()
    name = name.replace("LINK", "lo")
    done = shell('unshare -n bash -ec \'sysctl -q -w "$1=$2"; sysctl -n "$1"\' x "$1" "$2"', "x", name, value)
    assert done.stdout.split() == value.split(), done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
def test_a_printed_mtu_is_taken_by_a_link():
    command = re.search(r"ip link set LINK mtu 9000", STEPS["ethernet-mtu-small"])[0].replace("LINK", "b0")
    done = shell(f"unshare -n bash -ec 'ip link add b0 type bridge; {command}; ip -o link show b0'")
    assert "mtu 9000" in done.stdout, done.stderr


def test_a_file_of_nccl_is_safe_after_the_printed_command(tmp_path):
    file = tmp_path / "nccl.conf"
    file.write_text("NCCL_DEBUG=WARN\n")
    file.chmod(0o666)
    command = re.search(r"chown root:root FILE && chmod \d+ FILE", STEPS["nccl-conf-file-unsafe"])[0]
    owner = "root:root" if os.geteuid() == 0 else f"{os.geteuid()}:{os.getegid()}"
    done = shell(command.replace("root:root", owner).replace("FILE", str(file)))
    assert (done.returncode, stat.S_IMODE(file.stat().st_mode)) == (0, 0o644), done.stderr


@pytest.fixture
def disk(tmp_path):
    """An ext4 of 16 MiB in a file, and where to mount it."""
    if os.geteuid() or not all(map(shutil.which, ("mkfs.ext4", "debugfs", "e2fsck", "tune2fs"))):
        pytest.skip("needs root and e2fsprogs")
    image, place = tmp_path / "disk", tmp_path / "mnt"
    place.mkdir()
    made = shell(f"truncate -s 16M {image}; mkfs.ext4 -q {image}; mount -o loop {image} {place}; umount {place}")
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    yield image, place
    shell(f"umount -l {place} || true")


def judged(check, place):
    """What an audit says of one mount, by what the kernel says of it."""
    names = ("points", "ext4_errors")
    facts = {f"mounts.{name}": fact for name, fact in mounts.collect(names, lambda _text: None) if name in names}
    points, errors = facts["mounts.points"], facts["mounts.ext4_errors"]
    points["value"] = {"/data": points["value"][str(place)]}
    errors["each"] = {"/data": errors["each"][str(place)]}
    return evaluate.judge(checks.load(check), document.from_data({"facts": facts})).status


def test_an_ext4_has_no_errors_after_the_printed_check(disk):
    image, place = disk
    shell(
        f"debugfs -w -R 'ssv error_count 3' {image}; debugfs -w -R 'ssv state 2' {image}; mount -o loop {image} {place}"
    )
    assert judged("file-system-errors-recorded", place) == "fail"
    command = re.search(r"e2fsck -f", STEPS["file-system-errors-recorded"])[0]
    done = shell(f"umount {place}; {command} -y {image} || [ $? = 1 ]; mount -o loop {image} {place}")
    assert done.returncode == 0, done.stderr
    assert judged("file-system-errors-recorded", place) == "pass"


def test_data_is_not_journaled_after_the_printed_command(disk):
    image, place = disk
    shell(f"tune2fs -o journal_data {image}; mount -o loop {image} {place}")
    assert judged("data-journaled", place) == "fail"
    command = re.search(r"tune2fs -o \S+ DEVICE", STEPS["data-journaled"])[0].replace("DEVICE", str(image))
    assert "journal_data" in shell(f"tune2fs -l {image}").stdout
    done = shell(f"umount {place}; {command}; mount -o loop {image} {place}")
    assert done.returncode == 0, done.stderr
    assert judged("data-journaled", place) == "pass"


EVERY = {**STEPS, **{name: each.as_check().remedy.steps for name, each in fleet_comparisons.every().items()}}
OPEN_END = re.compile(r"(?:[,;:-]|\b(?:a|an|and|as|at|by|for|from|if|in|its|of|or|the|then|to|with))$")


@pytest.mark.parametrize("check", EVERY)
def test_manual_steps_are_whole_sentences(check):
    """They end with a full stop, or with something to paste: otherwise nobody knows whether the text was cut off."""
    steps = EVERY[check]
    last = re.split(r"[.;] |\n", steps)[-1]
    pasted = commands(last) or re.search(r"[:=/]|&&", last)
    assert steps.endswith(".") or pasted, f"it ends in mid-sentence: {last}"
    assert pasted or not OPEN_END.search(steps), f"it ends in mid-sentence: {last}"
    assert steps.count("(") == steps.count(")"), "a bracket is left open"
    assert steps.count('"') % 2 == 0, "a quotation is left open"


EXPLAINED = [*checks.load_all(), *(each.as_check() for each in fleet_comparisons.every().values())]


@pytest.mark.parametrize("check", EXPLAINED, ids=lambda check: check.id)
def test_the_sections_of_a_check_are_whole_sentences(check):
    told = explain.explain(check).sections
    for head in ("Why it matters", "Healthy exception", "Does not gate", "Side effects of the fix"):
        assert told.get(head, "Absent.").endswith((".", ".)")), f"{head} ends in mid-sentence: {told[head][-60:]}"
    assert check.title.strip(), "it has no title"

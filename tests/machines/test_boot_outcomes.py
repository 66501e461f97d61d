"""Each word of an apply is true after a real boot: fixed, pending reboot, still failing, skipped and not applied, at once.

Rivals here are files before and after nodetune's, cloud-init and tuned; the one that no file keeps has an immutable folder.
test_boot_rivals.py has the others. The witness is the machine itself: /proc, /sys and the command line of its kernel.
"""

import re
import subprocess
from types import SimpleNamespace

import pytest

from tests.machines.place import FleetError

BEFORE, AFTER = "/etc/sysctl.d/10-site.conf", "/etc/sysctl.d/zzz-site.conf"
CLOUD, CONF = "/etc/cloud/cloud.cfg.d/99-site.cfg", "/etc/sysctl.conf"
KEPT, ARGUMENT, UNKEPT = "swappiness-high", "site-audit-arg", "thp-unsuitable"
LATER, BOOTCMD = "slow-start-after-idle-on", "max-map-count-low"
OUTCOMES = {
    KEPT: "fixed",
    ARGUMENT: "pending reboot",
    LATER: "still failing",
    BOOTCMD: "still failing",
    UNKEPT: "not applied",
}
TUNED = "numa-balancing-on"
PROFILE = "[sysctl]\nvm.dirty_background_ratio=9\n"
SITE = "add: [{id: site-audit-arg, kernel_arg: audit, accept: 0, set: 0}]\n"
STATE = """
sysctl -n vm.swappiness net.ipv4.tcp_slow_start_after_idle vm.max_map_count
sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/kernel/mm/transparent_hugepage/enabled
grep -o 'audit=[01]' /proc/cmdline || echo default
"""
UNPACK = """
cd /root/debs && for each in *.deb; do dpkg-deb --fsys-tarfile $each | tar -x -C / --keep-directory-symlink; done
rm -r /root/debs; systemctl daemon-reload
systemctl enable cloud-init-local cloud-init cloud-config cloud-final
"""
"""Without dpkg: what it runs and compiles takes a quarter of an hour on a machine that is emulated."""

THP_OFF = "echo never > /sys/kernel/mm/transparent_hugepage/enabled"
"""Until the next boot, which says `always`."""

END_OF_BOOT = "timeout 600 systemctl is-system-running --wait"


def apply(site, checks):
    words = [word for check in checks for word in ("-s", check)]
    own = site.folder / "site.yml"
    own.write_text(SITE)
    return site.nodetune("apply", *words, "--site", str(own), "--max-disruption", "reboot")


def boot(site):
    site.machine.reboot()
    site.machine.ssh(END_OF_BOOT, check=False, timeout=660)


def packages(machine, folder, name):
    """Download a package of Debian and what it needs that the machine lacks. Raise FleetError."""
    options = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    words = ["apt-cache", "depends", "--recurse", *(f"--no-{each}" for each in options), name]
    needed = set(re.findall(r"^(\w\S*)", _said(words, folder), re.MULTILINE))
    there = set(machine.ssh("dpkg-query -W -f '${Package}\\n'").stdout.split())
    _said(["apt-get", "download", "-q", *sorted(each for each in needed - there if "<" not in each)], folder)
    return sorted(folder.glob("*.deb"))


def _said(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise FleetError(f"{' '.join(words[:3])}: {done.stderr.strip()[-500:]}")
    return done.stdout


@pytest.fixture(scope="module")
def with_cloud_init(site, tmp_path_factory):
    """cloud-init of Debian, with user data from the machine's own disk; it leaves the network alone."""
    machine, folder = site.machine, tmp_path_factory.mktemp("debs")
    found = packages(machine, folder, "cloud-init")
    machine.ssh("mkdir -p /root/debs")
    for each in found:
        machine.put(each, "/root/debs/")
    machine.ssh(UNPACK, timeout=900)
    machine.write(
        CLOUD, "datasource_list: [NoCloud]\nlocale: false\nnetwork: {config: disabled}\nssh_deletekeys: false\n"
    )
    for name, text in (("meta-data", "instance-id: one\n"), ("user-data", "#cloud-config\n{}\n")):
        machine.write(f"/var/lib/cloud/seed/nocloud/{name}", text)
    boot(site)
    assert "done" in site.says("cloud-init status --wait; ls /run/cloud-init/enabled"), site.says(
        "cloud-init status --long"
    )
    return machine


@pytest.fixture(scope="module")
def rivals(with_cloud_init):
    machine = with_cloud_init
    machine.write(BEFORE, "vm.swappiness = 60\n")
    machine.write(AFTER, "# ours\nnet.ipv4.tcp_slow_start_after_idle = 1\n")
    text = machine.read(CLOUD)
    machine.write(CLOUD, f"{text}bootcmd:\n- [sysctl, -w, vm.max_map_count=65530]\n")
    machine.ssh(f"{THP_OFF}; mkdir -p /etc/tmpfiles.d && chattr +i /etc/tmpfiles.d")
    return machine


@pytest.fixture(scope="module")
def applied(site, rivals):
    began = site.machine.boot_id()
    answer = apply(site, OUTCOMES)
    made = SimpleNamespace(answer=answer, rebooted=site.machine.boot_id() != began, now=site.says(STATE).split())
    boot(site)
    made.booted = site.says(STATE).split()
    return made


def test_each_fix_has_the_word_that_is_true_of_it(applied):
    assert applied.answer.code == 4, applied.answer
    assert applied.answer.outcomes == OUTCOMES, applied.answer
    assert not applied.rebooted


@pytest.mark.parametrize(
    ("check", "place"),
    [(LATER, f"{AFTER} line 2"), (BOOTCMD, f"{CLOUD} line 6"), (UNKEPT, "/etc/tmpfiles.d/00-nodetune.conf")],
)
def test_what_is_in_the_way_is_named(applied, check, place):
    assert place in applied.answer.reasons[check], applied.answer


def test_what_no_file_keeps_was_not_set(applied):
    assert applied.now == ["30", "0", "1048576", "never", "default"]


def test_the_next_boot_is_as_the_words_say(applied):
    assert applied.booted == ["30", "1", "65530", "always", "audit=0"]


# tuned reads /etc/sysctl.conf last, at each boot and whenever its profile changes


@pytest.fixture(scope="module")
def with_tuned(site, applied):
    machine = site.machine
    machine.ssh(f"chattr -i /etc/tmpfiles.d; rm {BEFORE} {AFTER}; touch /etc/cloud/cloud-init.disabled")
    machine.write("/etc/tuned/site/tuned.conf", PROFILE)
    machine.write(CONF, "# ours\nkernel.numa_balancing = 1\n")
    machine.ssh("systemctl unmask tuned; systemctl enable --now tuned; tuned-adm profile site", timeout=300)
    return machine


def numa_balancing(site):
    site.machine.ssh("timeout 240 sh -c 'until tuned-adm active | grep -q ^Current; do sleep 1; done'", timeout=300)
    return site.says("cat /proc/sys/kernel/numa_balancing")


def test_a_line_that_tuned_reads_last_is_named_and_nothing_is_set(site, with_tuned):
    answer = apply(site, (TUNED,))
    assert answer.outcomes == {TUNED: "skipped"}, answer
    assert f"{CONF} line 2" in answer.reasons[TUNED], answer
    assert numa_balancing(site) == "1"
    boot(site)
    assert numa_balancing(site) == "1"


def test_with_tuned_but_without_that_line_it_is_fixed_and_stays(site, with_tuned):
    site.machine.write(CONF, "# ours\n")
    answer = apply(site, (TUNED,))
    assert answer.outcomes == {TUNED: "fixed"}, answer
    boot(site)
    assert numa_balancing(site) == "0"
    assert site.says("sysctl -n vm.dirty_background_ratio") == "9"


def test_without_rivals_all_is_fixed_and_stays_so(site, with_tuned):
    """All but one is as wanted since the boot before: their files were written in the first apply."""
    site.machine.ssh(THP_OFF)
    answer = apply(site, OUTCOMES)
    assert (answer.code, answer.outcomes) == (0, {UNKEPT: "fixed"}), answer
    boot(site)
    assert site.says(STATE).split() == ["30", "0", "1048576", "madvise", "audit=0"]

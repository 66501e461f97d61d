"""What apply says of each fix is so after the next boot, with a rival of each kind there and then without them.

The witness is the machine itself: /proc, /sys and the command line of its kernel. rc.local, a service and a udev rule
set values after nodetune's files; a file of GRUB drops its argument; one value has no rival.
"""

from types import SimpleNamespace

import pytest

UNRIVALLED = "swappiness-high"
SERVICE, RC_LOCAL = "/etc/systemd/system/multi-user.target.wants/site-tune.service", "/etc/rc.local"
RULE, GRUB = "/etc/udev/rules.d/99-zzz-vendor-io.rules", "/etc/default/grub.d/zzz-cloud.cfg"
LATER = {"numa-balancing-on": SERVICE, "slow-start-after-idle-on": RC_LOCAL}
NEVER = {"nvme-scheduler-set": RULE, "site-audit-arg": GRUB}
CHECKS = (UNRIVALLED, *LATER, *NEVER)
TUNE = """\
[Service]
Type=oneshot
ExecStart=/opt/site/tune.sh

[Install]
WantedBy=multi-user.target
"""
SCRIPT = "#!/bin/sh\nsysctl -q -w kernel.numa_balancing=1\n"
SITE = "add: [{id: site-audit-arg, kernel_arg: audit, accept: 0, set: 0}]\n"
STATE = """
cat /proc/sys/vm/swappiness /proc/sys/kernel/numa_balancing /proc/sys/net/ipv4/tcp_slow_start_after_idle
sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/block/nvme0n1/queue/scheduler
grep -o 'audit=[01]' /proc/cmdline || echo default
"""
BOOT = "cat /proc/sys/kernel/random/boot_id"


def apply(site):
    words = [word for check in CHECKS for word in ("-s", check)]
    own = site.folder / "site.yml"
    own.write_text(SITE)
    return site.nodetune("apply", *words, "--site", str(own), "--max-disruption", "reboot", "--reboot")


def state(site):
    return site.says(STATE).split()


@pytest.fixture(scope="module")
def rivals(site):
    machine = site.machine
    machine.write("/opt/site/tune.sh", SCRIPT)
    machine.write("/etc/systemd/system/site-tune.service", TUNE)
    machine.write(RC_LOCAL, "#!/bin/sh\necho 1 > /proc/sys/net/ipv4/tcp_slow_start_after_idle\n")
    machine.write(RULE, 'ACTION=="add|change", KERNEL=="nvme*n*", ATTR{queue/scheduler}="mq-deadline"\n')
    machine.write(GRUB, 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    machine.ssh("chmod 755 /opt/site/tune.sh /etc/rc.local; systemctl enable site-tune.service; update-grub")
    machine.ssh("udevadm control --reload; udevadm trigger --settle --subsystem-match=block")
    return machine


@pytest.fixture(scope="module")
def applied(site, rivals):
    began = site.says(BOOT)
    answer = apply(site)
    made = SimpleNamespace(answer=answer, rebooted=site.says(BOOT) != began, now=state(site))
    rivals.reboot()
    made.booted = state(site)
    return made


def test_only_what_has_no_rival_is_called_fixed(applied):
    assert applied.answer.code == 4, applied.answer
    assert applied.answer.outcomes == {
        UNRIVALLED: "fixed",
        **dict.fromkeys(LATER, "still failing"),
        **dict.fromkeys(NEVER, "skipped"),
    }


@pytest.mark.parametrize(("check", "place"), [*LATER.items(), *NEVER.items()])
def test_each_rival_is_named_with_its_line(applied, check, place):
    named = "/opt/site/tune.sh" if place == SERVICE else place
    assert f"{named} line {1 + (check in LATER)}" in applied.answer.reasons[check]


def test_nothing_is_rebooted_for_what_no_boot_brings(applied):
    assert not applied.rebooted


def test_the_next_boot_is_as_the_outcomes_say(applied):
    assert applied.now[:3] == ["30", "0", "0"]
    assert applied.booted == ["30", "1", "1", "mq-deadline", "default"]


def test_without_rivals_all_is_fixed_and_stays_so(site, applied):
    site.machine.ssh(f"systemctl disable site-tune.service; rm {RC_LOCAL} {RULE} {GRUB}")
    began = site.says(BOOT)
    answer = apply(site)
    assert (answer.code, set(answer.outcomes.values())) == (0, {"fixed"}), answer
    assert site.says(BOOT) != began
    site.machine.reboot()
    assert state(site) == ["30", "0", "0", "none", "audit=0"]

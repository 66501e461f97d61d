"""From steps to changes: what each kind of fix does to a host, and what it refuses to touch."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nodetune.api import remedies
from nodetune.api.model import Absent, Each, HostFacts, Unread, Value
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.facts import document
from nodetune.foundation.text import own_settings
from nodetune.remediation import builders, host_changes, plan
from nodetune.remediation.builders import cpufreq, swap_off
from tests.data.synthetic import build
from tests.support.fixing import built, files, of_kind, refused
from tests.support.fixing import finding_of as step

DEBIAN = {"host.os": Value({"id": "ubuntu", "version": "22.04", "like": ["ubuntu", "debian"], "name": "Ubuntu"})}
RHEL = {"host.os": Value({"id": "rocky", "version": "9.4", "like": ["rocky", "rhel", "centos", "fedora"], "name": ""})}
GRUB = {"cmdline.installed": Value({"arguments": {}, "file": "/boot/grub/grub.cfg"})}
RUNS = Value({"active": "active", "enabled": "enabled"})


def host(*more, own=None, **facts):
    found = {**DEBIAN, "own.files": Value(own or {})}
    for each in more:
        found |= each
    return HostFacts("gpu01", found | facts)


def lines(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def handlers(changes):
    return [change["run"] for change in of_kind(changes, "run")]


def notes(facts, given):
    return " ".join(note for group in host_changes.build([given], facts)[0] for note in group.notes)


# --- files of our own


def test_a_second_plan_adds_to_the_file_and_repeats_equal():
    first = files(built(host(), step(remedies.sysctl("vm.swappiness"), 10)))
    second = files(built(host(own=first), step(remedies.sysctl("kernel.numa_balancing"), 0)))
    third = files(built(host(own=second), step(remedies.sysctl("vm.swappiness"), 10)))
    ((text,), (again,)) = second.values(), third.values()
    assert lines(text) == ["kernel.numa_balancing = 0", "vm.swappiness = 10"]
    assert again == text


def test_a_file_says_who_wrote_it_and_how_to_take_it_back():
    (text,) = files(built(host(), step(remedies.sysctl("vm.swappiness"), 10))).values()
    assert text.startswith("# Written by nodetune")
    assert "nodetune rollback" in text


@pytest.mark.parametrize("text", ["", "vm.swappiness = 1\n", "# settings: {broken\n", "# settings: [1]\n"])
def test_a_file_whose_settings_line_is_gone_counts_as_empty(text):
    assert own_settings(text) == {}


def test_a_group_builds_on_earlier_groups_of_its_plan():
    logind = remedies.systemd_dropin("logind.conf", "Login", "RemoveIPC")
    later = replace(remedies.systemd_dropin("logind.conf", "Login", "KillUserProcesses"), disruption="reboot")
    groups, _ = host_changes.build([step(later, "no", check="b"), step(logind, "no")], host())
    assert [group.name for group in groups] == ["systemd_dropin", "systemd_dropin, reboot"]
    assert lines(groups[1].changes[0]["content"]) == ["[Login]", "KillUserProcesses=no", "RemoveIPC=no"]


@pytest.mark.parametrize("hostile", ["{{ lookup('pipe', 'touch /tmp/x') }}", "{% for x in y %}", "{# gone #}"])
def test_a_value_that_looks_like_a_template_lands_to_the_letter(hostile):
    changes = built(host(), step(remedies.sysctl("kernel.core_pattern"), hostile))
    assert f"kernel.core_pattern = {hostile}" in files(changes)["/etc/sysctl.d/zz-nodetune.conf"]
    assert of_kind(changes, "value")[0]["value"] == hostile


@pytest.mark.parametrize("value", ["10\nkernel.panic = 1", "\x1b[2J", " 10 ", {"a": 1}, True, ["1", "2\n3"]])
def test_a_value_that_is_not_one_plain_line_is_refused(value):
    assert refused(host(), step(remedies.sysctl("vm.swappiness"), value))


# --- kernel parameters


def test_a_parameter_that_the_kernel_lacks_is_refused_alone():
    lacks = step(remedies.sysctl("net.foo.bar"), 1, check="lacks")
    has = step(remedies.sysctl("vm.swappiness"), 10, check="has")
    facts = host({"sysctl.net.foo.bar": Absent(), "sysctl.vm.swappiness": Value(60)})
    (group,), unfixable = host_changes.build([lacks, has], facts)
    assert group.checks == ("has",)
    assert not [change for change in group.changes if "foo" in json.dumps(change)]
    ((left, why),) = unfixable
    assert left.check == "lacks"
    assert why.startswith("net.foo.bar does not exist on this host (no /proc/sys/net/foo/bar)"), why


@pytest.mark.parametrize("fact", [{}, {"sysctl.vm.swappiness": Unread("permission denied")}])
def test_a_parameter_of_which_nothing_is_known_is_written(fact):
    assert built(host(fact), step(remedies.sysctl("vm.swappiness"), 10))


@pytest.mark.parametrize("name", ["..etc.shadow", "/etc/shadow", ".kernel.panic"])
def test_a_parameter_name_never_leaves_proc_sys(name):
    assert "is not a kernel parameter" in refused(host(), step(remedies.sysctl(name), 1))


def test_a_sysctl_is_written_now_and_kept_and_names_its_check():
    (now, file) = built(host(), step(remedies.sysctl("net.ipv4.tcp_rmem"), [4096, 131072, 67108864], check="tcp-rmem"))
    assert lines(file["content"]) == ["net.ipv4.tcp_rmem = 4096 131072 67108864"]
    assert now == {
        "change": "value",
        "path": "/proc/sys/net/ipv4/tcp_rmem",
        "value": "4096 131072 67108864",
        "checks": ["tcp-rmem"],
    }


@pytest.mark.parametrize(
    ("remedy", "value", "subjects", "live"),
    [
        (remedies.sysctl("vm.swappiness"), 10, (), "value"),
        (remedies.sysfs("/sys/kernel/mm/ksm/run"), "0", (), "value"),
        (remedies.block_queue("scheduler"), "none", ("nvme0n1",), "value"),
        (remedies.module("nvidia_uvm"), "loaded", (), "module"),
        (remedies.cpufreq("governor"), "performance", (), "cpu"),
        (remedies.gpu("locked_clocks"), "unlocked", ("GPU0",), "gpu"),
    ],
    ids=lambda each: each.kind if hasattr(each, "kind") else "",
)
def test_what_holds_now_is_changed_before_what_holds_at_boot(remedy, value, subjects, live):
    """A boot after a power cut between the two would else set values that the journal does not know."""
    services = {f"services.{name}": Absent("not installed") for name in cpufreq.SERVICES}
    kinds = [each["change"] for each in built(host(services), step(remedy, value, *([subjects] if subjects else [])))]
    assert kinds[0] == live
    assert "file" in kinds[1:]


def test_a_limit_in_bytes_removes_the_ratio_from_the_file():
    first = files(built(host(), step(remedies.sysctl("vm.dirty_ratio"), 5)))
    second = files(built(host(own=first), step(remedies.sysctl("vm.dirty_bytes"), 8 << 30)))
    assert [lines(text) for text in second.values()] == [["vm.dirty_bytes = 8589934592"]]


def test_a_late_module_also_gets_its_parameter_as_an_option():
    changes = built(host(), step(remedies.sysctl("sunrpc.tcp_max_slot_table_entries"), 128))
    assert lines(files(changes)["/etc/modprobe.d/nodetune-sunrpc.conf"]) == [
        "options sunrpc tcp_max_slot_table_entries=128"
    ]


def test_a_foreign_file_that_is_read_later_is_named():
    swappiness = step(remedies.sysctl("vm.swappiness"), 10)
    later = {"persisted.sysctl.vm.swappiness": Value({"value": 60, "file": "/etc/sysctl.d/zzz-site.conf", "line": 3})}
    sooner = {"persisted.sysctl.vm.swappiness": Value({"value": 60, "file": "/etc/sysctl.d/99-sysctl.conf", "line": 3})}
    assert "/etc/sysctl.d/zzz-site.conf line 3" in notes(host(later), swappiness)
    assert notes(host(sooner), swappiness) == ""


# --- /sys


def test_a_file_under_sys_is_written_now_and_by_tmpfiles():
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    now, file = built(host(), step(remedies.sysfs(path), "madvise"))
    assert file["path"] == "/etc/tmpfiles.d/00-nodetune.conf"
    assert lines(file["content"]) == [f"w {path} - - - - madvise"]
    assert (now["path"], now["value"]) == (path, "madvise")


def test_a_path_outside_of_sys_is_refused():
    assert "path under /sys" in refused(host(), step(remedies.sysfs("/etc/passwd"), "x"))


def test_a_queue_is_set_now_and_by_a_rule_for_similar_disks():
    changes = built(host(), step(remedies.block_queue("scheduler"), "none", ("nvme5n1", "nvme0n1")))
    assert lines(files(changes)["/etc/udev/rules.d/99-zz-nodetune-block.rules"]) == [
        'ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="nvme*n*", ATTR{queue/scheduler}="none"'
    ]
    assert [change["path"] for change in of_kind(changes, "value")] == [
        "/sys/block/nvme5n1/queue/scheduler",
        "/sys/block/nvme0n1/queue/scheduler",
    ]
    assert handlers(changes) == ["udev-reload"]


@pytest.mark.parametrize("disk", ["../../etc", 'sda", RUN+="/bin/sh', "weird0"])
def test_a_disk_with_a_name_that_no_rule_should_hold_is_refused(disk):
    assert refused(host(), step(remedies.block_queue("scheduler"), "none", (disk,)))


def sysctl_conf(value, wins):
    line = {"value": value, "file": "/etc/sysctl.conf", "line": 3}
    winner = line if wins else {"value": 60, "file": "/etc/sysctl.d/99-sysctl.conf", "line": 3}
    return host(
        {"persisted.sysctl_conf": Value({"vm.swappiness": line}), "persisted.sysctl.vm.swappiness": Value(winner)}
    )


def test_a_line_that_sysctl_reads_last_is_told_in_the_plan():
    swappiness = step(remedies.sysctl("vm.swappiness"), 10)
    line = "/etc/sysctl.conf line 3 sets vm.swappiness = 60"
    assert notes(sysctl_conf(60, False), swappiness) == (
        f"{line}: `sysctl --system` reads that file last, and then it wins. Remove that line."
    )
    assert refused(sysctl_conf(60, True), swappiness).startswith(
        f"{line}, and tuned (reapply_sysctl) or a script reads that"
    )
    assert notes(sysctl_conf(10, True), swappiness) == ""


def test_a_disk_that_a_later_udev_rule_sets_is_left_out():
    rules = {"nvme1n1": Value({"value": "mq-deadline", "file": "/etc/udev/rules.d/99-zzz-vendor-io.rules", "line": 2})}
    facts = host({"block.scheduler_rule": Each(rules)})
    told = "nvme1n1: /etc/udev/rules.d/99-zzz-vendor-io.rules line 2 sets scheduler and is read after"
    assert refused(facts, step(remedies.block_queue("scheduler"), "none", ("nvme1n1",))).startswith(told)
    both = step(remedies.block_queue("scheduler"), "none", ("nvme0n1", "nvme1n1"))
    assert told in notes(facts, both)
    assert [change["path"] for change in of_kind(built(facts, both), "value")] == ["/sys/block/nvme0n1/queue/scheduler"]
    earlier = Value({**rules["nvme1n1"].value, "file": "/usr/lib/udev/rules.d/60-io.rules"})
    assert built(host({"block.scheduler_rule": Each({"nvme1n1": earlier})}), both)


UNIT = "/etc/systemd/system/multi-user.target.wants/tune.service"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


@pytest.mark.parametrize("file", [UNIT, "/etc/rc.local", "/etc/systemd/system/ssh.service.d/site.conf"])
def test_a_script_that_sets_it_later_is_told_in_the_plan(file):
    told = f"{file} line 3 sets {{}} later in each boot: it wins then. Remove that line."
    for remedy, name, value in (
        (remedies.sysctl("vm.swappiness"), "vm.swappiness", 10),
        (remedies.sysfs(HUGE_PAGES), HUGE_PAGES, "madvise"),
    ):
        other, same = ({"value": each, "file": file, "line": 3} for each in ("x", value))
        assert notes(host({remedy.persisted: Value(other)}), step(remedy, value)) == told.format(name)
        assert notes(host({remedy.persisted: Value(same)}), step(remedy, value)) == ""


# --- the next boot


def test_a_kernel_argument_goes_last_on_the_command_line_of_grub():
    changes = built(host(GRUB), step(remedies.kernel_arg("iommu"), "pt"))
    (text,) = files(changes).values()
    assert lines(text) == ['GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt"']
    assert handlers(changes) == ["update-grub"]


def later(setting):
    line = {"value": setting, "file": "/etc/default/grub.d/zzz-cloud.cfg", "line": 3}
    return host(GRUB, {"cmdline.grub_later": Value([line])})


@pytest.mark.parametrize("setting", ['="quiet"', '="$GRUB_CMDLINE_LINUX_DEFAULT iommu=off"', '+=" iommu"'])
def test_an_argument_that_a_later_file_drops_is_not_written(setting):
    why = refused(later(setting), step(remedies.kernel_arg("iommu"), "pt"))
    assert why.startswith(
        f"/etc/default/grub.d/zzz-cloud.cfg line 3 sets GRUB_CMDLINE_LINUX_DEFAULT{setting} and is read"
    )
    assert "it wins over iommu. Remove that line" in why


def test_a_later_file_that_adds_other_arguments_is_no_rival():
    for setting in ('="${GRUB_CMDLINE_LINUX_DEFAULT} quiet"', '+=" quiet"'):
        assert files(built(later(setting), step(remedies.kernel_arg("iommu"), "pt")))


def test_update_grub_runs_until_grub_has_the_argument():
    for installed, always in ((Value({"value": "pt", "file": "/boot/grub/grub.cfg"}), None), (Absent("no"), True)):
        facts = host(GRUB, {"cmdline.installed.iommu": installed})
        (run,) = of_kind(built(facts, step(remedies.kernel_arg("iommu"), "pt")), "run")
        assert run.get("always") is always


def test_a_flag_without_a_value_stands_alone():
    (text,) = files(built(host(GRUB), step(remedies.kernel_arg("nosmt"), ""))).values()
    assert lines(text) == ['GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT nosmt"']


def test_the_rhel_family_takes_kernel_arguments_by_grubby():
    changes = built(host(RHEL), step(remedies.kernel_arg("iommu"), "pt"))
    assert changes == [{"change": "bootarg", "name": "iommu", "value": "pt", "checks": ["a-check"]}]


@pytest.mark.parametrize(
    "boot",
    [
        Value({"arguments": {}, "file": "/boot/loader/entries/a.conf"}),
        Absent("no boot loader configuration on this host"),
        Unread("permission denied: needs root (--become)"),
    ],
)
def test_a_boot_loader_that_is_not_known_is_left_alone(boot):
    assert refused(host({"cmdline.installed": boot}), step(remedies.kernel_arg("iommu"), "pt"))


@pytest.mark.parametrize("value", ['"; rm -rf /; "', "$(reboot)", "`id`", "a b", "a;b", "\\x"])
def test_a_kernel_argument_that_a_shell_would_read_is_refused(value):
    assert refused(host(GRUB), step(remedies.kernel_arg("iommu"), value))


ARM = {
    **GRUB,
    "host.arch": Value("aarch64"),
    "host.kernel": Value("6.8.0-1010-nvidia-64k"),
    "pci.gpus": Value(["0009:06:00.0"]),
    "pci.devices": Value({"0009:06:00.0": {"parents": ["0009:00:00.0", "0009:02:02.0"]}}),
    "pci.acs": Each({"0009:00:00.0": Value({"port": "root", "enabled": ["SrcValid", "ReqRedir", "UpstreamFwd"]})}),
    "pci.iommu.domains": Each({"0009:06:00.0": Value("DMA-FQ")}),
}
PASSING = {"pci.iommu.domains": Each({"0009:06:00.0": Value("identity")})}
PASSTHROUGH = step(remedies.kernel_arg("iommu.passthrough"), "1")
ACCESS_CONTROL = step(remedies.kernel_arg("pci"), "config_acs=xx111x0@0009:00:00.0")


@pytest.mark.parametrize("system", [DEBIAN, RHEL])
def test_an_argument_that_ends_cuda_on_arm_is_refused(system):
    for given, facts in ((PASSTHROUGH, ARM), (ACCESS_CONTROL, {**ARM, **PASSING})):
        reason = refused(host(system, facts), given)
        assert "kernel 6.8.0-1010-nvidia-64k" in reason
        assert "CUDA would start on no GPU" in reason
    assert refused(host(ARM), step(remedies.kernel_arg("iommu.passthrough"), "on"))
    assert "permission denied" in refused(host(ARM, {"pci.acs": Unread("permission denied")}), PASSTHROUGH)


def test_a_refused_argument_leaves_the_others_of_its_kind():
    planned, ((found, _),) = host_changes.build([PASSTHROUGH, step(remedies.kernel_arg("audit"), "0")], host(ARM))
    assert found == PASSTHROUGH
    ((text,),) = (files(each.changes).values() for each in planned)
    assert "audit=0" in text
    assert "passthrough" not in text


@pytest.mark.parametrize(
    "harmless",
    [
        {"host.arch": Value("x86_64")},
        {"host.kernel": Value("6.11.0-1007-nvidia-64k")},
        {"pci.gpus": Value([])},
        {"pci.acs": Each({"0009:00:00.0": Value({"port": "root", "enabled": []})})},
        {"pci.acs": Each({"0009:00:00.0": Absent("no access control services")})},
    ],
)
def test_passthrough_that_leaves_cuda_alone_is_planned(harmless):
    assert files(built(host(ARM, harmless), PASSTHROUGH))


def test_the_way_out_of_lost_cuda_is_never_refused():
    assert files(built(host(ARM, PASSING), step(remedies.kernel_arg("iommu.passthrough"), "0")))
    assert files(built(host(ARM), ACCESS_CONTROL))


def test_two_arguments_that_end_cuda_together_are_refused():
    bare = {**ARM, "pci.acs": Each({"0009:00:00.0": Value({"port": "root", "enabled": []})})}
    planned, left = host_changes.build([PASSTHROUGH, ACCESS_CONTROL], host(bare))
    assert planned == []
    assert [found for found, _ in left] == [PASSTHROUGH, ACCESS_CONTROL]
    pending = {"arguments": {"iommu.passthrough": "1"}, "file": "/boot/grub/grub.cfg"}
    assert "CUDA" in refused(host(bare, {"cmdline.installed": Value(pending)}), ACCESS_CONTROL)


# --- limits

SESSIONS = "login sessions"
LOW = {"soft": 1024, "hard": 4096, "source": "inherited from sshd"}


def limits(item, subjects, now=LOW, units=("slurmd",)):
    facts = {f"limits.{item}": Each(dict.fromkeys(subjects, Value(now)))}
    names = ("slurmd", "containerd", "crio", "docker", "kubelet")
    return host(facts, {f"services.{name}": RUNS if name in units else Absent("not installed") for name in names})


def test_a_limit_reaches_sessions_and_services():
    subjects = ("slurmd", SESSIONS)
    changes = built(limits("nofile", subjects), step(remedies.limit("nofile"), 1048576, subjects))
    written = files(changes)
    assert set(lines(written["/etc/security/limits.d/zz-nodetune.conf"])) == {
        f"{who} {side} nofile 1048576" for who in ("*", "root") for side in ("soft", "hard")
    }
    assert lines(written["/etc/systemd/system/slurmd.service.d/zz-nodetune.conf"]) == [
        "[Service]",
        "LimitNOFILE=1048576",
    ]
    assert handlers(changes) == ["daemon-reload", "restart slurmd.service"]


def test_locked_memory_is_set_for_pam_and_for_services():
    facts = limits("memlock", (SESSIONS,), {"soft": 65536, "hard": 65536, "source": "inherited from sshd"})
    written = files(built(facts, step(remedies.limit("memlock"), 1 << 30, (SESSIONS,))))
    assert "* soft memlock 1048576" in lines(written["/etc/security/limits.d/zz-nodetune.conf"])
    changes = built(facts, step(remedies.limit("memlock"), "unlimited", (SESSIONS,)))
    assert "* hard memlock unlimited" in lines(files(changes)["/etc/security/limits.d/zz-nodetune.conf"])
    manager = lines(files(changes)["/etc/systemd/system.conf.d/zz-nodetune.conf"])
    assert manager == ["[Manager]", "DefaultLimitMEMLOCK=infinity"]
    assert handlers(changes) == ["daemon-reexec"], "a reload does not read the defaults again"


def test_systemd_is_not_reloaded_before_it_is_executed_again():
    subjects = ("slurmd", SESSIONS)
    changes = built(limits("memlock", subjects), step(remedies.limit("memlock"), "unlimited", subjects))
    assert handlers(changes) == ["daemon-reexec", "restart slurmd.service"]


def test_slurmd_is_not_restarted_for_a_limit_that_it_raises():
    facts = limits("core", ("slurmd", SESSIONS), {"soft": "unlimited", "hard": "unlimited", "source": "process 7"})
    why = refused(facts, step(remedies.limit("core"), 0, ("slurmd",)))
    assert why.startswith("slurmd raises its limit of core files to its hard one (unlimited), and jobs get that")
    assert handlers(built(facts, step(remedies.limit("core"), 0, ("slurmd", SESSIONS)))) == []


def test_a_later_file_with_systemd_s_default_is_told():
    facts = limits("memlock", (SESSIONS,), {"soft": 65536, "hard": 65536, "source": "inherited from sshd"})
    given = step(remedies.limit("memlock"), "unlimited", (SESSIONS,))
    for name, told in (("zzz-site.conf", True), ("10-site.conf", False), ("zz-nodetune.conf", False)):
        line = Value({"value": "64M", "file": f"/etc/systemd/system.conf.d/{name}", "line": 2})
        with_default = HostFacts("gpu01", {**facts.facts, "services.default_memlock": line})
        note = f"/etc/systemd/system.conf.d/{name} line 2 sets DefaultLimitMEMLOCK too and is read after"
        assert (note in notes(with_default, given)) == told


def test_a_hard_limit_that_is_higher_stays():
    now = {"soft": 1024, "hard": 2097152, "source": "inherited from sshd"}
    subjects = ("slurmd", SESSIONS)
    written = files(built(limits("nofile", subjects, now), step(remedies.limit("nofile"), 1048576, subjects)))
    assert {line.split()[1] for line in lines(written["/etc/security/limits.d/zz-nodetune.conf"])} == {"soft"}
    assert "LimitNOFILE=1048576:2097152" in written["/etc/systemd/system/slurmd.service.d/zz-nodetune.conf"]


def test_a_stack_comes_down_and_may_be_raised_by_its_user():
    now = {"soft": "unlimited", "hard": "unlimited", "source": "process 1"}
    subjects = ("slurmd", SESSIONS)
    written = files(built(limits("stack", subjects, now), step(remedies.limit("stack"), 8388608, subjects)))
    assert set(lines(written["/etc/security/limits.d/zz-nodetune.conf"])) == {
        "* soft stack 8192",
        "root soft stack 8192",
    }
    assert "LimitSTACK=8388608:infinity" in written["/etc/systemd/system/slurmd.service.d/zz-nodetune.conf"]


@pytest.mark.parametrize(("now", "wanted"), [(99, 0), (0, 50)])
def test_a_realtime_priority_is_set_on_both_sides(now, wanted):
    facts = limits("rtprio", (SESSIONS,), {"soft": now, "hard": now, "source": "/etc/security/limits.conf line 2"})
    (text,) = files(built(facts, step(remedies.limit("rtprio"), wanted, (SESSIONS,)))).values()
    assert {f"* hard rtprio {wanted}", f"* soft rtprio {wanted}"} <= set(lines(text))


def test_a_daemon_without_a_unit_is_named_and_the_rest_is_done():
    subjects = ("containerd", "slurmd")
    given = step(remedies.limit("nofile"), 1048576, subjects)
    facts = limits("nofile", subjects)
    assert list(files(built(facts, given))) == ["/etc/systemd/system/slurmd.service.d/zz-nodetune.conf"]
    assert "containerd does not run in containerd.service" in notes(facts, given)
    assert refused(facts, step(remedies.limit("nofile"), 1048576, ("containerd",)))


PAM_OFF = {"soft": 65536, "hard": 65536, "source": "inherited from sshd", "in_the_way": "no pam_limits"}


def test_sessions_that_no_file_reaches_are_refused():
    given = step(remedies.limit("memlock"), "unlimited", (SESSIONS,))
    why = refused(limits("memlock", (SESSIONS,), PAM_OFF), given)
    assert why.startswith("login sessions: no pam_limits. /etc/security/limits.d/zz-nodetune.conf has no effect")


def test_the_line_of_a_group_is_told_and_the_rest_is_done():
    subjects = ("slurmd", f"{SESSIONS} of @students")
    line = PAM_OFF | {"in_the_way": "/etc/security/limits.conf line 1 is for @students and beats lines for everyone"}
    facts, given = limits("memlock", subjects, line), step(remedies.limit("memlock"), "unlimited", subjects)
    assert list(files(built(facts, given))) == ["/etc/systemd/system/slurmd.service.d/zz-nodetune.conf"]
    assert "@students: /etc/security/limits.conf line 1 is for @students" in notes(facts, given)


def test_services_are_set_where_sessions_cannot_be():
    subjects = ("slurmd", SESSIONS)
    given = step(remedies.limit("memlock"), "unlimited", subjects)
    facts = limits("memlock", subjects, PAM_OFF)
    assert list(files(built(facts, given))) == ["/etc/systemd/system/slurmd.service.d/zz-nodetune.conf"]
    assert "no pam_limits" in notes(facts, given)


def test_a_later_drop_in_is_named_and_nothing_is_written():
    later = "/etc/systemd/system/slurmd.service.d/zzz.conf line 2"
    now = {"soft": 1024, "hard": 1024, "source": f"process 7, {later}"}
    given = step(remedies.limit("nofile"), 1048576, ("slurmd",))
    assert refused(limits("nofile", ("slurmd",), now), given).startswith(later)
    earlier = {**now, "source": now["source"].replace("zzz", "10-a")}
    assert files(built(limits("nofile", ("slurmd",), earlier), given))


def capped(check="a-check"):
    given = step(remedies.limit("nofile"), 1048576, (SESSIONS,), check)
    params = {"ceiling": {"sysctl": "fs.nr_open", "reason": "fs.nr_open = 9 caps it"}}
    return replace(given, fix=replace(given.fix, params=params))


def test_a_fix_below_a_ceiling_waits_for_the_kernel_parameter():
    facts = limits("nofile", (SESSIONS,))
    assert refused(facts, capped()) == "fs.nr_open = 9 caps it: raise fs.nr_open first, then plan again"


def test_a_plan_that_raises_the_ceiling_fixes_both():
    raised = step(remedies.sysctl("fs.nr_open"), 1048576, check="b")
    facts = limits("nofile", (SESSIONS,))
    facts = replace(facts, facts={**facts.facts, "sysctl.fs.nr_open": Value(9)})
    written = files(built(facts, capped(), raised))
    assert "* soft nofile 1048576" in written["/etc/security/limits.d/zz-nodetune.conf"]


def test_open_files_are_never_set_above_what_the_kernel_allows():
    facts = limits("nofile", (SESSIONS,))
    facts = replace(facts, facts={**facts.facts, "sysctl.fs.nr_open": Value(200000)})
    given = step(remedies.limit("nofile"), 1048576, (SESSIONS,))
    assert "* soft nofile 200000" in files(built(facts, given))["/etc/security/limits.d/zz-nodetune.conf"]
    assert "fs.nr_open = 200000 limits open files" in notes(facts, given)


# --- units and modules


@pytest.mark.parametrize(
    ("unit", "path", "expected"),
    [
        ("slurmd.service", "/etc/systemd/system/slurmd.service.d/", ["daemon-reload", "restart slurmd.service"]),
        ("user.slice", "/etc/systemd/system/user.slice.d/", ["daemon-reload"]),
        ("logind.conf", "/etc/systemd/logind.conf.d/", ["restart systemd-logind.service"]),
        ("system.conf", "/etc/systemd/system.conf.d/", ["daemon-reexec"]),
    ],
)
def test_a_drop_in_is_written_for_its_unit_and_loaded(unit, path, expected):
    remedy = remedies.systemd_dropin(unit, "Section", "AllowedCPUs")
    changes = built(host(), step(remedy, "0-3"))
    assert list(files(changes)) == [f"{path}zz-nodetune.conf"] == [remedy.file]
    assert lines(files(changes)[remedy.file]) == ["[Section]", "AllowedCPUs=0-3"]
    assert handlers(changes) == expected


@pytest.mark.parametrize(("value", "active"), [("enabled", "started"), ("disabled", "stopped"), ("masked", "stopped")])
def test_a_service_is_set_for_now_and_for_the_next_boot(value, active):
    (change,) = built(host({"services.irqbalance": RUNS}), step(remedies.service("irqbalance"), value))
    assert (change["unit"], change["enabled"], change["active"]) == ("irqbalance.service", value, active)


def test_a_unit_that_others_start_is_only_started():
    static = {"services.nvidia-persistenced": Value({"active": "inactive", "enabled": "static"})}
    (change,) = built(host(static), step(remedies.service("nvidia-persistenced"), "enabled"))
    assert (change["enabled"], change["active"]) == (None, "started")


def test_a_missing_service_cannot_start_and_is_already_off():
    missing = {"services.irqbalance": Absent("not installed"), "services.dcgm": Absent("not installed")}
    assert "not installed" in refused(host(missing), step(remedies.service("dcgm"), "enabled"))
    assert built(host(missing), step(remedies.service("irqbalance"), "disabled"))


def test_a_site_may_name_a_unit_in_full_or_by_another_type():
    facts = host({"services.apt-daily.timer": RUNS, "services.irqbalance": RUNS})
    (timer,) = built(facts, step(remedies.service("apt-daily.timer"), "disabled"))
    (full,) = built(facts, step(remedies.service("irqbalance.service"), "disabled"))
    assert (timer["unit"], full["unit"]) == ("apt-daily.timer", "irqbalance.service")


def test_a_module_is_loaded_now_and_at_boot():
    now, file = built(host(), step(remedies.module("nvidia_uvm"), "loaded"))
    assert (file["path"], lines(file["content"])) == ("/etc/modules-load.d/nodetune-nvidia_uvm.conf", ["nvidia_uvm"])
    assert (now["change"], now["name"], now["loaded"]) == ("module", "nvidia_uvm", True)


def test_a_blacklisted_module_also_leaves_the_initial_ram_disk():
    changes = built(host(), step(remedies.modprobe("nouveau"), "blacklist"))
    assert lines(files(changes)["/etc/modprobe.d/nodetune-nouveau.conf"]) == [
        "blacklist nouveau",
        "options nouveau modeset=0",
    ]
    assert handlers(changes) == ["initramfs"]


def test_options_of_a_module_are_added_to_those_set_before():
    first = files(built(host(), step(remedies.modprobe("nvidia"), {"NVreg_RestrictProfilingToAdminUsers": 1})))
    second = files(built(host(own=first), step(remedies.modprobe("nvidia"), {"NVreg_EnableMSI": 1})))
    assert [lines(text) for text in second.values()] == [
        ["options nvidia NVreg_EnableMSI=1 NVreg_RestrictProfilingToAdminUsers=1"]
    ]


# --- swap and mounts


def test_swap_is_off_now_in_fstab_and_in_units():
    swaps = {"memory.swaps": Value({"/dev/nvme0n1p3": {}, "/dev/zram0": {}}), "services.zramswap": RUNS}
    changes = built(host(swaps), step(remedies.swap_off(), 0))
    assert (changes[0]["path"], changes[0]["how"]) == ("/etc/fstab", "fstab_no_swap")
    assert of_kind(changes, "swap") == [{"change": "swap", "active": False}]
    assert [change["unit"] for change in of_kind(changes, "unit")] == [
        "dev-nvme0n1p3.swap",
        "systemd-zram-setup@zram0.service",
        "dev-zram0.swap",
        "zramswap.service",
    ]
    assert {change["enabled"] for change in of_kind(changes, "unit")} == {"masked"}


@pytest.mark.parametrize(
    ("path", "name"),
    [("/dev/sda2", "dev-sda2"), ("/swap.img", "swap.img"), ("/dev/dm-1", r"dev-dm\x2d1"), ("/.s wap", r"\x2es\x20wap")],
)
def test_paths_become_names_as_systemd_escape_makes_them(path, name):
    assert swap_off.unit_name(path) == name


def test_an_option_of_a_mount_goes_into_fstab_and_into_the_mount():
    edit, mount = built(host(), step(remedies.mount_option("noatime"), "noatime", ("/scratch",)))
    assert edit["with"]["mount_point"] == "/scratch"
    assert (mount["mount_point"], mount["option"]) == ("/scratch", "noatime")


# --- links

NETPLAN = ["Link", [["Name", "data0"], ["MTUBytes", "9000"]]]


NOBODY = {"by": "", "file": None, "line": None, "text": None}


def nics(file="/usr/lib/systemd/network/99-default.link", sections=None, owner=NOBODY, **more):
    own = {"id_path": "pci-0000:18:00.0", "mac_address": "02:00:00:00:00:01", "file": file}
    own["sections"] = sections or [["Link", [["NamePolicy", "keep kernel path"], ["MACAddressPolicy", "persistent"]]]]
    own["owner"] = owner
    return {
        "net.links": Value({"eth0": {"bdf": "0000:18:00.0"}, "eth1": {"bdf": "0000:18:00.0"}, "usb0": {"bdf": None}}),
        "own.links": Each({"eth0": Value(own), **more}),
    }


def test_the_file_of_a_link_repeats_the_one_that_it_hides():
    changes = built(host(nics()), step(remedies.net_link("rings"), "max", ("eth0",)))
    assert lines(files(changes)["/etc/systemd/network/00-nodetune-eth0.link"]) == [
        "[Match]",
        "Path=pci-0000:18:00.0",
        "[Link]",
        "NamePolicy=keep kernel path",
        "MACAddressPolicy=persistent",
        "RxBufferSize=max",
        "TxBufferSize=max",
    ]
    (link,) = of_kind(changes, "link")
    assert (link["link"], link["setting"], link["value"]) == ("eth0", "rings", "max")
    assert link["confirm_seconds"] > 0, "the change goes back by itself where nobody confirms it"


def test_a_foreign_link_file_keeps_its_other_sections():
    facts = host(nics("/run/systemd/network/10-netplan-data0.link", [NETPLAN, ["SR-IOV", [["VirtualFunction", "0"]]]]))
    given = step(remedies.net_link("mtu"), 4200, ("eth0",))
    (text,) = files(built(facts, given)).values()
    assert lines(text)[2:] == ["[SR-IOV]", "VirtualFunction=0", "[Link]", "Name=data0", "MTUBytes=4200"]
    assert "/run/systemd/network/10-netplan-data0.link" in notes(facts, given)


def test_a_later_setting_of_a_link_keeps_the_earlier_ones():
    first = files(built(host(nics()), step(remedies.net_link("rings"), "max", ("eth0",))))
    ours = nics("/etc/systemd/network/00-nodetune-eth0.link", [["Link", []]])
    second = files(built(host(ours, own=first), step(remedies.net_link("adaptive-rx", "none"), True, ("eth0",))))
    (text,) = second.values()
    assert lines(text)[3:] == [
        "NamePolicy=keep kernel path",
        "MACAddressPolicy=persistent",
        "RxBufferSize=max",
        "TxBufferSize=max",
        "UseAdaptiveRxCoalesce=yes",
    ]


def test_links_that_share_a_slot_are_told_apart_by_address():
    twin = Value({"id_path": "pci-0000:18:00.0", "mac_address": "02:00:00:00:00:02", "file": None, "sections": []})
    (text,) = files(built(host(nics(eth1=twin)), step(remedies.net_link("rings"), "max", ("eth0",)))).values()
    assert "PermanentMACAddress=02:00:00:00:00:01" in text


def test_without_udev_the_slot_and_systemd_names_match():
    (text,) = files(built(host(nics()), step(remedies.net_link("rings"), "max", ("eth1",)))).values()
    assert "Path=pci-0000:18:00.0" in text
    assert "NamePolicy=keep kernel database onboard slot path" in text
    assert "usb0 is not a PCI device" in refused(host(nics()), step(remedies.net_link("rings"), "max", ("usb0",)))


def owned(by, file=None, line=None, text=None):
    return {"by": by, "file": file, "line": line, "text": text}


MTU = step(remedies.net_link("mtu"), 9000, ("eth0",))
NETPLAN_NETWORK = "/run/systemd/network/10-netplan-data0.network"
CONNECTION = "/etc/NetworkManager/system-connections/data0.nmconnection"


@pytest.mark.parametrize(
    ("owner", "path", "kept"),
    [
        (owned(""), "/etc/systemd/network/00-nodetune-eth0.link", "MTUBytes=9000"),
        (owned("ifupdown", "/etc/network/interfaces"), "/etc/systemd/network/00-nodetune-eth0.link", "MTUBytes=9000"),
        (
            owned("networkd", NETPLAN_NETWORK),
            "/etc/systemd/network/10-netplan-data0.network.d/zz-nodetune.conf",
            "MTUBytes=9000",
        ),
        (
            owned("NetworkManager", CONNECTION),
            "/etc/NetworkManager/conf.d/zz-nodetune-eth0.conf",
            "ethernet.mtu=9000",
        ),
    ],
)
def test_an_mtu_is_kept_by_who_owns_the_link_and_only_once_it_holds(owner, path, kept):
    link, file = built(host(nics(owner=owner)), MTU)
    assert (link["link"], link["value"], link["peers"]) == ("eth0", 9000, {})
    assert (file["path"], file["after"]) == (path, "eth0 mtu")
    assert kept in lines(file["content"])


@pytest.mark.parametrize(
    ("by", "path", "old", "new"),
    [
        ("NetworkManager", CONNECTION, "mtu=1500", "mtu=9000"),
        ("NetworkManager", "/etc/sysconfig/network-scripts/ifcfg-eth0", 'MTU="1500"', 'MTU="9000"'),
        ("ifupdown", "/etc/network/interfaces", "    mtu 1500", "    mtu 9000"),
    ],
)
def test_a_line_that_sets_the_mtu_is_changed_where_it_is(by, path, old, new):
    _, edit = built(host(nics(owner=owned(by, path, 7, old))), MTU)
    assert (edit["path"], edit["how"], edit["after"]) == (path, "line", "eth0 mtu")
    assert edit["with"] == {"number": 7, "old": old, "new": new}


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (nics(owner=None), "what sets it at boot is unknown"),
        (nics(owner=owned("NetworkManager")), "cannot be read"),
        (nics(owner=owned("NetworkManager", "/run/NetworkManager/x", 3, "mtu=1500")), "where that file comes from"),
        (nics(owner=owned("networkd", "/etc/systemd/network/a b.network")), "not a .network file"),
        ({**nics(), "net.default_interface": Value("eth0.100")}, "eth0 has the default route"),
        ({**nics(), "net.links": Value({"eth0": {"bdf": "0000:18:00.0", "master": "bond0"}})}, "a part of bond0"),
        (
            nics(
                owner=owned("networkd", NETPLAN_NETWORK),
                eth1=Value({"id_path": "x", "owner": owned("networkd", NETPLAN_NETWORK)}),
            ),
            "is also for eth1",
        ),
    ],
)
def test_an_mtu_that_cannot_be_kept_is_refused(facts, why):
    assert why in refused(host(facts), MTU)


@pytest.mark.parametrize("link", ["../../../etc/cron.d/x", "eth0\n[Link]", "a b"])
def test_a_link_with_a_name_that_is_none_is_refused(link):
    assert refused(host(nics()), step(remedies.net_link("rings"), "max", (link,)))


# --- files of others


def test_nccl_conf_is_edited_line_by_line():
    (change,) = built(host(), step(remedies.nccl_conf("NCCL_DEBUG"), "WARN"))
    assert (change["path"], change["how"], change["with"]) == (
        "/etc/nccl.conf",
        "assignments",
        {"values": {"NCCL_DEBUG": "WARN"}},
    )


def nccl_settings(*written):
    about = [
        {
            "name": raw.partition("=")[0],
            "value": raw.partition("=")[2],
            "file": file,
            "line": line,
            "raw": raw,
            "scope": "",
        }
        for file, line, raw in written
    ]
    return host({"nccl.settings": Value(about)})


NCCL_LINES = (
    ("/etc/nccl.conf", 2, "NCCL_DEBUG=INFO\r"),
    ("/etc/nccl.conf", 4, "NCCL_DEBUG=TRACE"),
    ("/root/.nccl.conf", 2, "NCCL_DEBUG=INFO"),
    ("/etc/nccl.conf", 6, "NCCL_PSK=(hidden)"),
    ("/etc/nccl.conf", 7, "A" * 4096),
    ("/etc/nccl.conf", 8, r"NCCL_X=\xff"),
)


def test_bad_nccl_conf_lines_go_by_text_and_others_are_named():
    subjects = ("/etc/nccl.conf:2 NCCL_DEBUG", "/root/.nccl.conf:2 NCCL_DEBUG")
    given = step(remedies.nccl_conf(), "removed", subjects)
    facts = nccl_settings(*NCCL_LINES)
    (change,) = built(facts, given)
    assert (change["path"], change["how"], change["with"]) == (
        "/etc/nccl.conf",
        "without_lines",
        {"lines": ["NCCL_DEBUG=INFO\r"]},
    )
    assert plan.edited(change) == r"without the line: NCCL_DEBUG=INFO\x0d"
    assert "/root/.nccl.conf:2 NCCL_DEBUG: nodetune edits only /etc/nccl.conf and" in notes(facts, given)


def test_lines_of_two_files_are_two_edits_and_the_first_of_equal_lines_stays():
    line, exported = "NCCL_IB_TC=106", 'export NCCL_DEBUG="INFO"'
    facts = nccl_settings(("/etc/nccl.conf", 1, line), ("/etc/nccl.conf", 5, line), ("/etc/environment", 2, exported))
    given = step(remedies.nccl_conf(), "removed", ("/etc/nccl.conf:5 NCCL_IB_TC", "/etc/environment:2 NCCL_DEBUG"))
    found = {change["path"]: change["with"] for change in built(facts, given)}
    assert found == {"/etc/nccl.conf": {"lines": [], "once": [line]}, "/etc/environment": {"lines": [exported]}}
    assert [plan.edited(change) for change in built(facts, given)] == [
        f"only once the line: {line}",
        f"without the line: {exported}",
    ]


@pytest.mark.parametrize(
    "subject",
    [
        "/root/.nccl.conf:2 NCCL_DEBUG",
        "/etc/nccl.conf:3 NCCL_DEBUG",
        "/etc/nccl.conf:NCCL_DEBUG",
        "/etc/nccl.conf:6 NCCL_PSK",
        "/etc/nccl.conf:7 AAAA",
        "/etc/nccl.conf:8 NCCL_X",
    ],
)
def test_a_line_elsewhere_or_not_known_by_letter_is_left_alone(subject):
    facts = nccl_settings(*NCCL_LINES)
    assert "remove" in refused(facts, step(remedies.nccl_conf(), "removed", (subject,)))


def test_docker_gets_its_keys_and_one_restart():
    ulimits = {"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}}
    steps = [
        step(remedies.docker_daemon("default-ulimits"), ulimits, check="docker-memlock-limited"),
        step(remedies.docker_daemon("default-shm-size"), "16g", check="docker-shm-small"),
    ]
    changes = built(host({"services.docker": RUNS}), *steps)
    assert [change["with"]["keys"] for change in of_kind(changes, "edit")] == [
        {"default-ulimits": ulimits},
        {"default-shm-size": "16g"},
    ]
    assert handlers(changes) == ["restart docker.service"]
    stopped = host({"services.docker": Value({"active": "inactive", "enabled": "disabled"})})
    assert handlers(built(stopped, *steps)) == [], "a Docker that does not run is not started"
    assert "no docker.service" in refused(host({"services.docker": Absent("not installed")}), steps[0])


# --- groups


def test_disruptive_groups_come_last_and_need_idle_gpus():
    facts = host(GRUB, {"services.docker": RUNS})
    steps = [
        step(remedies.kernel_arg("iommu"), "pt", check="c"),
        step(remedies.docker_daemon("default-shm-size"), "16g", check="b"),
        step(remedies.sysctl("vm.swappiness"), 10, check="a"),
    ]
    groups, _ = host_changes.build(steps, facts)
    assert [(group.name, group.guard) for group in groups] == [
        ("sysctl", {}),
        ("docker_daemon", {"gpu_idle": True}),
        ("kernel_arg", {"gpu_idle": True}),
    ]
    assert json.loads(json.dumps([group.data() for group in groups]))[0]["checks"] == ["a"]


def test_one_step_that_cannot_be_built_costs_the_others_nothing():
    bad = step(remedies.sysctl("vm.swappiness"), "1\n2", check="bad")
    groups, unfixable = host_changes.build([bad, step(remedies.sysctl("vm.max_map_count"), 5, check="good")], host())
    assert [group.checks for group in groups] == [("good",)]
    assert [each for each, _ in unfixable] == [bad]


@pytest.mark.parametrize("shape", [Value(7), Value(["x"]), Value({"id": 3, "like": 5}), Value({"a": {"b": []}})])
@pytest.mark.parametrize("fact", ["memory.swaps", "host.os", "own.files", "services.docker", "net.links", "own.links"])
def test_malformed_facts_give_a_reason_and_no_traceback(fact, shape):
    facts = replace(host(GRUB), facts={**host(GRUB, nics(), {"services.docker": RUNS}).facts, fact: shape})
    for given in (
        step(remedies.swap_off(), 0),
        step(remedies.kernel_arg("iommu"), "pt"),
        step(remedies.docker_daemon("default-shm-size"), "16g"),
        step(remedies.net_link("rings"), "max", ("eth0",)),
    ):
        groups, unfixable = host_changes.build([given], facts)
        assert len(groups) + len(unfixable) == 1


def test_unreadable_own_files_stop_the_plan():
    facts = HostFacts("gpu01", dict(DEBIAN), {"failed": {"own": "did not return within 6 s"}})
    assert "did not return" in refused(facts, step(remedies.sysctl("vm.swappiness"), 10))


# --- whole machines


def judged(name):
    collected = document.load(Path(build.HERE / f"{name}.json"))
    extra = {fact: Absent("not there") for fact in host_changes.needs(every_kind()) if fact not in collected.facts}
    facts = HostFacts(collected.host, {**extra, **collected.facts}, collected.about)
    return facts, Auditor(Selection(), build.TODAY).result(facts)


def every_kind():
    return {path.stem for path in Path(builders.__file__).parent.glob("[a-z]*.py")}


def test_every_fixable_finding_gets_changes():
    facts, result = judged("hgx-h200-untuned")
    steps = plan.fixable(result)
    groups, unfixable = host_changes.build(steps, facts)
    assert unfixable == []
    assert {check for group in groups for check in group.checks} == {
        found.check for found in result.failing() if found.fix
    }
    for group in groups:
        named = set().union(*(change.get("checks", group.checks) for change in group.changes))
        assert named == set(group.checks), "each finding is named by a change"


@pytest.mark.parametrize("name", list(build.MODULES))
def test_a_second_plan_writes_the_same_bytes(name):
    facts, result = judged(name)
    steps = plan.fixable(result)
    first = files(change for group in host_changes.build(steps, facts)[0] for change in group.changes)
    after = HostFacts(facts.host, {**facts.facts, "own.files": Value(first)}, facts.about)
    assert files(change for group in host_changes.build(steps, after)[0] for change in group.changes) == first

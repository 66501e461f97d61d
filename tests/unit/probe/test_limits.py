"""limits.*: what PAM, sshd and the running daemons hand out."""

import os

import pytest

from nodetune.probe import limits

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max core file size        0                    unlimited            bytes
Max processes             96365                96365                processes
Max open files            1024                 524288               files
Max locked memory         8388608              8388608              bytes
Max realtime priority     0                    0
"""
HOST = {
    "/proc/1/comm": "systemd",
    "/proc/7/comm": "slurmd",
    "/proc/7/status": "Uid:\t0\t0\t0\t0\n",
    "/proc/7/limits": LIMITS.replace("8388608              8388608", "unlimited            unlimited"),
    "/proc/9/comm": "sshd",
    "/proc/9/status": "Uid:\t0\t0\t0\t0\n",
    "/proc/9/limits": LIMITS,
    "/etc/pam.d/sshd": "@include common-session\n",
    "/etc/pam.d/common-session": "session required pam_limits.so\n",
    "/proc/sys/fs/nr_open": "1048576\n",
}


def sessions(facts, item):
    return facts[f"limits.{item}"]["each"]["login sessions"]


def test_each_running_daemon_is_a_subject_with_its_own_limits(tree, collect):
    tree(HOST)
    memlock = collect("limits")["limits.memlock"]["each"]
    assert memlock["slurmd"] == {"value": {"soft": "unlimited", "hard": "unlimited", "source": "process 7"}}
    assert "containerd" not in memlock


def test_a_session_inherits_from_sshd_what_no_line_sets(tree, collect):
    tree(HOST)
    assert sessions(collect("limits"), "nofile") == {
        "value": {"soft": 1024, "hard": 524288, "source": "inherited from sshd"}
    }


SANDBOX = LIMITS.replace("1024                 524288 ", "1                    1      ").replace("96365  ", "0      ")
UNLIKE_THE_DAEMON = {
    "zombie": {"/proc/8/status": "State:\tZ (zombie)\nUid:\t105\t105\t105\t105\n"},
    "before the login": {"/proc/8/cmdline": "sshd: unknown [net]\0", "/proc/8/status": "Uid:\t105\t105\t105\t105\n"},
    "session that outlived its daemon": {
        "/proc/8/cmdline": "sshd: root [priv]\0",
        "/proc/8/status": "Uid:\t0\t0\t0\t0\n",
    },
}


@pytest.mark.parametrize("other", UNLIKE_THE_DAEMON)
def test_limits_of_a_process_for_one_connection_do_not_count(tree, collect, other):
    daemon = {"/proc/9/cmdline": "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups\0"}
    child = {"/proc/8/comm": "sshd", "/proc/8/stat": "8 (sshd) Z 1 8", "/proc/8/limits": SANDBOX}
    tree({**HOST, **daemon, **child, **UNLIKE_THE_DAEMON[other], "/proc/9/stat": "9 (sshd) S 1 9"})
    found = collect("limits")
    assert sessions(found, "nofile")["value"]["soft"] == 1024
    assert sessions(found, "nproc")["value"]["soft"] == 96365


def test_the_last_line_for_everyone_decides_and_is_named(tree, collect):
    tree(
        {
            **HOST,
            "/etc/security/limits.conf": "* - memlock 64\n",
            "/etc/security/limits.d/10-a.conf": "# all\n*  soft  memlock  unlimited\n* hard memlock unlimited\n",
            "/etc/security/limits.d/90-b.conf": "@wheel - memlock 1\nroot - memlock 2\n",
        }
    )
    assert sessions(collect("limits"), "memlock") == {
        "value": {"soft": "unlimited", "hard": "unlimited", "source": "/etc/security/limits.d/10-a.conf line 2"}
    }


def test_a_range_of_all_ordinary_users_beats_everyone(tree, collect):
    tree(
        {
            **HOST,
            "/etc/security/limits.conf": "1000: - nofile 4096\n500:900 - nofile 1\n",
            "/etc/security/limits.d/z.conf": "* - nofile 9\n",
        }
    )
    assert sessions(collect("limits"), "nofile")["value"]["soft"] == 4096


PEOPLE = {
    "/etc/group": "audio:x:29:\nusers:x:100:\nstudents:x:2000:\n",
    "/etc/passwd": "ada:x:1001:1001::/:/bin/sh\nbackup:x:34:34::/:/bin/sh\n",
}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("@students - memlock 64", {"login sessions of @students"}),
        ("@users - memlock 64", {"login sessions of @users"}),
        ("@of-a-directory hard memlock 64", {"login sessions of @of-a-directory"}),
        ("ada - memlock 64", {"login sessions of ada"}),
        # those of services, and those that get no less
        ("@audio - memlock 64", set()),
        ("backup - memlock 64", set()),
        ("gone - memlock 64", set()),
        ("root - memlock 64", set()),
        ("@students - memlock unlimited", set()),
        ("%students - memlock 64", set()),
        ("@students - nofile 64\n1000: - nofile 524288", set()),
    ],
)
def test_groups_and_users_that_get_less_are_named(tree, collect, line, named):
    tree({**HOST, **PEOPLE, "/etc/security/limits.conf": f"* - memlock unlimited\n* - nofile 524288\n{line}\n"})
    facts = collect("limits")
    assert {
        name for item in ("memlock", "nofile") for name in facts[f"limits.{item}"]["each"] if " of " in name
    } == named


def test_the_line_of_a_group_is_in_the_way_of_lines_for_all(tree, collect):
    tree({**HOST, **PEOPLE, "/etc/security/limits.conf": "@students - nofile 64\n* - nofile 1048576\n"})
    found = collect("limits")["limits.nofile"]["each"]["login sessions of @students"]["value"]
    assert (found["soft"], found["hard"]) == (64, 64)
    assert found["in_the_way"] == "/etc/security/limits.conf line 1 is for @students and beats lines for everyone"


def test_units_are_those_of_the_kernel(tree, collect):
    tree({**HOST, "/etc/security/limits.conf": "* - stack 8192\n* - rtprio 99\n"})
    facts = collect("limits")
    assert sessions(facts, "stack")["value"]["soft"] == 8192 * 1024
    assert sessions(facts, "rtprio")["value"]["hard"] == 99


def test_unlimited_open_files_are_the_kernels_ceiling(tree, collect):
    tree({**HOST, "/etc/security/limits.conf": "* - nofile unlimited\n"})
    assert sessions(collect("limits"), "nofile")["value"]["soft"] == 1048576


def test_a_soft_limit_ends_at_the_hard_one(tree, collect):
    tree({**HOST, "/etc/security/limits.conf": "* soft core unlimited\n* hard core 0\n"})
    assert sessions(collect("limits"), "core")["value"] == {
        "soft": 0,
        "hard": 0,
        "source": "/etc/security/limits.conf line 2",
    }


PAM_OFF = {**HOST, "/etc/pam.d/common-session": "#session required pam_limits.so\n"}
SSHD = "/etc/ssh/sshd_config"
EVERYONE = {"/etc/security/limits.conf": "* - memlock unlimited\n"}


@pytest.mark.parametrize(
    ("main", "included", "used"),
    [
        ("UsePAM no\n", "", False),
        ("Include sshd_config.d/*.conf\nUsePAM yes\n", "usepam=no\n", False),
        ("UsePAM yes\nInclude /etc/ssh/sshd_config.d/*.conf\n", "UsePAM no\n", True),
        ("#UsePAM no\nMatch User x\n UsePAM no\n", "", True),
    ],
)
def test_limits_of_pam_count_only_where_sshd_uses_pam(tree, collect, main, included, used):
    tree({**HOST, **EVERYONE, SSHD: main, SSHD + ".d/50-a.conf": included})
    found = sessions(collect("limits"), "memlock")["value"]
    assert (found["soft"] == "unlimited") == used
    assert used or found["in_the_way"] == "sshd_config says UsePAM no"


SYSTEM_CONF = "/etc/systemd/system.conf.d/10-site.conf"


def test_what_sshd_passes_on_names_the_file_that_gave_it(tree, collect):
    tree({**PAM_OFF, SYSTEM_CONF: "[Manager]\nDefaultLimitMEMLOCK=8M\n"})
    found = sessions(collect("limits"), "memlock")["value"]
    assert found["source"] == f"inherited from sshd: {SYSTEM_CONF} line 2"
    assert found["in_the_way"] == "/etc/pam.d/sshd does not run pam_limits for sessions"


def test_a_unit_beats_the_default_and_its_last_line_decides(tree, collect):
    unit = "/etc/systemd/system/ssh.service.d/"
    tree(
        {
            **HOST,
            SYSTEM_CONF: "[Manager]\nDefaultLimitNOFILE=9\n",
            "/usr/lib/systemd/system/ssh.service": "[Service]\nLimitNOFILE=7\n",
            unit + "a.conf": "[Service]\nLimitNOFILE=1K:512K\n",
        }
    )
    assert sessions(collect("limits"), "nofile")["value"]["source"] == f"inherited from sshd: {unit}a.conf line 2"


def test_a_file_that_a_daemon_does_not_follow_is_not_its_source(tree, collect):
    path = "/etc/systemd/system/slurmd.service.d/z.conf"
    tree({**HOST, path: "[Service]\nLimitMEMLOCK=64K\nLimitNOFILE=\n"})
    found = collect("limits")
    assert (
        found["limits.memlock"]["each"]["slurmd"]["value"]["source"] == f"process 7, differs from {path} line 2 (64K)"
    )
    assert found["limits.nofile"]["each"]["slurmd"]["value"]["source"] == "process 7"


def test_the_hard_line_is_named_where_it_caps_the_soft_one(tree, collect):
    tree({**HOST, "/etc/security/limits.conf": "* soft memlock unlimited\n* hard memlock 64\n"})
    found = sessions(collect("limits"), "memlock")["value"]
    assert (found["soft"], found["source"]) == (65536, "/etc/security/limits.conf line 2")


def test_a_range_of_users_is_in_the_way_of_lines_for_everyone(tree, collect):
    tree({**HOST, "/etc/security/limits.conf": "1000: - nofile 4096\n"})
    reason = "/etc/security/limits.conf line 1 is for 1000: and beats lines for everyone"
    assert sessions(collect("limits"), "nofile")["value"]["in_the_way"] == reason


def test_lines_count_only_where_ssh_sessions_run_pam_limits(tree, collect):
    tree(
        {
            **HOST,
            "/etc/pam.d/common-session": "#session required pam_limits.so\n",
            "/etc/security/limits.conf": "* - memlock unlimited\n",
        }
    )
    found = sessions(collect("limits"), "memlock")["value"]
    assert (found["source"], "pam_limits" in found["in_the_way"]) == ("inherited from sshd", True)


def test_without_sshd_and_lines_a_session_is_absent(tree, collect):
    tree({"/proc/1/comm": "init"})
    assert "absent" in sessions(collect("limits"), "memlock")


def test_hidden_processes_make_limits_unread(tree, collect):
    tree({"/proc/": None})
    assert "unread" in collect("limits")["limits.memlock"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_limits_file_that_may_not_be_read_is_unread(tree, collect):
    root = tree({**HOST, "/etc/security/limits.conf": "* - memlock unlimited\n"})
    (root / "etc/security/limits.conf").chmod(0)
    assert "needs root" in sessions(collect("limits"), "memlock")["unread"]


def test_this_very_process_has_limits():
    assert set(limits.process_limits(os.getpid())) == set(limits.PROC_NAMES)


def test_shared_memory_is_measured_where_it_is_mounted(tree, collect):
    tree({"/proc/1/comm": "init", "/dev/shm/": None, "/proc/self/mounts": "tmpfs /dev/shm tmpfs rw,size=8g 0 0\n"})
    shm = collect("limits")["limits.shm"]["value"]
    assert shm["size_bytes"] > 0
    assert shm["options"] == ["rw", "size=8g"]


def test_no_shared_memory_is_absent(tree, collect):
    tree({"/proc/1/comm": "init", "/proc/self/mounts": "proc /proc proc rw 0 0\n"})
    assert "absent" in collect("limits")["limits.shm"]

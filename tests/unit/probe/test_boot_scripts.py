"""What units and scripts of a site set at boot, after the files that nodetune writes."""

import pytest

NAME = "vm.swappiness"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
WANTS = "/etc/systemd/system/multi-user.target.wants/"
OURS = {"/etc/sysctl.d/zz-nodetune.conf": f"{NAME} = 10\n"}


def decides(tree, collect, files, name="sysctl." + NAME):
    tree({**OURS, **files})
    return collect("persisted", [name])["persisted." + name].get("value")


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("sysctl -w vm.swappiness=60", 60),
        ("/usr/sbin/sysctl -q -w vm.swappiness=60 >/dev/null 2>&1", 60),
        ('/bin/sh -c "sysctl kernel.pid_max=9 vm/swappiness=60; true"', 60),
        ("/bin/sh -c 'echo 60 > /proc/sys/vm/swappiness'", 60),
        ("/bin/sh -c 'echo 60 | tee /proc/sys/vm/swappiness'", 60),
    ],
)
def test_a_service_that_sets_a_parameter_decides(tree, collect, command, value):
    unit = {WANTS + "tune.service": f"[Service]\nType=oneshot\nExecStart={command}\n"}
    assert decides(tree, collect, unit) == {"value": value, "file": WANTS + "tune.service", "line": 3}


@pytest.mark.parametrize(
    "command",
    [
        "cat /proc/sys/vm/swappiness",
        "sysctl vm.swappiness",
        "sysctl -w vm.swappiness_other=60",
        "sysctl -w vm.swappiness=$WANTED",
        "echo vm.swappiness=60",
    ],
)
def test_what_only_reads_or_is_not_literal_decides_nothing(tree, collect, command):
    found = decides(tree, collect, {"/etc/rc.local": f"#!/bin/sh\n# sysctl -w vm.swappiness=60\n{command}\n"})
    assert found["file"] == "/etc/sysctl.d/zz-nodetune.conf"


def test_a_script_that_a_service_starts_decides(tree, collect):
    files = {
        WANTS + "tune.service": "[Service]\nExecStart=/bin/sh /opt/site/tune.sh --all\n",
        "/opt/site/tune.sh": "#!/bin/sh\nset -e\nsysctl -w net.ipv4.tcp_rmem='4096 87380 6291456' vm.swappiness=60\n",
    }
    assert decides(tree, collect, files) == {"value": 60, "file": "/opt/site/tune.sh", "line": 3}
    several = decides(tree, collect, files, "sysctl.net.ipv4.tcp_rmem")
    assert several["value"] == [4096, 87380, 6291456]


def test_a_drop_in_of_an_enabled_service_decides(tree, collect):
    files = {
        WANTS + "ssh.service": "[Service]\nExecStart=/usr/sbin/sshd -D\n",
        "/etc/systemd/system/ssh.service.d/site.conf": "[Service]\nExecStartPost=sysctl -w vm.swappiness=60\n",
    }
    assert decides(tree, collect, files)["file"] == "/etc/systemd/system/ssh.service.d/site.conf"


def test_a_service_that_is_not_enabled_or_stops_decides_nothing(tree, collect):
    unit = "[Service]\nExecStart=sysctl -w vm.swappiness=60\n"
    assert decides(tree, collect, {"/etc/systemd/system/idle.service": unit})["value"] == 10
    stops = {WANTS + "tune.service": "[Service]\nExecStart=/bin/true\nExecStop=sysctl -w vm.swappiness=60\n"}
    assert decides(tree, collect, stops)["value"] == 10


def test_rc_local_decides_for_a_file_under_sys_and_is_last(tree, collect):
    files = {
        "/etc/tmpfiles.d/00-nodetune.conf": f"w {HUGE_PAGES} - - - - madvise\n",
        WANTS + "thp.service": f"[Service]\nExecStart=/bin/sh -c 'echo never > {HUGE_PAGES}'\n",
        "/etc/rc.local": f"#!/bin/sh\necho always > {HUGE_PAGES}\n",
    }
    found = decides(tree, collect, files, "tmpfiles." + HUGE_PAGES)
    assert found == {"value": "always", "file": "/etc/rc.local", "line": 2}


@pytest.mark.parametrize(("command", "value"), [("sysctl --system", 60), ("sysctl -q -p", 60), ("sysctl -p /x", 10)])
def test_a_script_that_lets_procps_read_its_files_makes_sysctl_conf_last(tree, collect, command, value):
    files = {"/etc/sysctl.conf": f"{NAME}=60\n", "/etc/rc.local": f"#!/bin/sh\n{command}\n"}
    assert decides(tree, collect, files)["value"] == value


ON = {"/run/cloud-init/enabled": ""}
SITE, USER_DATA = "/etc/cloud/cloud.cfg.d/50-site.cfg", "/var/lib/cloud/instance/cloud-config.txt"


@pytest.mark.parametrize(
    ("items", "line"),
    [
        ("- sysctl -w vm.swappiness=60", 3),
        ("- [sysctl, -w, vm.swappiness=60]", 3),
        ('- [ sysctl, -w, "vm.swappiness=60" ]', 3),
        ("- - sysctl\n  - -w\n  - vm.swappiness=60\n- - echo\n  - done", 3),
        ("- [sh, -c, 'echo 60 > /proc/sys/vm/swappiness']", 3),
        ("- |\n  set -e\n  sysctl -w vm.swappiness=60\n  sysctl -w vm.overcommit_memory=0", 5),
        (" - echo begin\n - sysctl -w vm.swappiness=60\n - echo end", 4),
    ],
)
def test_a_boot_command_of_cloud_init_decides(tree, collect, items, line):
    files = {**ON, SITE: f"#cloud-config\nbootcmd:\n{items}\nruncmd:\n- sysctl -w vm.swappiness=70\n"}
    assert decides(tree, collect, files) == {"value": 60, "file": SITE, "line": line}


def test_boot_commands_of_user_data_replace_those_of_files(tree, collect):
    files = {**ON, SITE: "bootcmd:\n- sysctl -w vm.swappiness=60\n", USER_DATA: "bootcmd:\n- echo hello\n"}
    assert decides(tree, collect, files)["value"] == 10
    files[USER_DATA] = "#cloud-config\nbootcmd: [[sysctl, -w, vm.swappiness=70]]\n"
    assert decides(tree, collect, files) == {"value": 70, "file": USER_DATA, "line": 2}


def test_cloud_init_that_is_not_enabled_decides_nothing(tree, collect):
    assert decides(tree, collect, {SITE: "bootcmd:\n- sysctl -w vm.swappiness=60\n"})["value"] == 10


@pytest.mark.parametrize(("mode", "value"), [(0o755, 60), (0o644, 10)])
def test_a_script_of_each_boot_decides_if_it_can_run(tree, collect, mode, value):
    script = "/var/lib/cloud/scripts/per-boot/tune.sh"
    root = tree({**ON, script: "#!/bin/sh\nsysctl -w vm.swappiness=60\n", **OURS})
    (root / script[1:]).chmod(mode)
    assert collect("persisted", ["sysctl." + NAME])["persisted.sysctl." + NAME]["value"]["value"] == value


@pytest.mark.parametrize(
    ("setting", "files", "found"),
    [
        (
            "persistence_mode",
            {"/etc/rc.local": "#!/bin/sh\nnvidia-smi -i 0 -pm 1\n"},
            ("nvidia-smi -i 0 -pm 1", "/etc/rc.local", 2),
        ),
        (
            "persistence_mode",
            {"/etc/crontab": "@reboot root /usr/bin/nvidia-smi -pm ENABLED\n"},
            ("nvidia-smi -pm ENABLED", "/etc/crontab", 1),
        ),
        ("persistence_mode", {"/etc/cron.d/gpu": "0 3 * * * root nvidia-smi -pm 1\n"}, None),
        ("persistence_mode", {"/etc/rc.local": "#!/bin/sh\nnvidia-smi -pm 0\n# nvidia-smi -pm 1\n"}, None),
        (
            "persistence_mode",
            {WANTS + "nvidia-persistenced.service": "[Service]\nExecStart=/usr/bin/nvidia-persistenced\n"},
            None,
        ),
        (
            "persistence_mode",
            {
                "/lib/udev/rules.d/71-nvidia.rules": 'DEVPATH=="/bus/pci/drivers/nvidia", RUN+="/usr/bin/nvidia-smi -pm 1"\n'
            },
            ("nvidia-smi -pm 1", "/lib/udev/rules.d/71-nvidia.rules", 1),
        ),
        (
            "mig_devices",
            {
                WANTS + "mig.service": "[Service]\nExecStart=/opt/mig.sh\n",
                "/opt/mig.sh": "#!/bin/sh\nnvidia-smi mig -i 0 -cgi 19,19 -C\n",
            },
            ("nvidia-smi mig -i 0 -cgi", "/opt/mig.sh", 2),
        ),
        ("mig_devices", {"/etc/rc.local": "#!/bin/sh\nnvidia-smi mig -lgi\n"}, None),
    ],
)
def test_a_command_that_sets_gpus_at_each_boot_is_named(tree, collect, setting, files, found):
    tree(files)
    fact = collect("persisted", ["gpu." + setting])["persisted.gpu." + setting]
    assert fact.get("value") == (dict(zip(("value", "file", "line"), found, strict=True)) if found else None)


def test_a_table_of_cron_that_cannot_be_read_leaves_it_unknown(tree, collect, monkeypatch):
    tree({"/etc/crontab": "@reboot root true\n"})

    def refuse(_path):
        raise PermissionError(13, "Permission denied", "/etc/crontab")

    monkeypatch.setattr("nodetune.probe.read.numbered_lines", refuse)
    assert "unread" in collect("persisted", ["gpu.mig_devices"])["persisted.gpu.mig_devices"]

"""Where NCCL settings come from, and what each place's reader makes of a line."""

import os

import pytest

from nodetune.probe import nccl


@pytest.fixture
def settings(tree, collect):
    """settings({"/etc/nccl.conf": text}) → [(name, value, line, scope)] of what is collected."""

    def run(files):
        tree(files)
        found = collect("nccl")["nccl.settings"]["value"]
        return [(each["name"], each["value"], each["line"], each["scope"]) for each in found]

    return run


def test_a_host_without_any_setting_has_an_empty_list(settings):
    assert settings({"/etc/": None}) == []


def test_nccl_conf_is_split_at_the_first_equals_sign(settings):
    text = (
        "\n# note\nNCCL_SOCKET_IFNAME==eth0\nNCCL_DEBUG = WARN\nexport NCCL_IB_TC=106 # lossless\nNCCL_NET IB\nA=b \n"
    )
    assert settings({"/etc/nccl.conf": text}) == [
        ("NCCL_SOCKET_IFNAME", "=eth0", 3, "nccl.conf"),
        ("NCCL_DEBUG ", " WARN", 4, "nccl.conf"),
        ("export NCCL_IB_TC", "106 # lossless", 5, "nccl.conf"),
        ("NCCL_NET IB", None, 6, "nccl.conf"),
        ("A", "b ", 7, "nccl.conf"),
    ]


def test_a_carriage_return_stays_in_the_raw_line_only(tree, collect):
    (tree({"/etc/nccl.conf": ""}) / "etc/nccl.conf").write_bytes(b"NCCL_DEBUG=WARN\r\n")
    (found,) = collect("nccl")["nccl.settings"]["value"]
    assert (found["value"], found["raw"]) == ("WARN", "NCCL_DEBUG=WARN\r")


def test_a_secret_never_leaves_the_host(tree, collect):
    tree({"/etc/nccl.conf": "NCCL_PSK=0123456789abcdef\n", "/etc/environment": 'NCCL_PSK="sesame"\n'})
    facts = repr(collect("nccl"))
    assert "NCCL_PSK" in facts
    assert "0123456789abcdef" not in facts
    assert "sesame" not in facts


def test_etc_environment_loses_quotes_comments_and_export(settings):
    text = 'PATH="/bin"\nexport NCCL_DEBUG="INFO"\n  NCCL_IB_HCA=mlx5_0 # both\n#NCCL_NET=IB\nUCX_TLS=\'rc,cuda\'\n'
    assert settings({"/etc/environment": text}) == [
        ("NCCL_DEBUG", "INFO", 2, "environment"),
        ("NCCL_IB_HCA", "mlx5_0", 3, "environment"),
        ("UCX_TLS", "rc,cuda", 5, "environment"),
    ]


def test_pam_env_takes_the_override_before_the_default(settings):
    text = "NCCL_DEBUG DEFAULT=WARN\nNCCL_IB_TC   DEFAULT=0 OVERRIDE=106\nDISPLAY DEFAULT=:0\n"
    assert settings({"/etc/security/pam_env.conf": text}) == [
        ("NCCL_DEBUG", "WARN", 1, "pam_env"),
        ("NCCL_IB_TC", "106", 2, "pam_env"),
    ]


def test_of_a_shell_profile_only_exported_assignments_count(settings):
    text = (
        "# export NCCL_ALGO=Ring\nNCCL_PROTO=Simple\nNCCL_NET=IB\nexport NCCL_NET\n"
        'if true; then export NCCL_DEBUG="INFO" NCCL_IB_TC=106; fi\n'
    )
    assert settings({"/etc/profile.d/nccl.sh": text, "/etc/profile.d/readme.txt": "export NCCL_ALGO=Tree\n"}) == [
        ("NCCL_NET", "IB", 3, "profile"),
        ("NCCL_DEBUG", "INFO", 5, "profile"),
        ("NCCL_IB_TC", "106", 5, "profile"),
    ]


def test_a_shell_that_exports_all_exports_every_assignment(settings):
    assert settings({"/etc/profile.d/a.sh": "set -a\nNCCL_DEBUG=WARN\n"}) == [("NCCL_DEBUG", "WARN", 2, "profile")]


def test_systemd_words_are_unquoted_and_continued_lines_joined(settings):
    text = '[Service]\n# Environment=NCCL_NET=IB\nEnvironment="NCCL_DEBUG=WARN" \\\n  NCCL_IB_TC=106\nEnvironment=PATH=/bin\n'
    assert settings(
        {"/usr/lib/systemd/system/slurmd.service": "", "/etc/systemd/system/slurmd.service.d/a.conf": text}
    ) == [
        ("NCCL_DEBUG", "WARN", 3, "service slurmd"),
        ("NCCL_IB_TC", "106", 3, "service slurmd"),
    ]


def test_a_unit_in_etc_hides_the_shipped_one_and_its_environment(settings):
    assert settings(
        {
            "/etc/systemd/system/docker.service": "[Service]\nEnvironmentFile=-/etc/default/docker\n",
            "/usr/lib/systemd/system/docker.service": "[Service]\nEnvironment=NCCL_NET=IB\n",
            "/etc/default/docker": "NCCL_DEBUG=INFO\n",
        }
    ) == [("NCCL_DEBUG", "INFO", 1, "service docker")]


def test_the_managers_default_environment_is_read(settings):
    files = {"/etc/systemd/system.conf.d/nccl.conf": "[Manager]\nDefaultEnvironment=NCCL_DEBUG=WARN\n"}
    assert settings(files) == [("NCCL_DEBUG", "WARN", 2, "systemd")]


def test_what_slurms_task_prolog_prints_for_jobs_is_read(settings):
    files = {
        "/etc/slurm/slurm.conf": "ClusterName=x\nTaskProlog=/etc/slurm/prolog.d/task*.sh\n",
        "/etc/slurm/prolog.d/task1.sh": '#!/bin/sh\necho "export NCCL_DEBUG=INFO"\necho print export\n',
        "/etc/slurm/prolog.d/other.sh": 'echo "export NCCL_NET=IB"\n',
    }
    assert settings(files) == [("NCCL_DEBUG", "INFO", 2, "task prolog")]


def test_enroot_sets_variables_of_containers(settings):
    files = {"/etc/enroot/environ.d/50-nccl.env": "NCCL_IB_TC=106\n"}
    assert settings(files) == [("NCCL_IB_TC", "106", 1, "container")]


def test_a_conf_file_that_the_environment_names_is_read_too(settings):
    files = {"/etc/environment": "NCCL_CONF_FILE=/opt/site/nccl.conf\n", "/opt/site/nccl.conf": "NCCL_DEBUG=WARN\n"}
    assert ("NCCL_DEBUG", "WARN", 1, "home") in settings(files)


def test_an_unreadable_file_makes_the_settings_unread(tree, collect, monkeypatch):
    tree({"/etc/nccl.conf": "NCCL_DEBUG=WARN\n"})
    _deny(monkeypatch, "/etc/nccl.conf")
    assert collect("nccl")["nccl.settings"] == {"unread": "/etc/nccl.conf: permission denied: needs root (--become)"}


def test_an_unreadable_root_file_spares_other_settings(tree, collect, monkeypatch):
    tree({"/etc/nccl.conf": "NCCL_DEBUG=WARN\n", "/root/.nccl.conf": "NCCL_DEBUG=INFO\n"})
    _deny(monkeypatch, "/root/.nccl.conf")
    facts = collect("nccl")
    assert [each["file"] for each in facts["nccl.settings"]["value"]] == ["/etc/nccl.conf"]
    assert facts["nccl.files"]["each"]["/root/.nccl.conf"] == {
        "unread": "/root/.nccl.conf: permission denied: needs root (--become)"
    }


def _deny(monkeypatch, path):
    """As an unprivileged user sees it; the tests may run as root, whom modes do not stop."""

    def denied(real):
        def call(where, *more, **named):
            if str(where).endswith(path):
                raise PermissionError(13, "Permission denied")
            return real(where, *more, **named)

        return call

    monkeypatch.setattr(nccl.os, "open", denied(os.open))
    monkeypatch.setattr(nccl.os, "stat", denied(os.stat))


def test_files_tell_their_mode_and_who_may_write(tree, collect):
    root = tree({"/etc/nccl.conf": "NCCL_DEBUG=WARN\n"})
    (root / "etc/nccl.conf").chmod(0o666)
    fact = collect("nccl")["nccl.files"]["each"]["/etc/nccl.conf"]["value"]
    assert (fact["mode"], fact["world_writable"], fact["world_readable"]) == ("0666", True, True)


def test_a_librarys_release_is_in_the_file_name_behind_its_link(tree, collect):
    tree(
        {
            "/usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5": "",
            "/usr/lib/x86_64-linux-gnu/libnccl.so.2": "-> libnccl.so.2.21.5",
            "/usr/local/cuda-12.4/lib64/libnccl.so.2": "",
        }
    )
    assert collect("nccl")["nccl.libraries"]["value"] == [
        {"path": "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "version": "2.21.5"},
        {"path": "/usr/local/cuda-12.4/lib64/libnccl.so.2", "version": None},
    ]


def test_network_plugins_are_found_where_their_packages_put_them(tree, collect):
    tree({"/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so": ""})
    assert collect("nccl")["nccl.plugins"]["value"] == ["/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so"]


def test_topology_files_are_looked_up(tree, collect):
    tree(
        {
            "/etc/nccl.conf": "NCCL_TOPO_FILE=/opt/topo.xml\nNCCL_GRAPH_FILE=/opt/none.xml\n",
            "/opt/topo.xml": "<system/>",
        }
    )
    assert collect("nccl")["nccl.topo_file"]["value"] == {
        "/opt/topo.xml": {"exists": True, "world_readable": True},
        "/opt/none.xml": {"exists": False, "world_readable": False},
    }

"""What the modules collector makes of a host's files."""

import pytest

from nodetune.probe import modules, read

VENDOR = "/usr/lib/modprobe.d/nvidia.conf"


@pytest.fixture
def asked(tree, collect, monkeypatch):
    def run(name, files):
        monkeypatch.setattr(modules.platform, "release", lambda: "6.8.0-51-generic")
        tree(files)
        return collect("modules", [name])["modules." + name]

    return run


def test_a_kernel_without_modules_is_absent(asked):
    assert "absent" in asked("loaded", {})
    lines = "nvidia_uvm 4939776 0 - Live 0x0\nnvidia 104165376 1 nvidia_uvm, Live 0x0 (POE)\n"
    assert asked("loaded", {"/proc/modules": lines}) == {"value": ["nvidia", "nvidia_uvm"]}


def test_dashes_and_underscores_name_the_same_parameter(asked):
    files = {"/sys/module/nvidia_uvm/parameters/uvm_ats_mode": "1\n"}
    assert asked("parameters.nvidia-uvm.uvm_ats_mode", files) == {"value": 1}
    assert "absent" in asked("parameters.nvidia-uvm.gone", {})
    assert asked("parameters.nouveau.modeset", {}) == {"absent": "nouveau is not loaded"}


def test_the_last_option_line_wins_and_names_its_place(asked):
    files = {
        VENDOR: "# options nvidia NVreg_A=9\noptions nvidia NVreg_A=1 NVreg_B=x\n",
        "/etc/modprobe.d/zz.conf": "# ours\noptions nvidia \\\n  NVreg_A=0\noptions nvidia-drm modeset=1\n",
    }
    fact = asked("options.nvidia.NVreg_A", files)
    assert fact == {"value": {"value": 0, "file": "/etc/modprobe.d/zz.conf", "line": 2}}
    assert asked("options.nvidia_drm.modeset", {})["value"]["line"] == 4
    assert "absent" in asked("options.nvidia.NVreg_C", {})


@pytest.mark.parametrize("line", ["blacklist nouveau", "install nouveau /bin/false", "install nouveau /usr/bin/true"])
def test_blacklist_and_install_false_keep_a_module_out(asked, line):
    assert asked("blacklist.nouveau", {VENDOR: f"alias nouveau off\n{line}\n"})["value"]["line"] == 2


def test_a_file_in_etc_replaces_the_blacklist_of_the_vendor(asked):
    assert "absent" in asked("blacklist.nouveau", {VENDOR: "blacklist nouveau\n", "/etc/modprobe.d/nvidia.conf": ""})


def test_other_modules_and_other_install_lines_do_not_count(asked):
    lines = "blacklist nouveau_helper\nblacklist\ninstall nouveau /sbin/modprobe --ignore-install nouveau\n"
    assert "absent" in asked("blacklist.nouveau", {VENDOR: lines})


def test_a_kernel_argument_blacklists_too(asked):
    fact = asked("blacklist.nouveau", {"/proc/cmdline": "quiet modprobe.blacklist=floppy,nouveau\n"})
    assert fact == {"value": {"value": "modprobe.blacklist", "file": "/proc/cmdline"}}


def test_a_module_named_in_modules_load_d_is_loaded_at_boot(asked):
    fact = asked("autoload.nvidia_uvm", {"/etc/modules-load.d/gpu.conf": "# GPUs\nnvidia\nnvidia-uvm\n"})
    assert fact == {"value": {"value": "loaded", "file": "/etc/modules-load.d/gpu.conf", "line": 3}}
    assert "absent" in asked("autoload.gdrdrv", {})


def test_a_module_is_available_as_a_file_or_built_in(asked):
    folder = "/lib/modules/6.8.0-51-generic/"
    files = {
        folder + "modules.dep": "kernel/gpu/nouveau.ko.zst: kernel/drm.ko.zst\nupdates/dkms/nvidia-uvm.ko:\n",
        folder + "modules.builtin": "kernel/block/kyber-iosched.ko\n",
    }
    assert asked("available.nouveau", files) == {"value": "kernel/gpu/nouveau.ko.zst"}
    assert asked("available.nvidia_uvm", {}) == {"value": "updates/dkms/nvidia-uvm.ko"}
    assert asked("available.kyber_iosched", {}) == {"value": "kernel/block/kyber-iosched.ko"}
    assert "absent" in asked("available.nvidia", {})


def modinfo(tmp_path, text):
    tool = tmp_path / "usr/sbin/modinfo"
    tool.parent.mkdir(parents=True, exist_ok=True)
    tool.write_text("#!/bin/sh\n" + text)
    tool.chmod(0o755)
    return str(tool)


def test_a_replaced_module_is_found_by_version_or_source(asked, tmp_path, monkeypatch):
    script = 'case $1 in nvidia) echo "version:        2";; *) echo "version: 5"; echo "srcversion: BBB";; esac\n'
    tool = modinfo(tmp_path, script)
    monkeypatch.setattr(read, "find_tool", lambda _: tool)
    files = {
        "/proc/modules": "nvidia 1 0 - Live 0\nmlx5_core 1 0 - Live 0\next4 1 0 - Live 0\n",
        "/sys/module/nvidia/version": "1\n",
        "/sys/module/mlx5_core/version": "5\n",
        "/sys/module/mlx5_core/srcversion": "AAA\n",
    }
    assert asked("versions", files) == {
        "value": {"nvidia": {"loaded": "1", "installed": "2"}, "mlx5_core": {"loaded": "AAA", "installed": "BBB"}}
    }


def test_modinfo_is_asked_only_when_its_answer_is_needed(tree, collect, monkeypatch):
    tree({"/proc/modules": "nvidia 1 0 - Live 0\n"})
    monkeypatch.setattr(read, "run", lambda *_: pytest.fail("modinfo was run"))
    assert set(collect("modules", ["loaded"])) == {"modules.loaded"}


def test_no_module_of_interest_needs_no_modinfo(asked):
    assert asked("versions", {"/proc/modules": "ext4 1 0 - Live 0\n"}) == {"value": {}}


def test_a_modinfo_that_fails_is_unread_and_not_a_match(asked, tmp_path, monkeypatch):
    tool = modinfo(tmp_path, "echo 'modinfo: ERROR: Module nvidia not found.' >&2; exit 1\n")
    monkeypatch.setattr(read, "find_tool", lambda _: tool)
    fact = asked("versions", {"/proc/modules": "nvidia 1 0 - Live 0\n"})
    assert fact == {"unread": "modinfo failed (1): modinfo: error: module nvidia not found."}


def test_a_module_names_what_depmod_found_it_to_need(asked):
    dep = "updates/dkms/nvidia-peermem.ko.zst: kernel/drivers/infiniband/core/ib_core.ko updates/dkms/nvidia.ko\nkernel/a.ko:\n"
    files = {"/lib/modules/6.8.0-51-generic/modules.dep": dep}
    assert asked("depends.nvidia_peermem", files) == {"value": ["ib_core", "nvidia"]}
    assert asked("depends.a", {}) == {"value": []}
    assert "absent" in asked("depends.nvidia", {})


def test_without_depmods_file_what_a_module_needs_is_unread(asked):
    assert "unread" in asked("depends.nvidia_peermem", {})

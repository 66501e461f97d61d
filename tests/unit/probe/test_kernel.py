"""What the kernel collector makes of a host's files."""

import pytest

from nodetune.probe import kernel

RUNNING = "6.8.0-51-generic"
GRUB = "menuentry 'Ubuntu' {\n\tlinux /boot/vmlinuz-6.8.0-60-generic root=x\n}\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version:  gcc 13\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"


@pytest.fixture
def seen(tree, collect, monkeypatch):
    def run(files, running=RUNNING):
        monkeypatch.setattr(kernel.platform, "release", lambda: running)
        tree(files)
        return {name.partition(".")[2]: fact for name, fact in collect("kernel").items()}

    return run


def images(*versions):
    return {f"/boot/vmlinuz-{version}": "" for version in versions}


def test_the_clock_source_and_its_alternatives(seen):
    clocks = "/sys/devices/system/clocksource/clocksource0/"
    facts = seen({clocks + "current_clocksource": "hpet\n", clocks + "available_clocksource": "hpet acpi_pm \n"})
    assert facts["clocksource"] == {"value": "hpet"}
    assert facts["clocksources"] == {"value": ["hpet", "acpi_pm"]}


def test_vulnerabilities_have_texts_and_old_kernels_none(seen):
    assert "absent" in seen({})["vulnerabilities"]
    facts = seen({"/sys/devices/system/cpu/vulnerabilities/mds": "Vulnerable; SMT vulnerable\n"})
    assert facts["vulnerabilities"] == {"each": {"mds": {"value": "Vulnerable; SMT vulnerable"}}}


def test_kernels_are_counted_without_rescue_images(seen):
    facts = seen(images("6.8.0-100-generic", RUNNING, "0-rescue-4f1e") | {"/boot/initrd.img-6.8.0-200-generic": ""})
    assert facts["installed"] == {"value": [RUNNING, "6.8.0-100-generic"]}


def test_kernels_in_loader_folders_and_with_their_modules_count(seen):
    machine = "/boot/0123456789abcdef0123456789abcdef/"
    facts = seen({machine + "6.11.0-1/linux": "", machine + "0-rescue/linux": "", "/lib/modules/6.10.0/vmlinuz": ""})
    assert facts["installed"] == {"value": ["6.10.0", "6.11.0-1"]}


def test_the_newest_kernel_is_one_of_the_running_flavour(seen):
    facts = seen(images(RUNNING, "6.8.0-60-generic", "6.8.0-1018-nvidia"))
    assert facts["newest"] == {"value": "6.8.0-60-generic"}
    facts = seen(images("5.14.0-427.el9.x86_64", "5.14.0-503.14.1.el9_5.x86_64"), "5.14.0-427.el9.x86_64")
    assert facts["newest"] == {"value": "5.14.0-503.14.1.el9_5.x86_64"}


def test_a_minor_release_does_not_make_another_flavour():
    assert kernel.flavour("5.14.0-427.el9.x86_64") == kernel.flavour("5.14.0-503.14.1.el9_5.x86_64")
    assert kernel.flavour("5.14.0-427.el9.aarch64") != kernel.flavour("5.14.0-427.el9.aarch64+64k")
    assert kernel.flavour("6.12.41+deb13-amd64") == kernel.flavour("6.12.43+deb13-amd64")


def test_the_next_kernel_is_what_the_boot_loader_names(seen):
    facts = seen({"/boot/grub/grub.cfg": GRUB} | images(RUNNING, "6.8.0-60-generic", "6.8.0-61-generic"))
    assert facts["next"] == {"value": "6.8.0-60-generic"}


@pytest.mark.parametrize(
    ("name", "place"), [("vmlinuz-stable", "/boot/"), ("vmlinuz-" + RUNNING, "/"), ("bzImage", "/")]
)
def test_the_next_kernel_is_read_from_an_image_of_any_name(seen, name, place):
    inside = (
        b"\0" * 0x202 + b"HdrS" + b"\0" * 8 + (0x100).to_bytes(2, "little") + b"\0" * 0xF0 + b"6.8.0-60-generic (b@h)\0"
    )
    entry = GRUB.replace("/boot/vmlinuz-6.8.0-60-generic", place + name)
    assert seen({"/boot/grub/grub.cfg": entry, f"/boot/{name}": inside.decode()})["next"] == {
        "value": "6.8.0-60-generic"
    }


def test_a_renamed_image_without_a_version_keeps_the_name(seen):
    entry = GRUB.replace("6.8.0-60-generic", "6.8.0-61-generic")
    assert seen({"/boot/grub/grub.cfg": entry, "/boot/vmlinuz-6.8.0-61-generic": "MZ"})["next"] == {
        "value": "6.8.0-61-generic"
    }


def test_without_boot_loader_configuration_the_newest_is_next(seen):
    assert seen(images(RUNNING, "6.8.0-60-generic"))["next"] == {"value": "6.8.0-60-generic"}


def test_a_host_that_is_started_from_outside_has_no_next_kernel(seen):
    facts = seen({})
    assert "absent" in facts["next"]
    assert "absent" in facts["next_nvidia_module"]


def test_depmod_lists_the_nvidia_module_of_the_next_kernel(seen):
    listed = "kernel/fs/ext4.ko.zst: kernel/lib/crc16.ko.zst\nupdates/dkms/nvidia.ko.zst: kernel/drm.ko.zst\n"
    modules = "/lib/modules/6.8.0-60-generic/modules.dep"
    facts = seen({"/boot/grub/grub.cfg": GRUB, modules: listed})
    assert facts["next_nvidia_module"] == {"value": "updates/dkms/nvidia.ko.zst"}
    facts = seen({modules: "updates/dkms/nvidia-uvm.ko.zst: updates/dkms/nvidia.ko.zst\n"})
    assert facts["next_nvidia_module"] == {"absent": "no NVIDIA module built for 6.8.0-60-generic"}


@pytest.mark.parametrize(
    ("running", "files", "upstream"),
    [
        (RUNNING, {"/proc/version_signature": "Ubuntu 6.8.0-51.52-generic 6.8.12\n"}, "6.8.12"),
        (
            "6.1.0-14-amd64",
            {"/proc/version": "Linux version 6.1.0-14-amd64 (x) #1 SMP Debian 6.1.64-1 (2023)\n"},
            "6.1.64",
        ),
        ("6.6.8", {}, "6.6.8"),
        ("6.1.115-126.197.amzn2023.x86_64", {}, "6.1.115"),
        ("5.14.0-427.el9.x86_64", {}, None),
        ("5.14.21-150500.55.7-default", {}, None),
    ],
)
def test_the_upstream_version_is_told_only_where_it_can_be(seen, running, files, upstream):
    assert seen(files, running)["upstream"].get("value") == upstream


def test_zeroing_follows_the_argument_and_then_the_build(seen):
    config = {f"/boot/config-{RUNNING}": "CONFIG_X=y\nCONFIG_INIT_ON_ALLOC_DEFAULT_ON=y\n"}
    assert "unread" in seen({"/proc/cmdline": "quiet"})["init_on_alloc"]
    assert seen(config)["init_on_alloc"] == {"value": "1"}
    assert seen({"/proc/cmdline": "quiet init_on_alloc=0"})["init_on_alloc"] == {"value": "0"}


@pytest.mark.parametrize(("text", "flavour"), [(OPEN, "open"), (CLOSED, "proprietary")])
def test_the_flavour_of_the_nvidia_driver(seen, text, flavour):
    assert seen({"/proc/driver/nvidia/version": text})["nvidia_flavour"] == {"value": flavour}


def test_no_nvidia_driver_is_absent(seen):
    facts = seen({})
    assert all("absent" in facts["nvidia_" + name] for name in ("flavour", "module_version", "libraries"))


def test_missing_device_files_of_unified_memory_are_named(seen, tree):
    place = tree({"/dev/nvidia-uvm": "", "/usr/bin/nvidia-modprobe": ""})
    (place / "usr/bin/nvidia-modprobe").chmod(0o755)
    found = {"folder": "/dev", "missing": ["nvidia-uvm-tools"], "made_by": None}
    assert seen({})["nvidia_uvm_files"] == {"value": found}
    (place / "usr/bin/nvidia-modprobe").chmod(0o4755)
    assert seen({})["nvidia_uvm_files"] == {"value": {**found, "made_by": "/usr/bin/nvidia-modprobe"}}
    files = seen({"/run/nvidia/driver/dev/nvidia0": ""})["nvidia_uvm_files"]["value"]
    assert files == {"folder": "/run/nvidia/driver/dev", "missing": ["nvidia-uvm", "nvidia-uvm-tools"], "made_by": None}


def test_device_files_that_may_not_be_seen_are_unread(seen, tree, monkeypatch):
    tree({"/dev/nvidia-uvm": ""})

    def hidden(path, *_):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(kernel, "_status", hidden)
    assert "permission denied" in seen({})["nvidia_uvm_files"]["unread"].lower()


def test_only_the_library_behind_the_link_counts(seen):
    folder = "/usr/lib/x86_64-linux-gnu/"
    facts = seen(
        {
            "/sys/module/nvidia/version": "580.159.04\n",
            folder + "libnvidia-ml.so.570.86.10": "",
            folder + "libnvidia-ml.so.580.172.08": "",
            folder + "libnvidia-ml.so.1": "-> libnvidia-ml.so.580.172.08",
            "/usr/lib64/libnvidia-ml.so.1": "-> libnvidia-ml.so.1.gone",
        }
    )
    assert facts["nvidia_module_version"] == {"value": "580.159.04"}
    assert facts["nvidia_libraries"] == {"each": {folder + "libnvidia-ml.so.1": {"value": "580.172.08"}}}

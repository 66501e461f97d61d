"""Kernel arguments: the running ones, and those of the entry that the boot loader starts next."""

import errno

import pytest

from nodetune.probe import cmdline, read

GRUB = """\
set pager=1
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set boot_once=true
else
   set default="DEFAULT"
fi
function gfxmode {
	set gfxpayload="${1}"
}
menuentry 'Ubuntu' --class ubuntu --class os $menuentry_id_option 'gnulinux-simple-77' {
	if [ x$grub_platform = xxen ]; then insmod xzio; fi
	linux	/boot/vmlinuz-6.8.0-60-generic root=UUID=77 ro quiet numa_balancing=disable $vt_handoff
	initrd	/boot/initrd.img-6.8.0-60-generic
}
submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-77' {
	menuentry 'Ubuntu, with Linux 6.8.0-60-generic' --class os $menuentry_id_option 'gnulinux-6.8.0-60-generic-advanced-77' {
		linux	/boot/vmlinuz-6.8.0-60-generic root=UUID=77 ro quiet
	}
	menuentry 'Ubuntu, with Linux 6.8.0-51-generic' --class os $menuentry_id_option 'gnulinux-6.8.0-51-generic-advanced-77' {
		linux	/boot/vmlinuz-6.8.0-51-generic root=UUID=77 ro pinned
	}
}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
	fwsetup
}
menuentry 'Memory test' {
	linux16	/boot/memtest86+.bin
}
"""
BLS = "/boot/loader/entries/4f1e-{}.conf"
ENTRY = "title Linux\nversion {0}\nlinux /vmlinuz-{0}\noptions root=/dev/sda1 {1}\n"


def installed(tree, collect, files, argument=""):
    tree(files)
    name = "installed." + argument if argument else "installed"
    return collect("cmdline", [name])["cmdline." + name]


def entry(tree, files):
    tree(files)
    return cmdline.boot_entry()


def test_the_last_of_equal_arguments_wins_and_flags_are_empty(tree, collect):
    tree({"/proc/cmdline": 'BOOT_IMAGE=/vmlinuz quiet a=1 a=2 dyndbg="file x +p" -- init=ours\n'})
    facts = collect("cmdline", ["running.a", "running.quiet", "running.dyndbg", "running.init"])
    assert facts["cmdline.running.a"] == {"value": "2"}
    assert facts["cmdline.running.quiet"] == {"value": ""}
    assert facts["cmdline.running.dyndbg"] == {"value": "file x +p"}
    assert "absent" in facts["cmdline.running.init"]


def test_quotes_and_backslashes_are_read_as_by_the_kernel(tree, collect):
    tree({"/proc/cmdline": "root=LABEL=it's a=x\\x2dy b=1\n"})
    facts = collect("cmdline", ["running.root", "running.a", "running.b"])
    assert [fact.get("value") for name, fact in facts.items() if name.count(".") == 2] == ["LABEL=it's", "x\\x2dy", "1"]


def test_dashes_and_underscores_in_a_name_are_the_same(tree, collect):
    tree({"/proc/cmdline": "transparent-hugepage=never\n"})
    assert collect("cmdline", ["running.transparent_hugepage"])["cmdline.running.transparent_hugepage"] == {
        "value": "never"
    }


def test_a_dotted_argument_is_found(tree, collect):
    tree({"/proc/cmdline": "modprobe.blacklist=nouveau\n"})
    assert collect("cmdline", ["running.modprobe.blacklist"])["cmdline.running.modprobe.blacklist"] == {
        "value": "nouveau"
    }


def test_the_first_grub_entry_is_started_by_default(tree, collect):
    files = {"/boot/grub/grub.cfg": GRUB.replace("DEFAULT", "0")}
    fact = installed(tree, collect, files, "numa_balancing")
    assert fact == {"value": {"value": "disable", "file": "/boot/grub/grub.cfg"}}
    assert cmdline.boot_entry()["value"]["kernel"] == "6.8.0-60-generic"
    assert "$" not in cmdline.boot_entry()["value"]["options"]


@pytest.mark.parametrize(
    "default",
    [
        "1>1",
        "Advanced options for Ubuntu>Ubuntu, with Linux 6.8.0-51-generic",
        "gnulinux-advanced-77>gnulinux-6.8.0-51-generic-advanced-77",
        "1>gnulinux-6.8.0-51-generic-advanced-77",
    ],
)
def test_a_pinned_entry_is_found_by_number_title_or_id(tree, default):
    found = entry(tree, {"/boot/grub/grub.cfg": GRUB.replace("DEFAULT", default)})
    assert found["value"]["kernel"] == "6.8.0-51-generic"
    assert found["value"]["options"] == "root=UUID=77 ro pinned"


@pytest.mark.parametrize("default", ["3", "Memory test"])
def test_entries_after_a_submenu_are_counted_on(tree, default):
    menu = GRUB.replace("linux16	/boot/memtest86+.bin", "linux	/boot/vmlinuz-5.15.0-9-generic ro last")
    menu = menu.replace("\tmenuentry", "\tmenuentry 'without a kernel' {\n\t}\n\tmenuentry", 1)
    found = entry(tree, {"/boot/grub/grub.cfg": menu.replace("DEFAULT", default)})
    assert found["value"]["options"] == "ro last"


def test_a_default_missing_in_the_menu_falls_back_to_the_first(tree):
    found = entry(tree, {"/boot/grub/grub.cfg": GRUB.replace("DEFAULT", "gone")})
    assert found["value"]["kernel"] == "6.8.0-60-generic"


def test_the_saved_entry_counts_where_grub_is_told_to_use_it(tree):
    saved = "# GRUB Environment Block\nsaved_entry=1>1\n####\n"
    files = {"/boot/grub/grubenv": saved, "/boot/grub/grub.cfg": GRUB.replace("DEFAULT", "${saved_entry}")}
    assert entry(tree, files)["value"]["kernel"] == "6.8.0-51-generic"
    tree({"/boot/grub/grub.cfg": GRUB.replace("DEFAULT", "0")})
    assert cmdline.boot_entry()["value"]["kernel"] == "6.8.0-60-generic"


def test_an_entry_for_the_next_boot_only_goes_before_all(tree):
    files = {"/boot/grub/grubenv": "next_entry=1>1\n", "/boot/grub/grub.cfg": GRUB.replace("DEFAULT", "0")}
    assert entry(tree, files)["value"]["kernel"] == "6.8.0-51-generic"


def test_boot_loader_entries_are_sorted_by_number(tree, collect):
    files = {
        BLS.format("5.14.0-70.el9.x86_64"): ENTRY.format("5.14.0-70.el9.x86_64", "old"),
        BLS.format("5.14.0-427.el9.x86_64"): ENTRY.format("5.14.0-427.el9.x86_64", "new $tuned_params"),
        BLS.format("0-rescue"): ENTRY.format("0-rescue", ""),
        "/boot/grub2/grub.cfg": "blscfg\n",
        "/boot/grub2/grubenv": "tuned_params=skew_tick=1 tsc=reliable\n",
    }
    fact = installed(tree, collect, files)["value"]
    assert fact["file"] == BLS.format("5.14.0-427.el9.x86_64")
    assert fact["arguments"] == {"root": "/dev/sda1", "new": "", "skew_tick": "1", "tsc": "reliable"}


def test_the_saved_boot_loader_entry_goes_before_the_newest(tree):
    files = {
        BLS.format("5.14.0-70.el9"): ENTRY.format("5.14.0-70.el9", ""),
        BLS.format("5.14.0-427.el9"): ENTRY.format("5.14.0-427.el9", ""),
        "/boot/grub2/grubenv": "saved_entry=4f1e-5.14.0-70.el9\n",
    }
    assert entry(tree, files)["value"]["kernel"] == "5.14.0-70.el9"
    tree({"/boot/grub2/grubenv": "saved_entry=0\n"})
    assert cmdline.boot_entry()["value"]["kernel"] == "5.14.0-427.el9"


def test_no_boot_loader_is_absent(tree, collect):
    assert "absent" in installed(tree, collect, {})
    assert "absent" in installed(tree, collect, {}, "iommu")


def test_a_configuration_that_only_root_may_read_is_not_guessed(tree, monkeypatch):
    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(read, "text", denied)
    assert entry(tree, {}) == {"unread": "/boot/grub2/grub.cfg: permission denied: needs root (--become)"}


def test_an_unreadable_grub_environment_is_unread(tree, monkeypatch):
    tree({"/boot/grub/grub.cfg": GRUB.replace("DEFAULT", "${saved_entry}"), "/boot/grub/grubenv": "saved_entry=1>1"})
    plain = read.text

    def denied(path, *rest):
        if path.endswith("grubenv"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return plain(path, *rest)

    monkeypatch.setattr(read, "text", denied)
    assert "unread" in cmdline.boot_entry()


def test_versions_sort_as_people_count():
    versions = ["6.8.0-100-generic", "6.8.0-51-generic", "6.12.0-rc1", "6.12.0-1"]
    assert sorted(versions, key=cmdline.version_key) == [
        "6.8.0-51-generic", "6.8.0-100-generic", "6.12.0-rc1", "6.12.0-1"
    ]  # fmt: skip


def test_lines_of_grub_that_come_after_ours_are_told(tree, collect):
    tree({
        "/etc/default/grub": 'GRUB_CMDLINE_LINUX_DEFAULT="splash"\n',
        "/etc/default/grub.d/50-cloud.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n',
        "/etc/default/grub.d/zz-nodetune.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt"\n',
        "/etc/default/grub.d/zzz-cloud.cfg": '# ours\n#GRUB_CMDLINE_LINUX_DEFAULT=""\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\n',
        "/etc/default/grub.d/zzz.txt": 'GRUB_CMDLINE_LINUX_DEFAULT=""\n',
    })  # fmt: skip
    assert collect("cmdline", ["grub_later"])["cmdline.grub_later"] == {
        "value": [{"value": '="quiet"', "file": "/etc/default/grub.d/zzz-cloud.cfg", "line": 3}]
    }

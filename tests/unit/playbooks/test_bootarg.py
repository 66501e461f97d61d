"""What `grubby --info=ALL` answers is read rightly, and every byte of the files that grubby edits comes back.

grubby itself runs only on the RHEL family; its substitute here writes as Fedora's script of 2022 was seen to write.
"""

import os
import shutil
import subprocess
import sys

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import bootarg

INFO = """\
index=0
kernel="/boot/vmlinuz-5.14.0-503.el9.x86_64"
args="ro crashkernel=1G-4G:192M,4G-64G:256M resume=/dev/mapper/rhel-swap rhgb quiet iommu=pt $tuned_params"
root="/dev/mapper/rhel-root"
initrd="/boot/initramfs-5.14.0-503.el9.x86_64.img $tuned_initrd"
title="Red Hat Enterprise Linux (5.14.0-503.el9.x86_64) 9.5 (Plow)"
id="0f1e-5.14.0-503.el9.x86_64"
index=1
kernel="/boot/vmlinuz-0-rescue-0f1e"
args="ro rhgb quiet console=tty0 console=ttyS0,115200n8 iommu=pt"
root="/dev/mapper/rhel-root"
index=2
non linux entry
"""
NEWEST, RESCUE = "/boot/vmlinuz-5.14.0-503.el9.x86_64", "/boot/vmlinuz-0-rescue-0f1e"


@pytest.mark.parametrize(
    ("name", "newest", "rescue"),
    [
        ("iommu", ["pt"], ["pt"]),
        ("quiet", [""], [""]),
        ("crashkernel", ["1G-4G:192M,4G-64G:256M"], []),
        ("console", [], ["tty0", "ttyS0,115200n8"]),
        ("resume", ["/dev/mapper/rhel-swap"], []),
        ("root", [], []),
        ("tuned_params", [], []),
    ],
)
def test_the_values_of_an_argument_are_read_for_each_kernel(name, newest, rescue):
    assert bootarg.parse(INFO, name) == {NEWEST: newest, RESCUE: rescue}


def test_kernels_that_agree_are_left_out_of_the_state():
    assert bootarg.agreed(bootarg.parse(INFO, "iommu")) == ["pt"]
    assert bootarg.agreed(bootarg.parse(INFO, "nosmt")) == []
    assert bootarg.agreed(bootarg.parse(INFO, "console")) == {NEWEST: [], RESCUE: ["tty0", "ttyS0,115200n8"]}


def test_no_kernel_at_all_is_a_problem_not_an_absent_argument():
    with pytest.raises(ChangeError, match="lists no kernels"):
        bootarg.agreed(bootarg.parse("", "iommu"))


@pytest.mark.parametrize(("value", "state"), [("pt", ["pt"]), ("", [""]), (None, [])])
def test_the_wanted_state_is_that_of_all_kernels(value, state):
    assert bootarg.wanted({"name": "iommu", "value": value}, {NEWEST: [], RESCUE: ["pt"]}) == state


def test_blanks_in_a_value_are_refused_as_grubby_splits_there():
    with pytest.raises(ChangeError, match="blanks and quotes"):
        bootarg.wanted({"name": "iommu", "value": "pt quiet"}, [])


def test_kernels_that_differ_are_restored_one_by_one():
    change = {"name": "console"}
    assert bootarg.updates(change, {NEWEST: [], RESCUE: ["tty0", "ttyS0"]}) == [
        ["grubby", "--update-kernel=ALL", "--remove-args=console"],
        ["grubby", f"--update-kernel={RESCUE}", "--remove-args=console", "--args=console=tty0 console=ttyS0"],
    ]
    assert bootarg.updates(change, [""]) == [
        ["grubby", "--update-kernel=ALL", "--remove-args=console", "--args=console"]
    ]


def test_a_diff_tells_an_absent_argument_from_an_empty_one():
    assert bootarg.show({"name": "nosmt"}, []) == "all kernels: not there\n"
    assert bootarg.show({"name": "nosmt"}, [""]) == "all kernels: nosmt\n"


def test_a_host_without_grubby_is_told_so():
    with pytest.raises(ChangeError, match="grubby is not on this host"):
        bootarg.read({"name": "iommu", "value": "pt"})


GRUBBY = """#!{python}
import re, sys
from pathlib import Path
top = Path({top!r})
given = dict(word.partition("=")[::2] for word in sys.argv[1:])
entries = sorted((top / "entries").glob("*.conf"), reverse=True)
def of(text, key): return re.search(rf"^{{key}} (.*)$", text, re.M)[1]
def edited(words):
    name = given["--remove-args"]
    kept = [word for word in words.split() if word.partition("=")[0] != name]
    return " ".join(kept + given.get("--args", "").split())
for number, path in enumerate(entries):
    text = path.read_text()
    if "--info" in given:
        print(f'index={{number}}\\nkernel="{{of(text, "linux")}}"\\nargs="{{of(text, "options")}}"')
    elif given["--update-kernel"] in ("ALL", of(text, "linux")):
        path.write_text(text.replace(of(text, "options"), edited(of(text, "options"))))
if given.get("--update-kernel") == "ALL":
    (top / "cmdline").write_text(edited((top / "cmdline").read_text()) + "\\n")
    text = (top / "grub").read_text()
    (top / "grub").write_text(re.sub('"(.*)"', lambda found: '"' + edited(found[1]) + '"', text))
"""
ENTRY = "title Linux\nversion {0}\nlinux /vmlinuz-{0}\noptions root=/dev/sda1  ro {1} $tuned_params\ngrub_class x\n"


@pytest.fixture
def rhel(tmp_path, monkeypatch):
    """A host with three kernels: a value of an argument for all, and another one for two of them."""
    top = tmp_path / "rhel"
    (top / "entries").mkdir(parents=True)
    for version, more in (
        ("5.14.0-427", "iommu=on quiet"),
        ("5.14.0-1000", "iommu=on quiet"),
        ("0-rescue-0f", "iommu=on"),
    ):
        (top / f"entries/{version}.conf").write_text(ENTRY.format(version, more))
    (top / "cmdline").write_text("root=/dev/sda1 ro iommu=on quiet\n")
    (top / "grub").write_text('# ours\nGRUB_CMDLINE_LINUX="iommu=on  quiet"\n')
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "grubby").write_text(GRUBBY.format(python=sys.executable, top=str(top)))
    (tools / "grubby").chmod(0o755)
    monkeypatch.setattr("nodetune_host.command.TOOL_PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(bootarg, "ENTRIES", f"{top}/entries/*.conf")
    monkeypatch.setattr(bootarg, "FILES", (f"{top}/entries/*.conf", f"{top}/cmdline", f"{top}/grub"))
    return top


def texts(top):
    return {path.name: path.read_text() for path in sorted(top.rglob("*")) if path.is_file()}


CHANGES = [{"change": "bootarg", "name": "iommu", "value": "pt"}, {"change": "bootarg", "name": "quiet", "value": None}]


def test_every_byte_that_grubby_edited_comes_back(do, rhel):
    before = texts(rhel)
    assert do(CHANGES).problems == []
    assert all("iommu=pt" in text and "quiet" not in text for text in texts(rhel).values())
    assert not do(CHANGES, run="run-2").changed
    done = do.back()
    assert (done.problems, done.refused) == ([], [])
    assert texts(rhel) == before


def test_what_else_was_changed_meanwhile_stays(do, rhel):
    do(CHANGES)
    text = (rhel / "cmdline").read_text()
    (rhel / "cmdline").write_text(text.replace("ro", "ro theirs"))
    (rhel / "entries/5.14.0-427.conf").unlink()
    done = do.back()
    assert (done.problems, done.refused) == ([], [])
    words = (rhel / "cmdline").read_text().split()
    assert {"theirs", "iommu=on", "quiet"} <= set(words), "as the newest kernel has it, not as the one for rescue"
    assert "quiet" not in (rhel / "entries/0-rescue-0f.conf").read_text()


@pytest.mark.parametrize("state", [["on"], {"/vmlinuz-0-rescue-0f": [], "/vmlinuz-5.14.0-427": ["on"]}])
def test_a_state_of_an_earlier_version_is_values_alone(state):
    assert bootarg.same(state, {"values": state, "files": {}})
    assert bootarg.show({"name": "iommu"}, state) == bootarg.show(
        {"name": "iommu"}, {"values": state, "files": {"x": ""}}
    )


def test_a_full_boot_changes_no_file(do, rhel):
    full = rhel / "entries"
    kept = {path.name: path.read_text() for path in full.iterdir()}
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80k", "tmpfs", full]).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        for name, text in kept.items():
            (full / name).write_text(text)
        (full / "filling").write_bytes(b"\0" * (shutil.disk_usage(full).free - 4096))
        before = texts(rhel)
        (problem, *_) = do(CHANGES).problems
        assert problem["message"].startswith("grubby was not run: it needs 64 KiB next to ")
        assert texts(rhel) == before
    finally:
        subprocess.run(["umount", "-l", full], check=True)

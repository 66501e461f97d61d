"""What `grubby --info=ALL` answers is read rightly; grubby itself runs only on the RHEL family."""

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

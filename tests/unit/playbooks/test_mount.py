"""Remounts change one option of a real mount and restore it."""

import os
import shutil
import subprocess

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import mount

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def disk(tmp_path):
    """A mounted ext4 file system at a path with a blank in it."""
    if not shutil.which("mkfs.ext4", path=os.environ["PATH"] + ":/usr/sbin"):
        pytest.skip("no mkfs.ext4 here: apt install e2fsprogs")
    image, point = tmp_path / "image", tmp_path / "my data"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True, env=os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin"})
    if subprocess.run(["mount", "-o", "loop,nosuid,nodev,discard", image, point], capture_output=True).returncode:
        pytest.skip("this machine does not allow loop mounts")
    yield str(point)
    subprocess.run(["umount", point], check=True)


def options(point):
    """As an independent witness sees them: (of the mount, of the file system)."""
    command = ["findmnt", "-n", "-o", "VFS-OPTIONS,FS-OPTIONS", "--target", point]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_noatime_and_back_touch_only_the_access_times(disk):
    change = {"mount_point": disk, "option": "noatime"}
    before, of_mount = mount.read(change), options(disk)
    assert before == "relatime"
    mount.put(change, mount.wanted(change, before))
    assert options(disk) == [of_mount[0].replace("relatime", "noatime"), of_mount[1]]
    assert mount.read(change) == mount.wanted(change, mount.read(change))
    mount.put(change, before)
    assert options(disk) == of_mount


def test_strict_access_times_show_as_no_option_and_are_restored(disk):
    subprocess.run(["mount", "-o", "remount,bind,nosuid,nodev,strictatime", disk], check=True)
    change = {"mount_point": disk, "option": "noatime"}
    assert mount.read(change) == "strictatime"
    mount.put(change, "noatime")
    mount.put(change, "strictatime")
    assert "atime" not in options(disk)[0]


def test_discard_is_taken_from_the_file_system_and_given_back(disk):
    change = {"mount_point": disk + "/", "option": "nodiscard"}
    assert mount.read(change) == "discard"
    of_mount = options(disk)[0]
    mount.put(change, mount.wanted(change, "discard"))
    assert "discard" not in options(disk)[1].split(",")
    assert options(disk)[0] == of_mount
    mount.put(change, "discard")
    assert "discard" in options(disk)[1].split(",")
    assert options(disk)[0] == of_mount


@pytest.mark.parametrize(("option", "rival"), [("async", "sync"), ("barrier", "nobarrier")])
def test_a_rival_of_the_file_system_is_replaced_and_comes_back(disk, option, rival):
    subprocess.run(["mount", "-o", f"remount,{rival}", disk], check=True)
    change, of_mount = {"mount_point": disk, "option": option}, options(disk)[0]
    assert mount.read(change) == rival
    mount.put(change, mount.wanted(change, rival))
    assert rival not in options(disk)[1].split(",")
    assert mount.read(change) == option
    mount.put(change, rival)
    assert rival in options(disk)[1].split(",")
    assert options(disk)[0] == of_mount


@pytest.mark.parametrize("flag", ["sync", "lazytime"])
def test_a_remount_keeps_the_flags_of_the_file_system(disk, flag):
    subprocess.run(["mount", "-o", f"remount,{flag}", disk], check=True)
    change, before = {"mount_point": disk, "option": "nodiscard"}, options(disk)
    assert flag in before[1].split(",")
    mount.put(change, "nodiscard")
    assert sorted(options(disk)[1].split(",")) == sorted(set(before[1].split(",")) - {"discard"})
    mount.put(change, "discard")
    assert sorted(options(disk)[1].split(",")) == sorted(before[1].split(","))


def test_a_read_only_mount_does_not_make_others_read_only(disk):
    subprocess.run(["mount", "-o", "remount,bind,ro", disk], check=True)
    before = options(disk)
    with pytest.raises(ChangeError, match="only one is read-only"):
        mount.put({"mount_point": disk, "option": "nodiscard"}, "nodiscard")
    assert options(disk) == before
    assert "rw" in before[1].split(",")


def test_of_two_mounts_on_one_point_the_upper_one_counts(disk):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noatime", "none", disk], check=True)
    try:
        assert mount.read({"mount_point": disk, "option": "noatime"}) == "noatime"
    finally:
        subprocess.run(["umount", disk], check=True)
    assert mount.read({"mount_point": disk, "option": "noatime"}) == "relatime"


def test_a_point_where_nothing_is_mounted_is_a_problem(tmp_path):
    with pytest.raises(ChangeError, match="nothing is mounted there"):
        mount.read({"mount_point": str(tmp_path), "option": "noatime"})


def test_an_option_that_no_remount_is_known_for_is_refused():
    with pytest.raises(ChangeError, match="only async, barrier, noatime, nodiscard, relatime"):
        mount.read({"mount_point": "/", "option": "nconnect=8"})

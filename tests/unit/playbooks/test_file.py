"""Whole files: replaced at once or not at all, and restored to the byte."""

import os
import resource
import shutil
import stat
import struct
import subprocess
import sys

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import file

SELINUX, LABEL = "security.selinux", b"system_u:object_r:etc_t:s0\0"
"""A label as SELinux keeps it: root may write one on a kernel without SELinux, too."""


def change(path, content="new\n", **more):
    return {"change": "file", "path": str(path), "content": content, **more}


def apply(wish):
    file.put(wish, file.wanted(wish, file.read(wish)))


ANYBODY = 0xFFFFFFFF
"""The id in an entry of an ACL that names no user."""


def all_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_new_file_is_readable_by_all_whatever_the_umask(tmp_path):
    old = os.umask(0o077)
    try:
        apply(change(tmp_path / "a" / "b" / "new.conf"))
    finally:
        os.umask(old)
    assert (tmp_path / "a/b/new.conf").read_text() == "new\n"
    assert stat.S_IMODE((tmp_path / "a/b/new.conf").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o755


def test_taking_a_new_file_back_removes_the_folders_made_for_it(tmp_path):
    wish = change(tmp_path / "a" / "b" / "new.conf")
    before = file.read(wish)
    apply(wish)
    file.put(wish, before)
    assert all_below(tmp_path) == []


def test_a_folder_that_others_use_by_now_stays(tmp_path):
    wish = change(tmp_path / "a" / "b" / "new.conf")
    before = file.read(wish)
    apply(wish)
    (tmp_path / "a" / "theirs").write_text("x")
    file.put(wish, before)
    assert all_below(tmp_path) == ["a", "a/theirs"]
    assert file.same(file.read(wish), before)


def test_an_empty_folder_that_was_there_before_stays(tmp_path):
    (tmp_path / "x.d").mkdir()
    wish = change(tmp_path / "x.d" / "new.conf")
    before = file.read(wish)
    apply(wish)
    file.put(wish, before)
    assert all_below(tmp_path) == ["x.d"]


@pytest.mark.parametrize("old", [b"", b"no newline at its end", b"\xff\x00binary\r\n", "äöü\n".encode()])
def test_old_bytes_mode_and_owner_come_back(tmp_path, old):
    place = tmp_path / "file"
    place.write_bytes(old)
    place.chmod(0o4640)
    if os.geteuid() == 0:
        os.chown(place, 1234, 4321)
        place.chmod(0o4640)
    whose = place.stat()
    wish = change(place, "new\n", mode="0600")
    before = file.read(wish)
    apply(wish)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    file.put(wish, before)
    again = place.stat()
    assert place.read_bytes() == old
    assert (again.st_mode, again.st_uid, again.st_gid) == (whose.st_mode, whose.st_uid, whose.st_gid)


def test_mode_and_owner_of_a_file_that_is_there_are_kept(tmp_path):
    place = tmp_path / "file"
    place.write_text("old\n")
    place.chmod(0o640)
    apply(change(place))
    assert stat.S_IMODE(place.stat().st_mode) == 0o640


def test_extended_attributes_such_as_the_selinux_label_are_kept(tmp_path):
    place = tmp_path / "file"
    place.write_text("old\n")
    name = SELINUX if os.geteuid() == 0 else "user.label"
    try:
        os.setxattr(place, name, LABEL)
    except OSError:
        pytest.skip("this file system has no extended attributes")
    apply(change(place))
    assert os.getxattr(place, name) == LABEL


def test_a_removed_file_comes_back_with_acl_and_attributes(do, tmp_path):
    place = tmp_path / "file"
    place.write_text("old\n")
    place.chmod(0o640)
    entries = [(1, 6, ANYBODY), (2, 4, 1234), (4, 4, ANYBODY), (16, 4, ANYBODY), (32, 0, ANYBODY)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)  # user 1234 may read
    given = {"user.label": b"etc_t\0", "system.posix_acl_access": acl}
    given |= {"trusted.x": b"\xff", SELINUX: LABEL} if os.geteuid() == 0 else {}
    try:
        for name, value in given.items():
            os.setxattr(place, name, value)
    except OSError:
        pytest.skip("this file system has no extended attributes or no ACLs")
    before = place.stat()
    do([change(place, None)])
    assert not place.exists()
    assert do.back().problems == []
    assert {name: os.getxattr(place, name) for name in os.listxattr(place)} == given
    assert (place.stat().st_mode, place.read_text()) == (before.st_mode, "old\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
@pytest.mark.parametrize("free", range(3))
def test_without_free_inodes_no_empty_folders_stay(do, tmp_path, free):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"nr_inodes={free + 2}", "tmpfs", disk], capture_output=True
    ).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        result = do([change(disk / "a" / "b" / "c" / "new.conf")])
        assert "no space left on device" in result.problems[0]["message"]
        assert not result.changed
        assert all_below(disk) == []
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_link_is_written_through_and_named(tmp_path):
    (tmp_path / "real").write_text("old\n")
    (tmp_path / "link").symlink_to("real")
    wish = change(tmp_path / "link")
    apply(wish)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new\n"
    assert file.label(wish) == f"{tmp_path}/link (a link to {tmp_path}/real)"


def test_a_file_masked_by_a_link_to_dev_null_is_left_alone(tmp_path):
    (tmp_path / "masked.conf").symlink_to("/dev/null")
    with pytest.raises(ChangeError, match=r"masked.conf \(a link to /dev/null\) is not a regular file: left alone"):
        file.read(change(tmp_path / "masked.conf"))


def test_a_pipe_does_not_hang_and_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ChangeError, match="not a regular file"):
        file.read(change(tmp_path / "pipe"))


def test_what_is_too_long_for_a_configuration_file_is_left_alone(tmp_path):
    with open(tmp_path / "huge", "wb") as opened:
        opened.truncate(file.MAX_BYTES + 1)
    with pytest.raises(ChangeError, match="larger than 4 MiB"):
        file.read(change(tmp_path / "huge"))


def test_a_path_that_is_not_full_is_refused():
    with pytest.raises(ChangeError, match="not an absolute path"):
        file.read(change("etc/x.conf"))


def test_no_content_means_no_file(tmp_path):
    (tmp_path / "file").write_text("old\n")
    wish = change(tmp_path / "file", None)
    before = file.read(wish)
    apply(wish)
    assert all_below(tmp_path) == []
    assert file.wanted(wish, file.read(wish)) == file.read(wish), "removed once is removed"
    file.put(wish, before)
    assert (tmp_path / "file").read_text() == "old\n"


def test_the_next_write_removes_files_of_a_killed_run(tmp_path):
    (tmp_path / ".file.nodetune-part").write_text("half")
    apply(change(tmp_path / "file"))
    assert all_below(tmp_path) == ["file"]


def test_a_full_disk_leaves_the_old_bytes_and_nothing_else(tmp_path):
    """The limit on a file's size fails a write in its middle, as a full disk does."""
    place = tmp_path / "file"
    place.write_text("old\n")
    code = f"""
import resource, signal, sys
sys.path[:0] = {sys.path!r}
from nodetune_host.resources import file
from nodetune_host.problem import ChangeError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
wish = {{"change": "file", "path": {str(place)!r}, "content": "x" * 100000}}
try:
    file.put(wish, file.wanted(wish, file.read(wish)))
except ChangeError as problem:
    print(problem)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == f"{place} cannot be written: file too large\n"
    assert all_below(tmp_path) == ["file"]
    assert place.read_text() == "old\n"
    assert resource.getrlimit(resource.RLIMIT_FSIZE) != (4096, 4096)


def test_an_immutable_file_is_told_with_what_shows_it(tmp_path):
    if not shutil.which("chattr"):
        pytest.skip("no chattr here: apt install e2fsprogs")
    place = tmp_path / "file"
    place.write_text("old\n")
    if subprocess.run(["chattr", "+i", place], capture_output=True).returncode:
        pytest.skip("this file system or user cannot make files immutable")
    try:
        with pytest.raises(ChangeError, match=r"cannot be written: operation not permitted \(is it immutable\? lsattr"):
            apply(change(place))
    finally:
        subprocess.run(["chattr", "-i", place], check=True)
    assert all_below(tmp_path) == ["file"]


def test_a_diff_of_something_long_or_binary_tells_its_size(tmp_path):
    long = file.state(b"x" * 100_000, 0o644, 0, 0)
    assert file.show({}, long) == "(100000 bytes, mode 0644)\n"
    assert file.show({}, file.state(b"\0", 0o600, 0, 0)) == "(1 bytes, mode 0600)\n"


def test_a_file_that_a_later_group_has_added_to_is_left_so(do, tmp_path):
    path = str(tmp_path / "a.conf")
    first = {"change": "file", "path": path, "content": "a\n", "mode": "0644", "or": ["a\nb\n"]}
    later = {"change": "file", "path": path, "content": "a\nb\n", "mode": "0644"}
    assert [do([first]).changed, do([later]).changed] == [True, True]
    again = do([first, later], run="run-2")
    assert [done["changed"] for done in again.done] == [False, False]
    assert (tmp_path / "a.conf").read_text() == "a\nb\n"


def test_a_text_that_merely_differs_is_replaced(do, tmp_path):
    (tmp_path / "a.conf").write_text("c\n")
    do([{"change": "file", "path": str(tmp_path / "a.conf"), "content": "a\n", "or": ["a\nb\n"]}])
    assert (tmp_path / "a.conf").read_text() == "a\n"

"""A file is there whole, or as it was before. No link, pipe or endless file makes a run hang or read what it must not."""

import os
import subprocess
import sys
import threading

import pytest

from nodetune.foundation import file_io
from tests.support.commandline import nodetune


def test_a_link_put_next_to_the_file_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in (".report.txt.partial", "report.txt.partial"):
        (tmp_path / name).symlink_to(victim)
    file_io.write(tmp_path / "report.txt", "told")
    assert (tmp_path / "report.txt").read_text() == "told"
    assert not (tmp_path / "report.txt").is_symlink()
    assert victim.read_text() == "mine"


def test_concurrent_writers_of_one_file_do_not_collide(tmp_path):
    path, wrong = tmp_path / "one", []

    def go(text):
        try:
            for _ in range(20):
                file_io.write(path, text * 1000)
        except OSError as problem:
            wrong.append(problem)

    threads = [threading.Thread(target=go, args=(letter,)) for letter in "abc"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
    assert path.read_text() in {letter * 1000 for letter in "abc"}
    assert os.listdir(tmp_path) == ["one"]


def test_what_breaks_off_leaves_only_the_file_of_before(tmp_path):
    path = tmp_path / "one"
    path.write_text("before")

    def stopped():
        with file_io.stream(path) as stream:
            stream.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["one"]


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path, umask):
    before = os.umask(umask)
    try:
        file_io.write(tmp_path / "one", "")
    finally:
        os.umask(before)
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o666 & ~umask


def test_on_a_full_disk_the_file_that_was_asked_for_is_named(full_disk):
    done, left = full_disk("16k", "audit", "--facts", "h200-x4", "-o", "audit.json", "--format", "json")
    assert (done.returncode, left) == (2, [])
    assert done.stderr == "nodetune: audit.json: No space left on device\n"


def test_output_to_a_missing_folder_is_refused_before_any_work(tmp_path):
    words = [sys.executable, "-m", "nodetune", "audit", "-i", "192.0.2.1", "-o", tmp_path / "no" / "a.json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"{tmp_path}/no: the folder does not exist" in " ".join(done.stderr.split())
    assert "192.0.2.1" not in done.stderr


def refused(path, most=100):
    with pytest.raises(OSError, match=str(path)) as caught:
        file_io.read(path, most, regular=True)
    assert caught.value.filename == str(path)
    return caught.value.strerror


def test_a_file_of_exactly_the_limit_is_read(tmp_path):
    (tmp_path / "facts.json").write_bytes(b"x" * 100)
    assert file_io.read(tmp_path / "facts.json", 100, regular=True) == b"x" * 100
    assert refused(tmp_path / "facts.json", 99) == "larger than 99 bytes"


@pytest.mark.parametrize("target", ["/proc/kmsg", "/dev/zero", "/etc/hostname", "/proc/self/environ", "nowhere"])
def test_a_link_is_never_followed(tmp_path, target):
    (tmp_path / "a.json").symlink_to(target)
    assert refused(tmp_path / "a.json") == "a link: links are not followed here"


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    assert refused(tmp_path / "a.json") == "not a file"


def test_a_file_without_a_size_is_read_no_further_than_the_limit():
    assert refused("/proc/self/smaps", 10) == "larger than 10 bytes"


def test_what_the_user_named_may_be_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b"facts"))
    writer.start()
    assert file_io.read(tmp_path / "pipe", 100) == b"facts"
    writer.join()


def test_an_endless_file_that_the_user_named_is_refused():
    with pytest.raises(OSError, match="larger than 1 KiB"):
        file_io.read("/dev/zero", 1024)


@pytest.mark.parametrize("words", [("audit", "-o"), ("plan", "-o")])
def test_a_file_with_a_second_name_is_kept_and_said(tmp_path, words):
    """A new file in place of one name would leave the other with the old content."""
    path, other = tmp_path / "out.json", tmp_path / "other.json"
    path.write_text("old")
    other.hardlink_to(path)
    done = nodetune(*words, path, "--facts", "h200-x4")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{path}: it has other names (hard links)" in line
    assert path.samefile(other)
    assert other.read_text() == "old"
    other.unlink()
    assert nodetune(*words, path, "--facts", "h200-x4").returncode in (0, 1, 3)

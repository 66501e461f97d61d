"""Reading files that others may have put there: no link, pipe or endless file makes a run hang or read what it must not."""

import os
import threading

import pytest

from nodetune.foundation import bounded_file


def refused(path, most=100):
    with pytest.raises(OSError, match=str(path)) as caught:
        bounded_file.read(path, most, regular=True)
    assert caught.value.filename == str(path)
    return caught.value.strerror


def test_a_file_of_exactly_the_limit_is_read(tmp_path):
    (tmp_path / "facts.json").write_bytes(b"x" * 100)
    assert bounded_file.read(tmp_path / "facts.json", 100, regular=True) == b"x" * 100
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
    assert bounded_file.read(tmp_path / "pipe", 100) == b"facts"
    writer.join()


def test_an_endless_file_that_the_user_named_is_refused():
    with pytest.raises(OSError, match="larger than 1 KiB"):
        bounded_file.read("/dev/zero", 1024)

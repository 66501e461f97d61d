"""Kernel files. Their real semantics are tried on this kernel, in a network namespace of the test's own."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import value

SLOW_START = "/proc/sys/net/ipv4/tcp_slow_start_after_idle"


def change(path, wish):
    return {"change": "value", "path": str(path), "value": wish}


def apply(wish):
    file_state = value.wanted(wish, value.read(wish))
    value.put(wish, file_state)
    return file_state


@pytest.fixture
def alone():
    """alone(code) runs Python in a network namespace of its own and returns the JSON that it prints."""
    command = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("needs the right to make a network namespace")

    def run(code):
        head = f"import json, sys\nsys.path[:0] = {sys.path!r}\nfrom nodetune_host.resources import value\n"
        done = subprocess.run([*command, sys.executable, "-c", head + code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_blanks_do_not_make_a_difference(tmp_path):
    (tmp_path / "tcp_rmem").write_text("4096\t87380\t6291456\n")
    wish = change(tmp_path / "tcp_rmem", "4096 87380  6291456")
    assert value.wanted(wish, value.read(wish)) == value.read(wish)


@pytest.mark.parametrize("text", ["always [madvise] never", "always [madvise] never\n"])
def test_of_a_choice_the_chosen_word_counts(tmp_path, text):
    (tmp_path / "enabled").write_text(text)
    assert value.read(change(tmp_path / "enabled", "x")) == {f"{tmp_path}/enabled": "madvise"}


def test_brackets_inside_a_word_are_no_choice(tmp_path):
    (tmp_path / "core_pattern").write_text("core[%e] %p\n")
    assert value.read(change(tmp_path / "core_pattern", "x")) == {f"{tmp_path}/core_pattern": "core[%e] %p"}


def test_a_glob_stands_for_all_files_that_are_there(tmp_path):
    for cpu in range(3):
        (tmp_path / f"cpu{cpu}").write_text("powersave\n")
    wish = change(tmp_path / "cpu*", "performance")
    before = value.read(wish)
    apply(wish)
    assert [(tmp_path / f"cpu{cpu}").read_text() for cpu in range(3)] == ["performance\n"] * 3
    value.put(wish, before)
    assert (tmp_path / "cpu2").read_text() == "powersave\n"


def test_a_missing_device_does_not_stop_the_rollback_of_others(tmp_path):
    for disk in ("sda", "sdb"):
        (tmp_path / disk).write_text("old\n")
    wish = change(tmp_path / "sd*", "new")
    before, after = value.read(wish), apply(wish)
    (tmp_path / "sda").unlink()
    assert value.same(value.read(wish), after)
    with pytest.raises(ChangeError, match="sda is not there"):
        value.put(wish, before)
    assert (tmp_path / "sdb").read_text() == "old\n"


def test_a_file_that_is_not_there_is_a_problem_with_its_path():
    with pytest.raises(ChangeError, match=r"/proc/sys/vm/no_such_thing is not there"):
        value.read(change("/proc/sys/vm/no_such_thing", "1"))


def test_a_setting_is_restored_by_the_name_that_was_set(tmp_path):
    """Zero cannot be written to dirty_bytes: dirty_ratio is written instead."""
    (tmp_path / "vm").mkdir()
    (tmp_path / "vm/dirty_bytes").write_text("0\n")
    (tmp_path / "vm/dirty_ratio").write_text("20\n")
    wish = change(tmp_path / "vm/dirty_bytes", 8 << 30)
    now = value.read(wish)
    assert now == {f"{tmp_path}/vm/dirty_bytes": "0", f"{tmp_path}/vm/dirty_ratio": "20"}
    assert value.wanted(wish, now) == {f"{tmp_path}/vm/dirty_bytes": str(8 << 30), f"{tmp_path}/vm/dirty_ratio": "0"}
    apply(wish)
    assert (tmp_path / "vm/dirty_ratio").read_text() == "20\n", "the twin is the kernel's business"
    (tmp_path / "vm/dirty_ratio").write_text("0\n")
    value.put(wish, now)
    assert (tmp_path / "vm/dirty_ratio").read_text() == "20\n"
    assert (tmp_path / "vm/dirty_bytes").read_text() == f"{8 << 30}\n", "zero is never written there"


@pytest.mark.skipif(not os.access("/proc/sys/vm/dirty_bytes", os.W_OK), reason="needs root")
def test_the_real_kernel_takes_a_twin_and_gives_it_back():
    wish = change("/proc/sys/vm/dirty_background_bytes", "1073741824")
    before = value.read(wish)
    try:
        after = apply(wish)
        assert value.read(wish) == after
    finally:
        value.put(wish, before)
    assert value.read(wish) == before


def test_the_real_kernel_takes_a_value_and_gives_it_back(alone):
    got = alone(f"""
wish = {{"path": {SLOW_START!r}, "value": "0"}}
before = value.read(wish)
value.put(wish, value.wanted(wish, before))
during = value.read(wish)
value.put(wish, before)
print(json.dumps([before, during, value.read(wish)]))
""")
    assert got == [{SLOW_START: "1"}, {SLOW_START: "0"}, {SLOW_START: "1"}]


def test_a_value_that_the_kernel_refuses_is_told_in_one_line(alone):
    got = alone("""
from nodetune_host.problem import ChangeError
wish = {"path": "/proc/sys/net/ipv4/tcp_congestion_control", "value": "no-such-thing"}
try:
    value.put(wish, value.wanted(wish, value.read(wish)))
except ChangeError as problem:
    print(json.dumps(str(problem)))
""")
    assert got.startswith("/proc/sys/net/ipv4/tcp_congestion_control: ")
    assert "no-such-thing" in got
    assert "\n" not in got


def test_a_number_out_of_range_is_told_in_one_line(alone):
    got = alone(f"""
from nodetune_host.problem import ChangeError
wish = {{"path": {SLOW_START!r}, "value": "many"}}
try:
    value.put(wish, value.wanted(wish, value.read(wish)))
except ChangeError as problem:
    print(json.dumps(str(problem)))
""")
    assert got == f"{SLOW_START}: the kernel rejected 'many' (invalid argument)"


def test_the_first_refusal_is_named_and_others_are_counted(tmp_path):
    wish = change("/proc/self/stat*", "1")
    with pytest.raises(ChangeError, match=r"^/proc/self/stat.* \(and \d+ more\)$"):
        apply(wish)


def test_only_the_kernel_raises_the_memory_that_it_keeps_free():
    path = "/proc/sys/vm/min_free_kbytes"
    assert value.moved_by_kernel({path: "19626"}, {path: "47592"})
    assert not value.moved_by_kernel({path: "19626"}, {path: "8192"})
    assert not value.moved_by_kernel({"/proc/sys/vm/swappiness": "10"}, {"/proc/sys/vm/swappiness": "60"})

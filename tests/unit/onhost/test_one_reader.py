"""One at a time: a turn is a process name, taken from whoever does not run any more."""

import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodetune.onhost import one_reader

CARRY = """
import sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
print("up", flush=True)
time.sleep(300)
"""


@pytest.fixture
def name():
    return f"ntt:{secrets.token_hex(5)}"


@pytest.fixture
def carrier(name):
    """Another process that carries the name."""
    process = subprocess.Popen([sys.executable, "-c", CARRY, name], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    process.communicate()


@pytest.fixture(autouse=True)
def own_name():
    before = one_reader.own_name()
    yield
    one_reader.call_ourselves(before)


def test_a_free_turn_is_taken_by_carrying_the_name(name):
    assert one_reader.take_turn(name, 0) is None
    assert one_reader.own_name() == name


def test_one_that_stays_is_named_and_our_own_name_comes_back(name, carrier):
    before = one_reader.own_name()
    pid, age, state, _ = one_reader.take_turn(name, 0)
    assert pid == carrier.pid
    assert 0 <= age < 300
    assert state in "SR"
    assert one_reader.own_name() == before


def test_a_dead_one_keeps_no_turn(name, carrier):
    carrier.kill()  # and is not collected: a zombie still has the name
    assert one_reader.take_turn(name, 30) is None


def test_what_is_a_rival_can_be_told_from_the_name(name, carrier):
    assert one_reader.take_turn("x", 0, is_rival=lambda other: other.startswith(name[:6]))[0] == carrier.pid
    assert one_reader.take_turn("x", 0, is_rival=lambda other: other.startswith("no" + name)) is None


def test_one_of_another_user_keeps_nobody_from_the_turn(name):
    if os.getuid() != 0:
        pytest.skip("becoming another user takes root")
    code = 'printf %s "$1" > /proc/$$/comm; echo up; exec 1>&-; read line'
    pipe = subprocess.PIPE
    process = subprocess.Popen(["/bin/sh", "-c", code, "sh", name], stdin=pipe, stdout=pipe, user=65534)
    assert process.stdout.readline() == b"up\n"
    try:
        assert one_reader.take_turn(name, 0) is None
    finally:
        process.kill()
        process.communicate()


def test_one_in_another_pid_namespace_keeps_nobody_from_the_turn(name):
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", CARRY, name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        if process.stdout.readline() != b"up\n":
            pytest.skip("no PID namespaces here")
        assert one_reader.take_turn(name, 0) is None
    finally:
        process.kill()
        process.communicate()


def test_where_readers_hold_a_lock_one_without_it_does_not_count(name, carrier, tmp_path):
    lock = tmp_path / "lock"
    assert one_reader.rivals(name.__eq__, one_reader.hold(lock)) == []
    assert one_reader.take_turn(name, 0, lock=tmp_path / "no" / "folder") is None


def test_one_that_holds_the_lock_counts_until_it_ends(name, tmp_path):
    lock, (told, tell) = tmp_path / "lock", os.pipe()
    pid = os.fork()
    if pid == 0:
        assert one_reader.take_turn(name, 60, lock=lock) is None
        os.write(tell, b"!")
        time.sleep(300)
    try:
        assert os.read(told, 1) == b"!"
        assert one_reader.take_turn(name, 0, lock=lock).pid == pid
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert one_reader.take_turn(name, 60, lock=lock) is None


def test_a_program_that_runs_as_root_for_a_user_is_the_users(name):
    if os.getuid() != 0:
        pytest.skip("becoming another user takes root")
    code = 'printf %s "$1" > /proc/$$/comm; echo up; exec 1>&-; read line'
    pipe = subprocess.PIPE
    folder = Path(f"/tmp/{name}")
    folder.mkdir(mode=0o755)
    program = shutil.copy("/bin/dash", folder / "sh")
    os.chmod(program, 0o4755)
    process = subprocess.Popen([program, "-p", "-c", code, "sh", name], stdin=pipe, stdout=pipe, user=65534)
    try:
        assert process.stdout.readline() == b"up\n"
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert "\nUid:\t65534\t0\t" in status, "it runs as root"
        assert one_reader.take_turn(name, 0) is None
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(folder)


def test_one_stuck_in_the_kernel_is_not_waited_for(name):
    """A process that posix_spawn()ed waits in the kernel until its child lives on its own: here, until a pipe is written to."""
    code = (
        "import os, sys\nopen('/proc/self/comm', 'w').write(sys.argv[1])\nprint('up', flush=True)\n"
        "os.posix_spawn('/bin/true', ['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 5, sys.argv[2], os.O_RDONLY, 0)])"
    )
    pipe = f"/tmp/{name}"
    os.mkfifo(pipe)
    process = subprocess.Popen([sys.executable, "-c", code, name, pipe], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout.readline() == b"up\n"
        end = time.monotonic() + 30
        while "D" not in [each.state for each in one_reader.rivals(name.__eq__)]:
            assert time.monotonic() < end
        found = one_reader.take_turn(name, 300, stuck=0)
        assert found.state == "D"
        assert one_reader.is_stuck(found, 0)
        assert not one_reader.is_stuck(found, 300)
    finally:
        os.close(os.open(pipe, os.O_WRONLY))
        process.communicate()
        os.unlink(pipe)


@pytest.mark.parametrize("lock", [None, "lock"])
def test_many_at_once_take_turns(name, tmp_path, lock):
    """Each of the processes holds a file that only one can hold."""
    pids = []
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                if one_reader.take_turn(name, 60, lock=lock and tmp_path / lock) is None:
                    os.close(os.open(tmp_path / "inside", os.O_CREAT | os.O_EXCL))
                    time.sleep(0.05)
                    os.unlink(tmp_path / "inside")
                    code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 5

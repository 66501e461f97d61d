"""The program before ssh: it passes on all of a command, and ends one that prints without end."""

import os
import signal
import subprocess
import sys

import pytest

from nodetune.foundation import paths

BOUNDED = [sys.executable, "-I", "-S", str(paths.shared("playbooks") / "connection" / "bounded.py")]


def bounded(*command, **more):
    return subprocess.run([*BOUNDED, *command], capture_output=True, timeout=60, check=False, **more)


def test_output_errors_input_and_status_pass():
    done = bounded("sh", "-c", "cat; echo wrong >&2; exit 7", input=b"x" * 3_000_000)
    assert (done.returncode, len(done.stdout), done.stderr) == (7, 3_000_000, b"wrong\n")


def test_a_command_that_is_killed_or_missing_is_told():
    assert bounded("sh", "-c", "kill -9 $$").returncode == 137
    assert (bounded("/nowhere/ssh").returncode, bounded("/nowhere/ssh").stderr) == (
        127,
        b"/nowhere/ssh: No such file or directory\n",
    )


@pytest.mark.parametrize("command", ["exec yes", "exec yes >&2", "exec yes '[],'", "exec tr '\\0' x < /dev/zero"])
def test_endless_output_ends_its_command(command):
    done = bounded("sh", "-c", command)
    assert done.returncode == 255
    assert len(done.stdout + done.stderr) < 17 << 20
    assert b"nodetune: too much output" in done.stderr[-200:]


def test_what_a_shared_connection_keeps_open_is_not_waited_for():
    done = subprocess.Popen([*BOUNDED, "sh", "-c", "sleep 600 >&2 & echo $!"], stdout=subprocess.PIPE, stderr=-3)
    assert done.wait(300) == 0
    os.kill(int(done.stdout.read()), signal.SIGKILL)  # fails where it has ended
    done.stdout.close()


def test_told_to_end_it_takes_its_command_along():
    with subprocess.Popen([*BOUNDED, "sh", "-c", "echo $$; exec sleep 100"], stdout=subprocess.PIPE) as started:
        pid = int(started.stdout.readline())
        started.terminate()
        assert started.wait(30) == 137
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_reader_that_goes_ends_the_command():
    with subprocess.Popen([*BOUNDED, "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        started.stdout.read(10)
        started.stdout.close()
        assert started.stderr.read() == b""
    assert started.returncode == 255


def test_other_handles_reach_the_command():
    read, write = os.pipe()
    os.write(write, b"secret\n")
    assert bounded("head", "-n1", f"/dev/fd/{read}", pass_fds=[read]).stdout == b"secret\n"
    os.close(read)
    os.close(write)

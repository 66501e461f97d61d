"""A program in a pod makes the host's files its own and read-only, and ends with its client."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodetune.onhost import host_root, in_pod

APART = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
HOST = 'mount --rbind / "$1"; shift; exec "$0" "$@"'
"""This machine's files in another folder, as a pod has them."""

WRITE = """
import errno, os, sys
from nodetune.onhost import host_root
host_root.enter(sys.argv[1])
for path in ("/written", "/dev/shm/written", "/proc/self/comm"):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
        print(path, "written")
    except OSError as problem:
        print(path, errno.errorcode[problem.errno])
print(host_root.PROCESS, host_root.missing_privilege(), os.path.isdir("/proc/1"))
"""
POD = """
import os, sys, time
from nodetune.onhost import in_pod
def work():
    os.write(1, b"at work\\n")
    {work}
sys.exit(in_pod.run(work, {seconds}, sys.argv[1]))
"""


@pytest.fixture
def in_a_pod(tmp_path):
    """in_a_pod(program) → a process of this Python with the host's files in its first argument."""
    tried = subprocess.run(
        [*APART, "sh", "-ec", f"mount --rbind / {tmp_path}"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"no mounts of its own: {tried.stderr.strip()}")

    started = []

    def start(program):
        command = [*APART, "sh", "-ec", HOST, sys.executable, str(tmp_path), "-c", program, str(tmp_path)]
        folder = Path(host_root.__file__).parents[2]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=folder))
        return started[-1]

    yield start
    for process in started:
        with process:  # closes its pipes
            process.kill()


def test_nothing_of_the_host_can_be_written(in_a_pod):
    out, errors = in_a_pod(WRITE).communicate(timeout=60)
    *refused, told = out.splitlines()
    assert refused == ["/written EROFS", "/dev/shm/written EROFS", "/proc/self/comm EROFS"], errors
    assert told == "/proc/1 the pod is not privileged True"


def test_outside_of_a_pod_root_is_what_is_missing():
    assert host_root.missing_privilege() == "needs root (--become)"


def test_a_host_that_is_not_mounted_is_named(tmp_path):
    with pytest.raises(host_root.HostRootError, match=f"the host's root is not mounted at {tmp_path}/none"):
        host_root.enter(str(tmp_path / "none"))


def test_a_pod_without_the_privilege_is_named():
    program = "import ctypes, os, sys; from nodetune.onhost import in_pod; os.geteuid() or os.setuid(65534); sys.exit(in_pod.run(None, 1, '/'))"
    folder = Path(in_pod.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=folder)
    assert done.stderr == "nodetune: the pod is not privileged (unshare: operation not permitted)\n"
    assert done.returncode == 1


def test_work_that_is_done_ends_the_program(in_a_pod):
    pod = in_a_pod(POD.format(work="pass", seconds=300))
    assert pod.stdout.read() == "at work\n", pod.stderr.read()
    assert pod.wait(60) == 0


def test_a_client_that_leaves_ends_the_work(in_a_pod):
    pod = in_a_pod(POD.format(work="time.sleep(600)", seconds=600))
    assert pod.stdout.readline() == "at work\n"
    pod.stdin.close()
    assert pod.stdout.read() == "", "its output is closed: nothing of it runs any more"
    assert pod.wait(60) == 1


def test_work_that_takes_too_long_is_ended(in_a_pod):
    pod = in_a_pod(POD.format(work="time.sleep(600)", seconds=0.3))
    assert pod.stdout.read() in ("at work\n", ""), pod.stderr.read()
    assert pod.wait(60) == in_pod.OVERDUE

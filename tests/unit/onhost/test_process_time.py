"""The own time of a process: what it waits for a CPU is nobody's fault."""

import os
import signal
import subprocess
import sys
import time

import pytest

from nodetune.onhost import process_time

SPIN = "print(flush=True)\nwhile True: pass"
SLEEP = "import time\nprint(flush=True)\ntime.sleep(300)"


@pytest.fixture
def started():
    """started(code): a process that runs this."""
    processes = []

    def start(code):
        processes.append(subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE))
        assert processes[-1].stdout.readline() == b"\n"
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def watched(process, seconds):
    """The ProcessTime of a process after so many seconds of looking."""
    found, end = process_time.ProcessTime(process.pid), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.02)
        found.look()
    return found


def test_what_waits_in_one_call_works_all_the_time(started):
    found = watched(started(SLEEP), 1.0)
    assert found.seconds > 0.5
    assert found.still > 0.5


def test_what_is_stopped_does_not_work(started):
    process = started(SPIN)
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    assert watched(process, 1.0).seconds < 0.1


def test_what_runs_a_tenth_of_the_time_works_that_long(started):
    process = started(SPIN)
    stopper = (
        f"import os, time\nprint(flush=True)\nwhile True:\n os.kill({process.pid}, 18); time.sleep(0.01)\n"
        f" os.kill({process.pid}, 19); time.sleep(0.09)"
    )
    started(stopper)
    found = watched(process, 1.5)
    assert 0 < found.seconds < 0.75
    assert found.still == 0


def test_one_that_has_ended_says_so(started):
    process = started(SLEEP)
    found = process_time.ProcessTime(process.pid)
    process.kill()
    process.wait()
    with pytest.raises(OSError, match="No such"):
        found.look()


def played(*seen):
    """The ProcessTime after looks at (time, waits, CPU seconds, times on a CPU)."""
    told = iter(seen)
    now = [0.0]

    def look(_):
        now[0], *rest = next(told)
        return process_time.State(*rest)

    found = process_time.ProcessTime(1, clock=lambda: now[0], look=look)
    times = [0.0] + [each[0] for each in seen]
    for at in times[1:]:
        now[0] = at
        found.look()
    return found


def test_what_nobody_saw_does_not_count():
    """As of a machine that was stopped: nobody looked for ten seconds."""
    found = played((0.1, True, 0, 1), (0.2, True, 0, 1), (10.2, True, 0, 1))
    assert found.seconds == pytest.approx(0.2 + process_time.MAX_GAP)


def test_what_was_on_a_cpu_in_between_was_not_waiting():
    found = played((0.1, True, 0, 1), (0.2, True, 0, 2), (0.3, True, 0.04, 3))
    assert found.seconds == pytest.approx(0.1 + 0.04)
    assert found.still == 0

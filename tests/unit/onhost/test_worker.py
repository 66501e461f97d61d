"""Work in a child with a deadline: what it reports, how it ends, and that nothing of it is left."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from nodetune.onhost import worker


def started(work):
    """A worker and all that it reports until its pipe closes."""
    child, messages = worker.Worker(work), []
    while (found := child.take()) is not None:
        messages += found
    return child, messages


def gone(pid):
    """Whether the process has ended; one that only waits to be collected has."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_messages_come_in_order_and_the_last_step_is_known():
    def work(report):
        report.step("first")
        report.send("fact", {"a": "é"})
        report.step("second")

    child, messages = started(work)
    assert messages == [["step", "first"], ["fact", {"a": "é"}], ["step", "second"]]
    assert child.step == "second"
    assert child.end() == 0


def test_the_end_of_a_worker_that_crashed_names_the_signal():
    child, _ = started(lambda report: os.kill(os.getpid(), signal.SIGSEGV))
    assert os.WTERMSIG(child.end()) == signal.SIGSEGV


def test_a_fork_that_fails_leaves_no_file_open(monkeypatch):
    def fails():
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", fails)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(BlockingIOError, match="no more processes"):
        worker.Worker(lambda report: None)
    assert os.listdir("/proc/self/fd") == before


def test_a_worker_that_raises_ends_with_status_1_and_prints_why():
    errors, there = os.pipe()
    child = worker.Worker(lambda report: 1 / 0, output=there)
    os.close(there)
    while child.take() is not None:
        pass
    assert os.WEXITSTATUS(child.end()) == 1
    assert os.read(errors, 1000) == b"ZeroDivisionError('division by zero')"
    os.close(errors)


def test_a_worker_that_reports_without_end_is_killed():
    def flood(report):
        while True:
            report.send("fact", "x" * 60000)

    child, _ = started(flood)
    assert child.flooded
    assert child.end(30) is not None
    assert gone(child.pid)


def test_a_worker_that_stays_with_its_pipe_closed_is_killed():
    def linger(report):
        os.close(worker.REPORTS)
        time.sleep(300)

    child, _ = started(linger)
    assert os.WTERMSIG(child.end(30)) == signal.SIGKILL


def test_what_a_worker_started_ends_with_it():
    def work(report):
        report.send("pid", subprocess.Popen(["sleep", "300"]).pid)
        time.sleep(300)

    child = worker.Worker(work)
    ((_, pid),) = child.take()
    child.end(30)
    assert gone(pid)


@pytest.mark.parametrize("closed", [(), (0,), (0, 1, 2)])
def test_a_worker_has_no_open_file_but_its_own(closed):
    """Whatever its supervisor had open, and also where that was started without standard input or output."""
    code = textwrap.dedent(f"""
        import os
        from nodetune.onhost import worker
        far = os.open("/", os.O_RDONLY)
        os.dup2(far, 1000)
        answer, there = os.pipe()
        [os.close(each) for each in {closed!r}]
        child = worker.Worker(lambda report: report.send("open", sorted(map(int, os.listdir("/proc/self/fd")))))
        ((_, found),) = child.take()
        child.end()
        os._exit(0 if found[:-1] == [0, 1, 2, 3] and found[-1] == 4 else 1)  # the last one is that of the folder
    """)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_worker_dies_with_its_supervisor():
    code = textwrap.dedent("""
        import os, time
        from nodetune.onhost import worker
        child = worker.Worker(lambda report: [report.send("up", os.getpid()), time.sleep(300)])
        print(child.take()[0][1], flush=True)
        time.sleep(300)
    """)
    supervisor = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(supervisor.stdout.readline())
    supervisor.kill()
    supervisor.communicate()
    assert gone(pid)


def test_ask_returns_what_the_function_returns():
    assert worker.ask(lambda step: {"pid": [1, None]}, 60, "it") == {"pid": [1, None]}


def test_ask_names_the_step_that_hangs():
    def hang(step):
        step("nvmlInit")
        time.sleep(300)

    with pytest.raises(worker.NoAnswerError, match=r"^the driver did not answer within 0.3 s \(at nvmlInit\)$"):
        worker.ask(hang, 0.3, "the driver")


def test_ask_reports_what_the_function_raised():
    with pytest.raises(worker.NoAnswerError, match="^ZeroDivisionError: division by zero$"):
        worker.ask(lambda step: 1 / 0, 60, "it")


def test_ask_reports_a_child_that_died():
    with pytest.raises(worker.NoAnswerError, match="^it ended without an answer$"):
        worker.ask(lambda step: os._exit(0), 60, "it")


def test_a_child_that_no_signal_reaches_is_left_behind_and_named(monkeypatch):
    monkeypatch.setattr(worker, "kill", lambda how, pid: None)

    def hang(step):
        time.sleep(2)

    with pytest.raises(worker.NoAnswerError, match=r"its process \d+ cannot be killed and was left behind"):
        worker.ask(hang, 0.1, "it", ending=0.1)

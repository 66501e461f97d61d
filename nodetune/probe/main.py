"""Runs the collectors, each bounded in time and none able to take the others with it.

The supervising process reads nothing of the host itself: collectors run in children, in their own session with closed
descriptors, and report through a pipe. A child that does not come back (a driver call stuck in the kernel cannot even
be killed) is left behind, the step that it was at is named, and a new child goes on with the families after it.
Collectors in ALONE may hang for good, so at most one of each kind exists on a host: the next probe reports it.
"""

import errno
import importlib
import json
import os
import select
import signal
import time

from . import read

ALONE = ("bmc", "gpu", "mounts")
"""Families that talk to a driver, a file server or a management controller: each in a child of its own."""

FAMILY_SECONDS = 6.0
ALONE_SECONDS = 15.0
TOTAL_SECONDS = 20.0
MARK = "nodetune:"
LARGEST_MESSAGE = 8 << 20


class Reporter:
    """The child's end of the pipe."""

    def __init__(self, handle):
        self._handle = handle

    def send(self, kind, content):
        data = json.dumps([kind, content]).encode("ascii") + b"\n"
        while data:
            data = data[os.write(self._handle, data) :]

    def step(self, text):
        """Say what is about to be done, so that a hang has a name."""
        self.send("step", text)


class Worker:
    """A child that collects some families, seen from the supervisor."""

    def __init__(self, families, asked, deadline):
        self.families = list(families)
        self.deadline = deadline
        self.now_at = ""
        self.current = None
        self.since = time.monotonic()
        self.buffer = b""
        self.pipe, there = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _child(self.families, asked, there)
        os.close(there)

    def limit(self):
        own = ALONE_SECONDS if self.current in ALONE else FAMILY_SECONDS
        return min(self.deadline, self.since + own * read.PATIENCE)

    def left(self):
        """The families after the one that it is at."""
        return self.families[self.families.index(self.current) + 1 :] if self.current else []

    def abandon(self):
        """Kill it if it can be killed. True when it is still there: stuck in the kernel."""
        os.close(self.pipe)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass
        try:
            os.kill(self.pid, signal.SIGKILL)
        except OSError:
            pass
        for _ in range(20):
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return False
            time.sleep(0.01)
        return True


def _child(families, asked, pipe):
    """Never returns. Keeps nothing open but the pipe, so that whoever waits for our output does not wait for us."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(null, handle)
        keep = os.dup2(pipe, 3) if pipe != 3 else 3
        os.closerange(4, 1024)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        _collect_all(families, asked, Reporter(3 if keep is None else keep))
    except BaseException:  # (a child must end here whatever happens; the supervisor sees the pipe close)
        os._exit(1)
    os._exit(0)


def _collect_all(families, asked, report):
    for family in families:
        report.send("start", family)
        if family in ALONE:
            problem = _wait_for_turn(family, report)
            if problem:
                report.send("failed", [family, problem])
                continue
        try:
            module = importlib.import_module("." + family, __package__)
            for name, fact in module.collect(asked[family], report.step):
                report.send("fact", [family + "." + name, fact])
        except Exception as problem:  # one family's fault must not cost the others
            text = read.why(problem) if isinstance(problem, OSError) else repr(problem)
            report.send("failed", [family, "the {} collector failed: {}".format(family, text)])
        report.send("done", family)


def _wait_for_turn(family, report):
    """Wait until no other reader of this kind is at work, and say that we are. Returns why not, when one never ends.

    A reader names its process. Each takes the name and then looks: of two that do so together at least one sees the
    other, gives the name back and waits a random moment, so that never two go on.
    """
    name, own = (MARK + family)[:15], read.text("/proc/self/comm")
    report.step("waiting for an earlier reader")
    end = time.monotonic() + ALONE_SECONDS * 0.6 * read.PATIENCE
    while True:
        if not _readers(name):
            _call_ourselves(name)
            if not _readers(name):
                return None
            _call_ourselves(own)
        others = _readers(name)
        if others and time.monotonic() > end:
            text = "an earlier {} reader (process {}, {} s old) has not come back: not starting another"
            return text.format(family, *others[0])
        time.sleep(0.01 + ord(os.urandom(1)) / 5000.0)


def _call_ourselves(name):
    with open("/proc/self/comm", "w") as comm:
        comm.write(name)


def _readers(name):
    """(process, age in seconds) of the others that carry the name, root's or our own user's, oldest first."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            if read.text("/proc/{}/comm".format(entry)) != name or os.stat("/proc/" + entry).st_uid not in (
                0,
                os.getuid(),
            ):
                continue
            fields = read.text("/proc/{}/stat".format(entry)).rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            uptime = float(read.text("/proc/uptime").split()[0])
            found.append((int(entry), int(uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK"))))
    return sorted(found, key=lambda reader: -reader[1])


def probe(asked, seconds=TOTAL_SECONDS):
    """Collect families → names asked for. Returns the fact document's `facts`, `failed` and `stuck`.

    More than the usual time stretches the deadlines of single families and commands alike.
    """
    read.PATIENCE = max(1.0, seconds / TOTAL_SECONDS)
    deadline = time.monotonic() + seconds
    result = {"facts": {}, "failed": {}, "stuck": []}
    together = [family for family in sorted(asked) if family not in ALONE]
    workers = [Worker([family], asked, deadline) for family in sorted(asked) if family in ALONE]
    if together:
        workers.append(Worker(together, asked, deadline))
    while workers:
        _serve(workers, asked, result)
    return result


def _serve(workers, asked, result):
    """One round: take what the children said, replace those that are over their time."""
    wait = max(0.0, min(worker.limit() for worker in workers) - time.monotonic())
    ready, _, _ = select.select([worker.pipe for worker in workers], [], [], wait)
    for worker in list(workers):
        if worker.pipe in ready:
            if not _take(worker, result):
                workers.remove(worker)
                _ended(worker, workers, asked, result)
        elif time.monotonic() >= worker.limit():
            workers.remove(worker)
            _overdue(worker, workers, asked, result)


def _take(worker, result):
    """Read from one child. False when it has ended."""
    try:
        data = os.read(worker.pipe, 1 << 16)
    except OSError as problem:
        if problem.errno == errno.EINTR:
            return True
        raise
    lines = (worker.buffer + data).split(b"\n")
    worker.buffer = lines.pop()
    for line in lines:
        _note(worker, json.loads(line.decode("ascii")), result)
    return bool(data) and len(worker.buffer) < LARGEST_MESSAGE


def _note(worker, message, result):
    kind, content = message
    if kind == "fact":
        result["facts"][content[0]] = content[1]
    elif kind == "failed":
        result["failed"][content[0]] = content[1]
    elif kind == "step":
        worker.now_at = content
    elif kind == "start":
        worker.current, worker.now_at, worker.since = content, "", time.monotonic()
    elif kind == "done" and worker.current == worker.families[-1]:
        worker.families = []


def _ended(worker, workers, asked, result):
    """The pipe closed: all done, or the child died at some family."""
    os.close(worker.pipe)
    os.waitpid(worker.pid, 0)
    if worker.families:
        at = worker.current or worker.families[0]
        worker.current = at
        result["failed"].setdefault(at, "the {} collector died{}".format(at, _at(worker)))
        _go_on(worker, workers, asked, result)


def _overdue(worker, workers, asked, result):
    at = worker.current or worker.families[0]
    worker.current = at
    spent = time.monotonic() - worker.since
    stuck = worker.abandon()
    reason = "did not return within {:.0f} s{}".format(spent, _at(worker))
    if stuck:
        result["stuck"].append({"family": at, "pid": worker.pid, "step": worker.now_at})
        reason += "; its reader (process {}) cannot be killed and was left behind".format(worker.pid)
    result["failed"][at] = reason
    _go_on(worker, workers, asked, result)


def _at(worker):
    return " in " + worker.now_at if worker.now_at else ""


def _go_on(worker, workers, asked, result):
    left = worker.left()
    if not left:
        return
    if time.monotonic() < worker.deadline:
        workers.append(Worker(left, asked, worker.deadline))
    else:
        for family in left:
            result["failed"][family] = "not collected: the probe's time was over"

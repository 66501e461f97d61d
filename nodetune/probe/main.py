"""Runs the collectors, each with a time limit and isolated from the others, and writes their facts.

The supervising process reads nothing of the host itself: collectors run in children, in their own session with closed
descriptors, and report through a pipe. A child that does not return (a driver call stuck in the kernel cannot even
be killed) is left behind, its last step is reported, and a new child continues with the families after it.
Collectors in ALONE may hang forever, so at most one of each kind runs on a host: the next probe reports it.
"""

import importlib
import os
import re
import select
import sys
import time

from nodetune.onhost import files, layout, one_reader, protocol
from nodetune.onhost.worker import Worker
from . import read

ALONE = ("bmc", "gpu", "mounts", "watch")
"""Families that use a driver, a file server or a management controller: each in its own child."""

FAMILY_SECONDS = 6.0
ALONE_SECONDS = 15.0
TOTAL_SECONDS = 20.0
MAX_STRETCH = 4.0
"""Maximum factor for every deadline on a busy host: a hanging driver must be reported in time."""
MARK = "nodetune:"
LOCK = "/run/nodetune/guard/lock"
"""The guard's, where it is installed (nodetune/guard/node/records.py): its readers and ours take turns."""


class Collector(Worker):
    """A child that collects some families, seen from the supervisor."""

    def __init__(self, families, asked, deadline):
        self.families = list(families)
        self.deadline = deadline
        self.current = None
        Worker.__init__(self, lambda report: _collect_all(self.families, asked, report))
        self.started = self.since

    def limit(self):
        own = ALONE_SECONDS if self.current in ALONE else FAMILY_SECONDS
        return min(self.deadline, self.started + own * read.PATIENCE)

    def at(self):
        """Return the current family."""
        return self.current or self.families[0]

    def left(self):
        """Return the families after the current one."""
        return self.families[self.families.index(self.at()) + 1 :]


def _collect_all(families, asked, report):
    for family in families:
        report.send("start", family)
        report.step("")
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
    """Wait until no other reader of this kind runs, and take its place. Return the reason if one never ends."""
    report.step("waiting for an earlier reader")
    seconds = ALONE_SECONDS * read.PATIENCE
    lock = LOCK if os.access(LOCK, os.W_OK) else None  # it is never made here: an audit leaves nothing behind
    other = one_reader.take_turn(MARK + family, seconds * 0.6, stuck=seconds, lock=lock)
    if other is None:
        return None
    text = "an earlier {} reader (process {}, {:.0f} s old) is still running: not starting another"
    return text.format(family, other[0], other[1])


def load_per_cpu(cpus=None):
    """Return the load for each CPU, over the last minute or now; 0 if unknown."""
    found = re.match(r"([\d.]+) [\d.]+ [\d.]+ (\d+)/", read.text_or("/proc/loadavg"))
    if not found:
        return 0.0
    waiting = max(float(found.group(1)), int(found.group(2)) - 1)  # without this process
    return waiting / (cpus or os.cpu_count() or 1)


def stretch(load):
    """Return the factor for all deadlines on a host with this load, within bounds."""
    return min(max(1.0, load()), MAX_STRETCH)


def total(seconds, most, longer):
    """Return the time for the whole probe: `seconds`, on a busy host up to `most`."""
    return max(seconds, min(seconds * longer, most))


def probe(asked, seconds=TOTAL_SECONDS, most=0.0, load=load_per_cpu):
    """Collect families → requested names. Return the fact document's `facts`, `failed` and `stuck`.

    More than the usual time extends the deadlines of families and commands alike, and so does a busy host,
    on which the whole probe may take up to `most` seconds.
    """
    longer = stretch(load)
    read.PATIENCE = max(1.0, seconds / TOTAL_SECONDS) * longer
    deadline = time.monotonic() + total(seconds, most, longer)
    result = {"facts": {}, "failed": {}, "stuck": []}
    together = [family for family in sorted(asked) if family not in ALONE]
    workers = [Collector([family], asked, deadline) for family in sorted(asked) if family in ALONE]
    if together:
        workers.append(Collector(together, asked, deadline))
    while workers:
        _serve(workers, asked, result)
    return result


def document(asked, seconds, most=0.0):
    """Probe and describe the probe itself."""
    start = time.time()
    found = probe(asked, seconds, most)
    found["about"] = {
        "time": int(start),
        "seconds": round(time.time() - start, 3),
        "uid": os.getuid(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "interpreter": sys.executable or "",
    }
    return found


def emit(asked, nonce, seconds, most):
    """Probe, and write the answer so that other output of a login does no harm."""
    sys.stdout.flush()
    answer = layout.text(document(asked, seconds, most)).encode("ascii")
    files.write_all(1, b"\n" + protocol.encode(answer, nonce))


def _serve(workers, asked, result):
    """Do one round: read the children's answers and replace overdue children."""
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
    """Read from one child. Return False if it has ended."""
    messages = worker.take()
    for kind, content in messages or []:
        _note(worker, kind, content, result)
    return messages is not None


def _note(worker, kind, content, result):
    if kind == "fact":
        result["facts"][content[0]] = content[1]
    elif kind == "failed":
        result["failed"][content[0]] = content[1]
    elif kind == "start":
        worker.current, worker.started = content, time.monotonic()
    elif kind == "done" and worker.current == worker.families[-1]:
        worker.families = []


def _ended(worker, workers, asked, result):
    """Finish a worker whose pipe closed: it is done, or its child died in a family."""
    worker.end()
    if worker.families:
        at = worker.at()
        how = "reported too much" if worker.flooded else "died"
        result["failed"].setdefault(at, "the {} collector {}{}".format(at, how, _step(worker)))
        _go_on(worker, workers, asked, result)


def _overdue(worker, workers, asked, result):
    at, spent = worker.at(), time.monotonic() - worker.started
    reason = "did not return within {:.0f} s{}".format(spent, _step(worker))
    if worker.end() is None:
        result["stuck"].append({"family": at, "pid": worker.pid, "step": worker.step})
        reason += "; its reader (process {}) cannot be killed and was left behind".format(worker.pid)
    result["failed"][at] = reason
    _go_on(worker, workers, asked, result)


def _step(worker):
    return " in " + worker.step if worker.step else ""


def _go_on(worker, workers, asked, result):
    left = worker.left()
    if not left:
        return
    if time.monotonic() < worker.deadline:
        workers.append(Collector(left, asked, worker.deadline))
    else:
        for family in left:
            result["failed"][family] = "not collected: the probe's time was over"

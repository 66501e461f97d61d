"""Runs the measurements of a plan one after another, each in a process that is killed at its deadline.

A plan: {"measurements": [{"name", "options", "seconds"}], "env": {"NCCL_DEBUG": "INFO", "OTHER": null (removed)},
"group": {"hosts": [names], "self": index}, "run": an id that the hosts of one run share}.
Started by srun, all hosts are given the plans of all: {"plans": [plans], "hosts": [names], "of": [for each host: which plan]}.
Events in this order for each measurement (`report` has those of the measurement itself):
{"begin": {…}}, then {"step"}, {"note"}, {"record"}, {"tell"} as they come and {"done"} when it is over, with the load by
`others` meanwhile (host/other_load.py), and at last {"end": {…}}.
Items of GPUs with "shares_cuda" follow each other in one process: to open all GPUs takes seconds, to measure often less.
Heard: {"told": {"number", "from", "topic", "data"}} and {"gone": index of a host}, with srun also the "plan" whose group it
is for.
"""

import os
import select
import signal
import sys
import time

from nodetune.onhost import one_reader, protocol
from nodetune.onhost.worker import prctl
from nodetune.measurements.host import channel, measurement_process, other_load, temporary_settings

MARK = "ntverify:"
TURN_SECONDS = 3.0
MAX_KEPT = 10000
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """Needs a process of its own: it kills all children."""

    def __init__(self, plan, channel):
        self._plan = plan = own_part(plan)
        self._channel = channel
        self._group = plan.get("group") or {"hosts": ["localhost"], "self": 0}
        self._early = []
        self._gone = []
        self._number = 0
        self._stuck = []
        self._open = None
        """The process of the measurement before, if it waits for another one."""

    def run(self):
        """Run the measurements of the plan. Raise channel.StoppedError."""
        start = time.time()
        self._prepare()
        self._channel.say({"begin": _about_us()})
        problem = wait_for_turn(self._plan["run"]) if self._plan.get("run") else None
        for number, item in enumerate(self._plan["measurements"]):
            self._number = number
            if problem:
                self._record({"measurement": item["name"], "failed": problem})
                self._tell_ended(problem)
            else:
                self._one(item)
        self._channel.say({"end": {"seconds": round(time.time() - start, 3)}})
        if "number" in self._plan:
            self._wait_for_the_others()

    def _wait_for_the_others(self):
        """Wait until the controller closes.

        srun loses the last output of tasks if one of them was killed when the step ends.
        """
        try:
            while True:
                inputs, outputs = self._channel.handles()
                readable, writable, _ = select.select(inputs, outputs, [])
                self._channel.served(readable, writable)
        except channel.StoppedError:
            return

    def _prepare(self):
        prctl(measurement_process.PR_SET_CHILD_SUBREAPER, 1)
        for number in SIGNALS:
            signal.signal(number, _leave)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for name, value in (self._plan.get("env") or {}).items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = str(value)

    def _one(self, item):
        name, seconds = item["name"], item.get("seconds") or deadline_of(item["name"])
        start = time.monotonic()
        self._say("step", name, "starting")
        watch = other_load.Watch()
        running, self._open = self._open or measurement_process.Measurement(self._group), None
        running.begin(name, item.get("options") or {}, seconds)
        status, left = None, []
        try:
            for message in self._kept():
                running.tell(message)
            while self._round(running):
                pass
        finally:
            if running.continues and item.get("shares_cuda") and self._next().get("shares_cuda"):
                self._open = running
            else:
                status, left = running.end_all(self._stuck)
            lost = temporary_settings.restore()
        if lost:
            self._record({"measurement": name, "failed": lost})
        self._stuck += left
        self._finish(running, status, left)
        seen = dict({} if left else watch.seen(), gpus=running.gpus)
        done = {"measurement": name, "seconds": round(time.monotonic() - start, 3), "left": left, "others": seen}
        self._channel.say({"done": done})

    def _next(self):
        items = self._plan["measurements"]
        return items[self._number + 1] if self._number + 1 < len(items) else {}

    def _round(self, running):
        """Transfer what is ready, in both directions. Return False when the measurement is over."""
        inputs, outputs = self._channel.handles()
        mine = [running.pipe] + ([running.errors] if running.errors_open else [])
        room = [running.told] if running.to_tell else []
        wait = max(0.0, -running.overdue())
        readable, writable, _ = select.select(inputs + mine, outputs + room, [], wait)
        for event in self._channel.served(readable, writable):
            self._hear(event, running)
        if running.told in writable:
            running.send()
        if running.errors in readable:
            running.take_errors()
        if running.pipe in readable and not self._pass_on(running):
            return False
        return running.overdue() < 0

    def _pass_on(self, running):
        messages = running.take()
        for kind, content in messages or []:
            if kind == "record":
                self._record(content)
            elif kind == "tell":
                self._tell(content["topic"], content["data"])
            elif kind == "gpus":
                running.gpus = content
            elif kind == "done":
                running.done, running.continues = True, content
            else:
                self._say(kind, running.name, content)
        return messages is not None and not running.done

    def _finish(self, running, status, left):
        """Report an error of the process itself."""
        reason = running.flood()
        if reason is None and not running.done:
            at = "; it was at: " + (running.step or "its start")
            if running.overdue() >= 0:
                reason = "not finished within {:g} s and killed{}".format(running.seconds, at)
            else:
                reason = "its process ended ({}){}{}".format(_ending(status), at, running.last_words())
        if left:
            ids = ", ".join(str(pid) for pid in left)
            reason = (reason or "done") + "; process {} is stuck in the kernel, cannot be killed, and was left".format(
                ids
            )
        if reason:
            self._record({"measurement": running.name, "failed": reason})
        self._tell_ended(reason or "it has no more messages")

    def _hear(self, event, running):
        if not self._is_for_us(event):
            return
        if "told" in event:
            message = event["told"]
            if message["number"] == self._number:
                running.tell(message)
            elif message["number"] > self._number and len(self._early) < MAX_KEPT:
                self._early.append(message)
        elif "gone" in event:
            self._gone.append({"from": event["gone"], "topic": protocol.ENDED, "data": "this host has gone"})
            running.tell(self._gone[-1])

    def _is_for_us(self, event):
        """Return whether an event is for us: srun sends every message to all its tasks, including the sender."""
        sender = event["told"]["from"] if "told" in event else event.get("gone")
        return event.get("plan") == self._plan.get("number") and sender != self._group["self"]

    def _kept(self):
        """Return the messages that arrived before this measurement began."""
        now = [message for message in self._early if message["number"] == self._number]
        self._early = [message for message in self._early if message["number"] > self._number]
        return now + self._gone

    def _tell_ended(self, reason):
        if len(self._group["hosts"]) > 1:
            self._tell(protocol.ENDED, reason)

    def _tell(self, topic, data):
        told = {"number": self._number, "from": self._group["self"], "topic": topic, "data": data}
        self._channel.say({"tell": told})

    def _record(self, record):
        self._channel.say({"record": record})

    def _say(self, kind, measurement, text):
        self._channel.say({kind: {"measurement": measurement, "text": text}})


def deadline_of(name):
    """Return SECONDS of a measurement's module, or 20 if it has none or cannot be imported."""
    try:
        return float(getattr(measurement_process.module(name), "SECONDS", 20.0))
    except Exception:
        return 20.0


def wait_for_turn(run):
    """Reserve this host for measuring; members of the same run share it. Return the reason if impossible, else None."""
    name = (MARK + run)[: one_reader.MAX_NAME_LENGTH]
    rival = one_reader.take_turn(name, TURN_SECONDS, is_rival=lambda other: other.startswith(MARK) and other != name)
    if rival:
        return "another verify is running on this host (process {}): wait for it, or end it".format(rival.pid)
    return None


def _leave(number, frame):
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # once is enough: what follows must not be interrupted
    raise channel.StoppedError("signal {}".format(number))


def _about_us():
    return {
        "pid": os.getpid(),
        "uid": os.getuid(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "time": int(time.time()),
    }


def _ending(status):
    if status is None:
        return "for an unknown reason"
    if os.WIFSIGNALED(status):
        return "signal {}".format(os.WTERMSIG(status))
    return "exit status {}".format(os.WEXITSTATUS(status))


def own_part(plan):
    """Return this task's part of a plan for all tasks of a step. Without a group in the plan, it is alone."""
    if "plans" not in plan:
        return plan
    task = int(os.environ.get("SLURM_PROCID", "0"))
    number, host = plan["of"][task], plan["hosts"][task]
    mine = plan["plans"][number]
    hosts = (mine.get("group") or {"hosts": [host]})["hosts"]
    return dict(mine, number=number, group={"hosts": hosts, "self": hosts.index(host)})


def emit(plan, nonce):
    """Run a plan with events on standard output, until everything is done or standard input ends."""
    sys.stdout.flush()
    try:
        connection = channel.Channel(nonce)
        Supervisor(plan, connection).run()
        connection.drain()
    except (channel.StoppedError, protocol.LineError):
        os._exit(1)

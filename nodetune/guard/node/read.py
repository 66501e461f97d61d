"""Reads the facts that the gating checks need, and no others, through nodetune.probe, in children with deadlines."""

from __future__ import annotations

import os
import select
import signal
import time
from importlib import import_module

from nodetune.guard.node import records
from nodetune.onhost import one_reader, process_time
from nodetune.onhost.worker import Worker
from nodetune.probe import guard as memory
from nodetune.probe import main
from nodetune.probe import read as bounded

TYPE_CHECKING = False  # the real one is in typing, which costs ten milliseconds before the readers are started
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from nodetune.guard.node.invocation import Arguments

MAPPING = ("gpu.count", "gpu.nvml_status", "gpu.minor_number", "gpu.bdf")
ON_BUS = ("pci.gpus", "pci.devices")
"""Which GPU is which: read whenever GPUs are."""
LIVELY = {"gpu.access": "gpu.temperature"}
"""A fact that only other calls find out about, and one that asks the GPU itself."""
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
"""SIGBUS does not count: it also results from an unreadable file or a full disk. Sent from outside, none of these ends a reader."""
DEVICES = "/dev"
WAKING = ("nvmlInit", "nvmlDeviceGetHandleBy", "open /dev/nvidia")
"""Calls that wake GPUs which nothing keeps awake (no nvidia-persistenced): that takes seconds for each."""
LAST_READING = "reading.json"
TURN_SHARE = 0.4
"""Of the time, the part in which to wait for another reader (an audit's) to end."""


class Reading:
    """The result of reading. `failed` maps a family to (kind, reason): NVML causes hang, stuck and crash."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.failed: dict[str, tuple[str, str]] = {}

    def finish(self) -> Reading:
        """Return itself: it is over, unlike one that has only started."""
        return self


def leave(reading: Reading, asked: Arguments, policy: str, names: Iterable[str], began: float) -> None:
    """Leave a whole reading to the runs that waited for it; `began` in seconds of the clock that no one sets."""
    import json

    made = {"policy": policy, "boot": records.boot_id(), "began": began, "names": sorted(names), "facts": reading.facts}
    try:
        if not reading.failed:
            records.write(os.path.join(asked.run, LAST_READING), json.dumps(made) + "\n")
    except OSError:
        return  # they read themselves


def of_another_run(asked: Arguments, policy: str, names: set[str]) -> Reading | None:
    """Return the last reading if it began after this run did: then it is as new as one of this run's own."""
    import json

    found = Reading()
    try:
        made = json.loads(records.read(os.path.join(asked.run, LAST_READING)))
        same = (made["policy"], made["boot"]) == (policy, records.boot_id()) and names <= set(made["names"])
        found.facts = made["facts"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if same and made["began"] >= asked.started else None


class FactReader(Worker):  # type: ignore[misc]
    """A child that reads some families, one after the other."""

    def __init__(self, asked: dict[str, list[str]], work: Callable[[Any], None]) -> None:
        self.left = sorted(asked)
        super().__init__(work)
        self._time, self._of = process_time.ProcessTime(self.pid), self.since

    @property
    def own(self) -> float:
        """Look at it: the seconds of its own that its step has taken so far, as far as they were seen."""
        if self._of != self.since:
            self._time, self._of = process_time.ProcessTime(self.pid), self.since
        try:
            self._time.look()
        except OSError:
            pass  # it has ended: its pipe tells
        seconds: float = self._time.seconds
        return seconds

    def note(self, messages: list[Any], into: Reading) -> None:
        for kind, content in messages:
            if kind == "fact":
                into.facts[content[0]] = content[1]
            elif kind == "failed":
                into.failed[content[0]] = (content[1], content[2])
            elif kind == "done":
                self.left.remove(content)


def start(names: Iterable[str], seconds: float, step: float, stuck: float, invoked: Arguments) -> Started:
    """Set the readers to work on these facts. They end within `seconds`; no single NVML call gets more than `step`.

    In the folder `run` is the lock file that separates readers from processes that only have their name.
    """
    bounded.PATIENCE, memory.FOLDER, run = seconds / main.TOTAL_SECONDS, invoked.kept, invoked.run
    asked = families(names)
    alone = {family: names for family, names in asked.items() if family in main.ALONE}
    together = {family: names for family, names in asked.items() if family not in main.ALONE}
    readers = [
        FactReader({family: names}, _alone(family, names, seconds, stuck, run)) for family, names in alone.items()
    ]
    if together:
        readers.append(FactReader(together, lambda report: _collect_all(together, report)))
    return Started(readers, time.monotonic() + seconds, step)


class Started:
    """Running readers."""

    def __init__(self, readers: list[FactReader], deadline: float, step: float) -> None:
        self._readers, self._deadline, self._step = readers, deadline, step

    def finish(self) -> Reading:
        """Wait for them, and leave behind what is over its time."""
        found = Reading()
        while self._readers:
            wait = max(0.0, min(self._deadline - time.monotonic(), process_time.LOOK_SECONDS))
            ready, _, _ = select.select([reader.pipe for reader in self._readers], [], [], wait)
            for reader in list(self._readers):
                if reader.pipe in ready:
                    self._take(reader, found)
                else:
                    self._look(reader, found)
        return found

    def _look(self, reader: FactReader, found: Reading) -> None:
        """Leave it behind if it hangs, or if all time is over. Only its own time makes a hang."""
        own = reader.own if _in_driver(reader) else 0.0
        if own >= self._step or time.monotonic() >= self._deadline:
            self._readers.remove(reader)
            _overdue(reader, found, own, hang=own >= self._step)

    def _take(self, reader: FactReader, found: Reading) -> None:
        messages = reader.take()
        if messages is not None:
            reader.note(messages, found)
            return
        self._readers.remove(reader)
        status = reader.end()
        ended_by = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else 0
        for family in reader.left:
            crashed = ended_by in CRASHES and _in_driver(reader) and not _nvml_limits().lacking()
            text = f"the {family} reader died{_at(reader)}" + (f" (signal {ended_by})" if ended_by else "")
            found.failed.setdefault(family, ("crash" if crashed else "fault", text))


def _overdue(reader: FactReader, found: Reading, own: float, *, hang: bool) -> None:
    """Leave an overdue reader behind. If GPUs are asleep, waking them is slow and no sign of a hang."""
    spent, kind, why = time.monotonic() - reader.since, "slow", ""
    if _in_driver(reader) and not hang:
        why = f", where it could work for {own:.1f} of {spent:.1f} s"
    asleep = _asleep() if hang and reader.step.startswith(WAKING) else []
    if asleep:
        why = f" and {asleep[0]} had no clients: is nvidia-persistenced running?"
    elif hang:
        kind = "hang"
    text = f"did not return within {own:.1f} s" if kind == "hang" else "its time was over"
    left = f"; its reader (process {reader.pid}) cannot be killed and was left behind" if reader.end() is None else ""
    for family in reader.left:
        found.failed.setdefault(family, (kind, f"{text}{_at(reader)}{why}{left}"))


def _asleep() -> list[str]:
    """Return the device files of GPUs that no process has open."""
    named = (name for name in os.listdir(DEVICES) if name.startswith("nvidia") and name[6:].isdigit())
    left = {os.path.join(DEVICES, name) for name in named}
    for entry in os.listdir("/proc"):
        if left and entry.isdigit():
            left -= _open_files(f"/proc/{entry}/fd")
    return sorted(left)


def _open_files(folder: str) -> set[str]:
    found = set()
    try:
        for name in os.listdir(folder):
            found.add(os.readlink(f"{folder}/{name}"))
    except OSError:
        pass  # it has ended meanwhile, or closed one
    return found


def _in_driver(reader: FactReader) -> bool:
    """Return whether it is in a call into NVIDIA's driver, rather than in our own code or waiting for its turn."""
    step: str = reader.step
    return step.startswith(("nvml", "open /dev/nvidia"))


def _at(reader: FactReader) -> str:
    return f" in {reader.step}" if reader.step else ""


def families(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of each family, with those that identify GPUs."""
    wanted = set(names)
    if any(name.startswith("gpu.") for name in wanted):
        wanted |= {*MAPPING, *ON_BUS, *(LIVELY[name] for name in wanted & set(LIVELY))}
    asked: dict[str, list[str]] = {}
    for name in sorted(wanted):
        family, _, rest = name.partition(".")
        asked.setdefault(family, []).append(rest)
    return asked


# In the child


def _alone(family: str, names: list[str], seconds: float, stuck: float, run: str) -> Callable[[Any], None]:
    def work(report: Any) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, CRASHES)  # a true fault, and abort(), end it nevertheless
        report.step("waiting for an earlier reader")
        lock = os.path.join(run, records.LOCK)
        other = one_reader.take_turn(main.MARK + family, seconds * TURN_SHARE, stuck, lock=lock)
        report.step("")
        if other:
            kind = "stuck" if one_reader.is_stuck(other, stuck) else "busy"
            report.send("failed", [family, kind, one_reader.in_words(other)])
            report.send("done", family)
        else:
            _nvml_limits().lift()
            _collect_all({family: names}, report)

    return work


def _collect_all(asked: dict[str, list[str]], report: Any) -> None:
    for family in sorted(asked):
        try:
            _collect(family, asked[family], report)
        except Exception as problem:  # noqa: BLE001  (one family's fault must not cost the others)
            report.send("failed", [family, "fault", f"the {family} collector failed: {problem!r}"])
        report.step("")
        report.send("done", family)


def _collect(family: str, names: list[str], report: Any) -> None:
    """Send what is asked for, and stop once it is all there: a collector is a generator, and the rest costs time."""
    module = import_module(f"nodetune.probe.{family}")
    if family == "gpu":
        if not _library():
            for name in ("count", "nvml_status"):
                report.send("fact", [f"gpu.{name}", {"absent": "no NVML library (libnvidia-ml.so.1) on this host"}])
            return
        # it reads all of this table: this is a process of its own, which may cut it
        gpu_facts = import_module("nodetune.probe.gpu_facts")
        gpu_facts.FACTS = [fact for fact in gpu_facts.FACTS if fact[0] in names]  # type: ignore[attr-defined]
    left = set(names)
    for name, fact in module.collect(names, report.step):
        if name in left:
            left.discard(name)
            report.send("fact", [f"{family}.{name}", fact])
        if not left:
            return


def _nvml_limits() -> Any:
    """Return the module, which takes time to import that the readers do not have."""
    return import_module("nodetune.onhost.nvml_limits")


def _library() -> bool:
    """Return whether there is an NVML library at all: pynvml takes its time to import."""
    from nodetune.onhost import nvml

    return os.path.isdir(nvml.DRIVER_CONTAINER) or nvml.loads(nvml.LIBRARY)

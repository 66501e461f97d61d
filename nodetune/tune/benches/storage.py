"""Tune storage: read-ahead, scheduler, queue and dirty limits under one folder of a host."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.foundation.request import built, one_of, part
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.onhost import sysctl
from nodetune.tune.benches import kernel_settings, runs
from nodetune.tune.benches.kernel_settings import Knob, KnobBench
from nodetune.tune.benches.runs import TrialFigures
from nodetune.tune.model import BenchError, Case, Choice, Parameter, Setting, Trial
from nodetune.tune.request import StudyRequest
from nodetune.verify.model import Figure
from nodetune.verify.run import Measure

BUFFERED, DIRECT = "disk_buffered", "disk"
OBJECTIVES = {"read": (BUFFERED, "read"), "write": (BUFFERED, "write_fsync"), "random": (DIRECT, "random_read")}
READ_AHEAD, REQUESTS = (128, 512, 2048, 8192), (64, 256, 1024)
DIRTY = {"64MiB/256MiB": (64 << 20, 256 << 20), "256MiB/1GiB": (256 << 20, 1 << 30), "1GiB/4GiB": (1 << 30, 4 << 30)}
"""The limits at which writeback starts and at which writers wait for it."""

BLOCK = "https://docs.kernel.org/admin-guide/abi-stable.html"
SCHEDULERS = "https://docs.kernel.org/block/switching-sched.html"
VM = "https://docs.kernel.org/admin-guide/sysctl/vm.html"
MOUNTS = "mounts.points"
LIMITS = ("vm.dirty_background_bytes", "vm.dirty_bytes")
FACTS = {"host.kernel", MOUNTS, *(f"sysctl.{name}" for name in LIMITS)}
NFS = ("nfs", "nfs4")
REPEATS = 3
DIRECT_SECONDS = 2


@dataclass(frozen=True)
class StorageRequest:
    """The request. `size`: bytes of the test file."""

    folder: str
    allow_settings: bool = False
    objective: str = one_of("read", OBJECTIVES)
    size: int = 1 << 30
    connection: ConnectionOptions = built()
    study: StudyRequest = part(StudyRequest)


class StorageBench(KnobBench):
    """One folder of one host. Raise BenchError if nothing may be changed or measured."""

    subject = "storage"

    def __init__(
        self,
        target: Target,
        wanted: StorageRequest,
        connection: ConnectionOptions,
        how: Measure,
        facts: Callable[..., dict[str, HostFacts | str]] = runs.facts,
    ) -> None:
        if not wanted.allow_settings:
            raise BenchError("settings of the host change during the measurement: allow this with --allow-settings")
        self._target, self.wanted, self._connection, self._how = target, wanted, connection, how
        self._facts = facts([target], FACTS, connection)
        self.mount = mount_of(kernel_settings.common(self._facts, MOUNTS), wanted.folder)
        self.knobs = self._knobs(facts)
        first = self._measured(())
        if first.failure or not first.found:
            why = first.failure or first.skipped or "nothing was measured"
            more = "" if "is not a folder" in why else f": nodetune verify --disk {wanted.folder} says more"
            raise BenchError(f"{runs.of_host(target.name, why)}{more}")
        self._check_place(first.found)
        self._cases = self._of(first.found)

    def _knobs(self, facts: Callable[..., dict[str, HostFacts | str]]) -> tuple[Knob, ...]:
        names = queue_files(self.mount)
        queue = facts([self._target], set(names.values()), self._connection) if names else {}
        found = {name: kernel_settings.optional(queue, fact) for name, fact in names.items()}
        limits = [kernel_settings.common(self._facts, f"sysctl.{name}") for name in LIMITS]
        self._defaults = {**found, **dict(zip(LIMITS, limits, strict=True))}
        made = (*_of_queue(self.mount, found), _dirty(limits))
        return tuple(knob for knob in made if knob.parameter.choices)

    def _check_place(self, found: Sequence[Figure]) -> None:
        """Raise BenchError if the folder is on a different file system than its path suggests."""
        about = next((each.about for each in found if each.about.get("file_system")), {})
        there = (str(about.get("device")), str(about.get("file_system")))
        if about and there != (self.mount.get("source"), self.mount.get("type")):
            raise BenchError(
                f"{self.wanted.folder}: {there[0]} ({there[1]}) has no settings to tune: give a folder on a disk or "
                "NFS by its real path"
            )

    def _of(self, found: Sequence[Figure]) -> tuple[Case, ...]:
        """Return a case for each relevant figure. Raise BenchError if the objective is not among them."""
        objective = OBJECTIVES[self.wanted.objective]
        counted = [each for each in found if (each.measurement, each.metric) in OBJECTIVES.values()]
        cases = [Case(_id(each), each.unit, objective=(each.measurement, each.metric) == objective) for each in counted]
        if not any(case.objective for case in cases):
            raise BenchError(
                f"{' '.join(objective)} could not be measured: nodetune verify --disk {self.wanted.folder} says why"
            )
        return tuple(cases)

    def measure(self, setting: Setting, cases: Sequence[Case]) -> Trial:
        """Measure the folder once. The host restores the previous settings, even if killed."""
        began, came = time.monotonic(), self._measured(setting)
        values = {_id(figure): figure.value for figure in came.found}
        trial = runs.trial(setting, cases, came, values)
        return replace(trial, seconds=round(time.monotonic() - began, 3))

    def _measured(self, setting: Setting) -> TrialFigures:
        files = kernel_settings.written(self.knobs, setting)
        options = {"dir": self.wanted.folder, "size": self.wanted.size, "repeats": REPEATS}
        direct = {**options, "repeats": 1, "seconds": DIRECT_SECONDS, "metrics": ["random_read"]}
        items = [kernel_settings.item(BUFFERED, options, files), kernel_settings.item(DIRECT, direct, files)]
        return runs.measured([self._target], items, {}, self._how, self._connection)

    def provenance(self) -> Mapping[str, Any]:
        """Return the hosts and conditions of the result."""
        return {
            "hosts": [self._target.name],
            "kernel": kernel_settings.common(self._facts, "host.kernel"),
            "folder": self.wanted.folder,
            "mount": {name: self.mount.get(name) for name in ("source", "type", "disk", "options", "super_options")},
            "defaults": self._defaults,
            "size": self.wanted.size,
            "objective": self.wanted.objective,
        }


def mount_of(points: Mapping[str, Mapping[str, Any]], folder: str) -> Mapping[str, Any]:
    """Return the mount of a folder. Raise BenchError if it is unknown."""
    around = [place for place in points if f"{folder.rstrip('/')}/".startswith(f"{place.rstrip('/')}/")]
    if not folder.startswith("/") or not around:
        raise BenchError(f"{folder}: give the absolute path of a folder on a disk or a network file system")
    return points[max(around, key=len)]


def queue_files(mount: Mapping[str, Any]) -> dict[str, str]:
    """Return setting → its fact, for the settings of a mount."""
    disk = mount.get("disk")
    if disk and re.fullmatch(r"[\w.!-]+", str(disk)):
        queue = f"/sys/block/{disk}/queue"
        numbers = {name: f"sysfs.{queue}/{name}" for name in ("read_ahead_kb", "nr_requests")}
        return {**numbers, "scheduler": f"file.{queue}/scheduler"}
    if mount.get("type") in NFS and re.fullmatch(r"\d+:\d+", str(mount.get("device"))):
        return {"read_ahead_kb": f"sysfs./sys/class/bdi/{mount['device']}/read_ahead_kb"}
    return {}


def _of_queue(mount: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[Knob, ...]:
    """Return knobs for the values that were read; none for what this disk lacks."""
    path = {name: fact.partition(".")[2] for name, fact in queue_files(mount).items()}
    knobs = []
    if isinstance(found.get("read_ahead_kb"), int):
        knob = _file("read_ahead_kb", path, READ_AHEAD, found, (BLOCK, "KiB", ("read-ahead-small",)))
        nfs = mount.get("type") in NFS
        knobs.append(replace(knob, judged_by=(), kept_by="nfs-read-ahead-small") if nfs else knob)
    words = str(found.get("scheduler") or "").split()
    if any(word.startswith("[") for word in words):
        now = next(word.strip("[]") for word in words if word.startswith("["))
        choices = tuple(word.strip("[]") for word in words if word.strip("[]") != now)
        knobs.append(_scheduler(choices, path, found.get("nr_requests")))
    if isinstance(found.get("nr_requests"), int):
        knobs.append(_file("nr_requests", path, REQUESTS, found, (BLOCK, "", ())))
    return tuple(knobs)


def _scheduler(choices: Sequence[Choice], paths: Mapping[str, str], requests: Any) -> Knob:
    """Return the knob of the scheduler. The kernel resets nr_requests with it, so its value is written again."""
    after = {paths["nr_requests"]: str(requests)} if isinstance(requests, int) else {}
    parameter = Parameter("scheduler", tuple(choices), SCHEDULERS)
    return Knob(parameter, lambda choice: {paths["scheduler"]: str(choice), **after}, ("nvme-scheduler-set",))


def _file(
    name: str,
    paths: Mapping[str, str],
    choices: Sequence[Choice],
    now: Mapping[str, Any],
    about: tuple[str, str, tuple[str, ...]],
) -> Knob:
    source, unit, judged_by = about
    path = paths[name]
    parameter = Parameter(name, tuple(each for each in choices if each != now[name]), source, unit)
    return Knob(parameter, lambda choice: {path: str(choice)}, judged_by)


def _dirty(now: Sequence[int]) -> Knob:
    choices = tuple(word for word, sizes in DIRTY.items() if list(sizes) != list(now))

    def files(choice: Choice) -> dict[str, str]:
        sizes = DIRTY[str(choice)]
        return {sysctl.path_of(name): str(size) for name, size in zip(LIMITS, sizes, strict=True)}

    return Knob(Parameter("dirty_limits", choices, VM), files, ("dirty-limit-high", "dirty-background-limit-high"))


def _id(figure: Figure) -> str:
    return f"{figure.measurement} {figure.metric}"

"""Runs of the guard in which something else than a GPU is at fault, and GPUs that are: their results.

    python -m tests.unit.guard.faults [RUNS] [--broken GPUS] [--seed NUMBER] [--workers NUMBER]

Ends with 1 where a run held a job that its fault does not justify, took longer than promised, or was not counted, or where
a job got a broken GPU.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.support import nvml_substitute
from tests.unit.guard import install
from tests.unit.guard.faulty_place import Place, in_namespace, sh, skewed_clock

CALLS = (
    "nvmlInit",
    "nvmlDeviceGetCount",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetPciInfo",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetRemappedRows",
    "nvmlDeviceGetSramEccErrorStatus",
    "nvmlDeviceGetTotalEccErrors",
    "nvmlDeviceGetFieldValues",
    "nvmlSystemGetDriverVersion",
)
CODES = (*range(1, 31), 999)
ERRORS = tuple(itertools.product(CALLS, CODES))
"""Each in turn: 341 runs of NVML's errors, as 2000 runs have them, try every error of every call."""

OF_GPU = {8, 11, 14, 15, 16}
JUSTIFIED = {"nvmlInit": OF_GPU | {9, 18}, "nvmlDeviceGetHandleByIndex": OF_GPU}
"""The errors that only a GPU or its driver causes, by the call; of every other call only that the GPU is lost."""
LOST = 15

USUAL, PATIENT = {"total": 5, "step": 3, "stuck": 20}, {"total": 40, "step": 1, "stuck": 20}
"""Seconds that the policy gives. A broken GPU has to be found on a machine as busy as the tests make it."""
CPU_LEVELS = (3, 6, 10, 15, 30)
BROKEN = (
    "lost@{gpu}=1",
    "hang@{gpu}=nvmlDeviceGetTemperature:forever",
    "hang@{gpu}=nvmlDeviceGetHandleByIndex:forever",
    "error@{gpu}=nvmlDeviceGetHandleByIndex:16",
    "error@{gpu}=nvmlDeviceGetHandleByIndex:11",
    "error@{gpu}=nvmlDeviceGetTemperature:15",
    "error=nvmlInit:18",
    "driver_not_loaded=1",
    "hang=nvmlInit:forever",
)


class Run:
    """One run of the prolog with one fault."""

    def __init__(self, place, kind, chance):
        self.place, self.node, self.kind, self.chance = place, place.node, kind, chance
        self.before, self.more, self.justified, self.streams = [], {}, False, None
        self.counts, self.during, self.what = True, None, kind
        self.enter, self.alone = place.machine.enter, contextlib.nullcontext()
        self.node.control()
        place.give(PATIENT if kind == "broken" else USUAL)
        getattr(self, "_" + kind)()

    def _cpu(self):
        level = self.chance.choice(CPU_LEVELS)
        self.what = f"cpu {level} %"
        self.before = sh(f"echo $$ > {self.place.cpu(level)}/cgroup.procs")

    def _stopped(self):
        self.during = self._stop_and_go

    def _memory(self):
        self.before = sh(f"ulimit -v {self.chance.randrange(12_000, 400_000)}")

    def _files(self):
        self.before = sh(f"ulimit -n {self.chance.randrange(12, 80)}")  # dash reads no script with fewer

    def _file_size(self):
        self.before = sh(f"ulimit -f {self.chance.randrange(3)}")

    def _processes(self):
        self.before = sh(f"echo $$ > {self.place.processes(self.chance.randrange(1, 8))}/cgroup.procs")

    def _user(self):
        most = self.chance.randrange(1, 6)
        self.counts = False  # its folder is root's
        self.before = ("setpriv", "--reuid=65534", "--clear-groups", "prlimit", f"--nproc={most}:{most}")

    def _pipe(self):
        ends = os.pipe()
        if self.chance.random() < 0.5:
            os.close(ends[0])
            self.streams = (ends[1],)
            return
        os.set_blocking(ends[1], False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(ends[1], b"x" * 4096)
        os.set_blocking(ends[1], True)
        self.streams = ends[::-1]

    def _signal(self):
        self.number = self.chance.choice((1, 2, 3, 6, 10, 12, 14, 15, 24, 25, 13))
        self.during = self._send

    def _nvml(self):
        call, code = next(self.place.errors)
        one = self.chance.choice(("", "@0", "@1")) if call.startswith("nvmlDeviceGet") and "Count" not in call else ""
        self.node.control(f"error{one}={call}:{code}")
        if call == "nvmlInit":
            self._on_this_machine()
        self.what = f"nvml {call} {code}"
        self.justified = code in JUSTIFIED.get(call, {LOST})

    def _clock(self):
        self.more = {
            "LD_PRELOAD": str(self.place.skew),
            "SKEW": str(self.chance.choice((-(10**9), -3600, 3600, 10**9))),
        }

    def _disk(self):
        run = self.node.run_folder
        fill = f"dd if=/dev/zero of={run}/fill bs=4096 2> /dev/null"
        change = self.chance.choice((fill, f"mount -o remount,ro {run}"))
        self.counts = False  # it is gone with the mount
        self.before = in_namespace(f"mount -t tmpfs -o size=16k none {run}", change)

    def _broken(self):
        line = self.chance.choice(BROKEN)
        self.what, self.justified = f"broken {line.partition('=')[0][:6]} {line.partition('=')[2]}", True
        self.node.control(line.format(gpu=self.chance.randrange(2)))
        if "@" not in line:
            self._on_this_machine()

    def _on_this_machine(self):
        """Where its own process namespace makes a container of it, which judges no driver. One at a time there."""
        self.enter, self.alone = (), self.place.alone

    def _stop_and_go(self, child):
        """Let the reader run for a tenth of the time."""
        while child.poll() is None:
            for pid in self.node.readers():
                for number, seconds in ((signal.SIGSTOP, 0.09), (signal.SIGCONT, 0.01)):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                    time.sleep(seconds)
            time.sleep(0.005)

    def _send(self, child):
        """Send a signal to one of its processes at some moment."""
        shell = self._shell(child)
        time.sleep(self.chance.random() * 0.4)
        known = [shell] if shell else []
        with contextlib.suppress(OSError):
            for pid in known:
                known += install.children_of(pid)
        with contextlib.suppress(ProcessLookupError):
            if len(known) > 1:
                os.kill(self.chance.choice(known), self.number)

    def _shell(self, child):
        """The shell of the entry, once it has set to work; none if it has ended by then."""
        while child.poll() is None:
            for entry in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    words = Path(f"/proc/{entry}/cmdline").read_text().split("\0")
                    if words[:2] == ["/bin/sh", str(self.node.prolog)] and install.children_of(int(entry)):
                        return int(entry)
        return None

    def go(self):
        """Run it; again where somebody else reads. Return (what, code, seconds, what is wrong)."""
        with self.alone:
            while True:
                found, said = self._go()
                if not (found[3] and self.kind == "broken" and "an earlier reader" in said):
                    return found

    def _go(self):
        counted = self.node.inconclusive()
        start = time.monotonic()
        streams = self.streams or (subprocess.PIPE,)
        command = [*self.enter, *self.place.bus, *self.before, "/bin/sh", self.node.prolog]
        environment = {**self.node.environment(job=str(self.place.job()), gpus="0,1"), **self.more}
        child = subprocess.Popen(
            command, env=environment, stdout=streams[0], stderr=streams[0], stdin=subprocess.DEVNULL
        )
        helper = threading.Thread(target=self.during, args=(child,)) if self.during else None
        if helper:
            helper.start()
        said = (child.communicate(timeout=install.LATEST)[0] or b"").decode()
        seconds = time.monotonic() - start
        if helper:
            helper.join()
        for end in self.streams or ():
            os.close(end)
        passed = "nodetune: pass" in said or (self.streams and self.node.read("heartbeat").split()[2:] == ["pass"])
        self.place.after(keep=self.kind == "broken")
        new = self.node.inconclusive() - counted
        return (self.what, child.returncode, seconds, self._wrong(child.returncode, seconds, passed, new, said)), said

    def _wrong(self, code, seconds, passed, counted, said):
        wrong = []
        if code not in (0, 1) or (code == 1 and not self.justified):
            wrong.append(f"held without a reason ({code})")
        if self.kind == "broken" and code != 1:
            wrong.append("not held")
        if self.place.timely and seconds > self.place.most:
            wrong.append(f"took {seconds:.1f} s")
        if code == 0 and not passed and not counted and self.counts:
            wrong.append("not counted")
        return f"{self.what}: {', '.join(wrong)}: {said.strip()}" if wrong else ""


KINDS = {
    "cpu": 5,
    "stopped": 2,
    "memory": 3,
    "files": 3,
    "file_size": 2,
    "processes": 3,
    "user": 2,
    "pipe": 2,
    "signal": 3,
    "nvml": 7,
    "clock": 2,
    "disk": 2,
}


def runs(count, broken, seed, workers, timely=True):
    """Do the runs. Return [(what, code, seconds, what is wrong)]. Only where they are `timely` is being late wrong."""
    chance = random.Random(seed)
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=count) + ["broken"] * broken
    chance.shuffle(kinds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        nvml, program = nvml_substitute.copied(folder / "nvml"), install.program(folder / "program")
        errors = itertools.cycle(chance.sample(ERRORS, len(ERRORS)))
        alone, skew = threading.Lock(), skewed_clock(folder)
        places = [Place(folder / f"n{number}", program, nvml, skew, alone, timely) for number in range(workers)]
        for place in places:
            place.errors = errors
        try:
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                parts = [(place, kinds[at::workers], seed * 1000 + at) for at, place in enumerate(places)]
                return [one for part in pool.map(_part, parts) for one in part]
        finally:
            for place in places:
                place.end()


def _part(given):
    place, kinds, seed = given
    chance = random.Random(seed)
    return [Run(place, kind, chance).go() for kind in kinds]


def report(found):
    """Print the results of each kind. Return what is wrong."""
    by_kind = collections.defaultdict(list)
    for what, code, seconds, _ in found:
        by_kind[what if what.startswith("cpu") else what.partition(" ")[0]].append((code, seconds))
    for what, ends in sorted(by_kind.items()):
        times = sorted(seconds for _, seconds in ends)
        held = sum(code == 1 for code, _ in ends)
        print(
            f"{what:12} {len(ends):5} runs {held:5} held  median {times[len(times) // 2]:5.2f} s  longest {times[-1]:5.2f} s"
        )
    wrong = [why for *_, why in found if why]
    print(f"wrong: {len(wrong)}", *wrong, sep="\n")
    return wrong


def main():
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("runs", nargs="?", type=int, default=2000)
    asked.add_argument("--broken", type=int, default=200)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--workers", type=int, default=4)
    given = asked.parse_args()
    sys.exit(bool(report(runs(given.runs, given.broken, given.seed, given.workers))))


if __name__ == "__main__":
    main()

"""Many prologs on one busy node whose NVML misbehaves at random, and their results.

    python -m tests.unit.guard.soak [RUNS] [--load PROCESSES] [--seed NUMBER]

Ends with 1 where a job was held that had no fault, a run took longer than its budget, readers piled up or files did.
"""

import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nodetune.guard.node import records
from tests.support import nvml_substitute
from tests.unit.guard import install

BUDGET = 5.0
"""Seconds that the policy gives a run."""
HARD = BUDGET + 2.0
"""Seconds after which the entry has ended its program by force."""
FAULTLESS = {"healthy", "peer", "slow", "killed", "together", "no gpus", "again"}
WEIGHTS = {
    "healthy": 30,
    "again": 10,
    "no gpus": 5,
    "lost": 15,
    "peer": 10,
    "slow": 10,
    "killed": 8,
    "together": 10,
    "hang": 1,
    "killed in a hang": 1,
}
CONTROL = {
    "lost": ["lost@{mine}=1"],
    "peer": ["lost@{other}=1"],
    "slow": ["hang=nvmlDeviceGetTemperature:0.1"],
    "hang": ["hang@{other}=nvmlDeviceGetTemperature:forever"],
    "killed in a hang": ["hang@{other}=nvmlDeviceGetTemperature:forever"],
}


class Soak:
    def __init__(self, node, chance):
        self.node, self.chance, self.job = node, chance, 1000
        self.ends = collections.defaultdict(collections.Counter)
        self.seconds = collections.defaultdict(list)
        self.wrong, self.most_readers, self.files = [], 0, []

    def run(self, what):
        mine, other = self.chance.sample(range(8), 2)
        self.node.control(*(line.format(mine=mine, other=other) for line in CONTROL.get(what, ())))
        if what != "again":
            self.node.forget()
        started = [self.start(mine if what != "no gpus" else None) for _ in range(2 if what == "together" else 1)]
        if what.startswith("killed"):
            self.kill(what)
        for child, start in started:
            said, _ = child.communicate(timeout=install.LATEST)
            self.judge(what, child.returncode, said, time.monotonic() - start)
        self.most_readers = max(self.most_readers, len(self.node.readers()))
        self.files.append(sum(len(files) for _, _, files in os.walk(self.node.run_folder)))

    def start(self, gpu):
        self.job += 1
        gpus = None if gpu is None else str(gpu)
        return self.node.start(job=str(self.job), gpus=gpus), time.monotonic()

    def kill(self, what):
        """End the program by force at some moment: of a hang, once it hangs."""
        if what == "killed":
            time.sleep(self.chance.random() * 0.3)
        else:
            end = time.monotonic() + 2
            while not self.node.readers() and time.monotonic() < end:
                time.sleep(0.01)
        for entry in filter(str.isdigit, os.listdir("/proc")):
            if is_program(entry, str(self.node.policy)):
                try:
                    os.kill(int(entry), signal.SIGKILL)
                except ProcessLookupError:
                    continue

    def judge(self, what, code, said, seconds):
        end = (
            "held"
            if code == 1
            else "inconclusive"
            if "inconclusive: " in said
            else "ran"
            if code == 0
            else f"ended with {code}"
        )
        self.ends[what][end] += 1
        self.seconds[what].append(seconds)
        if code not in (0, 1) or (code == 1 and what in FAULTLESS):
            self.wrong.append(f"{what}: {code}: {said.strip()}")
        if what == "lost" and end == "ran":
            self.wrong.append(f"{what}: not seen: {said.strip()}")

    def over(self):
        return [each for times in self.seconds.values() for each in times if each > BUDGET]


def is_program(pid, policy):
    """Whether this is a program of the node itself, not the `timeout` above it or a reader below it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return words[1:2] == ["-I"] and policy in words and Path(f"/proc/{pid}/comm").read_text() != "nodetune:gpu\n"
    except OSError:
        return False


def soak(runs, load, seed):
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    machine = install.Machine()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            nvml = nvml_substitute.copied(folder / "nvml")
            node = install.Node(folder / "node", install.program(folder / "program"), nvml, machine)
            done = Soak(node, random.Random(seed))
            for _ in range(runs):
                done.run(done.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0])
            return report(done, runs, load, node)
    finally:
        machine.end()
        for burner in burners:
            burner.kill()
            burner.wait()


def report(done, runs, load, node):
    print(f"{runs} rounds beside {load} busy processes; load average {os.getloadavg()[0]:.1f}")
    for what, ends in sorted(done.ends.items()):
        times = sorted(done.seconds[what])
        middle, most = times[len(times) // 2], times[-1]
        told = ", ".join(f"{count} {end}" for end, count in ends.most_common())
        print(f"{what:18} {told:40} median {middle:5.2f} s  longest {most:5.2f} s")
    quarter = max(1, len(done.files) // 4)
    print(f"held without a fault or not seen: {len(done.wrong)}; longer than {BUDGET:g} s: {len(done.over())}")
    print(f"readers left, most: {done.most_readers}; counted inconclusive {node.inconclusive()}")
    print(
        f"files, most in each quarter: {[max(done.files[at : at + quarter]) for at in range(0, quarter * 4, quarter)]}"
    )
    print(*done.wrong, sep="\n")
    grew = max(done.files) > len(records.FOLDERS) * records.MAX_RECORDS
    return 1 if done.wrong or done.most_readers > 1 or grew or done.over() else 0


def main():
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("runs", nargs="?", type=int, default=1000)
    asked.add_argument("--load", type=int, default=2)
    asked.add_argument("--seed", type=int, default=1)
    given = asked.parse_args()
    sys.exit(soak(given.runs, given.load, given.seed))


if __name__ == "__main__":
    main()
